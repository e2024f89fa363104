package tcp

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/model"
	"napisim/sim"
)

// A socket is a receiver with what a test needs to feed it.
type socket struct {
	*Receiver
	t    *testing.T
	pool model.SKBPool
	free model.SKBList
	now  sim.Time
}

// newSocket returns a socket with a buffer of 1 MiB.
func newSocket(t *testing.T, change func(*ReceiverConfig)) *socket {
	t.Helper()
	cfg := DefaultReceiverConfig()
	cfg.Rmem[1] = 1 << 20
	if change != nil {
		change(&cfg)
	}
	s := &socket{t: t}
	s.Receiver = NewReceiver(cfg, &s.pool)
	t.Cleanup(func() {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		s.Close(&s.free)
		s.freed()
		if s.pool.Live() != 0 || s.RmemAlloc() != 0 {
			t.Errorf("%d skbs leaked, %d bytes still charged", s.pool.Live(), s.RmemAlloc())
		}
	})
	return s
}

// skb returns a superframe of n segments that begins with segment first (from 0) in
// half-page frags, as GRO makes it of skbs from build_skb.
func (s *socket) skb(first float64, n int) *model.SKB {
	f := model.Frame{Seq: FirstSeq + uint64(first*seg), Payload: seg, Len: model.TCPFrameLen(seg), Flags: model.ACK, Proto: model.TCP, TSVal: 1, Arrival: s.now}
	k := newSKB(&s.pool, &f, 2304)
	for i := 1; i < n; i++ {
		f.Seq += seg
		merge(k, &f)
	}
	return k
}

// give receives n segments from first on as one skb.
func (s *socket) give(first float64, n int) Verdict {
	return s.Receive(s.now, s.skb(first, n), &s.free)
}

// freed frees what was handed back and returns how many skbs that were.
func (s *socket) freed() int {
	n := s.free.Len()
	for k := s.free.PopFront(); k != nil; k = s.free.PopFront() {
		s.pool.Put(k)
	}
	return n
}

func (s *socket) buildAck() model.Segment {
	var a model.Segment
	s.BuildAck(s.now, &a)
	return a
}

// settle passes the quick ACKs of the start: segments up to next, each acknowledged
// and read. The window stays where it began, far below what the buffer allows, as
// with TCP_WINDOW_CLAMP: it neither grows, which would be acknowledged at once, nor
// shrinks, which would hold ACKs back.
func (s *socket) settle(next int) {
	s.t.Helper()
	s.clamp, s.cfg.ModerateRcvbuf = s.ssthresh, false
	for i := range next {
		if v := s.give(float64(i), 1); v.AckNow {
			s.buildAck()
		}
		s.Read(s.now, 1<<20, &s.free)
		s.freed()
	}
	if s.ack.quick != 0 {
		s.t.Fatalf("%d quick ACKs are left", s.ack.quick)
	}
	if s.ack.scheduled {
		s.buildAck()
	}
}

// blocks renders SACK blocks in segments.
func blocks(a *model.Segment) [][2]float64 {
	var out [][2]float64
	for _, b := range a.Blocks[:a.SACKs] {
		out = append(out, [2]float64{float64(b.Start-FirstSeq) / seg, float64(b.End-FirstSeq) / seg})
	}
	return out
}

// Vector T1 of the delayed ACK: one full segment waits, the second is acknowledged
// at once, a superframe of two or more is, with exactly one ACK.
func TestDelayedAck(t *testing.T) {
	s := newSocket(t, nil)
	s.settle(200)
	if v := s.give(200, 1); v.AckNow {
		t.Error("one segment was acknowledged at once")
	}
	if got := s.DelAckDeadline(); got != s.now+40*sim.Millisecond {
		t.Errorf("delayed ACK at %v", got)
	}
	if v := s.give(201, 1); !v.AckNow {
		t.Error("two segments were not acknowledged at once")
	}
	if a := s.buildAck(); a.Ack != FirstSeq+202*seg {
		t.Errorf("ACK of %d", a.Ack)
	}
	if got := s.DelAckDeadline(); got != sim.Never {
		t.Errorf("a timer still runs, for %v", got)
	}
	before := s.Stats().AcksSent
	for _, n := range []int{2, 3, 17, 45} {
		next := float64(s.RcvNxt()-FirstSeq) / seg
		if v := s.give(next, n); !v.AckNow {
			t.Errorf("a superframe of %d was not acknowledged at once", n)
		}
		s.buildAck()
	}
	if got := s.Stats().AcksSent - before; got != 4 {
		t.Errorf("%d ACKs for 4 superframes", got)
	}
}

// The first segments are acknowledged at once so that slow start gets going: 16,
// and one more whenever the window may grow.
func TestQuickAcks(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.RcvBuf = 131072 / 2 }) // 64 KiB window, which is announced already
	at := 0
	for i := range 40 {
		v := s.give(float64(i), 1)
		s.Read(s.now, 1<<20, &s.free)
		if !v.AckNow {
			at = i
			break
		}
		s.buildAck()
	}
	if at != maxQuickAcks {
		t.Errorf("segment %d was the first that waited", at)
	}
}

// The delay follows the gaps between segments (ato), and a timer that had to fire
// doubles it, up to 200 ms.
func TestDelayAdapts(t *testing.T) {
	s := newSocket(t, nil)
	s.settle(200)
	next := 200.0
	lone := func(gap sim.Time) sim.Time {
		s.now += gap
		if v := s.give(next, 1); v.AckNow {
			t.Fatalf("segment %v was acknowledged at once", next)
		}
		next++
		wait := s.DelAckDeadline() - s.now
		s.Read(s.now, 1<<20, &s.free)
		if s.DelAckTimer(s.now + wait - 1) {
			t.Error("the timer fired too early")
		}
		s.now += wait
		if !s.DelAckTimer(s.now) {
			t.Error("the timer had nothing to do")
		}
		s.buildAck()
		return wait
	}
	// 40 ms; the timer doubles ato to 80, then the gap of 40+60 ms is above ato and
	// below the timeout, which changes nothing; doubled again, 160, the gap of 180 ms
	// changes nothing either; doubled and bounded, 200.
	for i, want := range []sim.Time{40, 80, 160, 200} {
		if got := lone([]sim.Time{0, 60, 100, 30}[i] * sim.Millisecond); got != want*sim.Millisecond {
			t.Errorf("wait %d: %v, want %v ms", i, got, want)
		}
	}
	if got := s.Stats().DelayedACKs; got != 4 {
		t.Errorf("%d delayed ACKs", got)
	}
	// After more than the timeout of 200 ms the sender starts anew, so do quick ACKs.
	s.now = s.ack.lastRcv + 201*sim.Millisecond
	if v := s.give(next, 1); !v.AckNow {
		t.Error("not in quick ACK mode after a pause")
	}
}

// A known round-trip time bounds the delay, but not below 40 ms.
func TestDelayBoundedByRTT(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.InitialRTT = 70 * sim.Millisecond })
	s.settle(200)
	s.ack.ato = 160 * sim.Millisecond
	s.ack.lastRcv = s.now - 180*sim.Millisecond
	s.give(200, 1)
	if got := s.DelAckDeadline() - s.now; got != 70*sim.Millisecond {
		t.Errorf("delay %v", got)
	}
}

// The window would shrink: the ACK waits for the reader, whose read sends it.
func TestAckWaitsForReader(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.RcvBuf = 60_000 })
	s.settle(200)
	v := s.give(200, 20)
	if v.AckNow || !v.DataReady {
		t.Errorf("verdict %+v: the buffer shrinks the window, the reader will open it", v)
	}
	d := s.Read(s.now, 1<<20, &s.free)
	if !s.CleanupRbuf(s.now, d.Bytes) {
		t.Error("the read sent no ACK")
	}
}

// A short segment looks like the end of a write: the read that empties the queue
// acknowledges it, unless the connection is interactive.
func TestPushedAck(t *testing.T) {
	for _, interactive := range []bool{false, true} {
		s := newSocket(t, nil)
		s.settle(200)
		if interactive {
			s.now += 30 * sim.Millisecond
			s.DataSent(s.now)
		}
		k := s.skb(200, 1)
		k.Payload, k.Frame.Payload, k.LastSeg = 100, 100, 100
		k.Frame.Flags |= model.PSH
		if v := s.Receive(s.now, k, &s.free); v.AckNow {
			t.Error("acknowledged at once")
		}
		d := s.Read(s.now, 1<<20, &s.free)
		if got := s.CleanupRbuf(s.now, d.Bytes); got == interactive {
			t.Errorf("interactive %v: ACK on read %v", interactive, got)
		}
	}
}

// Out-of-order data: duplicate ACKs at once with SACK, newest block first, three at
// most; the ACK of the filled gap at once.
func TestSACKBlocks(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.CompSACKs = 0 })
	for _, c := range []struct {
		first float64
		want  [][2]float64
	}{
		{2, [][2]float64{{2, 3}}},
		{4, [][2]float64{{4, 5}, {2, 3}}},
		{6, [][2]float64{{6, 7}, {4, 5}, {2, 3}}},
		{8, [][2]float64{{8, 9}, {6, 7}, {4, 5}}},
		{5, [][2]float64{{4, 7}, {8, 9}, {2, 3}}},
		{3, [][2]float64{{2, 7}, {8, 9}}},
		{9, [][2]float64{{8, 10}, {2, 7}}},
	} {
		if v := s.give(c.first, 1); !v.AckNow || v.DataReady {
			t.Errorf("segment %v: verdict %+v", c.first, v)
		}
		a := s.buildAck()
		if diff := cmp.Diff(c.want, blocks(&a)); diff != "" || a.Ack != FirstSeq || a.DSACK {
			t.Errorf("segment %v: ACK %d, blocks %s", c.first, a.Ack, diff)
		}
		if a.Len != 66+int32(4+8*a.SACKs) {
			t.Errorf("length %d with %d blocks", a.Len, a.SACKs)
		}
	}
	if v := s.give(0, 2); !v.AckNow || !v.DataReady {
		t.Error("filled gap: no immediate ACK")
	}
	a := s.buildAck()
	if diff := cmp.Diff([][2]float64{{8, 10}}, blocks(&a)); diff != "" || a.Ack != FirstSeq+7*seg {
		t.Errorf("ACK %d, blocks %s", a.Ack, diff)
	}
	if st := s.Stats(); st.TCPOFOQueue != 7 || st.DupACKs != 8 {
		t.Errorf("stats %+v", st)
	}
}

// Duplicates are dropped and reported once, ahead of the other blocks (RFC 2883).
func TestDSACK(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.CompSACKs = 0 })
	s.settle(200)
	s.give(203, 2)
	s.buildAck()
	for _, c := range []struct {
		name     string
		first    float64
		n        int
		want     [][2]float64
		dropped  int
		ofo, old int64
	}{
		{"old", 198, 2, [][2]float64{{198, 200}, {203, 205}}, 2, 0, 1},
		{"already in the out-of-order queue", 204, 1, [][2]float64{{204, 205}, {203, 205}}, 1, 1, 0},
		{"half old", 199, 2, [][2]float64{{199, 200}, {203, 205}}, 0, 0, 1},
		{"covers the out-of-order queue", 202, 4, [][2]float64{{203, 205}, {202, 206}}, 0, 1, 0},
	} {
		before := s.Stats()
		v := s.give(c.first, c.n)
		if !v.AckNow && c.name != "half old" {
			t.Errorf("%s: no immediate ACK", c.name)
		}
		if v.Dropped != c.dropped || v.Dropped > 0 && v.Reason != model.DropTCPOld {
			t.Errorf("%s: verdict %+v", c.name, v)
		}
		a := s.buildAck()
		if diff := cmp.Diff(c.want, blocks(&a)); diff != "" || !a.DSACK {
			t.Errorf("%s: DSACK %v, blocks %s", c.name, a.DSACK, diff)
		}
		st := s.Stats()
		if st.TCPDSACKOfoSent-before.TCPDSACKOfoSent != c.ofo || st.TCPDSACKOldSent-before.TCPDSACKOldSent != c.old {
			t.Errorf("%s: stats %+v", c.name, st)
		}
		a = s.buildAck()
		if a.DSACK {
			t.Errorf("%s: reported twice", c.name)
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// 198 and 199, 204, 199 again, and the two that the last superframe replaced.
	if lost := s.Stats().Lost; lost[model.DropTCPOld] != 6 || lost.Total() != 6 {
		t.Errorf("lost %v", lost)
	}
}

// SACK compression: three duplicate ACKs at once, then at most 44 are held back
// for 5 % of the round-trip time.
func TestSACKCompression(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.InitialRTT = 10 * sim.Millisecond })
	s.ssthresh = 100 * seg
	s.settle(200)
	s.rtt.rtt = 10 * sim.Millisecond
	s.ack.quick = 0
	sent := 0
	for i := range 3 + 44 + 1 {
		v := s.give(float64(210+i), 1)
		if !v.AckNow {
			continue
		}
		sent++
		if i >= 3 && i != 47 {
			t.Errorf("ACK for out-of-order segment %d", i)
		}
		if i == 47 && s.CompSACKDeadline() != s.now+500*sim.Microsecond {
			t.Errorf("timer at %v", s.CompSACKDeadline())
		}
		s.buildAck()
	}
	if st := s.Stats(); sent != 4 || st.CompressedACKs != 44 {
		t.Errorf("%d sent, %d compressed", sent, st.CompressedACKs)
	}
	s.give(260, 1)
	s.now += 500 * sim.Microsecond
	if !s.CompSACKTimer(s.now) {
		t.Error("the timer of compressed ACKs sent none")
	}
}
