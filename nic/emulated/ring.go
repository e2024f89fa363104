package emulated

import (
	"fmt"

	"napisim/model"
	"napisim/sim"
)

// RXRing is a receive ring. A descriptor is free (the device may fill it), filled, or
// awaits refill, and passes through these states in the order of the ring. A new ring
// awaits refill.
type RXRing struct {
	port  *Port
	slots []model.Frame
	// Descriptors ever posted, filled and taken: free are posted-filled, filled are
	// filled-taken, awaiting is the rest. The places are these modulo the size.
	posted, filled, taken int64
	fill, take            int
}

// Size returns the number of descriptors.
func (r *RXRing) Size() int { return len(r.slots) }

// Free returns how many descriptors the device may fill.
func (r *RXRing) Free() int { return int(r.posted - r.filled) }

// Filled returns how many frames the driver can take. The caller has looked.
func (r *RXRing) Filled() int { return int(r.filled - r.taken) }

// Awaiting returns how many descriptors the driver has not posted again.
func (r *RXRing) Awaiting() int { return len(r.slots) - int(r.posted-r.taken) }

// Written returns how many frames were ever written to memory.
func (r *RXRing) Written() int64 { return r.filled }

// Taken returns how many frames the driver has ever taken.
func (r *RXRing) Taken() int64 { return r.taken }

// Take gives the driver the oldest frame, which must be there. It stays the ring's:
// the frame is valid until the driver refills its descriptor.
func (r *RXRing) Take() *model.Frame {
	if r.filled == r.taken {
		panic("emulated: took a frame from an empty receive ring")
	}
	f := &r.slots[r.take]
	r.taken++
	if r.take++; r.take == len(r.slots) {
		r.take = 0
	}
	return f
}

// Refill posts the n descriptors that have awaited refill for longest, at now. Frames
// that the hub has held back for lack of descriptors arrive at this instant, and set
// their causes.
func (r *RXRing) Refill(now sim.Time, n int) {
	if n < 0 || n > r.Awaiting() {
		panic(fmt.Sprintf("emulated: %d descriptors refilled at %v, but %d await it", n, now, r.Awaiting()))
	}
	r.posted += int64(n)
	for r.port.held.n > 0 && r.Free() > 0 {
		r.port.fill(now, r.port.held.pop())
	}
}

func (r *RXRing) put(now sim.Time, f *model.Frame) {
	s := &r.slots[r.fill]
	*s = *f
	s.Arrival = now
	r.filled++
	if r.fill++; r.fill == len(r.slots) {
		r.fill = 0
	}
}

// Sent tells what was in one transmitted descriptor, for the books of the driver.
type Sent struct {
	// Segments is the number of frames that the driver counts for it: more than one for
	// an skb that the device segments.
	Segments int
	// Bytes is their length without FCS, headers repeated.
	Bytes int
	// Len is the length of the skb, as byte queue limits count it.
	Len int
}

// TXRing is a transmit ring. A descriptor is posted by the driver, sent by the device
// at a doorbell, and reaped by the driver. One stands for an skb whatever its
// fragments are.
type TXRing struct {
	size   int
	mss    []int32 // of skbs that the device segments, by place
	slots  []model.Frame
	info   []Sent
	put    int
	get    int
	run    int // the next that the device sends
	posted int64
	sent   int64
	reaped int64
	wire   int64 // frames put on the hub
}

// Size returns the number of descriptors.
func (r *TXRing) Size() int { return r.size }

// InUse returns how many descriptors the driver has not reaped.
func (r *TXRing) InUse() int { return int(r.posted - r.reaped) }

// Unused returns how many descriptors the driver may post.
func (r *TXRing) Unused() int { return r.size - r.InUse() }

// Waiting returns how many posted descriptors the device has not sent.
func (r *TXRing) Waiting() int { return int(r.posted - r.sent) }

// Done returns how many sent descriptors the driver has not reaped. The caller has
// looked.
func (r *TXRing) Done() int { return int(r.sent - r.reaped) }

// Posted returns how many descriptors the driver has ever posted.
func (r *TXRing) Posted() int64 { return r.posted }

// Completed returns how many descriptors the device has ever sent.
func (r *TXRing) Completed() int64 { return r.sent }

// Reaped returns how many descriptors the driver has ever reaped.
func (r *TXRing) Reaped() int64 { return r.reaped }

// Post writes a descriptor for a copy of f; the device does not see it before the
// doorbell. With an mss below the payload of a TCP frame it is one that the device
// cuts into segments (TSO). It reports false if the ring is full.
func (r *TXRing) Post(f *model.Frame, mss int) bool {
	if r.Unused() == 0 {
		return false
	}
	r.slots[r.put] = *f
	r.mss[r.put] = int32(mss)
	info := Sent{Segments: 1, Bytes: int(f.Len), Len: int(f.Len)}
	if mss > 0 && int(f.Payload) > mss {
		info.Segments = (int(f.Payload) + mss - 1) / mss
		info.Bytes += (info.Segments - 1) * (int(f.Len) - int(f.Payload))
	}
	r.info[r.put] = info
	r.put = (r.put + 1) % r.size
	r.posted++
	return true
}

// Reap takes the oldest sent descriptor back, which must be there.
func (r *TXRing) Reap() Sent {
	if r.sent == r.reaped {
		panic("emulated: reaped a descriptor that was not sent")
	}
	s := r.info[r.get]
	r.get = (r.get + 1) % r.size
	r.reaped++
	return s
}
