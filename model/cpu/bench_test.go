package cpu

import (
	"testing"

	"napisim/model"
	"napisim/sim"
)

// A load is something done n times on a machine, which then stops.
type load struct {
	cores int
	setup func(m *Machine, n int)
}

// Everything costs something in a load.
func (l load) machine(n int) *Machine {
	m := newMachine(sim.Lazy, func(c *Config) {
		c.Cores = l.cores
		c.IPILatency = us
		for s := range c.Costs {
			c.Costs[s] = 100 * sim.Nanosecond
		}
	})
	l.setup(m, n)
	return m
}

var (
	// What a packet pays several times: costs, and a look.
	spendAndLook = load{1, func(m *Machine, n int) { spender(m, n, 1) }}
	// The costs alone.
	spend = load{1, func(m *Machine, n int) { spender(m, n, 1000) }}
	// A device's event, the interrupt in the middle of a debt, and the way back.
	interrupt = load{1, func(m *Machine, n int) {
		start(m.Cores[0], "hog", TaskConfig{}, func(t *Task) {
			t.ToUser()
			for {
				t.Core().Work(10 * us)
				t.Core().Look()
			}
		})
		interrupts(m, n)
	}}
	// The same where nothing runs.
	interruptOverIdle = load{1, interrupts}
	// A wakeup, a sleep and the switch to the woken task.
	taskSwitch = load{1, func(m *Machine, n int) { pingPong(m, n, m.Cores[0], m.Cores[0]) }}
	// The same with the tasks on two cores: an IPI, and a switch from and to idle for each.
	crossCoreWakeup = load{2, func(m *Machine, n int) { pingPong(m, n, m.Cores[0], m.Cores[1]) }}
	// A task that sleeps on an hrtimer.
	nap = load{1, func(m *Machine, n int) {
		start(m.Cores[0], "napper", TaskConfig{}, func(t *Task) {
			for i := range n {
				t.SleepUntil(sim.Time(i+1) * 20 * us)
			}
			m.eng.Stop()
		})
	}}
	// A tick of a busy core with two tasks.
	tick = load{1, func(m *Machine, n int) {
		start(m.Cores[0], "hog", TaskConfig{}, hog)
		start(m.Cores[0], "hog", TaskConfig{}, hog)
		m.eng.Schedule(sim.Time(n)*m.tick, 255, device(m.eng.Stop), 0)
	}}
)

func spender(m *Machine, n, batch int) {
	c := m.Cores[0]
	start(c, "task", TaskConfig{}, func(*Task) {
		left := batch
		for range n {
			c.Spend(model.StageRXDescriptor)
			c.SpendN(model.StageCopyByte, 64)
			if left--; left == 0 {
				left = batch
				c.Look()
			}
		}
		m.eng.Stop()
	})
}

func interrupts(m *Machine, n int) {
	d := &interrupter{m: m, left: n}
	d.line = m.Cores[0].NewLine(1, "dev", func(*Core) {})
	m.eng.Schedule(us, phaseDevice, d, 0)
}

// An interrupter raises a line every microsecond.
type interrupter struct {
	m    *Machine
	line *Line
	left int
}

func (d *interrupter) Fire(uint64) {
	if d.left--; d.left < 0 {
		d.m.eng.Stop()
		return
	}
	d.line.Raise()
	d.m.eng.Schedule(d.m.eng.Now()+us, phaseDevice, d, 0)
}

func pingPong(m *Machine, n int, cores ...*Core) {
	tasks := make([]*Task, 2)
	turn := 0
	for i, c := range cores {
		tasks[i] = start(c, "task", TaskConfig{}, func(t *Task) {
			for {
				for c.Look(); turn%2 != i; c.Look() {
					t.Sleep()
				}
				if turn++; turn > n {
					m.eng.Stop()
				}
				c.Wake(tasks[1-i])
			}
		})
	}
}

func (l load) bench(b *testing.B) {
	m := l.machine(b.N)
	b.ReportAllocs()
	b.ResetTimer()
	m.eng.Run()
	b.StopTimer()
	m.eng.Close()
	checkBooks(b, m)
}

func BenchmarkSpendLook(b *testing.B)         { spendAndLook.bench(b) }
func BenchmarkSpend(b *testing.B)             { spend.bench(b) }
func BenchmarkInterrupt(b *testing.B)         { interrupt.bench(b) }
func BenchmarkInterruptOverIdle(b *testing.B) { interruptOverIdle.bench(b) }
func BenchmarkSwitch(b *testing.B)            { taskSwitch.bench(b) }
func BenchmarkCrossCoreWakeup(b *testing.B)   { crossCoreWakeup.bench(b) }
func BenchmarkNap(b *testing.B)               { nap.bench(b) }
func BenchmarkTick(b *testing.B)              { tick.bench(b) }

// Ten thousand of each allocate no more than ten do.
func TestNothingIsAllocated(t *testing.T) {
	for name, l := range map[string]load{
		"spend and look": spendAndLook, "interrupt": interrupt, "interrupt over idle": interruptOverIdle,
		"switch": taskSwitch, "wakeup": crossCoreWakeup, "tick": tick, "nap": nap,
	} {
		allocated := func(n int) float64 {
			return testing.AllocsPerRun(1, func() {
				m := l.machine(n)
				m.eng.Run()
				m.eng.Close()
			})
		}
		if few, many := allocated(10), allocated(10_000); many > few+20 {
			t.Errorf("%s: %v allocations for ten, %v for ten thousand", name, few, many)
		}
	}
}
