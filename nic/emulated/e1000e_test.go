package emulated

import (
	"testing"

	"napisim/sim"
)

// pairE is two e1000e with everything unmasked.
func (s *script) pairE(cfg Config) (na, nb *E1000E) {
	nb, na = NewE1000E(s.eng, phaseDevice, cfg), NewE1000E(s.eng, phasePeer, cfg)
	Join(na.Port, nb.Port)
	for d, name := range map[*E1000E]string{na: "na", nb: "nb"} {
		d.Connect(VectorRX, line{s, name + "-rx"})
		d.Connect(VectorTX, line{s, name + "-tx"})
		d.Unmask(0, CauseRXQ0|CauseTXQ0)
	}
	nb.RX().Refill(0, cfg.RXRing)
	return na, nb
}

func (d *E1000E) doorbell(n int) func(sim.Time) {
	return func(now sim.Time) {
		post(d.Port, n)
		d.Doorbell(now)
	}
}

func (d *E1000E) unmask(c Cause) func(sim.Time) { return func(now sim.Time) { d.Unmask(now, c) } }

// TestE1000EBurst65 is the beginning of k612-e1000e-burst65, with the instants of its
// unmasks. The first frame interrupts; the others leave the cause set, so the unmask at
// 513 us does again, and its timer postpones the second burst of 547 us by 128 us from
// there. From then on each expiry repeats the interrupt: the one of 1054 us at 1182 us.
// Each message of na, which its handler unmasks 10 us later, repeats likewise.
func TestE1000EBurst65(t *testing.T) {
	s := newScript()
	na, nb := s.pairE(rings(2048))
	s.at(0, na.doorbell(1))
	s.at(5*us, na.unmask(CauseTXQ0))
	s.at(30*us, na.doorbell(64)) // one after the other in the recording
	s.at(138*us, na.unmask(CauseTXQ0))
	s.at(513*us, nb.unmask(CauseRXQ0))
	s.at(515*us, nb.unmask(CauseRXQ0))
	s.at(547*us, na.doorbell(65))
	s.at(558*us, na.unmask(CauseTXQ0))
	s.at(1054*us, nb.unmask(CauseRXQ0))
	s.at(1056*us, nb.unmask(CauseRXQ0))
	s.run(t,
		"0 nb-rx", "0 na-tx", "128000 na-tx",
		"513000 nb-rx", "547000 na-tx",
		"641000 nb-rx", // frames of 547 us
		"675000 na-tx", // repeated
		"1054000 nb-rx",
		"1182000 nb-rx", // repeated
	)
}

// TestE1000EBurst1 is why k612-e1000e-burst1 has 398 interrupts for 200 frames: a frame
// each 1 ms, the first two together. The second frame is postponed; from then on each
// interrupt is followed by another after 128 us.
func TestE1000EBurst1(t *testing.T) {
	s := newScript()
	na, nb := s.pairE(rings(64))
	for i, at := range []sim.Time{0, 61 * us, 1004 * us, 2004 * us} {
		s.at(at, na.doorbell(1))
		s.at(at+4*us, na.unmask(CauseTXQ0))
		s.at(at+16*us, nb.unmask(CauseRXQ0))
		if i > 0 {
			s.at(at+135*us, na.unmask(CauseTXQ0))
			s.at(at+137*us, nb.unmask(CauseRXQ0))
		}
	}
	s.run(t,
		"0 nb-rx", "0 na-tx", "128000 nb-rx", "128000 na-tx",
		"1004000 nb-rx", "1004000 na-tx", "1132000 nb-rx", "1132000 na-tx",
		"2004000 nb-rx", "2004000 na-tx", "2132000 nb-rx", "2132000 na-tx")
	if got := nb.Interrupts(); got != 6 {
		t.Errorf("%d interrupts are counted", got)
	}
}

// TestE1000EEITR: the throttling register has a minimum of 500 units, and a new value
// counts from the next message.
func TestE1000EEITR(t *testing.T) {
	for _, test := range []struct {
		interval int
		second   string
	}{{0, "128000 nb-rx"}, {195, "128000 nb-rx"}, {976, "249856 nb-rx"}} {
		s := newScript()
		na, nb := s.pairE(rings(64))
		na.ims = 0
		nb.SetEITR(VectorRX, test.interval)
		s.at(0, na.doorbell(1))
		s.at(1*us, func(now sim.Time) {
			nb.SetEITR(VectorRX, 500)
			nb.Unmask(now, CauseRXQ0)
		})
		s.at(2*us, na.doorbell(1))
		s.run(t, "0 nb-rx", test.second)
	}
}

// TestE1000ESetCause: a driver that could not free all of its ring asks for another
// interrupt.
func TestE1000ESetCause(t *testing.T) {
	s := newScript()
	na, _ := s.pairE(rings(64))
	s.at(0, func(now sim.Time) { na.SetCause(now, CauseTXQ0) })
	s.at(200*us, func(now sim.Time) {
		na.SetCause(now, CauseTXQ0)
		if !na.Masked(CauseTXQ0) || na.Masked(CauseRXQ0) {
			t.Errorf("a message does not mask its own cause, or that of the other")
		}
		na.Unmask(now, CauseTXQ0) // nothing is set but by the next frame
	})
	s.run(t, "0 na-tx", "200000 na-tx")
}
