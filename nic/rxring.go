package nic

import (
	"fmt"

	"napisim/model"
	"napisim/model/link"
	"napisim/sim"
)

// RXRing is a receive ring. Each of its descriptors is free (posted, the device may
// write a frame to its buffer), filled (written, not yet taken by the driver) or
// awaiting refill, and passes through these states in the order of the ring. A new
// ring awaits refill: the driver posts the first buffers when it opens the device.
//
// The driver keeps one rule: it refills with what it has paid for, at the instant
// at which it does. Everything else follows from the arrivals.
type RXRing struct {
	wire  *link.Pipe
	slots []model.Frame
	// Descriptors ever posted, filled and taken: free are posted-filled, filled are
	// filled-taken, awaiting is the rest. The places are these modulo the size.
	posted, filled, taken int64
	fill, take            int
	missed                int64
	bytes                 int64
	lost                  [8]model.Frame // where missed frames go
	cause                 cause
	vector                *Vector
}

func newRXRing(size int, wire *link.Pipe, m Moderation) *RXRing {
	return &RXRing{wire: wire, slots: make([]model.Frame, size), cause: newCause(m)}
}

// Size returns the number of descriptors.
func (r *RXRing) Size() int { return len(r.slots) }

// Free returns how many descriptors the device may fill.
func (r *RXRing) Free() int { return int(r.posted - r.filled) }

// Filled returns how many frames the driver can take, by what is known so far: it
// does not pull. A frame that is there stays, so this needs no look at the clock.
func (r *RXRing) Filled() int { return int(r.filled - r.taken) }

// Awaiting returns how many descriptors the driver has to refill.
func (r *RXRing) Awaiting() int { return len(r.slots) - int(r.posted-r.taken) }

// Written returns how many frames were ever written to memory, known so far.
func (r *RXRing) Written() int64 { return r.filled }

// Taken returns how many frames the driver has ever taken.
func (r *RXRing) Taken() int64 { return r.taken }

// Missed returns how many frames found no free descriptor, known so far.
func (r *RXRing) Missed() int64 { return r.missed }

// SetModeration replaces the moderation of receive completions, as a driver does for
// ethtool -C or for an adaptive algorithm. It takes effect when the vector is armed
// the next time under NewerThanConsumer, when it is acknowledged under LatchEvents.
func (r *RXRing) SetModeration(m Moderation) { r.cause.change = m }

// Pull lets the device do what it has done by now: write the frames that have
// arrived, at now included, to free descriptors, and miss those that found none.
// After it Filled is exact.
func (r *RXRing) Pull(now sim.Time) {
	if r.wire.NextArrival() <= now {
		r.pull(now)
	}
}

func (r *RXRing) pull(now sim.Time) {
	first, before := r.fill, r.filled
	for r.filled < r.posted {
		free := r.slots[r.fill:min(r.fill+r.Free(), len(r.slots))]
		n := r.wire.Pop(now, free)
		for i := range free[:n] {
			r.bytes += int64(free[i].Len)
		}
		r.filled += int64(n)
		if r.fill += n; r.fill == len(r.slots) {
			r.fill = 0
		}
		if n < len(free) {
			break
		}
	}
	if r.filled == r.posted {
		for n := 1; n > 0; r.missed += int64(n) {
			n = r.wire.Pop(now, r.lost[:])
		}
	}
	r.show(first, int(r.filled-before))
}

// show shows n completions, from the one at place first, to the moderation.
func (r *RXRing) show(first, n int) {
	for ; n > 0 && r.cause.listening; n-- {
		r.cause.completed(r.slots[first].Arrival)
		if first++; first == len(r.slots) {
			first = 0
		}
	}
}

// Take gives the driver the oldest frame, which must be there. It stays the ring's:
// the frame is valid until the driver refills its descriptor.
func (r *RXRing) Take() *model.Frame {
	if r.filled == r.taken {
		panic("nic: took a frame from an empty receive ring")
	}
	f := &r.slots[r.take]
	r.taken++
	if r.take++; r.take == len(r.slots) {
		r.take = 0
	}
	return f
}

// Refill posts the n descriptors that have awaited refill for longest. What has
// arrived by now was met by the descriptors that were free before.
func (r *RXRing) Refill(now sim.Time, n int) {
	r.Pull(now)
	if n < 0 || n > r.Awaiting() {
		panic(fmt.Sprintf("nic: %d descriptors refilled at %v, but %d await it", n, now, r.Awaiting()))
	}
	r.posted += int64(n)
	r.vector.predict(now)
}

// next returns a lower bound of the next completion.
func (r *RXRing) next() sim.Time {
	if r.filled == r.posted {
		return sim.Never
	}
	return r.wire.NextArrival()
}

// check returns an error unless the counters and the places agree.
func (r *RXRing) check() error {
	size := int64(len(r.slots))
	switch {
	case r.taken > r.filled || r.filled > r.posted || r.posted > r.taken+size:
		return fmt.Errorf("%d free + %d filled + %d awaiting are not %d descriptors", r.Free(), r.Filled(), r.Awaiting(), size)
	case r.filled%size != int64(r.fill) || r.taken%size != int64(r.take):
		return fmt.Errorf("%d filled and %d taken do not end at %d and %d", r.filled, r.taken, r.fill, r.take)
	}
	return nil
}
