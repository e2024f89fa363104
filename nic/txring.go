package nic

import (
	"fmt"

	"napisim/model"
	"napisim/model/link"
	"napisim/sim"
)

// TXRing is a transmit ring. A descriptor is in use from Xmit until the driver has
// reaped its completion.
type TXRing struct {
	wire    *link.Egress
	latency sim.Time
	done    []sim.Time // completion instants, never falling along the ring
	// Descriptors ever posted, reaped and shown to the moderation, and their places.
	posted, reaped, shown int64
	put, get, look        int
	bytes                 int64
	busy                  int64
	cause                 cause
	vector                *Vector
}

func newTXRing(cfg *Config, wire *link.Egress) *TXRing {
	return &TXRing{wire: wire, latency: cfg.TXLatency, done: make([]sim.Time, cfg.TXRing), cause: newCause(cfg.TX.Moderation())}
}

// Size returns the number of descriptors.
func (r *TXRing) Size() int { return len(r.done) }

// InFlight returns how many descriptors are in use: sent and not yet reaped.
func (r *TXRing) InFlight() int { return int(r.posted - r.reaped) }

// Full reports whether Xmit would refuse a segment.
func (r *TXRing) Full() bool { return r.InFlight() == len(r.done) }

// Xmit hands a copy of s to the device at the current instant. It reports false,
// and counts the refusal, if no descriptor is left (NETDEV_TX_BUSY): the segment
// then is still the driver's.
func (r *TXRing) Xmit(now sim.Time, s *model.Segment) bool {
	if r.Full() {
		r.busy++
		return false
	}
	r.done[r.put] = r.wire.Send(now, s) + r.latency
	r.posted++
	r.put = r.after(r.put)
	r.bytes += int64(s.Len)
	r.vector.predict(now)
	return true
}

// Reap frees the descriptors whose segments were completed by now and returns how
// many there were.
func (r *TXRing) Reap(now sim.Time) int {
	r.sync(now)
	n := 0
	for r.reaped < r.posted && r.done[r.get] <= now {
		r.reaped++
		r.get = r.after(r.get)
		n++
	}
	return n
}

// NextCompletion returns the instant at which the oldest descriptor in use is completed,
// Never if none is in use. A driver that has to wait for a descriptor waits for it.
func (r *TXRing) NextCompletion() sim.Time {
	if r.reaped == r.posted {
		return sim.Never
	}
	return r.done[r.get]
}

func (r *TXRing) after(place int) int {
	if place++; place == len(r.done) {
		return 0
	}
	return place
}

// SetModeration replaces the moderation of transmit completions, as RXRing does.
func (r *TXRing) SetModeration(m Moderation) { r.cause.change = m }

// next returns the next completion to be shown to the moderation.
func (r *TXRing) next() sim.Time {
	if r.shown == r.posted {
		return sim.Never
	}
	return r.done[r.look]
}

// sync shows what was completed by now.
func (r *TXRing) sync(now sim.Time) {
	for r.cause.listening && r.next() <= now {
		r.cause.completed(r.next())
		r.shown++
		r.look = r.after(r.look)
	}
}

// skip leaves out what was completed by now.
func (r *TXRing) skip(now sim.Time) {
	if r.shown < r.reaped {
		r.shown, r.look = r.reaped, r.get
	}
	for r.next() <= now {
		r.shown++
		r.look = r.after(r.look)
	}
}

// check returns an error unless the counters and the places agree.
func (r *TXRing) check() error {
	size := int64(len(r.done))
	switch {
	case r.reaped > r.posted || r.posted > r.reaped+size:
		return fmt.Errorf("%d in flight, but %d descriptors", r.InFlight(), size)
	case r.posted%size != int64(r.put) || r.reaped%size != int64(r.get):
		return fmt.Errorf("%d posted and %d reaped do not end at %d and %d", r.posted, r.reaped, r.put, r.get)
	}
	return nil
}
