package cpu

import (
	"fmt"
	"testing"

	"napisim/model/cpu/fair"
	"napisim/sim"
)

// A FIFO task is woken by an interrupt 10 us after a task of the fair class has begun
// something that takes 100 us. When does it run? At the first point where the
// preemption model lets go, at the latest when the task returns to user mode at 200 us
// or, where it stays in the kernel, leaves the core at 300 us.
func TestPreemptionPoints(t *testing.T) {
	const work, rest = 100 * us, 100 * us
	kernel := func(point func(c *Core, t *Task)) func(c *Core, t *Task) {
		return func(c *Core, t *Task) {
			c.Work(work)
			point(c, t)
			c.Work(rest)
			t.ToUser()
			c.Work(rest)
			c.Look()
		}
	}
	tests := []struct {
		name                  string
		body                  func(c *Core, t *Task)
		none, voluntary, full sim.Time
	}{
		{"user mode", func(c *Core, t *Task) {
			t.ToUser()
			c.Work(work)
			c.Look()
		}, 10 * us, 10 * us, 10 * us},
		{"kernel mode", kernel(func(*Core, *Task) {}), 200 * us, 200 * us, 10 * us},
		{"cond_resched", kernel(func(c *Core, _ *Task) { c.CondResched() }), 100 * us, 100 * us, 10 * us},
		{"might_sleep", kernel(func(c *Core, _ *Task) { c.MightResched() }), 200 * us, 100 * us, 10 * us},
		{"sleep", kernel(func(c *Core, t *Task) {
			c.Look()
			t.Sleep()
		}), 100 * us, 100 * us, 10 * us},
		{"preempt_enable", func(c *Core, t *Task) {
			c.PreemptDisable()
			c.PreemptDisable()
			c.Work(work / 2)
			c.PreemptEnable()
			c.CondResched() // does nothing in an atomic section
			kernel(func(c *Core, _ *Task) { c.PreemptEnable() })(c, t)
		}, 250 * us, 250 * us, 150 * us},
		{"preempt_enable alone", func(c *Core, t *Task) {
			c.PreemptDisable()
			kernel(func(c *Core, _ *Task) { c.PreemptEnable() })(c, t)
		}, 200 * us, 200 * us, 100 * us},
		// What came before an atomic section could still be preempted.
		{"before preempt_disable", kernel(func(c *Core, _ *Task) {
			c.PreemptDisable()
			c.Work(rest)
			c.PreemptEnable()
		}), 300 * us, 300 * us, 10 * us},
		{"before local_bh_disable", kernel(func(c *Core, _ *Task) {
			c.BHDisable()
			c.Work(rest)
			c.BHEnable()
		}), 300 * us, 300 * us, 10 * us},
		{"local_bh_enable", func(c *Core, t *Task) {
			c.BHDisable()
			c.CondResched()
			kernel(func(c *Core, _ *Task) { c.BHEnable() })(c, t)
		}, 200 * us, 200 * us, 100 * us},
		// Not a preemption point, but the interrupt is only taken here.
		{"local_irq_enable", func(c *Core, t *Task) {
			c.IRQDisable()
			kernel(func(c *Core, _ *Task) { c.IRQEnable() })(c, t)
		}, 200 * us, 200 * us, 100 * us},
		{"softirq", func(c *Core, t *Task) {
			prev, entered := c.BeginSoftirq(Softirq)
			c.Work(work)
			c.CondResched()
			c.EndSoftirq(prev, entered)
			c.Work(rest)
			c.PreemptCheck()
			t.ToUser()
		}, 200 * us, 200 * us, 200 * us},
	}
	for _, tt := range tests {
		for preempt, want := range []sim.Time{tt.none, tt.voluntary, tt.full} {
			t.Run(fmt.Sprintf("%s/%v", tt.name, Preemption(preempt)), func(t *testing.T) {
				eachMode(t, func(t *testing.T, mode sim.Mode) {
					m := newMachine(mode, func(c *Config) { c.Preempt = Preemption(preempt) })
					c := m.Cores[0]
					var ran sim.Time
					urgent := start(c, "urgent", TaskConfig{FIFO: 1}, func(t *Task) {
						t.Sleep()
						ran = c.Now()
					})
					line := c.NewLine(1, "dev", func(c *Core) { c.Wake(urgent) })
					start(c, "task", TaskConfig{}, func(t *Task) { tt.body(c, t) })
					at(m, 10*us, line.Raise)
					run(t, m, ms)
					if ran != want {
						t.Errorf("runs at %v, want %v", ran, want)
					}
				})
			})
		}
	}
}

// A wakeup by the task itself ends with preempt_enable: only under full preemption
// the woken task runs at once.
func TestWakeupByTheTaskItself(t *testing.T) {
	for preempt, want := range []sim.Time{50 * us, 50 * us, 10 * us} {
		eachMode(t, func(t *testing.T, mode sim.Mode) {
			m := newMachine(mode, func(c *Config) { c.Preempt = Preemption(preempt) })
			c := m.Cores[0]
			var ran sim.Time
			urgent := start(c, "urgent", TaskConfig{FIFO: 1}, func(t *Task) {
				t.Sleep()
				ran = c.Now()
			})
			start(c, "task", TaskConfig{}, func(task *Task) {
				c.Work(10 * us)
				c.Wake(urgent)
				if got, want := c.NeedResched(), Preemption(preempt) != PreemptFull; got != want {
					t.Errorf("%v: need_resched is %v after the wakeup", Preemption(preempt), got)
				}
				c.Work(40 * us)
				task.ToUser()
			})
			run(t, m, ms)
			if ran != want {
				t.Errorf("%v: runs at %v, want %v", Preemption(preempt), ran, want)
			}
		})
	}
}

// The tick ends the slice of a hog in user mode at once; in the kernel it depends on
// the model. Two tasks of the fair class, slice 3 ms; ticks come at 0, 4, 8 ms.
func TestTickPreemption(t *testing.T) {
	inKernel := func(t *Task) {
		for {
			t.Core().Work(10 * ms)
			t.Core().CondResched()
		}
	}
	tests := []struct {
		name    string
		preempt Preemption
		body    func(*Task)
		want    sim.Time
	}{
		{"user", PreemptNone, hog, 4 * ms},
		{"kernel", PreemptFull, inKernel, 4 * ms},
		{"kernel", PreemptVoluntary, inKernel, 10 * ms},
		{"kernel", PreemptNone, inKernel, 10 * ms},
	}
	for _, tt := range tests {
		eachMode(t, func(t *testing.T, mode sim.Mode) {
			m := newMachine(mode, func(c *Config) { c.Preempt = tt.preempt })
			c := m.Cores[0]
			var second sim.Time
			start(c, "first", TaskConfig{}, tt.body)
			at(m, 100*us, func() { start(c, "second", TaskConfig{}, func(*Task) { second = c.Now() }) })
			run(t, m, 20*ms)
			if second != tt.want {
				t.Errorf("%s, %v: the second task runs at %v, want %v", tt.name, tt.preempt, second, tt.want)
			}
		})
	}
}

// A preempted task keeps what it still owes: its 100 us end 50 us later than without
// the other task, in whatever piece they are cut.
func TestPreemptedTaskKeepsItsDebt(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := newMachine(mode, func(c *Config) { c.Preempt = PreemptFull })
		c := m.Cores[0]
		j := &journal{m: m}
		urgent := start(c, "urgent", TaskConfig{FIFO: 1}, func(t *Task) {
			for {
				t.Sleep()
				c.Work(25 * us)
				c.Look()
				j.note("urgent")
			}
		})
		start(c, "task", TaskConfig{}, func(*Task) {
			c.Work(100 * us)
			c.Look()
			j.note("task")
		})
		at(m, 30*us, func() {
			checkBooks(t, m)
			urgent.WakeFromDevice()
		})
		at(m, 40*us, func() {
			c.Settle()
			if got := c.owing; got != 70*us+15*us {
				t.Errorf("in the middle of the other task %v are owed, want 70us and 15us", got)
			}
		})
		at(m, 124*us, urgent.WakeFromDevice)
		run(t, m, ms)
		j.expect(t, "55us urgent", "149us urgent", "150us task")
	})
}

// Lazy preemption (kernel-facts 3.7, from v6.13): a wakeup in the fair class does not
// set need_resched, so it does not end a softirq loop. User code is preempted at the
// return from the interrupt; kernel code when the next tick makes the switch due. Over
// idle and for FIFO tasks nothing is put off.
//
// The woken task has waited from 10 us on for one that uses up its slice at the tick
// of 4 ms, or, put off, at 8 ms; so it sleeps with lag, and is woken at 9 ms.
func TestLazyPreemption(t *testing.T) {
	inKernel := func(t *Task) {
		for {
			t.Core().Work(10 * ms)
			t.Core().CondResched()
		}
	}
	for _, tt := range []struct {
		name    string
		preempt Preemption
		body    func(*Task) // nil: idle
		fifo    int
		need    bool
		want    sim.Time
	}{
		{"kernel, full", PreemptFull, inKernel, 0, true, 9 * ms},
		{"kernel, lazy", PreemptLazy, inKernel, 0, false, 12 * ms},
		{"user, lazy", PreemptLazy, hog, 0, false, 9 * ms},
		{"kernel, lazy, FIFO", PreemptLazy, inKernel, 1, true, 9 * ms},
		{"idle, lazy", PreemptLazy, nil, 0, true, 9 * ms},
	} {
		eachMode(t, func(t *testing.T, mode sim.Mode) {
			m := newMachine(mode, func(c *Config) {
				c.Preempt = tt.preempt
				c.Scheduler = fair.Params{Policy: fair.EEVDF, DelayDequeue: true}
			})
			c := m.Cores[0]
			var ran sim.Time
			woken := m.NewTask(c, "woken", TaskConfig{FIFO: tt.fifo}, func(task *Task) {
				task.Sleep()
				ran = c.Now()
			})
			if tt.body != nil {
				start(c, "busy", TaskConfig{}, tt.body)
			}
			at(m, 10*us, woken.WakeFromDevice)
			line := c.NewLine(1, "dev", func(c *Core) {
				c.Wake(woken)
				if got := c.NeedResched(); got != tt.need {
					t.Errorf("%s: need_resched %v after the wakeup", tt.name, got)
				}
			})
			at(m, 9*ms, line.Raise)
			run(t, m, 20*ms)
			if ran != tt.want {
				t.Errorf("%s: runs at %v, want %v", tt.name, ran, tt.want)
			}
		})
	}
}
