package nic

import (
	"fmt"

	"napisim/sim"
)

// MaxRing is the largest number of descriptors of a ring.
const MaxRing = 65536

// TimerMode says what starts the timer of rx-usecs and tx-usecs.
type TimerMode uint8

const (
	// FromFirst starts the timer with the first completion that is not yet reported.
	FromFirst TimerMode = iota
	// SinceInterrupt starts it with the interrupt before: interrupts are at least that
	// far apart, and a completion after a long pause is reported at once. This is the
	// interrupt throttling rate of Intel's devices and the EQE mode of mlx5.
	SinceInterrupt
	// FromLast starts it again with each completion (ethtool -C cqe-mode-rx on).
	FromLast
)

// String returns the name that scenarios use.
func (m TimerMode) String() string {
	return [...]string{"from_first", "since_interrupt", "from_last"}[m]
}

// ParseTimerMode returns the mode of that name.
func ParseTimerMode(name string) (TimerMode, error) {
	for m := FromFirst; m <= FromLast; m++ {
		if m.String() == name {
			return m, nil
		}
	}
	return 0, fmt.Errorf("unknown way to start a timer %q", name)
}

// Coalesce is the interrupt moderation of one ring, as ethtool -C sets it. An
// interrupt is due as soon as either of the two says so; both zero report every
// completion at once.
type Coalesce struct {
	// Usecs is rx-usecs or tx-usecs: how long a completion may wait. Zero means that
	// time decides nothing. ethtool knows whole microseconds only.
	Usecs sim.Time
	// Frames is rx-frames or tx-frames: how many completions may wait. Zero means that
	// their number decides nothing. Without Usecs the last frames of a burst may wait
	// for ever.
	Frames int
	// Mode says what starts the timer of Usecs.
	Mode TimerMode
}

// Moderation returns a new Moderation that does what c says.
func (c Coalesce) Moderation() Moderation {
	var timer Moderation
	switch {
	case c.Frames == 1 || c.Frames == 0 && c.Usecs == 0:
		return &Immediate{}
	case c.Usecs == 0:
		return &Count{Frames: c.Frames}
	case c.Mode == SinceInterrupt:
		timer = &Throttle{Gap: c.Usecs}
	case c.Mode == FromLast:
		timer = &Idle{Delay: c.Usecs}
	default:
		timer = &Timer{Delay: c.Usecs}
	}
	if c.Frames == 0 {
		return timer
	}
	return &Either{timer, &Count{Frames: c.Frames}}
}

func (c Coalesce) validate(ring string) []error {
	var faults []error
	if c.Usecs < 0 || c.Usecs > sim.Second {
		faults = append(faults, fmt.Errorf("%s-usecs: %v is not between 0 and 1s", ring, c.Usecs))
	}
	if c.Frames < 0 || c.Frames > MaxRing {
		faults = append(faults, fmt.Errorf("%s-frames: %d is not between 0 and %d", ring, c.Frames, MaxRing))
	}
	if c.Mode > FromLast {
		faults = append(faults, fmt.Errorf("%s-usecs: %d is no known way to start a timer", ring, c.Mode))
	}
	return faults
}

// Rearm says what a vector still knows, when it is unmasked, of the completions that
// came while it was masked.
type Rearm uint8

const (
	// NewerThanConsumer forgets those that the driver has consumed: unmasking leads to
	// an interrupt only if completions are left. So do completion queues that are
	// armed with a consumer index, as those of Mellanox are.
	NewerThanConsumer Rearm = iota
	// LatchEvents forgets nothing but what was acknowledged: a completion sets a bit
	// that only Vector.Ack clears, and unmasking with the bit set leads to an interrupt
	// also if everything was consumed meanwhile. So does the FDMA of the lan966x.
	LatchEvents
)

// String returns the name that scenarios use.
func (r Rearm) String() string { return [...]string{"newer_than_consumer", "latch_events"}[r] }

// ParseRearm returns the semantics of that name.
func ParseRearm(name string) (Rearm, error) {
	for r := NewerThanConsumer; r <= LatchEvents; r++ {
		if r.String() == name {
			return r, nil
		}
	}
	return 0, fmt.Errorf("unknown semantics of re-arming %q", name)
}

// Config describes a device with one pair of queues.
type Config struct {
	// RXRing and TXRing are the numbers of descriptors, 1 to MaxRing (ethtool -G rx and
	// tx). Hardware often wants powers of two; nothing here does.
	RXRing, TXRing int
	// RX and TX are the moderation of receive and transmit completions (ethtool -C).
	RX, TX Coalesce
	// SharedVector lets RX and TX completions raise the same interrupt; otherwise each
	// ring has a vector of its own.
	SharedVector bool
	// Rearm is what a vector knows after it was masked.
	Rearm Rearm
	// TXLatency is the time from the departure of a frame to its completion: the
	// write-back of the descriptor over the bus. Zero completes at the departure.
	TXLatency sim.Time
}

// DefaultConfig returns a device with the defaults of the i40e driver: rings of 512
// descriptors, at most 20000 interrupts per second, the receive and the transmit
// ring of a pair on one vector.
func DefaultConfig() Config {
	itr := Coalesce{Usecs: 50 * sim.Microsecond, Mode: SinceInterrupt}
	return Config{RXRing: 512, TXRing: 512, RX: itr, TX: itr, SharedVector: true, TXLatency: sim.Microsecond}
}

// Validate returns every fault of the configuration. Fields have the spellings of
// ethtool.
func (c *Config) Validate() []error {
	var faults []error
	for _, ring := range []struct {
		name string
		size int
	}{{"rx", c.RXRing}, {"tx", c.TXRing}} {
		if ring.size < 1 || ring.size > MaxRing {
			faults = append(faults, fmt.Errorf("%s: a ring of %d descriptors is not between 1 and %d", ring.name, ring.size, MaxRing))
		}
	}
	faults = append(faults, c.RX.validate("rx")...)
	faults = append(faults, c.TX.validate("tx")...)
	// A count that the ring cannot hold would stop the device for good.
	for _, ring := range []struct {
		name string
		size int
		c    Coalesce
	}{{"rx", c.RXRing, c.RX}, {"tx", c.TXRing, c.TX}} {
		if ring.c.Usecs == 0 && ring.c.Frames > ring.size && ring.size > 0 {
			faults = append(faults, fmt.Errorf("%s-frames: %d never come together in a ring of %d, and %[1]s-usecs is 0",
				ring.name, ring.c.Frames, ring.size))
		}
	}
	if c.Rearm > LatchEvents {
		faults = append(faults, fmt.Errorf("rearm: %d is no known semantics", c.Rearm))
	}
	if c.TXLatency < 0 || c.TXLatency > sim.Second {
		faults = append(faults, fmt.Errorf("tx_latency: %v is not between 0 and 1s", c.TXLatency))
	}
	return faults
}
