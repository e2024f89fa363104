package cpu

import "napisim/sim/trace"

// Mix adds a step to the run's fingerprint: a trace point passed on this core at
// the current instant, with one number. The caller must have looked.
func (c *Core) Mix(p trace.Point, a int64) {
	c.m.Fingerprint.Mix(c.eng.Now(), p, c.ID, a)
}

// Recording reports whether trace events of this instant are recorded; the caller
// must have looked. It is asked before an event is built.
func (c *Core) Recording() bool { return c.m.Trace.Recording(c.eng.Now()) }

// Event returns an event of point p with the core's time, task and flags filled in.
func (c *Core) Event(p trace.Point) trace.Event {
	depth := c.preemptOff
	if c.cur == c.idle {
		depth++ // the idle task runs with preemption off
	}
	return trace.Event{
		At: c.eng.Now(), CPU: int32(c.ID), Point: p,
		Comm: c.cur.Name, PID: int32(c.cur.PID),
		Flags: trace.Flags{
			IRQsOff: c.irqsOff, BHOff: c.bhOff > 0, NeedResched: c.needResched,
			Context: c.traceContext(), PreemptDepth: uint8(depth),
		},
	}
}

// Emit records an event that Event has made. Where tracing costs time, it is charged
// from here on: the event itself has its instant. Events are emitted between a look and
// what the look was for, so such a run is right in lazy mode only.
func (c *Core) Emit(e trace.Event) {
	if c.m.Trace.Emit(e) && c.m.cfg.TraceCost != 0 {
		c.Work(c.m.cfg.TraceCost)
	}
}

func (c *Core) traceContext() trace.Context {
	switch {
	case c.hardirqs > 0 && c.serving:
		return trace.HardirqInSoftirq
	case c.hardirqs > 0:
		return trace.Hardirq
	case c.serving:
		return trace.Softirq
	}
	return trace.Task
}

// traceIRQ emits irq_handler_entry or irq_handler_exit for lines that Linux traces.
func (c *Core) traceIRQ(p trace.Point, l *Line) {
	c.Mix(p, int64(l.bit))
	if l.IRQ < 0 || !c.Recording() {
		return
	}
	e := c.Event(p)
	e.A, e.B, e.S = int64(l.IRQ), 1, l.Name
	c.Emit(e)
}

// traceWakeup emits sched_wakeup, as try_to_wake_up does: after the check for
// preemption, with three levels of preemption off (its own and those of two locks).
func (c *Core) traceWakeup(t *Task) {
	c.Mix(trace.SchedWakeup, int64(t.PID))
	if !c.Recording() {
		return
	}
	e := c.Event(trace.SchedWakeup)
	e.A, e.B, e.C, e.S = int64(t.PID), int64(t.prio()), int64(t.core.ID), t.Name
	e.Flags.IRQsOff = true
	e.Flags.PreemptDepth += 3
	c.Emit(e)
}

// traceSwitch emits sched_switch; the core's task is already next.
func (c *Core) traceSwitch(prev, next *Task, preempt bool) {
	c.Mix(trace.SchedSwitch, int64(next.PID))
	if !c.Recording() {
		return
	}
	e := c.Event(trace.SchedSwitch)
	e.Comm, e.PID, e.A, e.T = prev.Name, int32(prev.PID), int64(prev.prio()), prev.reportedState(preempt)
	e.S, e.B, e.C = next.Name, int64(next.PID), int64(next.prio())
	e.Flags.PreemptDepth = 2 // __schedule runs with preemption and the runqueue lock off
	c.Emit(e)
}
