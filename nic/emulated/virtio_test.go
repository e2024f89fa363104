package emulated

import (
	"testing"

	"napisim/sim"
)

func (s *script) pairV(cfg Config) (na, nb *Virtio) {
	nb, na = NewVirtio(s.eng, phaseDevice, cfg), NewVirtio(s.eng, phasePeer, cfg)
	Join(na.Port, nb.Port)
	nb.Connect(line{s, "nb-input"}, line{s, "nb-output"})
	na.Connect(line{s, "na-input"}, line{s, "na-output"})
	nb.RX().Refill(0, cfg.RXRing)
	return na, nb
}

func (d *Virtio) doorbell(n int) func(sim.Time) {
	return func(now sim.Time) {
		post(d.Port, n)
		d.Doorbell(now)
	}
}

// TestVirtioEventIndex: there is one interrupt when the used count passes the index,
// and then none before the driver moves it.
func TestVirtioEventIndex(t *testing.T) {
	s := newScript()
	na, nb := s.pairV(rings(256))
	rx, tx := &nb.RXQueue, &na.TXQueue
	s.at(0, na.doorbell(64)) // the first look always interrupts, once
	s.at(1*us, na.doorbell(64))
	s.at(2*us, func(sim.Time) { rx.EnableCB(128) }) // all 128 were consumed
	s.at(3*us, na.doorbell(1))
	s.at(4*us, na.doorbell(1))
	s.at(5*us, func(sim.Time) {
		rx.EnableCB(rx.Used())
		rx.DisableCB()
		tx.EnableCB(tx.Used() + 3)
	})
	s.at(6*us, na.doorbell(3)) // one short of the transmit index
	s.at(7*us, na.doorbell(1))
	s.run(t, "0 nb-input", "0 na-output", "3000 nb-input", "7000 na-output")
}

// TestVirtioDelay: what is posted until the main loop comes to send leaves together.
func TestVirtioDelay(t *testing.T) {
	s := newScript()
	cfg := rings(64)
	cfg.TXDelay = 10 * us
	na, nb := s.pairV(cfg)
	s.at(0, na.doorbell(1))
	s.at(5*us, na.doorbell(1))
	s.at(9*us, func(sim.Time) {
		if nb.RX().Filled() != 0 || na.TX().Waiting() != 2 {
			t.Errorf("%d frames arrived early", nb.RX().Filled())
		}
	})
	s.at(10*us, func(sim.Time) {
		if nb.RX().Filled() != 2 || na.TX().Done() != 2 {
			t.Errorf("%d frames arrived, not both", nb.RX().Filled())
		}
	})
	s.run(t, "10000 nb-input", "10000 na-output")
}
