package cpu

import (
	"napisim/model"
	"napisim/sim"
)

// HRTimer is a high-resolution timer (struct hrtimer) in its hard, pinned form: it
// expires at an exact instant and runs its function in hardirq context, in the timer
// interrupt of its core. An idle core without a tick is woken for it. Arming it again
// allocates nothing.
type HRTimer struct {
	core    *Core
	fn      func(*Core)
	id      int
	expires sim.Time
	event   sim.EventID
	armed   bool
}

// NewHRTimer makes a timer of core c that calls fn in hardirq context, with
// interrupts off.
func (c *Core) NewHRTimer(fn func(*Core)) *HRTimer {
	c.m.nextHRTimer++
	return &HRTimer{core: c, fn: fn, id: c.m.nextHRTimer}
}

// Core returns the core in whose timer interrupt the timer expires.
func (t *HRTimer) Core() *Core { return t.core }

// Start is hrtimer_start with an absolute time: the timer expires at that instant, or
// at once if it has passed. One that is armed is moved. The caller has looked; it
// costs no time by itself.
func (t *HRTimer) Start(at sim.Time) { t.StartOn(t.core, at) }

// StartOn is Start by code on a core that the timer may not have been armed on before
// (HRTIMER_MODE_ABS_PINNED): it expires there.
func (t *HRTimer) StartOn(c *Core, at sim.Time) {
	t.Cancel()
	t.core = c
	t.expires = at
	t.armed = true
	c.hrtimers = append(c.hrtimers, t)
	t.event = c.eng.Schedule(max(at, c.eng.Now()), c.phase(phaseInterrupts), t, 0)
}

// Cancel is hrtimer_try_to_cancel: the timer does not expire. It does nothing to one
// that is not armed. The caller has looked.
func (t *HRTimer) Cancel() {
	if t.armed {
		t.core.eng.Cancel(t.event)
		t.disarm()
	}
}

// Armed is hrtimer_is_queued: whether the timer waits for its instant. It is false
// while its function runs, unless that has started it again.
func (t *HRTimer) Armed() bool { return t.armed }

// Expires returns the instant that the timer was last started for.
func (t *HRTimer) Expires() sim.Time { return t.expires }

// Fire is the timer's interrupt; the engine calls it.
func (t *HRTimer) Fire(uint64) { t.core.Raise(t.core.timer) }

// expire runs the timer's function.
func (t *HRTimer) expire() {
	c := t.core
	t.Cancel()
	c.stats.HRTimers++
	c.Spend(model.StageHRTimer)
	t.fn(c)
}

func (t *HRTimer) disarm() {
	t.armed = false
	l := t.core.hrtimers
	for i := range l {
		if l[i] == t {
			last := len(l) - 1
			l[i], l[last] = l[last], nil
			t.core.hrtimers = l[:last]
			return
		}
	}
}

// SoftHRTimer is a high-resolution timer in its soft, pinned form: it expires at an exact
// instant, and the HRTIMER softirq runs its function.
type SoftHRTimer struct {
	hard *HRTimer
	fn   func(*Core)
	due  bool // expired, the softirq has not come to it
}

// NewSoftHRTimer makes a timer of core c that calls fn in softirq context.
func (c *Core) NewSoftHRTimer(fn func(*Core)) *SoftHRTimer {
	t := &SoftHRTimer{fn: fn}
	t.hard = c.NewHRTimer(func(c *Core) {
		t.due = true
		c.softDue = append(c.softDue, t)
		c.raiseHRTimer()
	})
	return t
}

// StartOn is HRTimer.StartOn.
func (t *SoftHRTimer) StartOn(c *Core, at sim.Time) {
	t.due = false
	t.hard.StartOn(c, at)
}

// Cancel is HRTimer.Cancel; one that has expired does not run any more.
func (t *SoftHRTimer) Cancel() {
	t.due = false
	t.hard.Cancel()
}

// Armed reports whether the timer waits for its instant or for the softirq.
func (t *SoftHRTimer) Armed() bool { return t.due || t.hard.Armed() }

// SetHRTimerSoftirq installs what raises the HRTIMER vector, with interrupts off. The
// handler of the vector calls RunSoftHRTimers.
func (c *Core) SetHRTimerSoftirq(raise func()) { c.raiseHRTimer = raise }

// RunSoftHRTimers is hrtimer_run_softirq: it runs the soft timers that have expired.
func (c *Core) RunSoftHRTimers() {
	for c.Look(); len(c.softDue) > 0; c.Look() {
		t := c.softDue[0]
		last := copy(c.softDue, c.softDue[1:])
		c.softDue[last] = nil
		c.softDue = c.softDue[:last]
		if t.due {
			t.due = false
			t.fn(c)
		}
	}
}

// earliestHRTimer returns the armed timer that expires first, of several the one that
// was made first; nil if there is none.
func (c *Core) earliestHRTimer() *HRTimer {
	var first *HRTimer
	for _, t := range c.hrtimers {
		if first == nil || t.expires < first.expires || t.expires == first.expires && t.id < first.id {
			first = t
		}
	}
	return first
}
