package cpu

import (
	"napisim/model"
)

// schedule is __schedule: it picks the next task and switches to it. It returns
// when the present task runs again, at once if that is the one picked.
func (c *Core) schedule() {
	if c.InInterrupt() || c.preemptOff > 0 {
		panic("cpu: scheduling while atomic in task " + c.cur.Name)
	}
	c.Look()
	prev, ctx, off := c.cur, c.ctx, c.irqsOff
	c.irqsOff = true
	c.ctx = System
	c.updateCurr()
	c.putPrev(prev)
	c.needResched = false
	next := c.pickNext()
	next.ent.execStart, next.ent.irqStart = c.eng.Now(), c.irqTime
	c.cur = next
	if next != prev {
		c.switchTo(prev, next)
	}
	c.finishSwitch(ctx, off)
}

// switchTo pays for the switch and hands the core to next; it returns when prev
// is switched to again.
func (c *Core) switchTo(prev, next *Task) {
	c.cur = prev // the debt is paid by the coroutine that runs
	c.Spend(model.StageContextSwitch)
	c.Look()
	c.cur = next
	c.stats.ContextSwitches++
	next.stats.Switches++
	if prev.state == stateRunning && prev != c.idle {
		prev.stats.Preempted++
	}
	c.traceSwitch(prev, next)
	c.eng.Ready(next.proc)
	prev.proc.Park()
}

// finishSwitch is what a task does first when it gets the core: it restores its
// context and lets pending interrupts in.
func (c *Core) finishSwitch(ctx Context, irqsOff bool) {
	c.ctx = ctx
	c.irqsOff = irqsOff
	if !irqsOff && c.pending != 0 {
		c.deliver()
	}
}

// putPrev puts the task that ran back on its queue, or takes it off if it sleeps.
func (c *Core) putPrev(t *Task) {
	switch {
	case t == c.idle:
	case t.cfg.FIFO > 0:
		if t.state != stateRunning {
			c.dequeueRT(t)
		}
	case t.state == stateRunning:
		c.fair.putCurr(&t.ent)
	default:
		c.fair.dequeueCurr(&t.ent)
	}
}

// pickNext is pick_next_task: FIFO tasks first, then the fair class, then idle.
func (c *Core) pickNext() *Task {
	if len(c.rt) > 0 {
		return c.rt[0]
	}
	if e := c.fair.pick(); e != nil {
		return e.task
	}
	return c.idle
}

// updateCurr brings the runtime of the running task up to date.
func (c *Core) updateCurr() {
	t := c.cur
	if t == c.idle {
		return
	}
	now := c.eng.Now()
	delta := now - t.ent.execStart
	if c.m.cfg.IRQTimeAccounting {
		delta -= c.irqTime - t.ent.irqStart
	}
	t.ent.execStart, t.ent.irqStart = now, c.irqTime
	if delta <= 0 {
		return
	}
	t.ent.sumExec += delta
	if t.cfg.FIFO == 0 {
		c.fair.charge(&t.ent, delta)
	}
}

// enqueueRT inserts t behind all FIFO tasks of its priority or above.
func (c *Core) enqueueRT(t *Task) {
	i := len(c.rt)
	for i > 0 && c.rt[i-1].cfg.FIFO < t.cfg.FIFO {
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
// there is something to run.
func (c *Core) idleLoop() {
	c.restartTick()
	for {
		for !c.needResched {
			c.ctx = Idle
			c.stopTick()
			c.since = c.eng.Now()
			c.parked = idling
			c.cur.proc.Park()
			c.settle()
			c.deliver()
		}
		c.m.updateJiffies()
		c.restartTick()
		c.schedule()
	}
}

// stateLetter is the prev_state of sched_switch.
func (t *Task) stateLetter() string {
	switch t.state {
	case stateRunning:
		return "R"
	case stateDead:
		return "X"
	}
	return "S"
}
