package emulated

import (
	"testing"

	"napisim/sim"
)

const e1000All = CauseRXT0 | CauseTXDW

// handler is what e1000_intr does: it reads the causes and masks them.
func handler(d *E1000) func(sim.Time) {
	return func(now sim.Time) {
		d.ReadICR(now)
		d.Mask(now, e1000All)
	}
}

func unmask(d *E1000) func(sim.Time) { return func(now sim.Time) { d.Unmask(now, e1000All) } }

// TestE1000Burst8 is the beginning of k612-e1000-burst8. The second burst arrives 66 us
// after the first, when both interrupts are unmasked; both wait for their timers, which
// started with the first interrupt.
func TestE1000Burst8(t *testing.T) {
	s := newScript()
	na, nb := s.pair(rings(64))
	burst := func(now sim.Time) {
		post(na.Port, 8)
		na.Doorbell(now)
	}
	s.at(0, burst)
	s.at(1*us, handler(nb))
	s.at(4*us, handler(na))
	s.at(60_000*ns, unmask(nb))
	s.at(63_000*ns, unmask(na))
	s.at(66*us, burst)
	s.run(t, "0 nb", "0 na", "128000 nb", "128000 na")
}

// TestE1000UnmaskAtOnce is k612-e1000-burst65: frames that came while the causes were
// masked interrupt at the unmask if the timer has run out, as it has after a poll of
// 400 us.
func TestE1000UnmaskAtOnce(t *testing.T) {
	s := newScript()
	na, nb := s.pair(rings(128))
	one := func(now sim.Time) {
		post(na.Port, 1)
		na.Doorbell(now)
	}
	s.at(0, one)
	s.at(1*us, handler(nb))
	s.at(1*us, handler(na))
	s.at(2*us, one)
	s.at(454*us, unmask(na))
	s.at(471*us, unmask(nb))
	s.run(t, "0 nb", "0 na", "454000 na", "471000 nb")
}

// TestE1000ExpiryLooksAgain: at the end of the timer the line is raised only if an
// unmasked cause is set, and then the timer runs again.
func TestE1000ExpiryLooksAgain(t *testing.T) {
	s := newScript()
	na, nb := s.pair(rings(64))
	na.Mask(0, e1000All)
	one := func(now sim.Time) {
		post(na.Port, 1)
		na.Doorbell(now)
	}
	s.at(0, one)
	s.at(1*us, handler(nb))
	s.at(10*us, unmask(nb))
	s.at(20*us, one) // waits for 128
	s.at(129*us, handler(nb))
	s.at(130*us, unmask(nb)) // nothing left: silence at 256
	s.at(300*us, one)
	s.run(t, "0 nb", "128000 nb", "300000 nb")
}

// TestE1000ITR: 4000 interrupts a second are 976 units of 256 ns, which is 249.856 us;
// 20000 are 195 units and below the minimum. The interval is that at the raising edge.
func TestE1000ITR(t *testing.T) {
	for _, test := range []struct {
		interval int
		second   string
	}{{0, "128000 nb"}, {195, "128000 nb"}, {500, "128000 nb"}, {976, "249856 nb"}} {
		s := newScript()
		na, nb := s.pair(rings(64))
		na.Mask(0, e1000All)
		nb.SetITR(test.interval)
		s.at(0, func(now sim.Time) {
			post(na.Port, 1)
			na.Doorbell(now)
			nb.SetITR(0)
		})
		s.at(1*us, handler(nb))
		s.at(2*us, unmask(nb))
		s.at(3*us, func(now sim.Time) {
			post(na.Port, 1)
			na.Doorbell(now)
		})
		s.run(t, "0 nb", test.second)
	}
}

// TestE1000NoMitigation: without mitigation every raising edge is an interrupt, but a
// line that is high has no further edge.
func TestE1000NoMitigation(t *testing.T) {
	s := newScript()
	cfg := rings(64)
	cfg.NoMitigation = true
	na, nb := s.pair(cfg)
	na.Mask(0, e1000All)
	one := func(now sim.Time) {
		post(na.Port, 1)
		na.Doorbell(now)
	}
	s.at(0, one)
	s.at(500*ns, one) // the line is high
	s.at(1*us, handler(nb))
	s.at(2*us, one)
	s.at(3*us, unmask(nb))
	s.at(4*us, handler(nb))
	s.at(5*us, unmask(nb)) // nothing since
	s.at(6*us, one)
	s.run(t, "0 nb", "3000 nb", "6000 nb")
}

// TestE1000ReadClears: reading ICR returns every cause, masked ones too, and clears them.
func TestE1000ReadClears(t *testing.T) {
	s := newScript()
	na, nb := s.pair(rings(64))
	nb.Mask(0, e1000All)
	post(na.Port, 2)
	na.Doorbell(0)
	if got := nb.ReadICR(0); got != CauseRXT0 {
		t.Errorf("causes of the receiver are %#x", got)
	}
	if got := na.ReadICR(0); got != CauseTXDW|CauseTXQE {
		t.Errorf("causes of the sender are %#x", got)
	}
	if nb.ReadICR(0)|na.ReadICR(0) != 0 || !nb.Masked() || na.Masked() {
		t.Errorf("causes were not cleared, or the masks changed")
	}
	nb.Unmask(0, e1000All) // what was read is forgotten
	s.run(t, "0 na")
}
