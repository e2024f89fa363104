package cpu

import (
	"fmt"
	"testing"

	"napisim/model"
	"napisim/model/cpu/fair"
	"napisim/sim"
	"napisim/sim/trace"
)

// switches returns when the core switched tasks, and to whom.
func switches(m *Machine) (at []sim.Time, to []string) {
	for _, e := range m.Trace.Events() {
		if e.Point == trace.SchedSwitch {
			at, to = append(at, e.At), append(to, e.S)
		}
	}
	return at, to
}

// Two hogs take turns. A turn ends at the first tick at which more than a slice, half
// the latency of 6 ms times F, has been used up:
//
//	F=1, slice 3 ms: HZ 100 after 1 tick (10 ms > 3), HZ 250 after 1 (4 ms),
//	HZ 300 after 1 (3.33 ms), HZ 1000 after 4 (3 ms is not more than 3)
//	F=4, slice 12 ms: HZ 100 after 2 (20 ms), HZ 250 after 4 (12 ms is not more),
//	HZ 300 after 4 (13.3 ms), HZ 1000 after 13
func TestTwoHogsAlternate(t *testing.T) {
	alternate(t, fair.Params{}, []turns{
		{100, 1, 1},
		{250, 1, 1},
		{300, 1, 1},
		{1000, 1, 4},
		{100, 8, 2},
		{250, 8, 4},
		{300, 8, 4},
		{1000, 8, 13},
	})
}

// Under EEVDF a turn ends with the first tick at which the slice is used up, 0.75 ms on
// one core and 3 ms on eight (kernel-facts 3.7); no more than that is needed.
func TestTwoHogsAlternateUnderEEVDF(t *testing.T) {
	for _, name := range []string{"eevdf_6_6", "eevdf_6_12", "eevdf_6_17"} {
		params, err := fair.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		alternate(t, params, []turns{
			{100, 1, 1},
			{250, 1, 1},
			{1000, 1, 1},
			{100, 8, 1},
			{250, 8, 1},
			{300, 8, 1}, // 3.3 ms
			{1000, 8, 3},
		})
	}
}

// turns says how many ticks a turn takes.
type turns struct{ hz, cores, ticks int }

func alternate(t *testing.T, scheduler fair.Params, tests []turns) {
	t.Helper()
	for _, tt := range tests {
		for _, cost := range []sim.Time{0, 2 * us} { // a switch that takes time makes no difference
			m := newMachine(sim.Lazy, func(c *Config) {
				c.HZ, c.Cores, c.TickPhase, c.Scheduler = tt.hz, tt.cores, 500*us, scheduler
				c.Costs[model.StageContextSwitch] = cost
			})
			m.Trace = trace.NewLog(0, sim.Never, 10000)
			a := start(m.Cores[0], "a", TaskConfig{}, hog)
			b := start(m.Cores[0], "b", TaskConfig{}, hog)
			run(t, m, 2*sim.Second)
			when, to := switches(m)
			turn := sim.Time(tt.ticks) * m.TickPeriod()
			if got := len(when); got < int(2*sim.Second/turn)-2 || got < 10 {
				t.Fatalf("HZ %d, %d cores: %d switches", tt.hz, tt.cores, got)
			}
			for i := 2; i+1 < len(when); i++ { // the first turn may begin between ticks
				if d := when[i+1] - when[i]; d != turn || to[i] == to[i+1] {
					t.Fatalf("HZ %d, %d cores: turn %d of %s takes %v, want %v", tt.hz, tt.cores, i, to[i], d, turn)
				}
			}
			if d := a.Runtime() - b.Runtime(); max(d, -d) > 2*turn {
				t.Errorf("HZ %d, %d cores: unfair by %v", tt.hz, tt.cores, d)
			}
		}
	}
}

// Runtimes are in the ratio of the weights: nobody's vruntime gets away from the
// others' by more than some turns of ticks, 4 ms over the weight each.
func TestNiceSharesTheCore(t *testing.T) {
	for _, name := range fair.Names() {
		params, err := fair.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		nices := []int{0, 5, -3}
		m := newMachine(sim.Lazy, func(c *Config) { c.Scheduler = params })
		var tasks []*Task
		for _, nice := range nices {
			tasks = append(tasks, start(m.Cores[0], "hog", TaskConfig{Nice: nice}, hog))
		}
		const span = 20 * sim.Second
		run(t, m, span)
		m.Cores[0].updateCurr()
		total := int64(1024 + 335 + 1991)
		for i, weight := range []int64{1024, 335, 1991} {
			want := span * sim.Time(weight) / sim.Time(total)
			if got := tasks[i].Runtime(); max(got-want, want-got) > want/100 {
				t.Errorf("%s: nice %d ran %v, want %v", name, nices[i], got, want)
			}
		}
	}
}

// A wakeup preempts if and only if the lead in vruntime passes the wakeup
// granularity, 1 ms times F. The sleeper wakes 3 ms * F behind the hog, works until
// half a granularity is left of that, and sleeps again; then the hog's lead is half a
// granularity plus the time until the second wakeup.
func TestWakeupPreemption(t *testing.T) {
	for _, tt := range []struct {
		cores int
		f     sim.Time
	}{{1, 1}, {2, 2}, {8, 4}} {
		gran, credit := tt.f*ms, tt.f*3*ms
		for _, excess := range []sim.Time{-1, 0, 1, us} {
			eachMode(t, func(t *testing.T, mode sim.Mode) {
				m := newMachine(mode, func(c *Config) { c.Cores, c.HZ = tt.cores, 100 })
				c := m.Cores[0]
				start(c, "hog", TaskConfig{}, hog)
				var woken []sim.Time
				sleeper := start(c, "sleeper", TaskConfig{}, func(task *Task) {
					for {
						task.Sleep()
						woken = append(woken, c.Now())
						c.Work(credit - gran/2)
						c.Look()
					}
				})
				first := 500 * ms
				asleep := first + credit - gran/2
				second := asleep + gran/2 + excess
				at(m, first, sleeper.WakeFromDevice)
				at(m, second, sleeper.WakeFromDevice)
				at(m, second+1, func() {
					if want := excess > 0; (c.cur == sleeper) != want {
						t.Errorf("F=%d: lead %v over the granularity: preempts %v", tt.f, excess, !want)
					}
				})
				run(t, m, sim.Second)
				if len(woken) < 2 || woken[0] != first {
					t.Errorf("F=%d: a long sleeper does not preempt at once: %v", tt.f, woken)
				}
			})
		}
	}
}

// A long sleeper gets a credit of 3 ms at one core: it wakes that far behind the hog,
// and so does a kernel thread that has slept since boot. A new task starts a slice,
// also 3 ms, ahead of it.
func TestPlacementOnACore(t *testing.T) {
	m := newMachine(sim.Lazy, nil)
	c := m.Cores[0]
	busy := start(c, "hog", TaskConfig{}, hog)
	sleeper := start(c, "sleeper", TaskConfig{}, func(task *Task) { task.Sleep() })
	at(m, 502*ms, sleeper.WakeFromDevice)
	thread := m.NewTask(c, "kthread", TaskConfig{Sleeper: true}, func(task *Task) {})
	at(m, 702*ms, thread.WakeFromDevice)
	var fresh *Task
	at(m, 602*ms, func() { fresh = start(c, "fresh", TaskConfig{}, hog) })
	check := func(what string, task **Task, want sim.Time) device {
		return func() {
			if got := (*task).ent.VRuntime() - busy.ent.VRuntime(); got != want {
				t.Errorf("%s is at %v, want %v", what, got, want)
			}
		}
	}
	m.eng.Schedule(502*ms, 255, check("the sleeper", &sleeper, -3*ms), 0)
	m.eng.Schedule(602*ms, 255, check("the new task", &fresh, 3*ms), 0)
	m.eng.Schedule(702*ms, 255, device(func() {
		if got := thread.ent.VRuntime() - min(busy.ent.VRuntime(), fresh.ent.VRuntime()); got != -3*ms {
			t.Errorf("the kernel thread is at %v, want -3ms", got)
		}
	}), 0)
	run(t, m, sim.Second)
}

// FIFO tasks come before all others, by priority; equal ones run in the order in
// which they woke up, and a preempted one keeps its place.
func TestFIFO(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := newMachine(mode, nil)
		c := m.Cores[0]
		j := &journal{m: m}
		start(c, "hog", TaskConfig{Nice: -20}, hog)
		fifo := func(name string, prio int, wake sim.Time) {
			task := m.NewTask(c, name, TaskConfig{FIFO: prio}, func(task *Task) {
				j.note("%s starts", name)
				task.ToUser()
				c.Work(100 * us)
				c.Look()
				j.note("%s ends", name)
			})
			at(m, wake, task.WakeFromDevice)
		}
		fifo("low", 1, 1000*us)
		fifo("low too", 1, 1010*us)
		fifo("high", 2, 1020*us)
		fifo("high too", 2, 1030*us)
		run(t, m, 10*ms)
		j.expect(t,
			"1ms low starts", // and is preempted with 80 us left
			"1.02ms high starts", "1.12ms high ends",
			"1.12ms high too starts", "1.22ms high too ends",
			"1.3ms low ends", "1.3ms low too starts", "1.4ms low too ends",
		)
	})
}

// Only a higher priority preempts a FIFO task; the fair class never does.
func TestPriorityPreempts(t *testing.T) {
	m := newMachine(sim.Lazy, nil)
	c := m.Cores[0]
	start(c, "task", TaskConfig{FIFO: 2}, func(*Task) {
		for _, tt := range []struct {
			cfg  TaskConfig
			want bool
		}{{TaskConfig{Nice: -20}, false}, {TaskConfig{FIFO: 1}, false}, {TaskConfig{FIFO: 2}, false}, {TaskConfig{FIFO: 3}, true}} {
			c.Wake(m.NewTask(c, "woken", tt.cfg, func(*Task) {}))
			if c.NeedResched() != tt.want {
				t.Errorf("%+v preempts: %v", tt.cfg, !tt.want)
			}
		}
	})
	run(t, m, ms)
}

// From a wakeup on another core to the first instruction: the cost of sending, the
// way, entry and exit of the interrupt, the switch.
func TestCrossCoreWakeup(t *testing.T) {
	costs := func(c *Config) {
		c.Cores = 2
		c.IPILatency = 500
		c.Costs[model.StageIPI] = 20
		c.Costs[model.StageHardirqEntry] = 100
		c.Costs[model.StageHardirqExit] = 200
		c.Costs[model.StageContextSwitch] = 3000
	}
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := newMachine(mode, costs)
		j := &journal{m: m, from: ms}
		sleepers := make([]*Task, 2)
		for i := range sleepers {
			sleepers[i] = start(m.Cores[1], "sleeper", TaskConfig{FIFO: 1}, func(task *Task) {
				task.Sleep()
				j.note("sleeper %d runs", i)
			})
		}
		waker := m.NewTask(m.Cores[0], "waker", TaskConfig{}, func(*Task) {
			c := m.Cores[0]
			c.Work(100 * us)
			c.Look()
			j.from = c.Now()
			c.Wake(sleepers[0])
			j.note("woken")
			c.Wake(sleepers[0]) // on its way: nothing
			c.Wake(sleepers[1]) // one interrupt is on its way: free
			j.note("woken")
		})
		at(m, ms, waker.WakeFromDevice)
		at(m, ms/2, func() {
			if n := m.Cores[1].Stats().IPIs; n != 1 {
				t.Errorf("%d interrupts for two wakeups together", n)
			}
		})
		run(t, m, 2*ms)
		// 20 + 500 + 100 + 200 + 3000; the second task is switched to when the first ends.
		j.expect(t, "20ps woken", "20ps woken", "3.82ns sleeper 0 runs", "6.82ns sleeper 1 runs")
		if n := m.Cores[1].Stats().IPIs; n != 2 {
			t.Errorf("%d rescheduling interrupts, want 2", n)
		}
		if n := m.Cores[0].Spent()[model.StageIPI]; n != 1 {
			t.Errorf("%d interrupts sent, want 1", n)
		}
	})
}

// An interrupt on the waking core does not delay the wakeup that is being sent.
func TestSendingIsNotInterrupted(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := newMachine(mode, func(c *Config) {
			c.Cores = 2
			c.Costs[model.StageIPI] = us
		})
		c := m.Cores[0]
		j := &journal{m: m, from: ms}
		sleeper := start(m.Cores[1], "sleeper", TaskConfig{}, func(task *Task) {
			task.Sleep()
			j.note("sleeper")
		})
		line := c.NewLine(1, "dev", func(c *Core) {
			j.note("handler")
			c.Work(10 * us)
		})
		waker := m.NewTask(c, "waker", TaskConfig{}, func(*Task) {
			c.Wake(sleeper)
			j.note("waker")
		})
		at(m, ms, waker.WakeFromDevice)
		at(m, ms+us/2, line.Raise)
		run(t, m, 2*ms)
		j.expect(t, "1us handler", "1us sleeper", "11us waker")
	})
}

// A wakeup at any instant around going to sleep, the switch included, is not lost.
func TestNoWakeupIsLost(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		for when := range sim.Time(12) {
			m := newMachine(mode, func(c *Config) {
				c.Cores = 2
				c.Costs[model.StageContextSwitch] = 3 * us
				c.Costs[model.StageHardirqExit] = us
			})
			c := m.Cores[0]
			work, done := false, false
			var sleeper *Task
			line := c.NewLine(1, "dev", func(c *Core) {
				work = true
				c.Wake(sleeper)
			})
			sleeper = start(c, "sleeper", TaskConfig{}, func(task *Task) {
				c.Look() // the task starts at 4 us
				at(m, c.Now()+when*us, line.Raise)
				c.Work(5 * us)
				for c.Look(); !work; c.Look() {
					task.Sleep()
				}
				done = true
			})
			run(t, m, ms)
			if !done {
				t.Errorf("raised %v after the start: the task sleeps for ever", when*us)
			}
		}
	})
}

// Tasks end: their coroutine is over, the core is idle, and waking them does nothing.
func TestExit(t *testing.T) {
	m := newMachine(sim.Lazy, nil)
	c := m.Cores[0]
	ended := start(c, "short", TaskConfig{}, func(*Task) { c.Work(us) })
	at(m, 10*us, ended.WakeFromDevice)
	start(c, "other", TaskConfig{}, func(*Task) {
		c.Work(20 * us)
		c.Wake(ended)
	})
	run(t, m, ms)
	if !ended.proc.Done() || ended.Runnable() || ended.Runtime() != us || ended.Stats() != (TaskStats{1, 1, 0}) {
		t.Errorf("done %v, runnable %v, ran %v, %v", ended.proc.Done(), ended.Runnable(), ended.Runtime(), ended.Stats())
	}
	if got := c.Account()[Idle]; got != ms-21*us {
		t.Errorf("idle for %v", got)
	}
	if c.Current() != c.idle {
		t.Errorf("%s runs", c.Current().Name)
	}
}

// With interrupt time accounting a task's runtime leaves out hardirqs and softirqs;
// in ksoftirqd softirqs are its runtime, but hardirqs are not. Without it all is.
func TestIRQTimeAccounting(t *testing.T) {
	for n := range 4 {
		accounting, policy := n%2 == 1, fair.Policy(n/2)
		eachMode(t, func(t *testing.T, mode sim.Mode) {
			m := newMachine(mode, func(c *Config) {
				c.IRQTimeAccounting, c.Scheduler.Policy = accounting, policy
			})
			c := m.Cores[0]
			f := &fakeSoftirqs{c: c, work: func() { c.Work(10 * us) }}
			c.SetSoftirqs(f)
			var task *Task
			line := c.NewLine(1, "dev", func(c *Core) {
				c.Work(2 * us)
				c.Look()
				c.updateCurr() // too early: the 2 us are not known as interrupt time yet
				before := c.clockTask
				at(m, c.Now()+1, func() {
					if c.updateClock(); c.clockTask < before {
						t.Error("the task's clock goes back")
					}
				})
			})
			soft := c.NewLine(2, "soft", func(*Core) { f.pending = true })
			task = start(c, "task", TaskConfig{}, func(*Task) {
				at(m, 50*us, line.Raise)
				at(m, 60*us, soft.Raise)  // 10 us of softirq at irq exit, with
				at(m, 65*us, line.Raise)  // 2 us of hardirq in them
				at(m, 150*us, line.Raise) // in a softirq of ksoftirqd
				c.Work(100 * us)          // until 116
				c.Enter(Ksoftirqd)
				f.work = func() { c.Work(50 * us) }
				f.serve("run", Ksoftirqd) // until 168
				c.Enter(System)
				c.Work(20 * us)
				c.Look()
				task.Sleep()
				c.Work(30 * us)
			})
			at(m, 170*us, line.Raise) // 2 us
			at(m, 250*us, task.WakeFromDevice)
			run(t, m, ms)
			want := (100 + 50 + 20 + 30 + 2 + 10 + 2 + 2 + 2) * us
			if accounting {
				want = (100 + 50 + 20 + 30) * us
			}
			if got := task.Runtime(); got != want {
				t.Errorf("accounting %v: runtime %v, want %v", accounting, got, want)
			}
		})
	}
}

// Regularity 5 of section 19.2: a wakeup over idle always sets need_resched, whatever
// the scheduler thinks of the task.
func TestR5WakeupOverIdleSetsNeedResched(t *testing.T) {
	for _, name := range fair.Names() {
		params, err := fair.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		m := newMachine(sim.Lazy, func(c *Config) { c.Scheduler = params })
		c := m.Cores[0]
		var tasks []*Task
		for i := range 3 {
			tasks = append(tasks, start(c, fmt.Sprint("task", i), TaskConfig{}, func(task *Task) {
				for n := sim.Time(1); ; n++ {
					c.Work(n * sim.Time(1+i) * 7 * us) // so that lags differ
					c.Look()
					task.Sleep()
				}
			}))
		}
		wakeups := 0
		line := c.NewLine(1, "dev", func(c *Core) {
			c.Look()
			task := tasks[wakeups%3]
			if c.Current() != c.idle || task.Runnable() || c.NeedResched() {
				return
			}
			wakeups++
			if c.Wake(task); !c.NeedResched() {
				t.Errorf("%s: wakeup %d over idle", name, wakeups)
			}
			c.Wake(tasks[wakeups%3])
		})
		for n := range sim.Time(500) {
			at(m, n*300*us, line.Raise)
		}
		run(t, m, 200*ms)
		if wakeups < 50 {
			t.Errorf("%s: only %d wakeups", name, wakeups)
		}
	}
}
