package guest

import (
	"fmt"

	"napisim/sim"
	"napisim/softirq/gro"
	"napisim/softirq/rps"
)

// Config describes an interface as its driver brings it up.
type Config struct {
	// Name is the interface's name. Vectors are called after it.
	Name string
	// RXCsum tells that the device verifies checksums (ethtool -K rx); e1000 does not by
	// default.
	RXCsum bool
	// NoSG tells that the device takes no skbs with fragments (ethtool -K sg off): what is cut
	// in software is copied.
	NoSG bool
	// GRO configures GRO; nil turns it off.
	GRO *gro.Config
	// GROFlushTimeout and DeferHardIRQs are gro_flush_timeout and napi_defer_hard_irqs of
	// the interface.
	GROFlushTimeout sim.Time
	DeferHardIRQs   int
	// Memory is where the heads of skbs come from; nil costs nothing. Interfaces of a core
	// share it.
	Memory *Memory
	// RPS steers received packets to the backlogs of cores; nil does not.
	RPS *rps.Queue
	// RXIRQ and TXIRQ are the Linux interrupt numbers. E1000 has RXIRQ only.
	RXIRQ, TXIRQ int
	// CPU is the core that takes the interrupts.
	CPU int
	// RXIRQName and TXIRQName are the names of the actions in /proc/interrupts; empty
	// stands for the driver's own, which is virtioN-input.0 where N is not known.
	RXIRQName, TXIRQName string
	// FixedITR turns dynamic interrupt moderation off, as ethtool -C rx-usecs 0 does for
	// e1000e. The driver of e1000 refuses that for the emulated device.
	FixedITR bool
	// BQL turns byte queue limits on. E1000 and e1000e have them, virtio_net since v6.11.
	BQL bool
	// BQLMin is limit_min of the byte queue limits, in bytes. It takes effect with the
	// first completion: the first burst still meets a limit of zero.
	BQLMin int
}

// BQLMax is the largest limit, which "max" sets: more than any queue has.
const BQLMax = 1<<31 - 1<<28

// Validate returns every fault of the configuration.
func (c *Config) Validate() []error {
	var faults []error
	if c.Name == "" {
		faults = append(faults, fmt.Errorf("name: an interface has none"))
	}
	if c.BQLMin < 0 || c.BQLMin > BQLMax {
		faults = append(faults, fmt.Errorf("limit_min: %d is not between 0 and %d", c.BQLMin, BQLMax))
	}
	if c.GRO != nil {
		if err := c.GRO.Validate(); err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

func named(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}
