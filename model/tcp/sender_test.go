package tcp

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/model"
	"napisim/sim"
)

const seg = 1448

// scripted returns a connection over a wire of infinite rate with a round trip of
// 100 ms: everything happens in rounds, at whole multiples of 50 ms. The sender
// sends n segments, one by one, under Reno; the receiver acknowledges each.
func scripted(t *testing.T, n float64) *link {
	snd, rcv := DefaultSenderConfig(), DefaultReceiverConfig()
	snd.Congestion, snd.TSO, snd.LimitOutput, snd.WriteSize, snd.RACK = "reno", 0, 0, 0, false
	snd.Bytes = int64(n * seg)
	rcv.CompSACKs = 0
	l := newLink(t, snd, rcv)
	l.delay = 50 * sim.Millisecond
	l.snd.cwnd = 10 * seg
	return l
}

// losing returns a fate that drops the frames of these numbers, in order of offer.
func losing(numbers ...int) func(int, *model.Frame) fate {
	return func(n int, _ *model.Frame) fate {
		return fate{drop: slices.Contains(numbers, n)}
	}
}

func expectScript(t *testing.T, l *link, want string) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimSpace(want), "\t", "")
	if diff := cmp.Diff(want, strings.TrimSpace(l.script())); diff != "" {
		t.Errorf("sent frames (-want +got):\n%s", diff)
	}
}

// Slow start of RFC 5681: each ACK of one segment makes room for two.
func TestSlowStart(t *testing.T) {
	l := scripted(t, 50)
	l.snd.cwnd = 2 * seg
	l.run(10 * sim.Second)
	// cwnd is 2, 4, 8, 16 and 32 segments in the rounds; 20 are left for the last.
	expectScript(t, l, `
		0ps: 0 1
		100ms: 2 3 4 5
		200ms: 6 7 8 9 10 11 12 13
		300ms: 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29
		400ms: 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49P`)
}

// Congestion avoidance of RFC 5681: one segment more per round trip.
func TestCongestionAvoidance(t *testing.T) {
	l := scripted(t, 22)
	l.snd.cwnd, l.snd.ssthresh = 4*seg, 4*seg
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2 3
		100ms: 4 5 6 7 8
		200ms: 9 10 11 12 13 14
		300ms: 15 16 17 18 19 20 21P`)
}

// Fast retransmission of RFC 6675: segment 2 is lost.
//
//	100 ms: ACK 1 and ACK 2 let 2 segments out each: 10 to 13. The SACK of 3 makes
//	room for 14, as limited transmit (RFC 3042) would: SACKed octets have left the
//	pipe. So does that of 4. At the SACK of 5 three segments lie above the hole, it
//	is lost: FlightSize is 2 to 15, 14 segments, cwnd and ssthresh become 7.
//	The pipe holds 11 to 15 and 2 when the SACK of 9 has come, 7 with 10: no more
//	is sent.
//	200 ms: The SACKs of 10 to 15 let out 16 to 21. The ACK of 16, which the
//	retransmission brings, ends the recovery and lets out 22.
func TestFastRetransmit(t *testing.T) {
	l := scripted(t, 23)
	l.fate = losing(2)
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2 3 4 5 6 7 8 9
		100ms: 10 11 12 13 14 15 2R
		200ms: 16 17 18 19 20 21 22P`)
	st := l.snd.Stats()
	if st.Recoveries != 1 || st.FastRetrans != 1 || st.Retrans != 1 || st.RTOs != 0 || st.Ssthresh != 7*seg {
		t.Errorf("stats %+v", st)
	}
	if lost := l.rcv.Stats().Lost; lost.Total() != 0 {
		t.Errorf("the receiver lost %v", lost)
	}
}

// Two segments above the hole are not enough evidence: DupThresh is 3. Segment 7
// of 10 is late by so much that only 8 and 9 overtake it.
func TestReorderingBelowDupThresh(t *testing.T) {
	l := scripted(t, 10)
	l.fate = func(n int, _ *model.Frame) (f fate) {
		if n == 7 {
			f.late = 10 * sim.Millisecond
		}
		return f
	}
	l.run(10 * sim.Second)
	expectScript(t, l, `0ps: 0 1 2 3 4 5 6 7 8 9P`)
	if st := l.snd.Stats(); st.DupAcks != 2 || st.Recoveries != 0 {
		t.Errorf("stats %+v", st)
	}
}

// Segment 6 is overtaken by three others: a spurious retransmission, which the
// receiver reports with a DSACK (RFC 2883). The DSACK changes nothing more.
func TestReorderingAboveDupThresh(t *testing.T) {
	l := scripted(t, 10)
	l.fate = func(n int, _ *model.Frame) (f fate) {
		if n == 6 {
			f.late = 10 * sim.Millisecond
		}
		return f
	}
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2 3 4 5 6 7 8 9P
		100ms: 6R`)
	st, rst := l.snd.Stats(), l.rcv.Stats()
	if st.Recoveries != 1 || st.DSACKs != 1 || st.RTOs != 0 {
		t.Errorf("stats %+v", st)
	}
	if rst.TCPDSACKOldSent != 1 || rst.Lost[model.DropTCPOld] != 1 {
		t.Errorf("receiver %+v", rst)
	}
}

// Three holes (RFC 6675 section 5): 1, 3 and 5 of 12 are lost.
//
//	100 ms: ACK 1 raises cwnd to 13 and lets out 12 and 13; the SACKs of 2 and 4
//	let out 14 and 15. At the SACK of 6 the hole at 1 has three blocks above it:
//	FlightSize is 1 to 15, cwnd = ssthresh = 15/2 = 7, 1 is sent again.
//	pipe = 15 - 3 SACKed - 1 lost + 1 sent again = 12.
//	SACK of 7: the top block [6,8) and [4,5) are more than 2 SMSS, so 3 is lost as
//	well: 15 - 4 - 2 + 1 = 10. SACK of 8: the top block alone does it, 5 is lost:
//	15 - 5 - 3 + 1 = 8. SACK of 9: 7, no room. SACK of 10: 6, NextSeg rule 1 sends
//	3. SACK of 11: 6 again, rule 1 sends 5.
//	200 ms: SACKs of 12 to 15 and ACKs of 3, 5 and 16 let out one segment each
//	(rule 2); the ACK of 16 ends the recovery.
func TestSeveralHoles(t *testing.T) {
	l := scripted(t, 23)
	l.snd.cwnd = 12 * seg
	l.fate = losing(1, 3, 5)
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2 3 4 5 6 7 8 9 10 11
		100ms: 12 13 14 15 1R 3R 5R
		200ms: 16 17 18 19 20 21 22P`)
	if st := l.snd.Stats(); st.Recoveries != 1 || st.FastRetrans != 3 || st.Ssthresh != 7*seg {
		t.Errorf("stats %+v", st)
	}
}

// The same without new data: cwnd = 11/2 = 5. When the pipe has room and rules 1 to
// 3 find nothing, rule 4 sends the last segment once more, since no SACK could ever
// tell that it was lost. Here it was not, and the receiver says so.
func TestRescueRetransmission(t *testing.T) {
	l := scripted(t, 12)
	l.snd.cwnd = 12 * seg
	l.fate = losing(1, 3, 5)
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2 3 4 5 6 7 8 9 10 11P
		100ms: 1R 3R 5R 11RP`)
	if st := l.snd.Stats(); st.DSACKs != 1 || st.RTOs != 0 {
		t.Errorf("stats %+v", st)
	}
}

// The last two segments are lost together with 4. Rule 4 repairs the last, its SACK
// shows the hole below it, and rule 3 fills that although one SACKed segment above
// it does not make it lost.
func TestLostTailInRecovery(t *testing.T) {
	l := scripted(t, 12)
	l.snd.cwnd = 12 * seg
	l.fate = losing(4, 10, 11)
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2 3 4 5 6 7 8 9 10 11P
		100ms: 4R 11RP
		200ms: 10R`)
	if st := l.snd.Stats(); st.RTOs != 0 || st.Retrans != 3 {
		t.Errorf("stats %+v", st)
	}
}

// RFC 6675 does not see that a retransmission was lost: the timer has to.
//
//	100 ms: 2 is sent again, the timer restarted. Samples of 100 ms have made
//	SRTT 100 ms and RTTVAR 50, then 37.5: RTO = 100 + max(4*37.5, 200) = 300 ms.
//	400 ms: timeout. All else is SACKed, so one segment repairs everything.
func TestLostRetransmission(t *testing.T) {
	l := scripted(t, 14)
	l.fate = func(n int, f *model.Frame) fate {
		return fate{drop: f.Seq == FirstSeq+2*seg && l.eng.Now() < 200*sim.Millisecond}
	}
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2 3 4 5 6 7 8 9
		100ms: 10 11 12 13P 2R 13RP
		400ms: 2R`)
	if st := l.snd.Stats(); st.RTOs != 1 || st.Recoveries != 1 || st.Retrans != 3 || st.FastRetrans != 2 {
		t.Errorf("stats %+v", st)
	}
}

// RFC 6298: the first timeout is one second, each further one doubles it. The fifth
// copy arrives, and its ACK ends the backoff.
func TestTimeoutBackoff(t *testing.T) {
	l := scripted(t, 1)
	l.fate = losing(0, 1, 2, 3)
	l.run(60 * sim.Second)
	expectScript(t, l, `
		0ps: 0P
		1s: 0RP
		3s: 0RP
		7s: 0RP
		15s: 0RP`)
	st := l.snd.Stats()
	if st.RTOs != 4 || st.Retrans != 4 || st.FastRetrans != 0 || !l.snd.Done() {
		t.Errorf("stats %+v", st)
	}
	// Karn: the only sample is the echo of the fifth copy's timestamp. RTTVAR is 50
	// ms, four times that 200: RTO = 300 ms.
	if st.SRTT != 100*sim.Millisecond || st.RTO != 300*sim.Millisecond {
		t.Errorf("SRTT %v, RTO %v", st.SRTT, st.RTO)
	}
	// ssthresh was set once, at the first timeout: max(FlightSize/2, 2*SMSS).
	if st.Ssthresh != 2*seg {
		t.Errorf("ssthresh %d", st.Ssthresh)
	}
}

// A whole flight is lost: timeout at 1 s, then slow start from one segment up to
// ssthresh = 10/2. All ten are lost for the sender, so it sends no new data before
// the old is through.
func TestTimeoutOfFlight(t *testing.T) {
	l := scripted(t, 14)
	l.fate = func(n int, _ *model.Frame) fate { return fate{drop: n < 10} }
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2 3 4 5 6 7 8 9
		1s: 0R
		1.1s: 1R 2R
		1.2s: 3R 4R 5R 6R
		1.3s: 7R 8R 9R 10 11
		1.4s: 12 13P`)
	if st := l.snd.Stats(); st.RTOs != 1 || st.Retrans != 10 || st.Ssthresh != 5*seg {
		t.Errorf("stats %+v", st)
	}
}

// Bursts: 45 segments are what 64 KiB of TSO hold. A burst is at most half of the
// congestion window and ends with PSH.
func TestBursts(t *testing.T) {
	for _, c := range []struct {
		name string
		rtt  sim.Time
		cwnd int64
		want []int
	}{
		// 30 segments in 100 ms, doubled for slow start, are 0.6 segments per
		// millisecond: bursts have the least size, two.
		{"slow path", 100 * sim.Millisecond, 10, []int{2, 2, 2, 2, 2}},
		// 10*1448*2/10 = 2896 bytes per millisecond, two segments. 64 KiB halved 19
		// times add nothing.
		{"10 ms", 10 * sim.Millisecond, 10, []int{2, 2, 2, 2, 2}},
		// 10*1448*2/3 = 9653, and 64 KiB halved five times: eight segments, but half a
		// window is five.
		{"3 ms", 3 * sim.Millisecond, 10, []int{5, 5}},
		// Without a sample there is no rate; half a window is the limit.
		{"no sample", 0, 30, []int{15, 15}},
		// 2*140 segments in a millisecond are more than TSO takes. What is left of
		// the window is sent at once, since no ACK is near.
		{"fast path", sim.Millisecond, 140, []int{45, 45, 45, 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := scripted(t, 200)
			l.snd.cfg.TSO = 65536
			l.snd.cwnd, l.snd.wndEnd, l.edge = c.cwnd*seg, 1<<30, 1<<30
			if c.rtt > 0 {
				l.snd.rtt.Sample(c.rtt)
			}
			l.eng.Schedule(10*sim.Millisecond, 200, stopper{l.eng}, 0)
			l.snd.Start(0)
			l.eng.Run()
			var sizes []int
			n := 0
			for _, e := range l.sentLog {
				n++
				if e.f.Flags&model.PSH != 0 {
					sizes, n = append(sizes, n), 0
				}
			}
			if diff := cmp.Diff(c.want, sizes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// With PushBursts off only the frame with the last byte of a write is pushed:
// writes of 2.5 segments end within the segments 2, 4, 7 and 9.
func TestPushAtWrites(t *testing.T) {
	l := scripted(t, 10)
	l.snd.cfg.PushBursts, l.snd.cfg.WriteSize = false, 2.5*seg
	l.run(10 * sim.Second)
	expectScript(t, l, `0ps: 0 1 2P 3 4P 5 6 7P 8 9P`)
}

// All frames of one burst carry one timestamp, so that GRO can merge them, and
// identifications that count up.
func TestFrameFields(t *testing.T) {
	l := scripted(t, 100)
	l.snd.cfg.TSO = 65536
	l.delay = 333 * sim.Microsecond
	l.run(10 * sim.Second)
	for i, e := range l.sentLog {
		f := e.f
		if f.TSVal != timestamp(e.at) || int(f.IPID) != i+1 || f.Len != 66+f.Payload || f.Proto != model.TCP || f.TTL != 64 {
			t.Fatalf("frame %d at %v: %+v", i, e.at, f)
		}
	}
}

// TSO-defer: with half of cwnd outstanding and the oldest ACK near, a room of less
// than a third of the window waits for more.
func TestDefer(t *testing.T) {
	for _, c := range []struct {
		name  string
		age   sim.Time // of the only burst outstanding
		state state
		want  bool
	}{
		{"ACK is near", 900 * sim.Microsecond, open, true},
		{"ACK is far", 400 * sim.Microsecond, open, false},
		{"no write for a millisecond", 1100 * sim.Microsecond, open, false},
		{"a loss is repaired", 900 * sim.Microsecond, recovery, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := scripted(t, 1000)
			s := l.snd
			s.rtt.Sample(sim.Millisecond)
			s.cwnd = 20 * seg
			s.sendBurst(0, 16*seg)
			s.state = c.state
			if got := s.shouldDefer(c.age, 4*seg, 20*seg); got != c.want {
				t.Errorf("deferred %v, want %v", got, c.want)
			}
			if s.shouldDefer(c.age, 7*seg, 20*seg) {
				t.Error("a third of the window was deferred")
			}
			if s.shouldDefer(c.age, 4*seg, 4*seg) {
				t.Error("all that there is was deferred")
			}
			l.deaf, s.dataEnd, s.cfg.TSO = true, FirstSeq+1000*seg, 65536
			if got := s.sendNew(c.age, 4*seg); (got == full) != c.want {
				t.Errorf("outcome %d", got) // the congestion window is what is waited for
			}
		})
	}
}

// Small queues: the host's own queue holds two bursts, or a millisecond's worth,
// and the next is sent when one of them has left. 10 Mbit/s take 1.2 ms per frame.
func TestSmallQueues(t *testing.T) {
	l := scripted(t, 40)
	l.gap = 800 * sim.Nanosecond
	l.snd.cfg.LimitOutput = 1 << 20
	l.snd.cwnd = 40 * seg
	l.snd.rtt.Sample(100 * sim.Millisecond)
	l.eng.Schedule(20*sim.Millisecond, 200, stopper{l.eng}, 0)
	l.snd.Start(0)
	l.eng.Run()
	// A window per 100 ms is less than two segments per millisecond, so the limit is
	// two bursts of one segment; the third is sent because the test comes before it
	// is added. A frame of 1538 bytes on the wire leaves every 1.2304 ms.
	frame := 1538 * 800 * sim.Nanosecond
	for i, e := range l.sentLog {
		if want := max(sim.Time(i-2), 0) * frame; e.at != want {
			t.Errorf("frame %d sent at %v, want %v", i, e.at, want)
		}
	}
	if l.snd.Stats().Throttled == 0 {
		t.Error("not throttled")
	}
}

// After 1200 ms without sending, four timeouts of 300 ms, cwnd has been halved down
// to the initial window of ten segments (RFC 5681 section 4.1).
func TestSlowStartAfterIdle(t *testing.T) {
	for _, on := range []bool{true, false} {
		l := scripted(t, 40)
		l.snd.cfg.SlowStartAfterIdle = on
		l.snd.cwnd = 40 * seg
		l.eng.Schedule(1200*sim.Millisecond, 0, writer{l.snd, 40 * seg}, 0)
		l.run(1200 * sim.Millisecond)
		n := 0
		for _, e := range l.sentLog {
			if e.at == 1200*sim.Millisecond {
				n++
			}
		}
		if want := map[bool]int{true: 10, false: 40}[on]; n != want {
			t.Errorf("slow start after idle %v: %d segments at once, want %d", on, n, want)
		}
	}
}

// The window is cut once for one idle time.
func TestIdleCountsOnce(t *testing.T) {
	l := scripted(t, 1)
	s := l.snd
	s.stats.Segments, s.cwnd = 1, 40*seg
	s.rtt.Sample(100 * sim.Millisecond)
	s.restartAfterIdle(500 * sim.Millisecond)
	s.restartAfterIdle(500 * sim.Millisecond)
	if s.cwnd != 20*seg {
		t.Errorf("cwnd %d segments", s.cwnd/seg)
	}
}

type writer struct {
	s *Sender
	n int64
}

func (w writer) Fire(uint64) { w.s.Write(w.n) }
