package emulated

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/model"
	"napisim/sim"
)

const (
	ns = sim.Nanosecond
	us = sim.Microsecond
)

// The phases of a script: its devices, then what it does itself, so that what it does
// at the end of a timer comes after that.
const (
	phaseDevice  sim.Phase = 1
	phasePeer    sim.Phase = 2
	phaseCommand sim.Phase = 200
)

// script runs commands at instants and notes interrupts.
type script struct {
	eng  *sim.Engine
	seen []string
}

func newScript() *script { return &script{eng: sim.NewEngine(sim.Lazy)} }

type do func()

func (f do) Fire(uint64) { f() }

// at runs f at an instant, which it is given.
func (s *script) at(t sim.Time, f func(now sim.Time)) {
	s.eng.Schedule(t, phaseCommand, do(func() { f(t) }), 0)
}

// line is an interrupt line that notes its name and the instant in nanoseconds.
type line struct {
	s    *script
	name string
}

func (l line) Raise() {
	l.s.seen = append(l.s.seen, fmt.Sprintf("%d %s", l.s.eng.Now()/ns, l.name))
}

// run runs the script and compares the interrupts.
func (s *script) run(t *testing.T, want ...string) {
	t.Helper()
	defer s.eng.Close()
	s.eng.Run()
	if diff := cmp.Diff(want, s.seen); diff != "" {
		t.Errorf("interrupts (-want +got):\n%s", diff)
	}
}

// post writes n descriptors of small frames.
func post(p *Port, n int) {
	for range n {
		p.TX().Post(&model.Frame{Len: 60, Payload: 18}, 0)
	}
}

func rings(n int) Config { return Config{RXRing: n, TXRing: n} }

// pair is two e1000 whose receiver has posted its ring.
func (s *script) pair(cfg Config) (na, nb *E1000) {
	nb, na = NewE1000(s.eng, phaseDevice, cfg), NewE1000(s.eng, phasePeer, cfg)
	Join(na.Port, nb.Port)
	nb.Connect(line{s, "nb"})
	na.Connect(line{s, "na"})
	nb.RX().Refill(0, cfg.RXRing)
	nb.Unmask(0, CauseRXT0|CauseTXDW)
	na.Unmask(0, CauseRXT0|CauseTXDW)
	return na, nb
}
