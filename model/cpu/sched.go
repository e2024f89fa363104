package cpu

import (
	"napisim/model"
)

// schedule calls the scheduler from a task that has looked. It returns when the task
// runs again, at once if it is the one picked.
func (c *Core) schedule(preempt bool) {
	if !preempt || c.atomic() || c.irqsOff {
		c.mustNotBeAtomic("scheduling")
	}
	c.switchTask(preempt)
	if c.pending != 0 {
		c.deliver()
	}
}

// mustNotBeAtomic stops code that gives the core away, or leaves the kernel, where
// Linux would complain.
func (c *Core) mustNotBeAtomic(what string) {
	if c.InInterrupt() || c.preemptOff > 0 || c.irqsOff {
		panic("cpu: " + what + " while atomic in task " + c.cur.Name)
	}
}

// switchTask is __schedule: it picks the next task and switches to it, with
// interrupts off. What became pending meanwhile is the caller's to deliver, so that
// preemption from an interrupt does not nest deeper and deeper.
func (c *Core) switchTask(preempt bool) {
	prev, ctx := c.cur, c.ctx
	c.irqsOff = true
	c.ctx = System
	c.updateCurr()
	c.putPrev(prev)
	c.needResched, c.reschedLazy = false, false
	next := c.pickNext()
	next.since = c.clockTask
	if next != prev {
		c.switchTo(prev, next, preempt)
	}
	c.ctx, c.irqsOff = ctx, false
}

// switchTo pays for the switch, which is part of next's runtime, and hands the core
// to next; it returns when prev is switched to again. A dead task returns at once
// and must end.
func (c *Core) switchTo(prev, next *Task, preempt bool) {
	c.Spend(model.StageContextSwitch)
	c.Look() // still in the coroutine of prev
	c.cur = next
	c.stats.ContextSwitches++
	next.stats.Switches++
	if prev.state == stateRunning {
		prev.stats.Preempted++
	}
	c.traceSwitch(prev, next, preempt)
	c.shelve(prev, next)
	prev.bhOff, prev.serving = c.bhOff, c.serving
	c.bhOff, c.serving = next.bhOff, next.serving
	c.eng.Ready(next.proc)
	if prev.state != stateDead {
		prev.proc.Park()
	}
}

// shelve puts away what prev was interrupted in, and takes out what next was.
func (c *Core) shelve(prev, next *Task) {
	if c.base > 0 {
		prev.charges = c.save(prev.charges)
		c.shelved += price(&c.costs, prev.charges)
	}
	if len(next.charges) > 0 {
		c.shelved -= price(&c.costs, next.charges)
		c.load(next.charges)
		next.charges = next.charges[:0]
	}
}

// begin is what a new task does first (schedule_tail).
func (c *Core) begin() {
	c.ctx, c.irqsOff = System, false
	if c.pending != 0 {
		c.deliver()
	}
}

// putPrev takes the task that ran off its queue if it does not go on.
func (c *Core) putPrev(t *Task) {
	switch {
	case t == c.idle || t.state == stateRunning: // it keeps its place
	case t.fifo() > 0:
		c.dequeueRT(t)
	default:
		c.fair.Block(t.state == stateDead)
	}
}

// pickNext is pick_next_task: FIFO tasks first, then the fair class, then idle.
func (c *Core) pickNext() *Task {
	if len(c.rt) > 0 {
		c.fair.Release()
		return c.rt[0]
	}
	if e := c.fair.Pick(); e != nil {
		return e.Owner.(*Task)
	}
	return c.idle
}

// activate queues t on this core and lets it preempt what runs if it may.
func (c *Core) activate(t *Task) {
	fresh := !t.begun && !t.cfg.Sleeper
	t.begun = true
	t.state = stateRunning
	t.stats.Wakeups++
	if t.fifo() > 0 {
		c.enqueueRT(t)
		c.needResched = c.needResched || c.cur.fifo() < t.fifo()
	} else {
		if t.ent.Delayed() { // requeue_delayed_entity sees the runtimes as they were last noted
			c.fair.Enqueue(&t.ent, fresh)
			c.updateCurr()
		} else {
			c.updateCurr()
			c.fair.Enqueue(&t.ent, fresh)
		}
		switch {
		case c.cur == c.idle:
			c.needResched = true
		case !c.needResched && c.fair.Preempts(&t.ent):
			c.reschedFair()
		}
	}
	c.traceWakeup(t)
}

// updateClock is update_rq_clock. Where interrupt time is accounted apart, clockTask
// leaves it out; interrupt time that becomes known late is taken off later, so that
// the clock never goes back.
func (c *Core) updateClock() {
	now := c.eng.Now()
	delta := now - c.clock
	c.clock = now
	if c.m.cfg.IRQTimeAccounting {
		irq := min(c.irqTime-c.irqSeen, delta)
		c.irqSeen += irq
		delta -= irq
	}
	c.clockTask += delta
}

// updateCurr brings the runtime of the running task up to date (update_curr). Under
// EEVDF a switch may become due by that.
func (c *Core) updateCurr() {
	c.updateClock()
	t := c.cur
	delta := c.clockTask - t.since
	if t == c.idle || delta == 0 {
		return
	}
	t.since = c.clockTask
	if t.fifo() > 0 {
		t.ent.Ran += delta
	} else if c.fair.Charge(delta) {
		c.reschedFair()
	}
}

// reschedFair is what the fair class does when the running task has to give the core
// away: resched_curr, from v6.13 resched_curr_lazy.
func (c *Core) reschedFair() {
	if c.m.cfg.Preempt == PreemptLazy {
		c.reschedLazy = true
	} else {
		c.needResched = true
	}
}

// enqueueRT inserts t behind all FIFO tasks of its priority or above.
func (c *Core) enqueueRT(t *Task) {
	i := len(c.rt)
	for i > 0 && c.rt[i-1].fifo() < t.fifo() {
		i--
	}
	c.rt = append(c.rt, nil)
	copy(c.rt[i+1:], c.rt[i:])
	c.rt[i] = t
}

func (c *Core) dequeueRT(t *Task) {
	for i := range c.rt {
		if c.rt[i] == t {
			c.rt = append(c.rt[:i], c.rt[i+1:]...)
			return
		}
	}
}

// idleLoop is the idle task: it stops the tick and waits for interrupts until
// there is something to run. With softirqs pending, which nobody has been told of, the tick
// goes on, as can_stop_idle_tick has it: its exit runs them.
func (c *Core) idleLoop() {
	c.restartTick()
	for {
		for !c.needResched {
			c.ctx = Idle
			if c.soft == nil || !c.soft.Pending() {
				c.stopTick()
			} else {
				c.stats.IdlePending++
			}
			c.park(idling)
			c.deliver()
		}
		c.m.updateJiffies()
		c.restartTick()
		c.schedule(false)
	}
}

// reportedState is the prev_state of sched_switch: "R+" says that the task was
// preempted inside the kernel.
func (t *Task) reportedState(preempt bool) string {
	switch {
	case preempt:
		return "R+"
	case t.state == stateRunning:
		return "R"
	case t.state == stateDead:
		return "X"
	case t.state == stateBlocked:
		return "D"
	}
	return "S"
}
