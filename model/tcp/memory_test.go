package tcp

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/model"
	"napisim/sim"
)

// The window that a handshake announces: half of the default buffer, in whole
// segments, at most 65535; later windows are scaled by 2^7 because tcp_rmem[2] has
// 23 bits.
func TestInitialWindow(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*ReceiverConfig)
		window int
		rcvbuf int
		scale  uint
	}{
		{"default", func(*ReceiverConfig) {}, 45 * 1448, 131072, 7},
		{"87380, as up to 4.19", func(c *ReceiverConfig) { c.Rmem[1] = 87380 }, 43690 / 1448 * 1448, 87380, 7},
		{"32 MiB, as since 6.17", func(c *ReceiverConfig) { c.Rmem[2] = 32 << 20 }, 45 * 1448, 131072, 10},
		{"SO_RCVBUF is doubled", func(c *ReceiverConfig) { c.RcvBuf = 50_000 }, 50_000 / 1448 * 1448, 100_000, 7},
		{"SO_RCVBUF is capped", func(c *ReceiverConfig) { c.RcvBuf = 1 << 20 }, 45 * 1448, 2 * 212992, 7},
		{"SO_RCVBUF has a least value", func(c *ReceiverConfig) { c.RcvBuf = 1 }, 1152, 2304, 7},
		{"no scale", func(c *ReceiverConfig) { c.Rmem = [3]int{4096, 32768, 65535}; c.RmemMax = 65535 }, 16384 / 1448 * 1448, 32768, 0},
		{"scaling ratio of 6.8", func(c *ReceiverConfig) { c.ScalingRatio = 65 }, 33280 / 1448 * 1448, 131072, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := DefaultReceiverConfig()
			c.change(&cfg)
			r := NewReceiver(cfg, nil)
			if r.Window() != c.window || r.Rcvbuf() != c.rcvbuf || r.scale != c.scale {
				t.Errorf("window %d, rcvbuf %d, scale %d; want %d, %d, %d", r.Window(), r.Rcvbuf(), r.scale, c.window, c.rcvbuf, c.scale)
			}
		})
	}
}

// Coalescing: segments of build_skb give up their descriptors, 256 bytes each, up
// to 17 page fragments; the 18th extends a new skb. The merged skb is freed as a
// whole, when its last byte has been read.
func TestCoalesce(t *testing.T) {
	s := newSocket(t, nil)
	const n = 20
	for i := range n {
		v := s.give(float64(i), 1)
		// The first skb is a linear one with no fragment. 17 heads can join it.
		if want := i != 0 && i != 18; v.Coalesced != want {
			t.Errorf("segment %d: coalesced %v", i, v.Coalesced)
		}
	}
	if want := n*2304 - (n-2)*256; s.RmemAlloc() != want {
		t.Errorf("rmem_alloc %d, want %d", s.RmemAlloc(), want)
	}
	if got := s.Stats().TCPRcvCoalesce; got != n-2 {
		t.Errorf("TCPRcvCoalesce %d", got)
	}
	if d := s.Read(s.now, 17*seg, &s.free); d.SKBs != 17 || s.freed() != 0 {
		t.Error("parts of a merged skb were freed")
	}
	if d := s.Read(s.now, seg, &s.free); d.SKBs != 1 || s.freed() != 18 {
		t.Error("a merged skb was not freed as a whole")
	}
	if want := 2*2304 - 256; s.RmemAlloc() != want {
		t.Errorf("rmem_alloc %d after the read, want %d", s.RmemAlloc(), want)
	}
}

func TestCoalesceRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  func(*model.SKB)
		second func(*model.SKB)
		want   bool
	}{
		{"fits", func(*model.SKB) {}, func(*model.SKB) {}, true},
		{"frag_list before", func(k *model.SKB) { k.Chained = 1 }, func(*model.SKB) {}, false},
		{"frag_list", func(*model.SKB) {}, func(k *model.SKB) { k.Chained = 1 }, false},
		{"pages of a pool behind others", func(*model.SKB) {}, func(k *model.SKB) { k.Pool = noPool{} }, false},
		{"too many fragments", func(k *model.SKB) { k.Frags = 16 }, func(k *model.SKB) { k.Frags = 2 }, false},
		{"just enough fragments", func(k *model.SKB) { k.Frags = 15 }, func(k *model.SKB) { k.Frags = 2 }, true},
		{"paged data counts no head", func(k *model.SKB) { k.Frags = 16 }, func(k *model.SKB) { k.Frags = 1 }, true},
	} {
		s := newSocket(t, nil)
		a, b := s.skb(0, 1), s.skb(1, 1)
		c.first(a)
		c.second(b)
		s.Receive(0, a, &s.free)
		if v := s.Receive(0, b, &s.free); v.Coalesced != c.want {
			t.Errorf("%s: coalesced %v", c.name, v.Coalesced)
		}
	}
}

// What an skb was merged with may be made redundant by others: then it stands alone.
func TestCoalesceUndone(t *testing.T) {
	for _, first := range []float64{0, 0.5} {
		s := newSocket(t, nil)
		s.give(1, 1)
		if v := s.give(2, 1); !v.Coalesced {
			t.Fatal("not coalesced")
		}
		// [0, 2.5) in order, or [0.5, 2.5) out of order.
		k := s.skb(first, 2)
		k.Payload, k.Frame.Payload, k.LastSeg = int((2.5-first)*seg), int32((2.5-first)*seg/2), int((2.5-first)*seg/2)
		s.Receive(s.now, k, &s.free)
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
}

type noPool struct{}

func (noPool) ReturnPages(int, int, bool) {}

// A reader is told the arrivals of the segments whose last byte it has copied,
// however the reads cut the stream.
func TestReadArrivals(t *testing.T) {
	s := newSocket(t, nil)
	k := s.skb(0, 3)
	k.Arrivals = append(k.Arrivals[:0], 10, 20, 30)
	s.Receive(0, k, &s.free)
	k = s.skb(3, 1)
	k.Arrivals[0] = 40
	s.Receive(0, k, &s.free)
	for _, c := range []struct {
		limit, bytes int
		want         []sim.Time
	}{
		{0, 0, nil},
		{seg - 1, seg - 1, nil},
		{1, 1, []sim.Time{10}},
		{seg + 1, seg + 1, []sim.Time{20}},
		{2*seg - 1, 2*seg - 1, []sim.Time{30, 40}},
		{seg, 0, nil},
	} {
		d := s.Read(0, c.limit, &s.free)
		if diff := cmp.Diff(c.want, append([]sim.Time(nil), d.Arrivals...)); diff != "" || d.Bytes != c.bytes {
			t.Errorf("read of %d: %d bytes, arrivals %s", c.limit, d.Bytes, diff)
		}
	}
}

// The reader does not read: the window closes by what is queued, its edge stays,
// and at the end segments find it closed.
func TestZeroWindow(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.RcvBuf = 50_000 })
	edge := FirstSeq + uint64(s.Window())
	var last model.Segment
	i := 0
	for ; s.Window() >= seg; i++ {
		s.give(float64(i), 1)
		last = s.buildAck()
		if e := last.Ack + uint64(last.Window); e < edge {
			t.Fatalf("segment %d: edge moved left from %d to %d", i, edge, e)
		} else {
			edge = e
		}
	}
	// k segments charge 2048 bytes each and 256 more for every 18. Half of what they
	// leave of 100000 is announced: 3536 at k = 45, in units of 128 and rounded down
	// below half of the buffer 3456, so the edge is at 45*1448 + 3456 = 68616. With
	// 46 it would be 2512, less than a sixteenth of 50000: nothing new is opened, and
	// what is open, 2008, is rounded up to 2048. After 47, 600 are rounded to 640.
	if i != 47 || last.Window != 640 {
		t.Errorf("%d segments, window %d", i, last.Window)
	}
	// A sender that fills it regardless of silly windows, and then one more.
	k := s.skb(float64(i), 1)
	k.Payload, k.Frame.Payload = 640, 640
	s.Receive(s.now, k, &s.free)
	if last = s.buildAck(); last.Window != 0 || s.Stats().ZeroWindows != 1 {
		t.Errorf("window %d", last.Window)
	}
	if v := s.Receive(s.now, s.skb(float64(s.RcvNxt()-FirstSeq)/seg, 1), &s.free); !v.AckNow || v.Reason != model.DropTCPWindow || v.Dropped != 1 {
		t.Errorf("segment into a closed window: %+v", v)
	}
	if s.Stats().TCPZeroWindowDrop != 1 {
		t.Errorf("stats %+v", s.Stats())
	}
	s.buildAck()
	// A probe below the window is answered.
	probe := s.skb(0, 1)
	probe.Frame.Seq, probe.Payload, probe.Frame.Payload = s.RcvNxt()-1, 0, 0
	if v := s.Receive(s.now, probe, &s.free); !v.AckNow || v.Dropped != 0 {
		t.Errorf("probe: %+v", v)
	}
	s.buildAck()
	// Reading opens it again, and the reader sends the update: when the first merged
	// skb of 18 segments is freed, since nothing is uncharged before.
	read := 0
	for !s.CleanupRbuf(s.now, seg) {
		read += s.Read(s.now, seg, &s.free).Bytes
	}
	if a := s.buildAck(); a.Window == 0 || s.Stats().WindowUpdates != 1 || read != 18*seg {
		t.Errorf("window %d after reading %d bytes", a.Window, read)
	}
}

// A segment beyond the window is dropped, one that begins in it is taken whole.
func TestBeyondWindow(t *testing.T) {
	s := newSocket(t, nil)
	s.settle(20)
	edge := s.RcvNxt() + uint64(s.Window())
	for _, c := range []struct {
		seq     uint64
		dropped int
	}{{edge, 1}, {edge + 1, 1}, {edge + 10*seg, 1}, {edge - 1, 0}} {
		k := s.skb(0, 1)
		k.Frame.Seq = c.seq
		v := s.Receive(s.now, k, &s.free)
		if v.Dropped != c.dropped || v.Dropped > 0 && v.Reason != model.DropTCPWindow || !v.AckNow {
			t.Errorf("segment at %d, edge %d: %+v", c.seq, edge, v)
		}
		s.buildAck()
	}
}

// Receive memory of an in-order queue that nobody reads. Autotuning lets the buffer
// grow up to tcp_rmem[2] before anything is refused; a locked buffer is collapsed
// first. Small segments in large buffers are what makes it worth while.
func TestPrune(t *testing.T) {
	for _, locked := range []bool{false, true} {
		s := newSocket(t, func(c *ReceiverConfig) {
			c.Rmem = [3]int{4096, 64 << 10, 128 << 10}
			if locked {
				c.RcvBuf = 32 << 10
			}
		})
		const payload = 200
		at, i := s.RcvNxt(), 0
		for ; ; i++ {
			k := s.skb(0, 1)
			k.Frame.Seq, k.Payload, k.Frame.Payload, k.LastSeg = at, payload, payload, payload
			k.Chained = 1 // never coalesced
			at += payload
			if v := s.Receive(s.now, k, &s.free); v.Dropped > 0 {
				if v.Reason != model.DropTCPRcvQ {
					t.Errorf("dropped for %v", v.Reason)
				}
				break
			}
			s.ssthresh, s.rcvWnd = 1<<20, 1<<20 // a sender that respects no window
			s.freed()
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
		}
		st := s.Stats()
		if st.TCPRcvQDrop != 1 || st.RcvPruned != 1 || st.TCPRcvCollapsed == 0 || st.PruneCalled == 0 {
			t.Errorf("locked %v: stats %+v", locked, st)
		}
		want := 64 << 10
		if !locked {
			want = 128 << 10
		}
		if s.Rcvbuf() != want {
			t.Errorf("locked %v: rcvbuf %d, want %d", locked, s.Rcvbuf(), want)
		}
		// Skbs are collapsed as long as half of their memory is more than their payload,
		// so payload ends up with at least half; uncollapsed it had 200 of 2304.
		if s.Readable() < want/2 {
			t.Errorf("locked %v: only %d bytes fitted into %d", locked, s.Readable(), want)
		}
	}
}

// The same for data out of order: contiguous ranges are collapsed; if that is not
// enough it is dropped from the end, and what the sender was told is forgotten.
func TestPruneOutOfOrder(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.RcvBuf = 40_000; c.CompSACKs = 0 })
	s.rcvWnd = 1 << 20 // a sender that respects no window
	give := func(first float64) Verdict {
		k := s.skb(first, 1)
		k.Truesize = 4352 // a full page
		return s.Receive(s.now, k, &s.free)
	}
	// Pairs of segments with a hole between pairs. 18 skbs of 4352 are 78336 of
	// 80000, the 19th overshoots and the 20th looks for memory.
	for i := range 19 {
		if v := give(2 + float64(i/2*3+i%2)); v.Dropped != 0 || s.Stats().PruneCalled != 0 {
			t.Fatalf("skb %d: %+v", i, v)
		}
		s.buildAck()
	}
	if v := give(0); v.Dropped != 0 || v.Collapsed != 18*seg {
		t.Errorf("in order: %+v", v)
	}
	// Each of the 9 pairs goes into one page; the lone last segment stays.
	if st := s.Stats(); st.PruneCalled != 1 || st.TCPRcvCollapsed != 18 || st.OfoPruned != 0 || s.RmemAlloc() != 9*4352+2*4352 {
		t.Errorf("rmem_alloc %d, stats %+v", s.RmemAlloc(), st)
	}
	if got := s.freed(); got != 18 {
		t.Errorf("%d skbs freed, 18 were copied", got)
	}
	// Superframes are dense enough: the first has to make room for the second, and
	// that for data in order.
	s.give(100, 45)
	s.give(200, 45)
	if v := give(1); v.Dropped != 0 || s.RcvNxt() != FirstSeq+4*seg {
		t.Errorf("in order: %+v, RCV.NXT %d", v, s.RcvNxt())
	}
	if st := s.Stats(); st.OfoPruned != 2 || st.Lost[model.DropTCPOfo] != 90 {
		t.Errorf("stats %+v", st)
	}
	if a := s.buildAck(); a.SACKs != 0 {
		t.Errorf("%d blocks tell of data that may be gone", a.SACKs)
	}
	s.freed()
}

// Pages leave with carriers when data is collapsed: every page that came goes home
// once.
func TestCollapseReturnsPages(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.RcvBuf = 20_000 })
	pages, back := 0, 0
	s.rcvWnd = 1 << 20
	for i := range 30 {
		k := s.skb(float64(i)/4, 1)
		k.Pool, k.Payload, k.Frame.Payload = noPool{}, seg/4, seg/4
		pages += k.Pages
		s.Receive(s.now, k, &s.free)
	}
	s.Read(s.now, 1<<20, &s.free)
	for k := s.free.PopFront(); k != nil; k = s.free.PopFront() {
		if k.Pages > 0 && k.Pool == nil {
			t.Error("pages without an owner")
		}
		back += k.Pages
		s.pool.Put(k)
	}
	if s.Stats().TCPRcvCollapsed == 0 || back != pages {
		t.Errorf("%d pages came, %d went; %d collapsed", pages, back, s.Stats().TCPRcvCollapsed)
	}
}

// Dynamic right-sizing: an application that reads 100 kB per round trip makes room
// for twice that, the same again for its growth over the 14480 bytes assumed at the
// start, and 16 segments more; the buffer is twice the window.
func TestAutotuning(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*ReceiverConfig)
		want   func(win int) int
	}{
		{"on", func(*ReceiverConfig) {}, func(win int) int { return 2 * win }},
		{"up to tcp_rmem[2]", func(c *ReceiverConfig) { c.Rmem[2] = 1_500_000 }, func(int) int { return 1_500_000 }},
		{"off", func(c *ReceiverConfig) { c.ModerateRcvbuf = false }, func(int) int { return 200_000 }},
		{"locked", func(c *ReceiverConfig) { c.RcvBuf = 100_000 }, func(int) int { return 200_000 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSocket(t, func(cfg *ReceiverConfig) {
				cfg.Rmem[1], cfg.InitialRTT = 200_000, 10*sim.Millisecond
				c.change(cfg)
			})
			for i := range 70 {
				s.give(float64(i), 1)
				s.Read(s.now, 1<<20, &s.free)
				s.buildAck()
			}
			if s.Rcvbuf() != 200_000 {
				t.Errorf("rcvbuf %d before a round trip is over", s.Rcvbuf())
			}
			s.now = s.RTT()
			s.Read(s.now, 1<<20, &s.free)
			const copied, space = 70 * seg, 10 * seg
			win := 2*copied + 16*seg
			win += 2 * (win * (copied - space) / space)
			if got := s.Rcvbuf(); got != c.want(win) {
				t.Errorf("rcvbuf %d, want %d", got, c.want(win))
			}
		})
	}
}

// Since 6.17 what waits to be read is left out: 30 of 70 segments.
func TestAutotuningSubtractsUnread(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) {
		c.Rmem[1], c.InitialRTT, c.SubtractUnread = 200_000, 10*sim.Millisecond, true
	})
	for i := range 100 {
		s.give(float64(i), 1)
		if i < 70 {
			s.Read(s.now, 1<<20, &s.free)
		}
		s.buildAck()
	}
	s.now = s.RTT()
	s.Read(s.now, 0, &s.free)
	if s.drs.space != 40*seg {
		t.Errorf("%d segments counted", s.drs.space/seg)
	}
}

// Since 6.6 the share of the buffer that is announced follows from the first full
// segment: 1448 of 2304 bytes are 160/256.
func TestScalingRatio(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.ScalingRatio = 65 })
	if s.clamp != 1<<20*65/256-seg {
		t.Errorf("clamp %d at the start", s.clamp)
	}
	s.give(0, 1)
	if s.ratio != 160 || s.clamp != 1<<20*160/256 {
		t.Errorf("ratio %d, clamp %d", s.ratio, s.clamp)
	}
}
