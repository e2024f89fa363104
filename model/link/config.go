package link

import (
	"fmt"

	"napisim/model/unit"
	"napisim/sim"
)

// The rates that a link may have. Below the lowest a single frame would take
// seconds; above the highest a frame would take less than a few picoseconds.
const (
	MinRate = 100 * unit.Kbps
	MaxRate = 10 * unit.Tbps
)

// Config describes one direction of a link.
type Config struct {
	// Rate is the speed in bits per second. It must be given.
	Rate unit.BitRate
	// Delay is the propagation delay, and whatever else a frame meets between the
	// last bit sent and the last bit received. Zero means a wire without length.
	Delay sim.Time
}

// DefaultConfig returns a gigabit link over 100 m of copper, at 5 ns per metre.
func DefaultConfig() Config {
	return Config{Rate: unit.Gbps, Delay: 500 * sim.Nanosecond}
}

// Validate returns every fault of the configuration.
func (c *Config) Validate() []error {
	var faults []error
	if c.Rate < MinRate || c.Rate > MaxRate {
		faults = append(faults, fmt.Errorf("rate: %v is not between %v and %v", c.Rate, MinRate, MaxRate))
	}
	if c.Delay < 0 || c.Delay > sim.Second {
		faults = append(faults, fmt.Errorf("delay: %v is not between 0 and 1s", c.Delay))
	}
	return faults
}
