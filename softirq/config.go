package softirq

import (
	"fmt"

	"napisim/sim"
)

// Config is what a kernel version and its sysctls decide. It is shared by all
// cores and does not change during a run.
type Config struct {
	// NAPISchedule, Ksoftirqd and GRONormal name behaviours.
	NAPISchedule, Ksoftirqd, GRONormal string
	// NetdevBudget is net.core.netdev_budget, in packets.
	NetdevBudget int
	// NetdevBudgetUsecs is net.core.netdev_budget_usecs; 0 means two jiffies.
	NetdevBudgetUsecs sim.Time
	// GRONormalBatch is net.core.gro_normal_batch.
	GRONormalBatch int
}

// DefaultConfig returns the configuration of v6.1 with the kernel's default sysctls.
func DefaultConfig() Config {
	return Config{
		NAPISchedule: "always_raise", Ksoftirqd: "defer_while_running", GRONormal: "skb_list_segments",
		NetdevBudget: 300, GRONormalBatch: 8,
	}
}

// behaviours are the functions that a Config's names select.
type behaviours struct {
	napiSchedule NAPIScheduleBehaviour
	ksoftirqd    KsoftirqdBehaviour
	groNormal    GRONormalBehaviour
}

func (c *Config) behaviours() (b behaviours, faults []error) {
	var err error
	if b.napiSchedule, err = find(napiSchedules, func(b NAPIScheduleBehaviour) string { return b.Name }, c.NAPISchedule, "napi_schedule"); err != nil {
		faults = append(faults, err)
	}
	if b.ksoftirqd, err = find(ksoftirqds, func(b KsoftirqdBehaviour) string { return b.Name }, c.Ksoftirqd, "ksoftirqd"); err != nil {
		faults = append(faults, err)
	}
	if b.groNormal, err = find(groNormals, func(b GRONormalBehaviour) string { return b.Name }, c.GRONormal, "gro_normal"); err != nil {
		faults = append(faults, err)
	}
	return b, faults
}

// Validate returns every fault of the configuration.
func (c *Config) Validate() []error {
	_, faults := c.behaviours()
	if c.NetdevBudget < 1 {
		faults = append(faults, fmt.Errorf("net.core.netdev_budget: %d is below 1", c.NetdevBudget))
	}
	if c.NetdevBudgetUsecs < 0 {
		faults = append(faults, fmt.Errorf("net.core.netdev_budget_usecs: %v is negative", c.NetdevBudgetUsecs))
	}
	if c.GRONormalBatch < 1 {
		faults = append(faults, fmt.Errorf("net.core.gro_normal_batch: %d is below 1", c.GRONormalBatch))
	}
	return faults
}
