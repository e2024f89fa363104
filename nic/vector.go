package nic

import (
	"napisim/sim"
	"napisim/sim/metric"
)

// Line is where the interrupts of a vector go: an interrupt line of a core.
type Line interface {
	// Raise is called in the engine's context at the instant of the interrupt.
	Raise()
}

// cause is what one ring has to report to its vector.
type cause struct {
	moderation Moderation
	change     Moderation // takes the place of moderation at the next restart
	due        sim.Time   // by what is known
	seen       bool       // something was completed
	// listening tells that further completions may change due. They cannot once one
	// has come at due or later, nor where nobody will ask.
	listening bool
}

func newCause(m Moderation) cause {
	c := cause{moderation: m}
	c.restart(longAgo)
	return c
}

// restart forgets the completions so far and listens.
func (c *cause) restart(last sim.Time) {
	if c.change != nil {
		c.moderation, c.change = c.change, nil
	}
	c.moderation.Restart(last)
	c.due = sim.Never
	c.seen = false
	c.listening = true
}

func (c *cause) completed(at sim.Time) {
	c.seen = true
	if c.due > at {
		c.due = c.moderation.Completed(at)
	}
	c.listening = c.due > at
}

// bound returns a lower bound of due in the end.
func (c *cause) bound(next, gap sim.Time) sim.Time {
	if !c.listening {
		return c.due
	}
	return c.moderation.Bound(next, gap)
}

// Vector is one interrupt of a device. It fires once for each time it is armed:
// Unmask arms it, firing and Mask disarm it, as automatic masking does. It starts
// masked.
//
// The instant at which it fires is that of its moderation, or the instant at which
// it is armed, whichever is later. Two semantics differ in what is still pending
// then, see Rearm. Neither loses a wakeup: a frame that arrives after the driver's
// last look and before Unmask leads to an interrupt.
type Vector struct {
	eng    *sim.Engine
	phase  sim.Phase
	device *Device
	rearm  Rearm
	line   Line
	rx     *RXRing // nil if it reports none
	tx     *TXRing // nil if it reports none
	rxGap  sim.Time
	txGap  sim.Time

	masked bool
	fired  bool // since it was armed
	last   sim.Time
	// event is pending at eventAt, Never if there is none.
	event   sim.EventID
	eventAt sim.Time

	interrupts int64
	rxSeen     int64 // completions at the last interrupt
	rxFrames   metric.Histogram
}

// addVector gives the device another vector.
func (d *Device) addVector(eng *sim.Engine, phase sim.Phase, rearm Rearm) *Vector {
	v := &Vector{eng: eng, phase: phase, device: d, rearm: rearm, masked: true, last: longAgo, eventAt: sim.Never}
	d.vectors = append(d.vectors, v)
	return v
}

// feedRX and feedTX make r a ring that v reports. Only latched events count before
// the vector is armed for the first time.
func (v *Vector) feedRX(r *RXRing) {
	v.rx, v.rxGap = r, r.wire.Gap()
	r.vector, r.cause.listening = v, v.rearm == LatchEvents
}

func (v *Vector) feedTX(r *TXRing) {
	v.tx, v.txGap = r, r.wire.Gap()
	r.vector, r.cause.listening = v, v.rearm == LatchEvents
}

// Connect sets where interrupts go. It belongs to the construction of a run: a
// vector may not fire before.
func (v *Vector) Connect(l Line) { v.line = l }

// Masked reports whether the vector is masked.
func (v *Vector) Masked() bool { return v.masked }

// Interrupts returns how many interrupts were raised.
func (v *Vector) Interrupts() int64 { return v.interrupts }

// RXFrames returns the distribution of received frames per interrupt: those written
// to memory since the interrupt before. It stays the vector's.
func (v *Vector) RXFrames() *metric.Histogram { return &v.rxFrames }

// Mask disables the interrupt. An interrupt that is due at this very instant and
// has not been raised yet is not.
func (v *Vector) Mask() {
	v.masked = true
	v.forget()
	if v.rearm == LatchEvents {
		return
	}
	// Whatever comes now either is consumed before the vector is armed again or is
	// found then.
	if v.rx != nil {
		v.rx.cause.listening = false
	}
	if v.tx != nil {
		v.tx.cause.listening = false
	}
}

// Unmask arms the interrupt. What is due already fires at now, by an event.
func (v *Vector) Unmask(now sim.Time) {
	v.masked, v.fired = false, false
	v.sync(now)
	if v.rearm == NewerThanConsumer {
		v.armNewer(now)
	}
	v.predict(now)
}

// armNewer restarts the moderation with what the driver has not consumed.
func (v *Vector) armNewer(now sim.Time) {
	if r := v.rx; r != nil {
		r.cause.restart(v.last)
		r.show(r.take, r.Filled())
	}
	if r := v.tx; r != nil {
		r.cause.restart(v.last)
		r.shown, r.look = r.reaped, r.get
		r.sync(now)
	}
}

// Ack clears the pending bits under LatchEvents: whatever was completed by now leads
// to no interrupt any more. A vector that is not masked is armed again. Under
// NewerThanConsumer there are no bits, and Ack does nothing.
func (v *Vector) Ack(now sim.Time) {
	if v.rearm != LatchEvents {
		return
	}
	if r := v.rx; r != nil {
		r.Pull(now)
		r.cause.restart(v.last)
	}
	if r := v.tx; r != nil {
		r.cause.restart(v.last)
		r.skip(now)
	}
	v.fired = false
	v.predict(now)
}

// Pending reports whether a completion waits to be reported at now, moderated or
// not: under LatchEvents one since the last Ack, as the cause register shows, under
// NewerThanConsumer one that the driver has not consumed.
func (v *Vector) Pending(now sim.Time) bool {
	v.sync(now)
	if v.rearm == LatchEvents {
		return v.rx != nil && v.rx.cause.seen || v.tx != nil && v.tx.cause.seen
	}
	return v.rx != nil && v.rx.Filled() > 0 || v.tx != nil && v.tx.NextCompletion() <= now
}

// sync shows the moderation what has been completed by now.
func (v *Vector) sync(now sim.Time) {
	if v.rx != nil {
		v.rx.Pull(now)
	}
	if v.tx != nil {
		v.tx.sync(now)
	}
}

// due returns the instant at which an interrupt is due by what is known.
func (v *Vector) due() sim.Time {
	due := sim.Never
	if v.rx != nil {
		due = v.rx.cause.due
	}
	if v.tx != nil {
		due = min(due, v.tx.cause.due)
	}
	return due
}

// predict puts the event of an armed vector at the earliest instant at which it may
// have to fire. It is called when anything of what bounds that has changed.
func (v *Vector) predict(now sim.Time) {
	if v.masked || v.fired {
		return
	}
	at := sim.Never
	if v.rx != nil {
		at = v.rx.cause.bound(v.rx.next(), v.rxGap)
	}
	if v.tx != nil {
		at = min(at, v.tx.cause.bound(v.tx.next(), v.txGap))
	}
	at = max(at, now)
	if at == v.eventAt {
		return
	}
	v.forget()
	if at != sim.Never {
		v.event, v.eventAt = v.eng.Schedule(at, v.phase, v, 0), at
	}
}

// forget takes the pending event back, if it has not fired.
func (v *Vector) forget() {
	if v.eventAt != sim.Never {
		v.eng.Cancel(v.event)
		v.eventAt = sim.Never
	}
}

// Fire looks whether the interrupts of the device that were expected now are due. It
// is the engine that calls it. The vectors go in their order, whichever event came
// first: that depends on when each was predicted, and nothing else may.
func (v *Vector) Fire(uint64) {
	now := v.eng.Now()
	for _, w := range v.device.vectors {
		if w.eventAt == now {
			w.forget()
			w.fire(now)
		}
	}
}

// fire raises the interrupt if it is due, and otherwise looks ahead again.
func (v *Vector) fire(now sim.Time) {
	v.sync(now)
	if v.due() > now {
		v.predict(now)
		return
	}
	v.fired, v.last = true, now
	v.interrupts++
	if v.rx != nil {
		v.rxFrames.Add(v.rx.filled - v.rxSeen)
		v.rxSeen = v.rx.filled
	}
	v.line.Raise()
}
