package rto

import "napisim/sim"

// Timer is a timeout that is usually moved before it expires. It keeps at most one
// event pending and does not touch it when the deadline moves forward: the event
// comes too early, sees so, and is scheduled anew. A connection at full speed thus
// pays one event per timeout and not two queue operations per ACK.
type Timer struct {
	eng      *sim.Engine
	phase    sim.Phase
	handler  sim.Handler
	arg      uint64
	deadline sim.Time // sim.Never when stopped
	event    sim.EventID
	at       sim.Time // when event fires; valid while pending
	pending  bool
}

// NewTimer returns a stopped timer whose events call h.Fire(arg) in the given phase.
// The handler asks Expired first.
func NewTimer(eng *sim.Engine, phase sim.Phase, h sim.Handler, arg uint64) Timer {
	return Timer{eng: eng, phase: phase, handler: h, arg: arg, deadline: sim.Never}
}

// Set starts the timer or moves its deadline.
func (t *Timer) Set(at sim.Time) {
	t.deadline = at
	if t.pending {
		if t.at <= at {
			return
		}
		t.eng.Cancel(t.event)
	}
	t.arm()
}

// Stop forgets the deadline; a pending event will do nothing.
func (t *Timer) Stop() { t.deadline = sim.Never }

// Running reports whether there is a deadline.
func (t *Timer) Running() bool { return t.deadline != sim.Never }

// Deadline returns the deadline, sim.Never for a stopped timer.
func (t *Timer) Deadline() sim.Time { return t.deadline }

func (t *Timer) arm() {
	t.at, t.pending = t.deadline, true
	t.event = t.eng.Schedule(t.at, t.phase, t.handler, t.arg)
}

// Expired is to be called when the event fires. It reports whether the deadline has
// come, and stops the timer then.
func (t *Timer) Expired() bool {
	t.pending = false
	if t.deadline == sim.Never {
		return false
	}
	if t.deadline > t.eng.Now() {
		t.arm()
		return false
	}
	t.deadline = sim.Never
	return true
}
