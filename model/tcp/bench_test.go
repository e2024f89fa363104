package tcp

import (
	"runtime"
	"testing"

	"napisim/model"
	"napisim/sim"
)

// BenchmarkConnection is the price of a segment from end to end: sender, wire of
// the tests, receiver and ACK, with their events.
func BenchmarkConnection(b *testing.B) {
	for _, c := range []struct {
		name string
		gro  int
		loss int // one frame in so many is lost; 0 for none
	}{
		{"segments", 1, 0},
		{"superframes", 45, 0},
		{"loss of 0.1 %", 45, 1000},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			snd, rcv := DefaultSenderConfig(), DefaultReceiverConfig()
			snd.Bytes = int64(b.N) * seg
			l := newLink(b, snd, rcv)
			l.keep, l.gro = false, c.gro
			l.delay, l.gap = 50*sim.Microsecond, 800*sim.Picosecond
			if c.loss > 0 {
				l.fate = func(n int, _ *model.Frame) fate { return fate{drop: n%c.loss == c.loss-1} }
			}
			b.ResetTimer()
			l.run(sim.Never - 1)
			if l.delivered != snd.Bytes {
				b.Fatalf("%d bytes delivered", l.delivered)
			}
		})
	}
}

// BenchmarkReceive is one skb through the receiver, read and acknowledged.
func BenchmarkReceive(b *testing.B) {
	for _, c := range []struct {
		name string
		segs int
	}{{"segment", 1}, {"superframe of 16", 16}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			r := newReceiving(c.segs)
			for b.Loop() {
				r.step(0)
			}
		})
	}
}

// BenchmarkOutOfOrder is a segment into the out-of-order queue, with the fill of the
// hole before it and its way to the receive queue once every thousand.
func BenchmarkOutOfOrder(b *testing.B) {
	b.ReportAllocs()
	r := newReceiving(1)
	i := 0
	for b.Loop() {
		// 1, 2, ..., 999, and then 0.
		if i++; i%1000 == 0 {
			r.step(-999)
		} else {
			r.step(1)
		}
	}
}

// receiving feeds a receiver with skbs of a fixed size.
type receiving struct {
	*Receiver
	pool model.SKBPool
	free model.SKBList
	next uint64
	segs int
	now  sim.Time
	ack  model.Segment
}

func newReceiving(segs int) *receiving {
	cfg := DefaultReceiverConfig()
	cfg.Rmem[1] = 6 << 20
	r := &receiving{segs: segs, next: FirstSeq}
	r.Receiver = NewReceiver(cfg, &r.pool)
	return r
}

// step receives the next skb, or one so many segments further, and reads.
func (r *receiving) step(skip int) {
	r.now += sim.Microsecond
	s := r.pool.Get()
	s.Segs, s.Payload, s.LastSeg, s.Pages = r.segs, r.segs*seg, seg, r.segs
	s.Truesize, s.Frags = model.SKBHead+2048*r.segs, r.segs-1
	s.Frame = model.Frame{Seq: r.next + uint64(skip*seg), Payload: seg, TSVal: timestamp(r.now), Proto: model.TCP, Flags: model.ACK}
	for range r.segs {
		s.Arrivals = append(s.Arrivals, r.now)
	}
	r.next += uint64(s.Payload)
	if v := r.Receive(r.now, s, &r.free); v.AckNow {
		r.BuildAck(r.now, &r.ack)
	}
	if n := r.Read(r.now, 1<<20, &r.free).Bytes; n > 0 && r.CleanupRbuf(r.now, n) {
		r.BuildAck(r.now, &r.ack)
	}
	for s := r.free.PopFront(); s != nil; s = r.free.PopFront() {
		r.pool.Put(s)
	}
}

// In steady state a segment allocates nothing, at either end and with losses.
func TestNoAllocations(t *testing.T) {
	for _, loss := range []int{0, 300} {
		snd, rcv := DefaultSenderConfig(), DefaultReceiverConfig()
		l := newLink(t, snd, rcv)
		l.keep, l.gro = false, 8
		l.delay, l.gap = 50*sim.Microsecond, 8*sim.Nanosecond
		if loss > 0 {
			l.fate = func(n int, _ *model.Frame) fate { return fate{drop: n%loss == loss-1} }
		}
		m := &meter{l: l}
		l.eng.Schedule(2*sim.Second, 240, m, 0)
		l.run(4 * sim.Second)
		// A ring or an array of arrivals may still grow once in a while.
		if m.allocs > 0.001 {
			t.Errorf("one frame in %d lost: %.3g allocations per segment", loss, m.allocs)
		}
	}
}

// meter measures what is allocated between two of its events.
type meter struct {
	l      *link
	before uint64
	segs   int64
	allocs float64
}

func (m *meter) Fire(uint64) {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	segs := m.l.snd.Stats().Segments
	if m.before == 0 {
		m.segs = segs
		m.l.eng.Schedule(m.l.eng.Now()+sim.Second, 240, m, 0)
		runtime.ReadMemStats(&s)
		m.before = s.Mallocs
		return
	}
	m.allocs = float64(s.Mallocs-m.before) / float64(segs-m.segs)
}
