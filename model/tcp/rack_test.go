package tcp

import (
	"testing"

	"napisim/model"
	"napisim/sim"
)

// racked is scripted with RACK-TLP and a known round-trip time of 100 ms.
func racked(t *testing.T, n float64) *link {
	l := scripted(t, n)
	l.snd.cfg.RACK = true
	l.snd.rtt.Sample(100 * sim.Millisecond)
	return l
}

// The second copy of 2 is lost too. RFC 6675 would wait for the timeout, at
// 400 ms. RACK sees 16 arrive, which was sent after it.
func TestRACKLostRetransmission(t *testing.T) {
	l := racked(t, 24)
	l.fate = func(_ int, f *model.Frame) fate {
		return fate{drop: f.Seq == FirstSeq+2*seg && l.eng.Now() < 300*sim.Millisecond}
	}
	l.run(10 * sim.Second)
	// 100 ms as without RACK: cwnd is 7. 200 ms: the SACKs of 10 to 15 let out 16 to
	// 21. 300 ms: at the SACK of 16 the copy of 2 is lost, a round trip is over, and
	// it is sent again in the place that 16 leaves in the pipe; the five others let
	// out 22 and 23, all there is. Nothing is known to be lost any more.
	expectScript(t, l, `
		0ps: 0 1 2 3 4 5 6 7 8 9
		100ms: 10 11 12 13 14 15 2R
		200ms: 16 17 18 19 20 21
		300ms: 2R 22 23P`)
	if st := l.snd.Stats(); st.RTOs != 0 || st.LostRetrans != 1 || st.Recoveries != 1 || st.Retrans != 2 {
		t.Errorf("%+v", st)
	}
}

// Two segments above a hole are no evidence for RFC 6675. RACK gives reordering a
// quarter of a round trip, its timer two milliseconds, and then repairs the hole.
func TestRACKSmallFlight(t *testing.T) {
	l := racked(t, 3)
	l.fate = losing(0)
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2P
		127ms: 0R`)
	if st := l.snd.Stats(); st.RTOs != 0 || st.Recoveries != 1 {
		t.Errorf("%+v", st)
	}
}

// The same flight reordered by less than that: nothing is sent again.
func TestRACKReordering(t *testing.T) {
	l := racked(t, 3)
	l.fate = func(n int, _ *model.Frame) (f fate) {
		if n == 0 {
			f.late = 20 * sim.Millisecond
		}
		return f
	}
	l.run(10 * sim.Second)
	expectScript(t, l, `0ps: 0 1 2P`)
}

// The end of the flight is lost in a recovery: the copy of 4 was sent after 10 and
// 11 and arrives.
func TestRACKLostTailInRecovery(t *testing.T) {
	l := racked(t, 12)
	l.snd.cwnd = 12 * seg
	l.fate = losing(4, 10, 11)
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2 3 4 5 6 7 8 9 10 11P
		100ms: 4R
		200ms: 10R 11RP`)
	if st := l.snd.Stats(); st.RTOs != 0 || st.Recoveries != 1 || st.DSACKs != 0 {
		t.Errorf("%+v", st)
	}
}

// The last three of ten are lost. After the ACK of 6 at 100 ms two round trips of
// silence make TLP send the last again, two milliseconds late; its SACK shows RACK the two others.
func TestTailLossProbe(t *testing.T) {
	l := racked(t, 10)
	l.fate = losing(7, 8, 9)
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2 3 4 5 6 7 8 9P
		302ms: 9RP
		402ms: 7R 8R`)
	if st := l.snd.Stats(); st.RTOs != 0 || st.TailProbes != 1 || st.Recoveries != 1 {
		t.Errorf("%+v", st)
	}
}

// New data is the better probe: it is sent where the receiver's window has room.
func TestTailLossProbeNewData(t *testing.T) {
	l := racked(t, 5)
	l.snd.cwnd = 4 * seg
	l.fate = losing(0, 1, 2, 3)
	l.run(10 * sim.Second)
	// 202 ms: two round trips after the last transmission. 302 ms: the probe is
	// SACKed, all else is lost; FlightSize 5 makes cwnd 2.
	expectScript(t, l, `
		0ps: 0 1 2 3
		202ms: 4P
		302ms: 0R 1R
		402ms: 2R 3R`)
	if st := l.snd.Stats(); st.RTOs != 0 || st.TailProbes != 1 {
		t.Errorf("%+v", st)
	}
}

// A lone segment might wait for a delayed ACK, so its probe comes when the timeout
// would, and in its place: the congestion window does not collapse.
func TestTailLossProbeOfOne(t *testing.T) {
	l := racked(t, 1)
	l.fate = losing(0)
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0P
		300ms: 0RP`)
	// The probe has repaired a loss: the congestion control has heard of it.
	if st := l.snd.Stats(); st.RTOs != 0 || st.TailProbes != 1 || st.Cwnd != 2*seg || !l.snd.Done() {
		t.Errorf("%+v", st)
	}
}

// The data had arrived and only its ACKs were lost: the DSACK tells, and cwnd stays.
func TestTailLossProbeForNothing(t *testing.T) {
	l := racked(t, 4)
	l.loseAck = func(n int) bool { return n < 4 }
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2 3P
		202ms: 3RP`)
	if st := l.snd.Stats(); st.DSACKs != 1 || st.Cwnd < 10*seg {
		t.Errorf("%+v", st)
	}
}

// A flight is probed once; then it is the timeout's turn.
func TestTailLossProbeOnce(t *testing.T) {
	l := racked(t, 4)
	l.fate = func(int, *model.Frame) fate { return fate{drop: l.eng.Now() < 400*sim.Millisecond} }
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2 3P
		202ms: 3RP
		502ms: 0R
		602ms: 1R 2R
		702ms: 3RP`)
	if st := l.snd.Stats(); st.RTOs != 1 || st.TailProbes != 1 {
		t.Errorf("%+v", st)
	}
}

// Also an ACK of a part of the flight does not let it be probed again.
func TestTailLossProbeOncePerFlight(t *testing.T) {
	l := racked(t, 4)
	l.fate = func(int, *model.Frame) fate { return fate{drop: true} }
	l.eng.Schedule(250*sim.Millisecond, 3, deliver{l.snd, model.Segment{Frame: model.Frame{Ack: FirstSeq + seg, Window: 1 << 20}}}, 0)
	l.eng.Schedule(550*sim.Millisecond, 200, stopper{l.eng}, 0)
	l.snd.Start(0)
	l.eng.Run()
	if st := l.snd.Stats(); st.TailProbes != 1 {
		t.Errorf("%+v\n%s", st, l.script())
	}
}

// Three holes, and the first copy of 1 is lost too. 100 ms is as in TestSeveralHoles.
// 200 ms: the SACK of 3 shows that the copy of 1 is lost. That of 5 is still under
// way, its SACK comes next, and 5 is not sent again.
func TestRACKSparesWhatIsInFlight(t *testing.T) {
	l := racked(t, 16)
	l.snd.cwnd = 12 * seg
	first := true
	l.fate = func(n int, f *model.Frame) fate {
		again := f.Seq == FirstSeq+seg && n > 1 && first
		first = first && !again
		return fate{drop: n == 1 || n == 3 || n == 5 || again}
	}
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2 3 4 5 6 7 8 9 10 11
		100ms: 12 13 14 15P 1R 3R 5R
		200ms: 1R`)
	if st := l.snd.Stats(); st.RTOs != 0 || st.LostRetrans != 1 || st.Retrans != 4 {
		t.Errorf("%+v", st)
	}
}

// What RACK concludes from an ACK, step by step. Segments 0 to 5 are outstanding, in
// bursts of two sent at 0, 10 and 20 ms; their places in the order are 2, 4 and 6.
func TestRACKDelivered(t *testing.T) {
	ms := sim.Millisecond
	for _, c := range []struct {
		name   string
		resend sim.Time // of segment 1, before the ACK; 0 for not
		ack    uint64
		sacks  []uint64 // segments
		want   int64
	}{
		{"cumulative", 0, 4, nil, 4},
		{"SACK in the second burst", 0, 0, []uint64{3}, 4},
		{"SACK in the last burst", 0, 0, []uint64{4}, 6},
		{"the copy of 1 a round trip ago", 5 * ms, 2, nil, 7},
		{"the original of 1, since the copy is too young", 60 * ms, 2, nil, 0},
		{"a SACK of either", 60 * ms, 0, []uint64{1}, 0},
		// What is acknowledged below the highest copy may have been the copy.
		{"beyond the copy", 60 * ms, 4, nil, 4},
	} {
		l := racked(t, 100)
		s := l.snd
		l.deaf = true
		s.dataEnd = FirstSeq + 100*seg
		for i := range sim.Time(3) {
			s.sendBurst(i*10*ms, 2*seg)
		}
		if c.resend > 0 {
			s.retransmit(c.resend, FirstSeq+seg, FirstSeq+2*seg)
		}
		ack := &model.Segment{Frame: model.Frame{Ack: FirstSeq + c.ack*seg}, SACKs: len(c.sacks)}
		for i, n := range c.sacks {
			ack.Blocks[i] = model.SACKBlock{Start: FirstSeq + n*seg, End: FirstSeq + (n+1)*seg}
		}
		if c.ack > 0 {
			s.acknowledge(110*ms, ack)
		}
		s.mark(ack)
		s.rackDelivered(110*ms, ack)
		if s.rack.delivered != c.want {
			t.Errorf("%s: latest delivered is %d, want %d", c.name, s.rack.delivered, c.want)
		}
	}
}

// The same bursts: with segment 5 SACKed the others are lost as their time comes.
func TestRACKFirst(t *testing.T) {
	ms := sim.Millisecond
	for _, c := range []struct {
		now   sim.Time
		lost  uint64 // segments below
		again sim.Time
	}{
		{99 * ms, 0, 100 * ms},
		{100 * ms, 2, 110 * ms},
		{115 * ms, 4, 120 * ms},
		{120 * ms, 5, sim.Never},
	} {
		l := racked(t, 100)
		s := l.snd
		l.deaf = true
		s.dataEnd = FirstSeq + 100*seg
		for i := range sim.Time(3) {
			s.sendBurst(i*10*ms, 2*seg)
		}
		s.board.Mark(model.SACKBlock{Start: FirstSeq + 5*seg, End: FirstSeq + 6*seg})
		if got := s.rackFirst(c.now, 100*ms); got != c.again {
			t.Errorf("%v: next look at %v, want %v", c.now, got, c.again)
		}
		for i := range uint64(5) {
			if got := s.board.IsLost(FirstSeq + i*seg); got != (i < c.lost) {
				t.Errorf("%v: segment %d lost: %v", c.now, i, got)
			}
		}
	}
}

// Also after a timeout a lost retransmission is found: the second of two.
func TestRACKInLoss(t *testing.T) {
	l := racked(t, 8)
	l.snd.cwnd = 8 * seg
	drop := 0
	l.fate = func(_ int, f *model.Frame) fate {
		if f.Seq == FirstSeq+seg {
			drop++
			return fate{drop: drop <= 2}
		}
		return fate{drop: l.eng.Now() < 300*sim.Millisecond}
	}
	l.run(10 * sim.Second)
	if st := l.snd.Stats(); st.RTOs != 1 || st.LostRetrans != 1 || !l.snd.Done() {
		t.Errorf("%+v\n%s", st, l.script())
	}
}
