package emulated

import (
	"errors"
	"fmt"

	"napisim/model"
	"napisim/sim"
)

// MaxRing is the largest number of descriptors of a ring.
const MaxRing = 65536

// Line is where interrupts go: an interrupt line of a core.
type Line interface {
	// Raise is called at the instant of the interrupt.
	Raise()
}

// Config describes a device.
type Config struct {
	// RXRing and TXRing are the numbers of descriptors, 1 to MaxRing (ethtool -G).
	RXRing, TXRing int
	// NoMitigation lets an E1000 raise every edge at once (mitigation=off). The others
	// have no such switch.
	NoMitigation bool
	// TXDelay is how long after its doorbell a Virtio device sends: its transmission
	// runs in the emulator's main loop. Recordings show none in most cases.
	TXDelay sim.Time
}

// Validate returns every fault of the configuration. Fields have the spellings of
// ethtool.
func (c *Config) Validate() []error {
	var faults []error
	for _, ring := range []struct {
		name string
		size int
	}{{"rx", c.RXRing}, {"tx", c.TXRing}} {
		if ring.size < 1 || ring.size > MaxRing {
			faults = append(faults, fmt.Errorf("%s: a ring of %d descriptors is not between 1 and %d", ring.name, ring.size, MaxRing))
		}
	}
	if c.TXDelay < 0 || c.TXDelay > sim.Second {
		faults = append(faults, fmt.Errorf("tx_delay: %v is not between 0 and 1s", c.TXDelay))
	}
	return faults
}

// causes is what a device does with its causes of interrupts.
type causes interface {
	// received is called for each frame that was written to the receive ring.
	received(now sim.Time)
	// transmitted is called for each descriptor that was sent, and once more with last
	// at the end of the doorbell.
	transmitted(now sim.Time, last bool)
}

// Port is what all devices have in common: two rings and a plug for the hub.
type Port struct {
	eng   *sim.Engine
	phase sim.Phase
	peer  *Port
	rx    RXRing
	tx    TXRing
	held  frameQueue // frames that wait for descriptors
	intr  causes

	arrived    int64
	interrupts int64
}

// newPort makes an unplugged port. Its events have the given phase, which must be
// below those of the cores and its own.
func newPort(eng *sim.Engine, phase sim.Phase, cfg Config) *Port {
	p := &Port{eng: eng, phase: phase}
	p.rx = RXRing{port: p, slots: make([]model.Frame, cfg.RXRing)}
	p.tx = TXRing{
		size: cfg.TXRing, slots: make([]model.Frame, cfg.TXRing),
		info: make([]Sent, cfg.TXRing), mss: make([]int32, cfg.TXRing),
	}
	return p
}

// Join plugs two devices into a hub of their own. It belongs to the construction of a
// run.
func Join(a, b *Port) { a.peer, b.peer = b, a }

// RX returns the receive ring.
func (p *Port) RX() *RXRing { return &p.rx }

// TX returns the transmit ring.
func (p *Port) TX() *TXRing { return &p.tx }

// Held returns how many frames wait in the hub for free descriptors of this device.
func (p *Port) Held() int { return p.held.n }

// Interrupts returns how many interrupts the device has raised.
func (p *Port) Interrupts() int64 { return p.interrupts }

// raise raises an interrupt.
func (p *Port) raise(l Line) {
	p.interrupts++
	l.Raise()
}

// send moves every posted frame to the peer at now.
func (p *Port) send(now sim.Time) {
	for p.tx.sent < p.tx.posted {
		p.sendOne(now)
		p.tx.run = (p.tx.run + 1) % p.tx.size
		p.tx.sent++
		p.intr.transmitted(now, false)
	}
	p.intr.transmitted(now, true)
}

// sendOne sends the frames of one descriptor. The emulated e1000 segments as real ones
// do, but a payload that is a multiple of the MSS is followed by an empty segment.
func (p *Port) sendOne(now sim.Time) {
	f := &p.tx.slots[p.tx.run]
	mss := p.tx.mss[p.tx.run]
	if mss <= 0 || f.Payload <= mss {
		p.arrive(now, f)
		return
	}
	header := f.Len - f.Payload
	seg := *f
	for left := f.Payload; left >= 0; left -= mss {
		seg.Payload = min(left, mss)
		seg.Len = max(header+seg.Payload, model.MinFrame)
		seg.Flags = f.Flags
		if left > mss {
			seg.Flags &^= model.PSH | model.FIN
		}
		p.arrive(now, &seg)
		seg.Seq += uint64(seg.Payload)
		seg.IPID++
		if seg.Payload < mss {
			break
		}
	}
}

// arrive brings a frame to the peer, where it is written to a free descriptor or held
// back.
func (p *Port) arrive(now sim.Time, f *model.Frame) {
	p.tx.wire++
	q := p.peer
	q.arrived++
	if q.held.n > 0 || q.rx.Free() == 0 {
		q.held.push(f)
		return
	}
	q.fill(now, f)
}

// fill writes a frame to a free descriptor and reports it.
func (p *Port) fill(now sim.Time, f *model.Frame) {
	p.rx.put(now, f)
	p.intr.received(now)
}

// Stats are the counters of a device.
type Stats struct {
	RXPackets  int64 // frames written to memory
	TXPackets  int64 // frames put on the hub
	Held       int64 // frames that wait in the hub
	Interrupts int64
}

// Stats returns the counters.
func (p *Port) Stats() Stats {
	return Stats{RXPackets: p.rx.filled, TXPackets: p.tx.wire, Held: int64(p.held.n), Interrupts: p.interrupts}
}

// Check returns an error unless every frame and every descriptor is accounted for:
// what the peer has put on the hub was written to memory or waits, a receive descriptor
// is free, filled or awaits refill, and a transmit descriptor is unused, posted or sent.
func (p *Port) Check() error {
	var faults []error
	if p.peer.tx.wire != p.arrived || p.arrived != p.rx.filled+int64(p.held.n) {
		faults = append(faults, fmt.Errorf("emulated: %d frames sent, %d arrived, but %d written and %d held back",
			p.peer.tx.wire, p.arrived, p.rx.filled, p.held.n))
	}
	size := int64(len(p.rx.slots))
	r := &p.rx
	if r.taken > r.filled || r.filled > r.posted || r.posted > r.taken+size || p.held.n > 0 && r.Free() > 0 {
		faults = append(faults, fmt.Errorf("emulated: %d free + %d filled + %d awaiting of %d descriptors, %d frames held back",
			r.Free(), r.Filled(), r.Awaiting(), size, p.held.n))
	}
	t := &p.tx
	if t.reaped > t.sent || t.sent > t.posted || t.posted > t.reaped+int64(t.size) {
		faults = append(faults, fmt.Errorf("emulated: %d posted, %d sent, %d reaped of %d descriptors", t.posted, t.sent, t.reaped, t.size))
	}
	return errors.Join(faults...)
}
