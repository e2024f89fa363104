package rto

import (
	"testing"

	"napisim/sim"
)

// A lazy timer keeps one event, whatever happens to its deadline.
func TestTimer(t *testing.T) {
	eng := sim.NewEngine(sim.Lazy)
	h := &ticker{}
	h.timer = NewTimer(eng, 0, h, 0)
	tm := &h.timer
	tm.Set(10)
	tm.Set(20) // later: the event stays
	tm.Set(30)
	eng.Run()
	if len(h.expired) != 1 || h.expired[0] != 30 || eng.Fired() != 2 {
		t.Errorf("expired at %v in %d events", h.expired, eng.Fired())
	}
	tm.Set(50)
	tm.Set(40) // earlier: the event is replaced
	eng.Run()
	if len(h.expired) != 2 || h.expired[1] != 40 || eng.Fired() != 3 {
		t.Errorf("expired at %v in %d events", h.expired, eng.Fired())
	}
	tm.Set(60)
	tm.Stop()
	if tm.Running() {
		t.Error("runs after stop")
	}
	tm.Set(70) // before the stale event has fired
	eng.Run()
	if len(h.expired) != 3 || h.expired[2] != 70 || eng.Fired() != 5 {
		t.Errorf("expired at %v in %d events", h.expired, eng.Fired())
	}
	tm.Set(80)
	tm.Stop()
	eng.Run()
	if len(h.expired) != 3 {
		t.Errorf("expired at %v after stop", h.expired)
	}
}

type ticker struct {
	timer   Timer
	expired []sim.Time
}

func (k *ticker) Fire(uint64) {
	if k.timer.Expired() {
		k.expired = append(k.expired, k.timer.eng.Now())
	}
}

// RFC 6298 by hand: samples of 100, 100 and 180 ms.
func TestRTO(t *testing.T) {
	var e Estimator
	if e.Timeout() != sim.Second {
		t.Errorf("RTO %v before a sample", e.Timeout())
	}
	ms := sim.Millisecond
	for _, c := range []struct{ sample, srtt, rttvar, rto sim.Time }{
		{100 * ms, 100 * ms, 50 * ms, 300 * ms},
		{100 * ms, 100 * ms, 37500 * sim.Microsecond, 300 * ms}, // 4*37.5 < 200
		// SRTT = 100 + 80/8, RTTVAR = 37.5 + (80-37.5)/4 = 48.125.
		{180 * ms, 110 * ms, 48125 * sim.Microsecond, 310 * ms},
	} {
		e.Sample(c.sample)
		if e.srtt != c.srtt || e.rttvar != c.rttvar || e.Timeout() != c.rto {
			t.Errorf("sample %v: SRTT %v, RTTVAR %v, RTO %v", c.sample, e.srtt, e.rttvar, e.Timeout())
		}
	}
	e.Sample(200 * sim.Second)
	if e.Timeout() != Max {
		t.Errorf("RTO %v is above the maximum", e.Timeout())
	}
}

// Each expiry doubles the timeout until progress is made.
func TestBackOff(t *testing.T) {
	var e Estimator
	for _, want := range []sim.Time{1, 2, 4, 8, 16, 32, 64, 120, 120} {
		if got := e.Timeout(); got != want*sim.Second {
			t.Errorf("timeout %v, want %v s", got, want)
		}
		e.BackOff()
	}
	if !e.BackedOff() {
		t.Error("not backed off")
	}
	e.Progress()
	if e.Timeout() != sim.Second || e.BackedOff() {
		t.Errorf("timeout %v after progress", e.Timeout())
	}
}
