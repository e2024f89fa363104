package cpu

import (
	"testing"

	"napisim/model"
	"napisim/sim"
)

// ticking is a machine with ticks of 4 ms at 1, 5, 9, ... ms on core 0 and, with two
// cores, at 3, 7, 11, ... ms on core 1. Jiffies are counted by the ticks of core 0:
// jiffy n begins at 1 + 4 (n-1) ms.
func ticking(mode sim.Mode, cores int) *Machine {
	return newMachine(mode, func(c *Config) {
		c.Cores = cores
		c.TickPhase = ms
	})
}

// A busy core takes HZ ticks a second, and each is a jiffy.
func TestJiffies(t *testing.T) {
	for _, hz := range []int{100, 250, 300, 1000} {
		m := newMachine(sim.Lazy, func(c *Config) { c.HZ, c.TickPhase = hz, 500*us })
		start(m.Cores[0], "hog", TaskConfig{}, hog)
		run(t, m, sim.Second)
		if m.Jiffies() != int64(hz) || m.Cores[0].Stats().Ticks != int64(hz) {
			t.Errorf("HZ %d: %d jiffies, %d ticks", hz, m.Jiffies(), m.Cores[0].Stats().Ticks)
		}
		if m.HZ() != hz || m.TickPeriod() != sim.Second/sim.Time(hz) {
			t.Errorf("HZ %d, tick %v", m.HZ(), m.TickPeriod())
		}
	}
}

// Durations become jiffies rounded up (kernel-facts 0.3).
func TestJiffiesOf(t *testing.T) {
	m := newMachine(sim.Lazy, nil)
	for d, want := range map[sim.Time]int64{0: 0, 1: 1, 2 * ms: 1, 4 * ms: 1, 4*ms + 1: 2, 8 * ms: 2} {
		if got := m.JiffiesOf(d); got != want {
			t.Errorf("%v is %d jiffies, want %d", d, got, want)
		}
	}
	m.eng.Close()
}

// The tick of an idle core is stopped and starts again on its old grid when the core
// has something to do. Ticks that were not taken show as idle in the samples.
func TestIdleCoreHasNoTicks(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := ticking(mode, 1)
		c := m.Cores[0]
		c.SetSoftirqs(&fakeSoftirqs{c: c})
		c.NewTimer(func(*Core) {}).Mod(12 * ms) // wakes the core at 13 ms
		task := m.NewTask(c, "task", TaskConfig{}, func(task *Task) {
			task.ToUser()
			c.Work(10 * ms) // over the ticks at 21 and 25 ms
			c.Look()
			task.ToKernel()
			c.Work(4 * ms) // over that at 29 ms
		})
		at(m, 18*ms, task.WakeFromDevice)
		at(m, 19*ms, func() {
			if got := c.Sampled()[Idle]; got != 5 {
				t.Errorf("%d idle samples at 19 ms, want those of 1, 5, 9, 13, 17 ms", got)
			}
		})
		run(t, m, 40*ms)
		if n := c.Stats().Ticks; n != 4 {
			t.Errorf("%d ticks, want one for the timer and 3", n)
		}
		want := [NumContexts]int64{Idle: 5 + 2, User: 2, System: 1} // idle at 33 and 37 ms
		if got := c.Sampled(); got != want {
			t.Errorf("samples %v, want %v", got, want)
		}
	})
}

// The interrupt that would wake an idle core for a timer is taken back when the core
// becomes busy, whose ticks are elsewhere: core 1 ticks at 19, 23, 27 and 31 ms.
func TestBusyCoreNeedsNoWakeup(t *testing.T) {
	m := ticking(sim.Lazy, 2)
	c := m.Cores[1]
	c.SetSoftirqs(&fakeSoftirqs{c: c})
	var expired sim.Time
	c.NewTimer(func(*Core) { expired = c.Now() }).Mod(28 * ms) // at 29 ms if it were idle
	task := m.NewTask(c, "task", TaskConfig{}, func(*Task) { c.Work(14 * ms) })
	at(m, 18*ms, task.WakeFromDevice)
	run(t, m, 40*ms)
	if n := c.Stats().Ticks; n != 4 || expired != 31*ms {
		t.Errorf("%d ticks, want 4; expired at %v, want 31ms", n, expired)
	}
}

// What the tick interrupts is what it samples: softirqs as such also over idle, and
// an interrupted user task as user.
func TestSamples(t *testing.T) {
	m := ticking(sim.Lazy, 1)
	c := m.Cores[0]
	f := &fakeSoftirqs{c: c}
	c.SetSoftirqs(f)
	line := c.NewLine(1, "dev", func(*Core) { f.pending = true })
	f.work = func() { c.Work(2 * ms) }
	start(c, "task", TaskConfig{}, func(task *Task) {
		task.ToUser()
		c.Work(10 * ms) // the tick of 1 ms; a softirq from 4 to 6 with that of 5 in it, and that of 9
		task.ToKernel()
		c.BHDisable()
		c.Work(4 * ms) // from 12 to 16, with 13
		c.BHEnable()
		c.Look()
	})
	at(m, 4*ms, line.Raise)
	run(t, m, 17*ms-1)
	want := [NumContexts]int64{User: 2, Softirq: 1, System: 1}
	if got := c.Sampled(); got != want {
		t.Errorf("samples %v, want %v", got, want)
	}
}

// Jiffies on an idle core whose tick is stopped are brought up to date when an
// interrupt comes, and then stand still until idle ends: a softirq crosses ticks,
// nested interrupts come, and it still sees the same jiffy (kernel-facts C3).
func TestJiffiesStandStillOverIdle(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := ticking(mode, 1)
		c := m.Cores[0]
		j := &journal{m: m}
		f := &fakeSoftirqs{c: c}
		c.SetSoftirqs(f)
		task := start(c, "task", TaskConfig{}, func(task *Task) {
			task.Sleep()
			j.note("task: jiffy %d", m.Jiffies())
		})
		line := c.NewLine(1, "dev", func(*Core) {
			j.note("interrupt: jiffy %d", m.Jiffies())
			f.pending = !f.pending && !c.ServingSoftirq()
		})
		f.work = func() {
			c.Work(6 * ms)
			c.Look()
			j.note("softirq: jiffy %d", m.Jiffies())
			c.Wake(task)
		}
		at(m, 99*ms, func() { j.note("before: jiffy %d", m.Jiffies()) })
		at(m, 100*ms, line.Raise)
		at(m, 103*ms, line.Raise)
		run(t, m, 110*ms)
		// Jiffy 25 began at 97, 26 at 101, 27 at 105 ms.
		j.expect(t, "99ms before: jiffy 0", "100ms interrupt: jiffy 25", "103ms interrupt: jiffy 25",
			"106ms softirq: jiffy 25", "106ms task: jiffy 27")
	})
}

// Any core keeps the jiffies going while core 0 sleeps.
func TestJiffiesWithoutCoreZero(t *testing.T) {
	m := ticking(sim.Lazy, 2)
	start(m.Cores[1], "hog", TaskConfig{}, hog)
	var at10, at12 int64
	at(m, 10*ms, func() { at10 = m.Jiffies() })
	at(m, 12*ms, func() { at12 = m.Jiffies() })
	run(t, m, 20*ms)
	if at10 != 2 || at12 != 3 { // the tick of core 1 at 7 ms saw jiffy 2, that at 11 jiffy 3
		t.Errorf("jiffies %d at 10 ms and %d at 12 ms, want 2 and 3", at10, at12)
	}
	if m.Cores[0].Stats().Ticks != 0 {
		t.Error("core 0 ticks in its sleep")
	}
}

// A timer expires at the first jiffy that does not begin before its time, and at the
// next one at the earliest: on an idle core as that jiffy begins, on a busy one at its
// own next tick. Jiffies begin at 1, 5, 9, ... ms, core 1 ticks at 3, 7, 11, ... ms.
func TestTimers(t *testing.T) {
	tests := []struct {
		name       string
		core       int
		busy       bool
		armed, due sim.Time
		want       sim.Time
	}{
		{"idle, between ticks", 0, false, 0, 6 * ms, 9 * ms},
		{"idle, on a tick", 0, false, 0, 9 * ms, 9 * ms},
		{"idle, just after a tick", 0, false, 0, 9*ms + 1, 13 * ms},
		{"idle, before the first tick", 0, false, 0, us, ms},
		{"idle, far off", 0, false, 2 * ms, 1000 * ms, 1001 * ms},
		{"idle, at once", 0, false, 6 * ms, 6 * ms, 9 * ms},
		{"busy, between ticks", 0, true, 0, 6 * ms, 9 * ms},
		{"busy, on a tick", 0, true, 0, 9 * ms, 9 * ms},
		{"busy, at once", 0, true, 6 * ms, 6 * ms, 9 * ms},
		{"busy, on the tick that is now", 0, true, 5 * ms, 5 * ms, 9 * ms},
		{"core 1, idle", 1, false, 0, 6 * ms, 9 * ms},
		{"core 1, busy", 1, true, 0, 6 * ms, 11 * ms},
		{"core 1, busy, at its tick", 1, true, 0, 7 * ms, 11 * ms},
		{"core 1, busy, at the jiffy", 1, true, 0, 9 * ms, 11 * ms},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, mode sim.Mode) {
				m := ticking(mode, 2)
				c := m.Cores[tt.core]
				c.SetSoftirqs(&fakeSoftirqs{c: c})
				var expired []sim.Time
				timer := c.NewTimer(func(on *Core) {
					if on != c || !c.ServingSoftirq() {
						t.Error("the timer does not run in a softirq of its core")
					}
					expired = append(expired, c.Now())
				})
				if tt.busy {
					start(c, "hog", TaskConfig{}, hog)
				}
				m.eng.Schedule(tt.armed, 255, device(func() { timer.Mod(tt.due) }), 0)
				run(t, m, 2*sim.Second)
				if len(expired) != 1 || expired[0] != tt.want || timer.Armed() {
					t.Errorf("expired at %v, want %v; armed %v", expired, tt.want, timer.Armed())
				}
			})
		})
	}
}

// Timers that are moved, deleted and armed again, on a core that sleeps meanwhile.
func TestTimersAreMoved(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := ticking(mode, 1)
		c := m.Cores[0]
		c.SetSoftirqs(&fakeSoftirqs{c: c})
		j := &journal{m: m}
		var again *Timer
		timer := func(name string) *Timer { return c.NewTimer(func(*Core) { j.note("%s", name) }) }
		late, early, never := timer("late"), timer("early"), timer("never")
		count := 0
		again = c.NewTimer(func(*Core) {
			if j.note("again"); count < 2 {
				count++
				again.Mod(c.Now()) // the next jiffy at the earliest
			}
		})
		at(m, 2*ms, func() {
			late.Mod(20 * ms)  // the core would sleep until 21 ms
			early.Mod(50 * ms) // no reason to wake earlier
			never.Mod(14 * ms) // wakes it at 17 ms for nothing
			again.Mod(12 * ms)
		})
		at(m, 3*ms, func() {
			early.Mod(7 * ms) // wakes it at 9 ms instead
			never.Del()
			never.Del()
			late.Mod(33 * ms)
		})
		run(t, m, 100*ms)
		j.expect(t, "9ms early", "13ms again", "17ms again", "21ms again", "33ms late")
		if never.Armed() || len(c.timers.armed) != 0 {
			t.Error("timers are left")
		}
	})
}

// Timers that expire together run in the order in which they are due, whatever the
// order of arming. A deferred TIMER softirq is raised again by each tick.
func TestTimersRunInOrder(t *testing.T) {
	m := ticking(sim.Lazy, 1)
	c := m.Cores[0]
	f := &fakeSoftirqs{c: c}
	c.SetSoftirqs(f)
	j := &journal{m: m}
	for _, due := range []sim.Time{9 * ms, 5 * ms, 13 * ms, 5 * ms} {
		c.NewTimer(func(*Core) { j.note("due %v", due) }).Mod(due)
	}
	start(c, "task", TaskConfig{}, func(*Task) {
		c.BHDisable()
		c.Work(10 * ms) // over 1, 5 and 9 ms
		c.BHEnable()
		c.Work(10 * ms)
	})
	run(t, m, 100*ms)
	j.expect(t, "10ms due 5ms", "10ms due 5ms", "10ms due 9ms", "13ms due 13ms")
}

// The tick costs what the platform says, in hardirq context.
func TestTickCost(t *testing.T) {
	m := newMachine(sim.Lazy, func(c *Config) { c.Costs[model.StageTick] = us })
	c := m.Cores[0]
	start(c, "hog", TaskConfig{}, hog)
	run(t, m, 40*ms+100*us)
	if got := c.Account()[Hardirq]; got != 10*us { // at 4, 8, ..., 40 ms
		t.Errorf("hardirq time %v, want 10 ticks of 1us", got)
	}
}
