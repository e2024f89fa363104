package cpu

import (
	"napisim/model"
	"napisim/sim"
)

// Timer is a kernel timer (struct timer_list): it expires at a jiffy and runs its
// function in the TIMER softirq of its core.
type Timer struct {
	core    *Core
	fn      func(*Core)
	expires int64
	armed   bool
}

// timerList holds the armed timers of a core; there are few, so it is a slice.
type timerList struct {
	armed []*Timer
	event sim.EventID // wakes an idle core for the earliest timer
	at    int64
}

// NewTimer makes a timer of core c that calls fn in softirq context.
func (c *Core) NewTimer(fn func(*Core)) *Timer { return &Timer{core: c, fn: fn} }

// Mod is mod_timer: the timer expires at the first jiffy at or after t, and at the next one at
// the earliest. Code on any core may call it; it does not cost time by itself.
func (t *Timer) Mod(at sim.Time) {
	c := t.core
	t.expires = max(c.m.jiffyAtOrAfter(at), c.m.jiffies+1)
	if !t.armed {
		t.armed = true
		c.timers.armed = append(c.timers.armed, t)
	}
	if c.tickStopped {
		c.armIdleTimer()
	}
}

// Del is del_timer: the timer does not expire.
func (t *Timer) Del() {
	if t.armed {
		t.core.timers.remove(t)
	}
}

// Armed reports whether the timer is pending.
func (t *Timer) Armed() bool { return t.armed }

func (l *timerList) remove(t *Timer) {
	t.armed = false
	for i := range l.armed {
		if l.armed[i] == t {
			l.armed = append(l.armed[:i], l.armed[i+1:]...)
			return
		}
	}
}

// earliest returns the timer that expires first, of several the one armed first;
// nil if none is armed.
func (l *timerList) earliest() *Timer {
	var first *Timer
	for _, t := range l.armed {
		if first == nil || t.expires < first.expires {
			first = t
		}
	}
	return first
}

// RunTimers is run_timer_softirq: it calls every expired timer's function, in the
// order in which they expired. The softirq layer calls it in the TIMER vector.
func (c *Core) RunTimers() {
	c.Look()
	for {
		t := c.timers.earliest()
		if t == nil || t.expires > c.m.jiffies {
			return
		}
		c.timers.remove(t)
		c.Spend(model.StageTimerSoftirq)
		t.fn(c)
		c.Look()
	}
}

// handleTimer is the local timer interrupt (hrtimer_interrupt): the tick is one of
// what it may find due, the others are HRTimers. What falls due while it runs is done
// in the same interrupt, as the timer is programmed for the next only at its end.
func (c *Core) handleTimer() {
	for {
		if c.tickDue {
			c.tickDue = false
			c.handleTick()
			c.Look()
		}
		t := c.earliestHRTimer(false)
		if t == nil || t.expires > c.eng.Now() {
			break
		}
		if c.softHRTimers != nil && !t.hard {
			t.raised = true
			c.softHRTimers.RaiseHRTimer()
			continue
		}
		t.expire()
		c.Look()
	}
	c.pending &^= c.timer.bit
}

// handleTick is the tick (tick_sched_timer): time, timers, scheduler.
func (c *Core) handleTick() {
	c.stats.Ticks++
	c.Spend(model.StageTick)
	c.Look()
	c.m.updateJiffies()
	if !c.tickStopped {
		c.sampled[c.interrupted()]++
	}
	if t := c.timers.earliest(); c.soft != nil && t != nil && t.expires <= c.m.jiffies {
		c.soft.RaiseTimer()
	}
	if c.reschedLazy {
		c.needResched = true // a switch that was put off is due now (sched_tick)
	}
	c.updateCurr()
	if c.fair.Tick() {
		c.reschedFair()
	}
}

// interrupted returns the context that tick sampling charges.
func (c *Core) interrupted() Context {
	switch {
	case c.serving || c.hardirqs > 1:
		return Softirq
	case c.cur == c.idle:
		return Idle
	case c.outer == User:
		return User
	}
	return System
}

// stopTick stops the tick of an idle core (NO_HZ_IDLE); the earliest timer still
// wakes it.
func (c *Core) stopTick() {
	if !c.tickStopped {
		c.tickStopped = true
		c.stoppedAt = c.eng.Now()
		c.eng.Cancel(c.tickEvent)
	}
	c.armIdleTimer()
}

// armIdleTimer programs the interrupt that the earliest timer of an idle core needs.
// Without a softirq layer nobody would run the timer.
func (c *Core) armIdleTimer() {
	l := &c.timers
	first := l.earliest()
	if first == nil || c.soft == nil {
		return
	}
	if l.event != 0 {
		if l.at <= first.expires {
			return // early is harmless: the interrupt finds nothing and arms again
		}
		c.eng.Cancel(l.event)
	}
	l.at = first.expires
	at := max(c.m.jiffyStart(first.expires), c.eng.Now())
	l.event = c.eng.Schedule(at, c.phase(phaseInterrupts), c, argTimer)
}

// restartTick starts the tick again when a core leaves idle, on its old grid.
func (c *Core) restartTick() {
	if c.tickEvent != 0 && !c.tickStopped {
		return
	}
	c.sampled[Idle] += c.skippedTicks()
	c.tickStopped = false
	if c.timers.event != 0 {
		c.eng.Cancel(c.timers.event)
		c.timers.event = 0
	}
	next := c.tickOffset + sim.Time(c.ticksUntil(c.eng.Now()))*c.m.tick
	c.tickEvent = c.eng.Schedule(next, c.phase(phaseInterrupts), c, argTick)
}

// ticksUntil returns the number of instants of the core's tick up to now.
func (c *Core) ticksUntil(now sim.Time) int64 {
	if now < c.tickOffset {
		return 0
	}
	return int64((now-c.tickOffset)/c.m.tick) + 1
}

// skippedTicks returns how many ticks an idle core has not taken since it stopped
// its tick (tick_nohz_account_idle_ticks).
func (c *Core) skippedTicks() int64 {
	if !c.tickStopped {
		return 0
	}
	return c.ticksUntil(c.eng.Now()) - c.ticksUntil(c.stoppedAt)
}

// HRTimer is a high-resolution timer (struct hrtimer) in its hard, pinned form: it
// expires at an exact instant and runs its function in hardirq context, in the timer
// interrupt of its core. An idle core without a tick is woken for it. Arming it again
// allocates nothing.
//
// On PREEMPT_RT the interrupt leaves it to the HRTIMER softirq, if the softirq layer has
// one (HRTimerSoftirqs); only those that wake FIFO tasks from sleep stay hard.
type HRTimer struct {
	core    *Core
	fn      func(*Core)
	id      int
	expires sim.Time
	event   sim.EventID
	armed   bool
	hard    bool         // expires in hardirq context on PREEMPT_RT too
	raised  bool         // due, left to the HRTIMER softirq
	soft    *SoftHRTimer // that the timer is the hard half of, if it is one
}

// HRTimerSoftirqs is what the softirq layer of a PREEMPT_RT kernel has besides Softirqs.
type HRTimerSoftirqs interface {
	// RaiseHRTimer raises the HRTIMER vector from the timer interrupt, with interrupts
	// off; the vector calls Core.RunHRTimers.
	RaiseHRTimer()
}

// NewHRTimer makes a timer of core c that calls fn in hardirq context, with
// interrupts off.
func (c *Core) NewHRTimer(fn func(*Core)) *HRTimer {
	c.m.nextHRTimer++
	return &HRTimer{core: c, fn: fn, id: c.m.nextHRTimer}
}

// InHardirq makes the timer one that expires in hardirq context on PREEMPT_RT as well
// (HRTIMER_MODE_HARD), as the tick does. It returns the timer.
func (t *HRTimer) InHardirq() *HRTimer {
	t.hard = true
	return t
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
	if t.soft != nil {
		t.soft.due = true // at the same instant: other cores ask whether it is armed
	}
	c.stats.HRTimers++
	c.Spend(model.StageHRTimer)
	t.fn(c)
}

func (t *HRTimer) disarm() {
	t.armed, t.raised = false, false
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
		c.softDue = append(c.softDue, t)
		c.raiseHRTimer()
	})
	t.hard.soft = t
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

// RunHRTimers is hrtimer_run_softirq: it calls the functions of the timers that the
// timer interrupt has left to the softirq, and of those that have fallen due since.
func (c *Core) RunHRTimers() {
	for {
		c.Look()
		t := c.earliestHRTimer(true)
		if t == nil || t.expires > c.eng.Now() {
			return
		}
		off := c.IRQSave() // as in hardirq context
		if t.armed {       // still; interrupts that came before could have stopped it
			t.expire()
		}
		c.IRQRestore(off)
	}
}

// earliestHRTimer returns the armed timer that expires first, of several the one that
// was made first; nil if there is none. It asks about soft ones, or about those not yet
// left to the softirq.
func (c *Core) earliestHRTimer(soft bool) *HRTimer {
	var first *HRTimer
	for _, t := range c.hrtimers {
		if soft && t.hard || !soft && t.raised {
			continue
		}
		if first == nil || t.expires < first.expires || t.expires == first.expires && t.id < first.id {
			first = t
		}
	}
	return first
}
