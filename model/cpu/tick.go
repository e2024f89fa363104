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
	offset := c.m.Cores[0].tickOffset
	jiffy := int64((max(at-offset, 0)+c.m.tick-1)/c.m.tick) + 1
	t.expires = max(jiffy, c.m.jiffies+1)
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

// expired reports whether a timer is due at that jiffy.
func (l *timerList) expired(jiffies int64) bool {
	for _, t := range l.armed {
		if t.expires <= jiffies {
			return true
		}
	}
	return false
}

// RunTimers is run_timer_softirq: it calls every expired timer's function.
func (c *Core) RunTimers() {
	c.Look()
	for i := 0; i < len(c.timers.armed); {
		t := c.timers.armed[i]
		if t.expires > c.m.jiffies {
			i++
			continue
		}
		c.timers.remove(t)
		c.Spend(model.StageTimerSoftirq)
		t.fn(c)
		c.Look()
		i = 0 // the function may have changed the list
	}
}

// handleTick is the timer interrupt: time, timers, scheduler.
func (c *Core) handleTick() {
	c.stats.Ticks++
	c.Spend(model.StageTick)
	c.Look()
	c.m.updateJiffies()
	c.sampled[c.interrupted()]++
	if c.soft != nil && c.timers.expired(c.m.jiffies) {
		c.soft.RaiseTimer()
	}
	c.updateCurr()
	if c.cur.cfg.FIFO == 0 && c.cur != c.idle && c.fair.tick() {
		c.needResched = true
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
		c.eng.Cancel(c.tickEvent)
	}
	c.armIdleTimer()
}

func (c *Core) armIdleTimer() {
	l := &c.timers
	if len(l.armed) == 0 {
		return
	}
	first := l.armed[0].expires
	for _, t := range l.armed[1:] {
		first = min(first, t.expires)
	}
	if l.event != 0 {
		if l.at <= first {
			return // early is harmless: the interrupt finds nothing and arms again
		}
		c.eng.Cancel(l.event)
	}
	l.at = first
	at := c.m.Cores[0].tickOffset + sim.Time(first-1)*c.m.tick
	l.event = c.eng.Schedule(max(at, c.eng.Now()), c.phase, c, argTimer)
}

// restartTick starts the tick again when a core leaves idle, on its old grid.
func (c *Core) restartTick() {
	if c.tickEvent != 0 && !c.tickStopped {
		return
	}
	c.tickStopped = false
	if c.timers.event != 0 {
		c.eng.Cancel(c.timers.event)
		c.timers.event = 0
	}
	now := c.eng.Now()
	next := c.tickOffset
	if now >= next {
		next += ((now-next)/c.m.tick + 1) * c.m.tick
	}
	c.tickEvent = c.eng.Schedule(next, c.phase, c, argTick)
}
