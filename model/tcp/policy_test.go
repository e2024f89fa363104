package tcp

import (
	"testing"

	"napisim/model"
	"napisim/sim"
)

// short returns one segment of n bytes that begins at RCV.NXT plus an offset.
func (s *socket) short(offset, n int) *model.SKB {
	k := s.skb(0, 1)
	k.Frame.Seq = s.RcvNxt() + uint64(offset)
	k.Payload, k.Frame.Payload, k.LastSeg = n, int32(n), n
	return k
}

// pushed returns the next segment of n bytes, with PSH.
func (s *socket) pushed(n int) *model.SKB {
	k := s.short(0, n)
	k.Frame.Flags |= model.PSH
	return k
}

// In ping-pong mode quick ACKs wait like others, until the delayed ACK had to fire.
func TestPingPong(t *testing.T) {
	s := newSocket(t, nil)
	s.settle(200)
	s.give(200, 1)
	s.buildAck()
	s.now += 10 * sim.Millisecond
	s.DataSent(s.now)
	s.ack.quick = 5
	if v := s.give(201, 1); v.AckNow {
		t.Error("acknowledged at once in ping-pong mode")
	}
	s.now = s.DelAckDeadline()
	if !s.DelAckTimer(s.now) {
		t.Fatal("no delayed ACK")
	}
	s.buildAck()
	if v := s.give(202, 1); !v.AckNow {
		t.Error("still in ping-pong mode")
	}
	s.buildAck()
	// Data that is sent long after the last segment came is no answer to it.
	s.now += sim.Second
	s.DataSent(s.now)
	if s.ack.pingpong {
		t.Error("in ping-pong mode without having answered")
	}
}

// A second small segment shortly before the timer fires is not worth a longer wait.
func TestDelayedAckAlmostDue(t *testing.T) {
	for _, c := range []struct {
		after sim.Time
		want  bool
	}{{29 * sim.Millisecond, false}, {31 * sim.Millisecond, true}} {
		s := newSocket(t, nil)
		s.settle(200)
		s.Receive(s.now, s.pushed(100), &s.free)
		due := s.DelAckDeadline()
		s.now += c.after
		s.ack.lastRcv = s.now // or ato would change
		if v := s.Receive(s.now, s.pushed(100), &s.free); v.AckNow != c.want {
			t.Errorf("second segment after %v: ACK %v", c.after, v.AckNow)
		}
		if s.DelAckDeadline() != due {
			t.Errorf("the timer moved from %v to %v", due, s.DelAckDeadline())
		}
	}
}

// ato approaches 40 ms from twice below the gap: gaps up to 20 ms count as none,
// gaps below ato as half of it and themselves.
func TestAto(t *testing.T) {
	ms := sim.Millisecond
	for _, c := range []struct{ ato, gap, want sim.Time }{
		{100 * ms, 20 * ms, 70 * ms},
		{100 * ms, 30 * ms, 80 * ms},
		{100 * ms, 99 * ms, 149 * ms},
		{100 * ms, 100 * ms, 100 * ms},
		{190 * ms, 150 * ms, 200 * ms},
	} {
		s := newSocket(t, nil)
		s.settle(200)
		s.ack.ato, s.ack.lastRcv = c.ato, s.now
		s.now += c.gap
		s.give(200, 1)
		if s.ack.ato != c.want {
			t.Errorf("ato %v after a gap of %v, was %v; want %v", s.ack.ato, c.gap, c.ato, c.want)
		}
	}
}

// A read sends a window update only if that doubles the window, and only if the
// window is at most half of its clamp.
func TestWindowUpdate(t *testing.T) {
	for _, c := range []struct {
		name       string
		wnd, clamp int64
		room       int64
		want       bool
	}{
		{"doubles", 10_000, 65_536, 157 * 128, true},
		{"less than double", 10_000, 65_536, 156 * 128, false},
		{"window is wide", 40_000, 65_536, 65_536, false},
		{"nothing was open", 0, 65_536, 20_000, true},
		{"too little to announce", 0, 65_536, 1_000, false},
	} {
		s := newSocket(t, func(c *ReceiverConfig) { c.RcvBuf = 65_536 })
		s.settle(200)
		s.rcvWnd, s.clamp, s.ssthresh = c.wnd, c.clamp, c.clamp
		s.rmem = s.rcvbuf - 2*int(c.room)
		if got := s.CleanupRbuf(s.now, seg); got != c.want {
			t.Errorf("%s: update %v", c.name, got)
		}
		if s.CleanupRbuf(s.now, 0) {
			t.Errorf("%s: update although nothing was read", c.name)
		}
		s.rmem = 0
	}
}

// A PUSHED mark sends the ACK with the read that empties the queue, not before.
func TestPushedAckWaitsForEmptyQueue(t *testing.T) {
	s := newSocket(t, nil)
	s.settle(200)
	s.Receive(s.now, s.pushed(600), &s.free)
	n := s.Read(s.now, 500, &s.free).Bytes
	if s.CleanupRbuf(s.now, n) {
		t.Error("acknowledged with data still queued")
	}
	n = s.Read(s.now, 500, &s.free).Bytes
	if !s.CleanupRbuf(s.now, n) {
		t.Error("not acknowledged with the queue empty")
	}
}

// When the last quick ACK is sent ato is 40 ms again.
func TestQuickAcksEnd(t *testing.T) {
	s := newSocket(t, nil)
	s.settle(200)
	s.ack.ato, s.ack.quick = 150*sim.Millisecond, 2
	for i, want := range []sim.Time{150, 40} {
		if s.buildAck(); s.ack.ato != want*sim.Millisecond {
			t.Errorf("ato %v after quick ACK %d", s.ack.ato, i)
		}
	}
}

// A pure ACK of the peer needs no answer, a probe below the window does.
func TestControlSegments(t *testing.T) {
	s := newSocket(t, nil)
	s.settle(200)
	before := s.Stats().Control
	if v := s.Receive(s.now, s.short(0, 0), &s.free); v != (Verdict{}) {
		t.Errorf("pure ACK: %+v", v)
	}
	if v := s.Receive(s.now, s.short(-1, 0), &s.free); v != (Verdict{AckNow: true}) {
		t.Errorf("probe: %+v", v)
	}
	if st := s.Stats(); st.Control != before+2 || st.Lost != (model.Losses{}) {
		t.Errorf("%+v", st)
	}
}

// The segment that fills the last gap is acknowledged at once, however small.
func TestFilledGapIsAcknowledged(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.CompSACKs = 0 })
	s.settle(200)
	s.Receive(s.now, s.short(100, 100), &s.free)
	s.buildAck()
	s.ack.quick = 0
	if v := s.Receive(s.now, s.short(0, 100), &s.free); !v.AckNow {
		t.Error("the filled gap was not acknowledged at once")
	}
}

// The echoed timestamp is that of the earliest segment not acknowledged (RFC 7323
// section 4.3), and one that was lost on the way does not count.
func TestTimestampEcho(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.CompSACKs = 0 })
	s.settle(200)
	give := func(offset int, stamp uint32) {
		k := s.short(offset, 100)
		k.Frame.TSVal = stamp
		s.Receive(s.now, k, &s.free)
	}
	give(0, 50)
	give(0, 51)
	if a := s.buildAck(); a.TSEcr != 50 {
		t.Errorf("echo of %d for 50 and 51", a.TSEcr)
	}
	give(500, 60) // out of order: RCV.NXT does not move, nor does the echo
	if a := s.buildAck(); a.TSEcr != 50 {
		t.Errorf("echo of %d for a segment out of order", a.TSEcr)
	}
	give(0, 70)
	if a := s.buildAck(); a.TSEcr != 70 {
		t.Errorf("echo of %d", a.TSEcr)
	}
}

// Round trips as the receiver sees them: the least of those that a window takes,
// an average of those that timestamps tell.
func TestReceiverRTT(t *testing.T) {
	var e rttState
	ms := sim.Millisecond
	for _, c := range []struct {
		sample sim.Time
		window bool
		want   sim.Time
	}{
		{40 * ms, true, 40 * ms},
		{60 * ms, true, 40 * ms},
		{32 * ms, true, 32 * ms},
		{40 * ms, false, 33 * ms},
		{25 * ms, false, 32 * ms},
	} {
		if e.update(c.sample, c.window); e.rtt != c.want {
			t.Errorf("%v after a sample of %v, want %v", e.rtt, c.sample, c.want)
		}
	}
	// Timestamps: only full segments measure, since a sender may hold back others.
	s := newSocket(t, nil)
	s.settle(200)
	s.rtt = rttState{}
	s.now = 100 * ms
	for _, c := range []struct {
		bytes int
		ecr   uint32
		want  sim.Time
	}{{100, 71, 0}, {seg, 81, 20 * ms}, {seg, 81, 20 * ms}, {seg, 101, 20*ms - 19*ms/8}} {
		k := s.short(0, c.bytes)
		k.Frame.TSEcr = c.ecr
		s.rttFromTimestamp(s.now, k)
		s.pool.Put(k)
		if s.RTT() != c.want {
			t.Errorf("%d bytes with an echo of %d: %v, want %v", c.bytes, c.ecr, s.RTT(), c.want)
		}
	}
	// The first segment begins a measurement, which ends a window of 45 segments later.
	s = newSocket(t, nil)
	for i := range 46 {
		if s.RTT() != 0 {
			t.Fatalf("round trip of %v after %d segments", s.RTT(), i)
		}
		s.now += ms
		s.give(float64(i), 1)
		s.buildAck()
	}
	if s.RTT() != 45*ms {
		t.Errorf("round trip %v", s.RTT())
	}
}

// Growth of the window that may be announced (rcv_ssthresh), with tcp_rmem[2] of 6
// MiB, of which half is window.
func TestGrowWindow(t *testing.T) {
	for _, c := range []struct {
		name              string
		ssthresh          int64
		segs, payload     int
		truesize          int
		clamp, grow       int64
		acknowledgedQuick bool
	}{
		// Half of the truesize is window: 1152 < 1448, so two segments are added.
		{"dense", 60_000, 1, 1448, 2304, 1 << 20, 2 * 1448, true},
		{"superframe", 60_000, 10, 14480, 20736, 1 << 20, 2 * 14480, true},
		{"only up to the clamp", 60_000, 1, 1448, 2304, 61_000, 1000, true},
		{"at the clamp", 60_000, 1, 1448, 2304, 60_000, 0, false},
		// 200 bytes in 2304 need windows of 1152, then 576, 288, 144 of 200: the third
		// halving brings it below, where the largest window, halved with it (1.5 MiB,
		// then 768 and 384 KiB), must still not be reached.
		{"sparse", 300_000, 1, 200, 2304, 1 << 20, 2 * 1448, true},
		{"too sparse for so large a window", 400_000, 1, 200, 2304, 1 << 20, 0, false},
	} {
		s := newSocket(t, nil)
		s.settle(200)
		s.ssthresh, s.clamp, s.ack.quick = c.ssthresh, c.clamp, 0
		s.growWindow(&model.SKB{Segs: c.segs, Payload: c.payload, Truesize: c.truesize})
		if got := s.ssthresh - c.ssthresh; got != c.grow || (s.ack.quick == 1) != c.acknowledgedQuick {
			t.Errorf("%s: grows by %d, want %d; quick ACKs %d", c.name, got, c.grow, s.ack.quick)
		}
	}
}

// Also data out of order lets the window grow: it shows what segments cost.
func TestGrowWindowOutOfOrder(t *testing.T) {
	s := newSocket(t, nil)
	before := s.ssthresh
	s.give(5, 1)
	if s.ssthresh != before+2*seg {
		t.Errorf("ssthresh %d, was %d", s.ssthresh, before)
	}
}

// Segments below 128 bytes say nothing of what data costs.
func TestSmallSegmentsDoNotGrowTheWindow(t *testing.T) {
	s := newSocket(t, nil)
	before := s.ssthresh
	s.Receive(s.now, s.short(0, 127), &s.free)
	if s.ssthresh != before {
		t.Errorf("ssthresh %d, was %d", s.ssthresh, before)
	}
	if s.Receive(s.now, s.short(0, 128), &s.free); s.ssthresh == before {
		t.Error("128 bytes did not let the window grow")
	}
}

// The window to announce with a buffer of 131072, half of it window, in units of 128.
func TestSelectableWindow(t *testing.T) {
	for _, c := range []struct {
		name          string
		rmem, backlog int
		want          int64
	}{
		{"rounded up", 131072 - 80_000, 0, 40_064},
		{"rounded down below half", 131072 - 60_000, 0, 29_952},
		{"the backlog counts", 131072 - 80_000, 20_000, 29_952},
		{"a sixteenth", 131072 - 8192, 0, 4096},
		{"less than a sixteenth", 131072 - 8190, 0, 0},
		{"overcommitted", 140_000, 0, 0},
	} {
		s := newSocket(t, func(cfg *ReceiverConfig) { cfg.RcvBuf = 65_536 })
		s.settle(200)
		s.clamp, s.ssthresh = 65_536, 65_536
		s.rmem, s.backlog = c.rmem, c.backlog
		if got := s.selectableWindow(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
		s.rmem = 0
	}
}

// Under memory pressure the window is clamped to two segments and ACKs are slow.
func TestClampWindow(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.RcvBuf = 30_000 })
	s.ack.quick = 7
	s.rmem = s.rcvbuf + 1
	s.clampWindow()
	if s.ssthresh != 2*seg || s.ack.quick != 0 {
		t.Errorf("ssthresh %d, quick ACKs %d", s.ssthresh, s.ack.quick)
	}
	s.rmem = 0
}
