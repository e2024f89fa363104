package tcp

import "napisim/sim"

// Bounds of the retransmission timeout: TCP_TIMEOUT_INIT, TCP_RTO_MIN and
// TCP_RTO_MAX of Linux. RFC 6298 would have a second as the minimum.
const (
	initialRTO = sim.Second
	minRTO     = 200 * sim.Millisecond
	maxRTO     = 120 * sim.Second
)

// rttEstimator is section 2 of RFC 6298 in integers.
type rttEstimator struct {
	srtt, rttvar sim.Time
}

func (e *rttEstimator) sample(rtt sim.Time) {
	if e.srtt == 0 {
		e.srtt, e.rttvar = rtt, rtt/2
		return
	}
	diff := rtt - e.srtt
	e.srtt += diff / 8
	e.rttvar += (max(diff, -diff) - e.rttvar) / 4
}

// rto returns the timeout before backoff. As in Linux the minimum bounds the
// variance and not the sum, so the timeout never falls below SRTT plus 200 ms.
func (e *rttEstimator) rto() sim.Time {
	if e.srtt == 0 {
		return initialRTO
	}
	return min(e.srtt+max(4*e.rttvar, minRTO), maxRTO)
}

// timer is a timeout that is usually moved before it expires. It keeps at most one
// event pending and does not touch it when the deadline moves forward: the event
// comes too early, sees so, and is scheduled anew. A connection at full speed thus
// pays one event per timeout and not two queue operations per ACK.
type timer struct {
	eng      *sim.Engine
	phase    sim.Phase
	handler  sim.Handler
	arg      uint64
	deadline sim.Time // sim.Never when stopped
	event    sim.EventID
	at       sim.Time // when event fires; valid while pending
	pending  bool
}

func newTimer(eng *sim.Engine, phase sim.Phase, h sim.Handler, arg uint64) timer {
	return timer{eng: eng, phase: phase, handler: h, arg: arg, deadline: sim.Never}
}

// set moves the deadline.
func (t *timer) set(at sim.Time) {
	t.deadline = at
	if t.pending {
		if t.at <= at {
			return
		}
		t.eng.Cancel(t.event)
	}
	t.arm()
}

// stop forgets the deadline; a pending event will do nothing.
func (t *timer) stop() { t.deadline = sim.Never }

func (t *timer) running() bool { return t.deadline != sim.Never }

func (t *timer) arm() {
	t.at, t.pending = t.deadline, true
	t.event = t.eng.Schedule(t.at, t.phase, t.handler, t.arg)
}

// expired is called when the event fires. It reports whether the deadline has come,
// and stops the timer then.
func (t *timer) expired() bool {
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
