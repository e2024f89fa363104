package cpu

import (
	"testing"

	"napisim/model"
	"napisim/sim"
)

// stopper ends a run at an instant, settling all cores.
type stopper struct{ m *Machine }

func (s stopper) Fire(uint64) {
	for _, c := range s.m.Cores {
		c.Settle()
	}
	s.m.eng.Stop()
}

func machine(mode sim.Mode, cores int) *Machine {
	var costs model.Costs
	for s := range costs {
		if s := model.Stage(s); !s.PerByte() {
			costs[s] = 100 * sim.Nanosecond
		}
	}
	return NewMachine(sim.NewEngine(mode), Config{Cores: cores, HZ: 250, Costs: costs, IPILatency: sim.Microsecond, TickPhase: sim.Millisecond})
}

func run(t *testing.T, m *Machine, until sim.Time) {
	t.Helper()
	m.eng.Schedule(until, 255, stopper{m}, 0)
	defer m.eng.Close()
	m.eng.Run()
	for _, c := range m.Cores {
		if err := c.Check(); err != nil {
			t.Error(err)
		}
	}
}

func hog(t *Task) {
	t.ToUser()
	for {
		t.Core().Work(10 * sim.Millisecond)
		t.Core().Look()
	}
}

// Two hogs at HZ 250 alternate in ticks of 4 ms: the slice of each is 3 ms, so
// the first tick of a turn, at most 4 ms after its start, ends it.
func TestTwoHogsAlternateByTicks(t *testing.T) {
	m := machine(sim.Lazy, 1)
	a := m.NewTask(m.Cores[0], "a", TaskConfig{}, hog)
	b := m.NewTask(m.Cores[0], "b", TaskConfig{}, hog)
	a.WakeFromDevice()
	b.WakeFromDevice()
	run(t, m, sim.Second)
	t.Log(m.Cores[0].Stats(), a.Runtime(), b.Runtime(), m.Cores[0].Account(), m.Fingerprint.Sum())
	if n := m.Cores[0].Stats().ContextSwitches; n < 248 || n > 252 {
		t.Errorf("%d switches in 250 ticks", n)
	}
	if d := a.Runtime() - b.Runtime(); max(d, -d) > 5*sim.Millisecond {
		t.Errorf("unfair by %v", d)
	}
}

// The modes agree to the last picosecond.
func TestModesAgree(t *testing.T) {
	var want uint64
	for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
		m := machine(mode, 2)
		c0, c1 := m.Cores[0], m.Cores[1]
		var sleeper *Task
		sleeper = m.NewTask(c1, "sleeper", TaskConfig{}, func(t *Task) {
			for {
				t.Sleep()
				for range 10 {
					c1.Spend(model.StageRecvmsg)
				}
				c1.Look()
			}
		})
		m.NewTask(c1, "hog", TaskConfig{}, hog).WakeFromDevice()
		sleeper.WakeFromDevice()
		m.NewTask(c0, "waker", TaskConfig{}, func(t *Task) {
			for {
				for range 37 {
					c0.Spend(model.StageAppRead)
				}
				c0.Wake(sleeper)
			}
		}).WakeFromDevice()
		run(t, m, 100*sim.Millisecond)
		got := m.Fingerprint.Sum()
		t.Log(mode, got, c1.Account(), c1.Stats(), sleeper.Stats())
		if want == 0 {
			want = got
		}
		if got != want {
			t.Errorf("mode %v: fingerprint %x, lazy has %x", mode, got, want)
		}
	}
}
