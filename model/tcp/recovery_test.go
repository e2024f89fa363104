package tcp

import (
	"strings"
	"testing"

	"napisim/model"
	"napisim/sim"
)

// A closed window from end to end: the application does not read, the sender fills
// what was announced and probes, and the window update that opens it again is lost.
func TestZeroWindowProbe(t *testing.T) {
	l := scripted(t, 60)
	l.rcv = NewReceiver(func() ReceiverConfig {
		c := DefaultReceiverConfig()
		c.RcvBuf, c.CompSACKs = 30_000, 0
		return c
	}(), &l.pool)
	l.snd.wndEnd = FirstSeq + uint64(l.rcv.Window())
	l.edge = l.snd.wndEnd
	l.read = false
	update := -1
	l.loseAck = func(n int) bool {
		// The first ACK after the application has begun to read is its update.
		if update < 0 && l.read {
			update = n
		}
		return n == update
	}
	l.eng.Schedule(3*sim.Second, 5, reading{l}, 0)
	l.run(60 * sim.Second)
	if l.delivered != 60*seg || !l.snd.Done() {
		t.Errorf("%d bytes delivered", l.delivered)
	}
	var probes []sim.Time
	end := FirstSeq
	for _, e := range l.sentLog {
		if e.f.Payload == 0 {
			// Nothing is outstanding, so the octet below the window is the last one.
			if e.f.Seq != end-1 {
				t.Errorf("probe with %d, the window begins at %d", e.f.Seq, end)
			}
			probes = append(probes, e.at)
		}
		end = max(end, e.f.Seq+uint64(e.f.Payload))
	}
	if len(probes) < 3 || int(l.snd.Stats().Probes) < len(probes) || l.snd.Stats().RTOs != 0 {
		t.Fatalf("probes at %v, %+v", probes, l.snd.Stats())
	}
	// The persist timer backs off like the retransmission timer.
	for i := 2; i < len(probes); i++ {
		if a, b := probes[i-1]-probes[i-2], probes[i]-probes[i-1]; b != 2*a {
			t.Errorf("probes at %v: gaps %v, %v", probes, a, b)
		}
	}
	// The probe after the lost update is answered with the open window.
	last := probes[len(probes)-1]
	if last < 3*sim.Second {
		t.Errorf("probes at %v: none after the lost update", probes)
	}
	for _, e := range l.sentLog {
		if e.at > 3*sim.Second && e.f.Payload > 0 {
			if e.at != last+2*l.delay {
				t.Errorf("data again at %v, the last probe was at %v", e.at, last)
			}
			break
		}
	}
	if st := l.rcv.Stats(); st.ZeroWindows == 0 || st.WindowUpdates == 0 || st.Control != int64(len(probes)) {
		t.Errorf("receiver %+v", st)
	}
}

type reading struct{ l *link }

func (r reading) Fire(uint64) {
	r.l.read = true
	r.l.readAll(1 << 30)
}

// The smallest window that is announced may be less than a segment. The sender
// waits, silly window avoidance, and uses it when the persist timer fires.
func TestPartialWindow(t *testing.T) {
	l := scripted(t, 3)
	l.snd.wndEnd = FirstSeq + 500
	l.edge = l.snd.wndEnd
	l.run(10 * sim.Second)
	if first := l.sentLog[0]; first.at != sim.Second || first.f.Payload != 500 {
		t.Errorf("sent frames: %s", l.script())
	}
	if !l.snd.Done() || l.snd.Stats().Probes != 1 {
		t.Errorf("%+v", l.snd.Stats())
	}
}

// A receiver under memory pressure throws away what it has SACKed. The sender
// believes the SACK until the hole is filled and the ACK stops at a SACKed octet;
// the timeout then forgets all SACKs and sends everything again.
func TestReneging(t *testing.T) {
	l := scripted(t, 10)
	l.fate = func(n int, f *model.Frame) fate { return fate{drop: true} }
	ack := func(at sim.Time, edge uint64, blocks ...model.SACKBlock) {
		s := model.Segment{Frame: model.Frame{Ack: FirstSeq + edge*seg, Window: 1 << 20}, SACKs: len(blocks)}
		for i, b := range blocks {
			s.Blocks[i] = model.SACKBlock{Start: FirstSeq + b.Start*seg, End: FirstSeq + b.End*seg}
		}
		l.eng.Schedule(at, 3, deliver{l.snd, s}, 0)
	}
	ms := sim.Millisecond
	ack(100*ms, 2, model.SACKBlock{Start: 4, End: 8})
	ack(200*ms, 4) // 2 and 3 have arrived; 4 to 7 should have been acknowledged
	l.eng.Schedule(510*ms, 200, stopper{l.eng}, 0)
	l.snd.Start(0)
	l.eng.Run()
	if err := l.snd.Check(); err != nil {
		t.Error(err)
	}
	// 100 ms: four SACKed segments make 2 and 3 lost. FlightSize is 8, cwnd 4, and the
	// pipe holds 8, 9 and then what is sent again. 200 ms: 4 to 7 count as SACKed, so
	// only rule 4 finds something to send. 500 ms, RTO after the last ACK: slow start
	// begins at the first octet that is not acknowledged.
	expectScript(t, l, `
		0ps: 0 1 2 3 4 5 6 7 8 9P
		100ms: 2R 3R
		200ms: 9RP
		500ms: 4R`)
	if st := l.snd.Stats(); st.Reneged != 1 || st.RTOs != 1 || l.snd.board.SackedBytes() != 0 {
		t.Errorf("%+v", st)
	}
}

type deliver struct {
	s   *Sender
	seg model.Segment
}

func (d deliver) Fire(uint64) { d.s.Deliver(&d.seg) }

// An ACK that was overtaken by a later one changes nothing, an ACK of what was
// never sent is a fault of the model.
func TestOldAndImpossibleAcks(t *testing.T) {
	l := scripted(t, 10)
	l.run(10 * sim.Second)
	before := l.snd.Stats()
	l.snd.Deliver(&model.Segment{Frame: model.Frame{Ack: FirstSeq + seg, Window: 1 << 20}})
	before.Acks++
	if after := l.snd.Stats(); after != before {
		t.Errorf("stats %+v, before %+v", after, before)
	}
	defer func() {
		fault, ok := recover().(*sim.Fault)
		if !ok || !strings.Contains(fault.Error(), "flow 0 at 10s: ACK of 14482") {
			t.Errorf("fault %v", fault)
		}
	}()
	l.snd.Deliver(&model.Segment{Frame: model.Frame{Ack: FirstSeq + 10*seg + 1}})
}

// Three duplicate ACKs begin a recovery also if what they report is less than two
// segments in one block. An ACK of new data between them begins the count anew.
func TestDupThreshOfSmallSegments(t *testing.T) {
	for _, between := range []bool{false, true} {
		l := scripted(t, 10)
		l.fate = func(int, *model.Frame) fate { return fate{drop: true} }
		ms := sim.Millisecond
		for i := range sim.Time(3) {
			s := model.Segment{Frame: model.Frame{Ack: FirstSeq, Window: 1 << 20}, SACKs: 1}
			s.Blocks[0] = model.SACKBlock{Start: FirstSeq + 5*seg, End: FirstSeq + 5*seg + 100*uint64(i+1)}
			if between && i == 2 {
				s.Ack += 100
				l.eng.Schedule(i*10*ms-ms, 3, deliver{l.snd, model.Segment{Frame: model.Frame{Ack: s.Ack, Window: 1 << 20}}}, 0)
			}
			l.eng.Schedule(i*10*ms, 3, deliver{l.snd, s}, 0)
		}
		l.eng.Schedule(25*ms, 200, stopper{l.eng}, 0)
		l.snd.Start(0)
		l.eng.Run()
		if got := l.snd.Stats().Recoveries; (got == 1) == between {
			t.Errorf("ACK of new data between %v: %d recoveries", between, got)
		}
	}
}

// In recovery the window stands still, however much partial ACKs acknowledge.
func TestNoGrowthInRecovery(t *testing.T) {
	for _, c := range []struct {
		state state
		want  int64
	}{{open, 11}, {recovery, 10}, {loss, 11}} {
		s := scripted(t, 1).snd
		s.cwnd, s.ssthresh, s.usage.limited = 10*seg, 10*seg, true
		s.state, s.recoveryPoint = c.state, FirstSeq+100*seg
		s.advanceState(0, 10*seg, 0)
		if s.cwnd != c.want*seg {
			t.Errorf("state %d: cwnd %d segments, want %d", c.state, s.cwnd/seg, c.want)
		}
	}
}

type look struct{ f func() }

func (k look) Fire(uint64) { k.f() }

// The window opens after long probing, and the first segment into it is lost: its
// timeout is a fresh one, not what was left of the probe's.
func TestTimeoutAfterProbing(t *testing.T) {
	l := scripted(t, 2)
	l.snd.rtt.Sample(100 * sim.Millisecond)
	l.snd.wndEnd, l.edge = FirstSeq, FirstSeq
	l.fate = func(_ int, f *model.Frame) fate { return fate{drop: l.eng.Now() < 3100*sim.Millisecond} }
	open := model.Segment{Frame: model.Frame{Ack: FirstSeq, Window: uint32(l.rcv.Window())}}
	l.eng.Schedule(3*sim.Second, 3, look{func() {
		l.edge = FirstSeq + uint64(open.Window)
		l.snd.Deliver(&open)
	}}, 0)
	l.run(10 * sim.Second)
	// Probes at 0.3, 0.9 and 2.1 s; the next would come at 4.5 s.
	var data []sim.Time
	for _, e := range l.sentLog {
		if e.f.Payload > 0 {
			data = append(data, e.at)
		}
	}
	if len(data) != 4 || data[0] != 3*sim.Second || data[2] != 3300*sim.Millisecond {
		t.Errorf("data sent at %v", data)
	}
}

// New data that is acknowledged ends the backoff, also while more is outstanding.
func TestBackoffEnds(t *testing.T) {
	l := scripted(t, 4)
	l.fate = func(_ int, f *model.Frame) fate {
		return fate{drop: l.eng.Now() < 2*sim.Second || f.Seq == FirstSeq+seg && l.eng.Now() < 3200*sim.Millisecond}
	}
	l.run(20 * sim.Second)
	// Timeouts at 1 and 3 s. 0 arrives then; its ACK at 3.1 s, with the first sample,
	// lets out 1 and 2. 1 is lost, and the SACK of 2 lets out 3. RTO is 300 ms and not
	// 4*300: 1 is sent again at 3.4 s.
	expectScript(t, l, `
		0ps: 0 1 2 3P
		1s: 0R
		3s: 0R
		3.1s: 1R 2R
		3.2s: 3RP
		3.4s: 1R`)
}

// Both ACKs are lost. The answer to the second copy of 0 echoes the first, since a
// segment that ends below the window changes nothing; it says nothing about the time
// that the second copy took.
func TestStaleEcho(t *testing.T) {
	l := scripted(t, 2)
	l.loseAck = func(n int) bool { return n < 2 }
	l.run(20 * sim.Second)
	expectScript(t, l, `
		0ps: 0 1P
		1s: 0R`)
	if st := l.snd.Stats(); st.SRTT != 0 || !l.snd.Done() {
		t.Errorf("%+v", st)
	}
}

// ssthresh is set by the first timeout of a segment, not by its repetitions, which
// see only what the first has left of cwnd.
func TestRepeatedTimeout(t *testing.T) {
	l := scripted(t, 10)
	cfg := l.snd.cfg
	cfg.Congestion = "cubic"
	l.snd = NewSender(l.eng, 1, cfg, l)
	l.fate = func(int, *model.Frame) fate { return fate{drop: l.eng.Now() < 3*sim.Second} }
	l.run(20 * sim.Second)
	if st := l.snd.Stats(); st.RTOs != 2 || st.Ssthresh != 7*seg || !l.snd.Done() {
		t.Errorf("%+v", st)
	}
}

// Writing more to a stream without end does not overflow it.
func TestWriteToUnlimited(t *testing.T) {
	l := scripted(t, 0)
	l.snd.cfg.Bytes = Unlimited
	l.eng.Schedule(0, 100, writer{l.snd, 1000}, 0)
	l.run(sim.Second)
	if l.snd.Done() || l.snd.dataEnd != FirstSeq+uint64(Unlimited) {
		t.Errorf("the stream ends at %d", l.snd.dataEnd)
	}
}
