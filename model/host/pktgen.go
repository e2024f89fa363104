package host

import (
	"napisim/model/cpu"
	"napisim/sim"
)

// PktgenConfig describes what pktgen sends (net/core/pktgen.c; the same in v6.1 and v6.12).
type PktgenConfig struct {
	// Start is when the thread begins; at 0 it begins when it is first woken.
	Start sim.Time
	// Count is how many frames it sends, Burst how many with one doorbell.
	Count, Burst int
	// Delay is the time between the starts of two bursts; 0 sends them back to back.
	Delay sim.Time
	// Prepare is the work before each burst: a new skb, filled. Look is the work of one
	// look at the clock, of which the thread makes many when it waits for less than
	// SpinLimit.
	Prepare, Look sim.Time
	// Once is what comes before the first preparation.
	Once sim.Time
	// NewSKB is told of each preparation, when it is done; it may be nil.
	NewSKB func()
}

// SpinLimit is the wait that pktgen spends looking at the clock; it sleeps for longer ones.
const SpinLimit = 100 * sim.Microsecond

// Pktgen is the body of a pktgen thread. xmit sends up to n frames with one doorbell and
// returns how many the device has taken; it is called with softirqs off. A device that
// takes none is asked again.
func Pktgen(cfg PktgenConfig, xmit func(c *cpu.Core, n int) int) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		if cfg.Start > 0 {
			t.SleepUntil(cfg.Start)
		}
		c.Work(cfg.Once)
		c.Look()
		next, first, ok := c.Now(), true, true
		for sent := 0; sent < cfg.Count; {
			if ok {
				c.Work(cfg.Prepare)
				if c.Look(); cfg.NewSKB != nil {
					cfg.NewSKB()
				}
			}
			if cfg.Delay > 0 && !first { // pktgen looks only once something was sent
				spin(t, &cfg, next)
				next += cfg.Delay
			}
			first = false
			c.BHDisable()
			n := xmit(c, min(cfg.Burst, cfg.Count-sent))
			c.BHEnable()
			if ok = n > 0; !ok {
				c.Work(max(cfg.Look, 1))
			}
			sent += n
			c.CondResched()
		}
	}
}

// spin waits until an instant, as pktgen does: it sleeps through a long wait and looks
// at the clock through a short one.
func spin(t *cpu.Task, cfg *PktgenConfig, until sim.Time) {
	c := t.Core()
	c.Look()
	if remaining := until - c.Now(); remaining >= SpinLimit {
		t.SleepUntil(until)
		return
	}
	for c.Now() < until {
		c.Work(max(cfg.Look, 1))
		c.Look()
	}
}
