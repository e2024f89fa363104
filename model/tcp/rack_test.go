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
// quarter of a round trip and then repairs the hole.
func TestRACKSmallFlight(t *testing.T) {
	l := racked(t, 3)
	l.fate = losing(0)
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2P
		125ms: 0R`)
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
// silence make TLP send the last again; its SACK shows RACK the two others.
func TestTailLossProbe(t *testing.T) {
	l := racked(t, 10)
	l.fate = losing(7, 8, 9)
	l.run(10 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1 2 3 4 5 6 7 8 9P
		300ms: 9RP
		400ms: 7R 8R`)
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
	// 200 ms: two round trips after the last transmission. 300 ms: the probe is
	// SACKed, all else is lost; FlightSize 5 makes cwnd 2.
	expectScript(t, l, `
		0ps: 0 1 2 3
		200ms: 4P
		300ms: 0R 1R
		400ms: 2R 3R`)
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
		200ms: 3RP`)
	if st := l.snd.Stats(); st.DSACKs != 1 || st.Cwnd < 10*seg {
		t.Errorf("%+v", st)
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
