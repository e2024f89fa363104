package tcp

import (
	"math"
	"testing"

	"napisim/model"
	"napisim/sim"
)

// near reports an error if got is not within so many percent of want.
func near(t *testing.T, what string, got, want, percent float64) {
	t.Helper()
	if math.Abs(got-want) > want*percent/100 {
		t.Errorf("%s: %.4g, want %.4g within %g %%", what, got, want, percent)
	}
}

// A flow that the receiver's window limits sends one window per round trip: 67
// segments fit into 98552, the part of a buffer of 2*100000 that is announced.
func TestWindowLimitedRate(t *testing.T) {
	snd, rcv := DefaultSenderConfig(), DefaultReceiverConfig()
	rcv.RcvBuf = 100_000
	l := newLink(t, snd, rcv)
	l.keep = false
	l.delay, l.gap = 10*sim.Millisecond, 800*sim.Picosecond // 10 Gbit/s
	l.run(10 * sim.Second)
	near(t, "bytes/s", float64(l.delivered)/10, 68*seg/0.02, 3)
	if st := l.snd.Stats(); st.Retrans != 0 {
		t.Errorf("%+v", st)
	}
}

// A flow that the link limits fills it: 1448 of 1538 bytes on the wire are payload.
func TestLinkLimitedRate(t *testing.T) {
	for _, congestion := range []string{"reno", "cubic"} {
		for _, gro := range []int{1, 45} {
			snd, rcv := DefaultSenderConfig(), DefaultReceiverConfig()
			snd.Congestion = congestion
			l := newLink(t, snd, rcv)
			l.keep, l.gro = false, gro
			l.delay, l.gap = 50*sim.Microsecond, 8*sim.Nanosecond // 1 Gbit/s
			l.run(sim.Second)
			near(t, congestion+" bit/s", float64(l.delivered)*8, 1e9*1448/1538, 1)
			// Small queues keep the sender's own queue short, in time of the estimated
			// rate. Nothing ends Reno's slow start here, so its estimate stays at twice
			// a window that is twice what is in flight: four milliseconds' worth, and
			// two bursts. CUBIC's HyStart makes that 1.2 times.
			limit := map[string]sim.Time{"reno": 7, "cubic": 3}[congestion] * sim.Millisecond
			if st := l.snd.Stats(); st.SRTT > limit {
				t.Errorf("%s, GRO of %d: SRTT %v", congestion, gro, st.SRTT)
			}
			acks := float64(l.rcv.Stats().AcksSent)
			if gro == 1 {
				near(t, "segments per ACK", float64(l.rcv.Stats().Segments)/acks, 2, 2)
			} else {
				// One ACK per superframe: the sender's bursts come through whole.
				near(t, "superframes per ACK", float64(l.rcv.Stats().SKBs)/acks, 1, 1)
				near(t, "segments per superframe", float64(l.rcv.Stats().Segments)/float64(l.rcv.Stats().SKBs), 45, 5)
			}
		}
	}
}

// The textbook sawtooth (Mathis et al. 1997): with every N-th packet lost Reno's
// window swings between W/2 and W with N = 3/8 W^2 packets per tooth, so N = 600
// gives W = 40, and the mean is 3/4 W. Recovery takes one round trip of each tooth
// of 20, in which the window does not grow.
func TestRenoSawtooth(t *testing.T) {
	l := scripted(t, 0)
	l.snd.cfg.Bytes = Unlimited
	l.rcv.rcvbuf, l.rcv.clamp = 16<<20, 8<<20
	l.keep = false
	fresh := 0
	l.fate = func(_ int, f *model.Frame) fate {
		if f.Seq < l.snd.nxt {
			return fate{}
		}
		fresh++
		return fate{drop: fresh%600 == 0}
	}
	saw := &sampler{l: l}
	l.eng.Schedule(20*sim.Second, 240, saw, 0)
	l.run(120 * sim.Second)
	rtts := 100 / 0.1
	near(t, "mean window", saw.sum/float64(saw.n), 30, 7)
	near(t, "largest window", saw.most, 40, 7)
	near(t, "smallest window", saw.least, 20, 7)
	near(t, "segments", saw.segments, 30*rtts, 7)
	if st := l.snd.Stats(); st.RTOs != 0 || st.Retrans > st.Recoveries+1 { // two in slow start
		t.Errorf("%+v", st)
	}
}

// sampler looks at cwnd once per round trip, outside of recovery.
type sampler struct {
	l           *link
	sum         float64
	n           int
	least, most float64
	start       int64
	segments    float64
}

func (s *sampler) Fire(uint64) {
	st := s.l.snd.Stats()
	if s.n == 0 {
		s.start, s.least = st.BytesAcked, math.Inf(1)
	}
	cwnd := float64(st.Cwnd) / seg
	s.sum += cwnd
	s.n++
	s.least, s.most = min(s.least, cwnd), max(s.most, cwnd)
	s.segments = float64(st.BytesAcked-s.start) / seg
	s.l.eng.Schedule(s.l.eng.Now()+100*sim.Millisecond, 240, s, 0)
}

// The buffer and the window grow with what the application reads until the path is
// full: 100 Mbit/s over 40 ms are 500 kB, eight times the first window.
func TestAutotuningFillsPath(t *testing.T) {
	for _, moderate := range []bool{true, false} {
		snd, rcv := DefaultSenderConfig(), DefaultReceiverConfig()
		rcv.ModerateRcvbuf = moderate
		l := newLink(t, snd, rcv)
		l.keep = false
		l.delay, l.gap = 20*sim.Millisecond, 80*sim.Nanosecond
		l.run(20 * sim.Second)
		rate := float64(l.delivered) * 8 / 20
		if moderate {
			near(t, "bit/s with autotuning", rate, 100e6*1448/1538, 5)
		} else {
			near(t, "bit/s without", rate, 65160*8/0.04, 5)
		}
	}
}

// Everything is deterministic: two runs of one script give the same frames.
func TestDeterminism(t *testing.T) {
	run := func() (string, SenderStats, ReceiverStats) {
		snd, rcv := DefaultSenderConfig(), DefaultReceiverConfig()
		l := newLink(t, snd, rcv)
		l.gap, l.gro = 8*sim.Nanosecond, 45
		rnd := sim.NewRand(1, "wire")
		l.fate = func(int, *model.Frame) fate { return fate{drop: rnd.IntN(500) == 0} }
		l.run(300 * sim.Millisecond)
		return l.script(), l.snd.Stats(), l.rcv.Stats()
	}
	script, snd, rcv := run()
	script2, snd2, rcv2 := run()
	if script != script2 || snd != snd2 || rcv != rcv2 {
		t.Error("two runs differ")
	}
	if snd.Retrans == 0 {
		t.Errorf("nothing was lost: %+v", snd)
	}
}
