package cong

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/sim"
)

const mss = 1448

func TestNew(t *testing.T) {
	if diff := cmp.Diff([]string{"cubic", "reno"}, Names()); diff != "" {
		t.Error(diff)
	}
	for _, name := range Names() {
		if _, err := New(name, mss); err != nil {
			t.Error(err)
		}
	}
	if _, err := New("vegas", mss); err == nil || !strings.Contains(err.Error(), `"vegas" (known: cubic, reno)`) {
		t.Errorf("error %v", err)
	}
}

// Reno grows by one segment per window, however the window is acknowledged.
func TestRenoGrowth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _ := New("reno", mss)
		cwnd := rapid.Int64Range(2, 1000).Draw(t, "window") * mss
		first, left := cwnd, cwnd
		for left > 0 {
			n := min(rapid.Int64Range(1, 100).Draw(t, "segments")*mss/2, left)
			if cwnd != first {
				t.Fatalf("grew %d bytes too early", left)
			}
			cwnd = c.Grow(Ack{Cwnd: cwnd, Acked: n})
			left -= n
		}
		if cwnd != first+mss {
			t.Fatalf("%d after a window of %d", cwnd, first)
		}
	})
}

func TestLost(t *testing.T) {
	for _, c := range []struct {
		name         string
		cwnd, flight int64
		want         int64
	}{
		{"reno", 100, 40, 20},  // half of FlightSize
		{"reno", 100, 3, 2},    // at least two segments
		{"cubic", 100, 40, 70}, // 0.7 of cwnd
		{"cubic", 2, 2, 2},
	} {
		cc, _ := New(c.name, mss)
		if got := cc.Lost(c.cwnd*mss, c.flight*mss); got != c.want*mss {
			t.Errorf("%s: cwnd %d, flight %d: ssthresh %d, want %d", c.name, c.cwnd, c.flight, got/mss, c.want)
		}
	}
}

// grow lets a control acknowledge whole windows over a path until the given time
// and returns the window.
func grow(c Control, cwnd int64, rtt, until sim.Time, each func(now sim.Time, cwnd int64)) int64 {
	for now := sim.Time(0); now < until; now += rtt {
		if each != nil {
			each(now, cwnd)
		}
		for left := cwnd; left > 0; left -= 2 * mss {
			cwnd = c.Grow(Ack{Now: now, RTT: rtt, Cwnd: cwnd, Acked: min(left, 2*mss)})
		}
	}
	return cwnd
}

// CUBIC follows equation 1 of RFC 8312, evaluated here in floating point: after a
// loss at 1000 segments W(t) = 0.4 (t-K)^3 + 1000 with K = cbrt(300/0.4) = 9.09 s.
// At a round trip of 200 ms that is far above what Reno would do. The window lags
// behind a little: the increments of section 4.3 close 1-1/e of the distance to
// where the curve is a round trip later.
func TestCubicCurve(t *testing.T) {
	c := &cubic{mss: mss}
	const wMax = 1000
	cwnd := c.Lost(wMax*mss, wMax*mss)
	if cwnd != 700*mss {
		t.Fatalf("cwnd %d after the loss", cwnd/mss)
	}
	k := math.Cbrt(wMax * 0.3 / 0.4)
	rtt := 200 * sim.Millisecond
	grow(c, cwnd, rtt, 16*sim.Second, func(now sim.Time, cwnd int64) {
		want := 0.4*math.Pow(now.Seconds()-k, 3) + wMax
		if got := float64(cwnd) / mss; math.Abs(got-want) > 0.025*want {
			t.Errorf("%v: %.1f segments, want %.1f", now, got, want)
		}
	})
}

// On a short path CUBIC would be slower than Reno; there it grows by 9/17 of a
// segment per round trip (RFC 8312 section 4.2).
func TestCubicFriendly(t *testing.T) {
	c := &cubic{mss: mss}
	cwnd := c.Lost(100*mss, 100*mss)
	rtt := 5 * sim.Millisecond
	cwnd = grow(c, cwnd, rtt, 34*rtt, nil)
	if want := int64(70 + 34*9/17); cwnd/mss != want && cwnd/mss != want-1 {
		t.Errorf("%d segments after 34 round trips, want %d", cwnd/mss, want)
	}
}

// A second loss below the last maximum leaves room: W_max = 80 * 1.7/2 = 68.
func TestCubicFastConvergence(t *testing.T) {
	c := &cubic{mss: mss}
	c.Lost(100*mss, 100*mss)
	c.Lost(80*mss, 80*mss)
	if c.wMax != 68*mss {
		t.Errorf("W_max %d", c.wMax/mss)
	}
	c.Lost(90*mss, 90*mss)
	if c.wMax != 90*mss {
		t.Errorf("W_max %d", c.wMax/mss)
	}
}

// Windows of any size and paths of any length: the window never falls without a
// loss, and never grows by more than half per window.
func TestCubicBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &cubic{mss: mss}
		cwnd := rapid.Int64Range(2, 1<<20).Draw(t, "cwnd") * mss
		now := sim.Time(0)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "loss") == 0 {
				cwnd = c.Lost(cwnd, cwnd)
			}
			now += sim.Time(rapid.Int64Range(0, 1_000_000).Draw(t, "time")) * sim.Millisecond
			next := c.Grow(Ack{Now: now, RTT: 10 * sim.Millisecond, Cwnd: cwnd, Acked: rapid.Int64Range(1, cwnd).Draw(t, "acked")})
			if next < cwnd || next > cwnd+cwnd/2 {
				t.Fatalf("window %d after %d", next, cwnd)
			}
			cwnd = min(next, 1<<40)
		}
	})
}

func TestCubeRoot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Int64Range(0, math.MaxInt64).Draw(t, "x")
		y := cbrt(x)
		if y*y*y > x || y < 2097151 && (y+1)*(y+1)*(y+1) <= x {
			t.Fatalf("cbrt(%d) = %d", x, y)
		}
	})
	for _, x := range []int64{0, 1, 7, 8, 26, 27, 999, 1000} {
		if got, want := cbrt(x), int64(math.Cbrt(float64(x))+1e-9); got != want {
			t.Errorf("cbrt(%d) = %d, want %d", x, got, want)
		}
	}
}

// HyStart, ACK train: ACKs come back to back for more than half of the least round
// trip and the time of the bursts.
func TestHystartTrain(t *testing.T) {
	us := sim.Microsecond
	for _, c := range []struct {
		name  string
		cwnd  int64
		gap   sim.Time
		burst sim.Time
		want  sim.Time // since the start of the round; 0 is never
	}{
		// A train of 50 ACKs 10 us apart, round trip 400 us: half of it is over with
		// the 21st.
		{"train", 100, 10 * us, 0, 210 * us},
		{"bursts excuse 300 us", 100, 10 * us, 300 * us, 360 * us},
		{"bursts excuse a millisecond at most", 100, 20 * us, sim.Second, 720 * us},
		{"small window", 15, 10 * us, 0, 0},
		{"no train", 100, 2001 * us, 0, 0},
	} {
		h := &hystart{mss: mss}
		h.SlowStart(Ack{Now: 0, Sample: 400 * us, Cwnd: c.cwnd * mss, Una: 1, Nxt: 2})
		var got sim.Time
		for i := range sim.Time(50) {
			now := sim.Millisecond + i*c.gap
			if h.SlowStart(Ack{Now: now, Sample: 400 * us, Cwnd: c.cwnd * mss, Una: uint64(10 + i), Nxt: 1000, BurstTime: c.burst}) {
				got = now - sim.Millisecond
				break
			}
		}
		if got != c.want {
			t.Errorf("%s: slow start ends %v into the round, want %v", c.name, got, c.want)
		}
	}
}

// HyStart, delay: eight samples of a round lie more than max(4 ms, 1/8) above the
// least round trip. ACKs are too far apart for a train.
func TestHystartDelay(t *testing.T) {
	ms := sim.Millisecond
	for _, c := range []struct {
		rtt  sim.Time
		want bool
	}{{50 * ms, false}, {56 * ms, false}, {57 * ms, true}} {
		h := &hystart{mss: mss}
		h.SlowStart(Ack{Sample: 50 * ms, Cwnd: 100 * mss, Una: 1, Nxt: 2})
		ended := 0
		for i := range sim.Time(20) {
			if h.SlowStart(Ack{Now: (i + 1) * 3 * ms, Sample: c.rtt, Cwnd: 100 * mss, Una: uint64(10 + i), Nxt: 1000}) {
				ended = int(i)
				break
			}
		}
		if (ended == minSamples) != c.want || !c.want && ended != 0 {
			t.Errorf("round trips of %v: slow start ended at sample %d", c.rtt, ended)
		}
	}
}

func BenchmarkGrow(b *testing.B) {
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			c, _ := New(name, mss)
			cwnd, now := int64(100*mss), sim.Time(0)
			for b.Loop() {
				now += 10 * sim.Microsecond
				cwnd = c.Grow(Ack{Now: now, RTT: sim.Millisecond, Cwnd: cwnd, Acked: 2 * mss})
				if cwnd > 10_000*mss {
					cwnd = c.Lost(cwnd, cwnd)
				}
			}
		})
	}
}
