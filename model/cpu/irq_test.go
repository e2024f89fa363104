package cpu

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"napisim/model"
	"napisim/sim"
)

const us = sim.Microsecond

// interruptible is a machine whose interrupts cost 1 us to enter and 1 us to leave.
func interruptible(mode sim.Mode) *Machine {
	return newMachine(mode, func(c *Config) {
		c.Costs[model.StageHardirqEntry] = us
		c.Costs[model.StageHardirqExit] = us
	})
}

// A debt of 100 us with interrupts of 1 + 5 + 1 us in it. Handlers run 1 us after the
// interrupt, at its exact instant; the debt ends later by what interrupted it.
func TestInterruptSplitsADebt(t *testing.T) {
	tests := []struct {
		name   string
		raises []sim.Time // on line 0, 1, ...
		want   []string
	}{
		{"none", nil, []string{"100us done"}},
		{"in the middle", []sim.Time{30 * us}, []string{"31us handler 0", "107us done"}},
		{"at the start", []sim.Time{0}, []string{"1us handler 0", "107us done"}},
		{"just before the end", []sim.Time{100*us - 1}, []string{"100.999999us handler 0", "107us done"}},
		{"exactly at the end", []sim.Time{100 * us}, []string{"101us handler 0", "107us done"}},
		{"just after the end", []sim.Time{100*us + 1}, []string{"100us done", "101.000001us handler 0"}},
		// 30 + 7 = 37: the second one waits for the end of the first.
		{"two together", []sim.Time{30 * us, 30 * us}, []string{"31us handler 0", "38us handler 1", "114us done"}},
		{"the second first", []sim.Time{31 * us, 30 * us}, []string{"31us handler 1", "38us handler 0", "114us done"}},
		{"into a handler", []sim.Time{33 * us, 30 * us}, []string{"31us handler 1", "38us handler 0", "114us done"}},
		{"as one ends", []sim.Time{37 * us, 30 * us}, []string{"31us handler 1", "38us handler 0", "114us done"}},
		// Line 1 interrupts; 2 and 0 come meanwhile and are taken in the order of lines.
		{"in line order", []sim.Time{36 * us, 30 * us, 32 * us}, []string{"31us handler 1", "38us handler 0", "45us handler 2", "121us done"}},
		// The debt was 60 us old when it was interrupted: 40 us are left at 67 us, and
		// 106 is one before its new end.
		{"in the rest", []sim.Time{60 * us, 106 * us}, []string{"61us handler 0", "107us handler 1", "114us done"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, mode sim.Mode) {
				m := interruptible(mode)
				c := m.Cores[0]
				j := &journal{m: m}
				var lines []*Line
				for i := range tt.raises {
					lines = append(lines, c.NewLine(i, "dev", func(c *Core) {
						j.note("handler %d", i)
						c.Work(5 * us)
					}))
				}
				start(c, "task", TaskConfig{}, func(task *Task) {
					task.ToUser()
					j.from = c.Now()
					for i, when := range tt.raises {
						at(m, j.from+when, lines[i].Raise)
					}
					c.Work(60 * us)
					c.Work(40 * us)
					c.Look()
					j.note("done")
				})
				run(t, m, sim.Millisecond)
				j.expect(t, tt.want...)
				n := sim.Time(len(tt.raises))
				if user := c.Account()[User]; user != 100*us {
					t.Errorf("user time is %v", user)
				}
				// The wakeup at the start cost one more interrupt of 2 us.
				if hard := c.Account()[Hardirq]; hard != 2*us+7*us*n {
					t.Errorf("hardirq time is %v", hard)
				}
			})
		})
	}
}

// With interrupts off nothing is delivered until they are enabled, then in the order
// of the lines and not in that in which they were raised.
func TestInterruptsWaitWhileOff(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := newMachine(mode, nil)
		c := m.Cores[0]
		j := &journal{m: m}
		lines := make([]*Line, 3)
		for i := range lines {
			lines[i] = c.NewLine(i, "dev", func(c *Core) { j.note("handler %d, off %v", i, c.IRQsDisabled()) })
		}
		start(c, "task", TaskConfig{}, func(*Task) {
			at(m, 10*us, lines[2].Raise)
			at(m, 20*us, lines[0].Raise)
			at(m, 30*us, lines[2].Raise) // pending already: one interrupt
			c.IRQDisable()
			c.Work(40 * us)
			off := c.IRQSave()
			if !off {
				t.Error("interrupts are on in the section")
			}
			c.Work(10 * us)
			c.IRQRestore(off)
			c.Look()
			j.note("still off")
			c.IRQEnable()
			j.note("on")
		})
		run(t, m, sim.Millisecond)
		j.expect(t, "50us still off", "50us handler 0, off true", "50us handler 2, off true", "50us on")
		if lines[0].Count != 1 || lines[1].Count != 0 || lines[2].Count != 1 {
			t.Errorf("counts %d, %d, %d", lines[0].Count, lines[1].Count, lines[2].Count)
		}
	})
}

// Two cores interrupted by one event both go on at that instant.
func TestOneEventInterruptsTwoCores(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := newMachine(mode, func(c *Config) { c.Cores = 2 })
		j := &journal{m: m}
		var lines []*Line
		for _, c := range m.Cores {
			lines = append(lines, c.NewLine(1, "dev", func(c *Core) {
				j.note("cpu%d", c.ID)
				c.Work(100 * us)
			}))
		}
		at(m, 10*us, func() {
			lines[1].Raise()
			lines[0].Raise()
		})
		run(t, m, sim.Millisecond)
		j.expect(t, "10us cpu0", "10us cpu1")
	})
}

// Code on a core raises a line of its own core, as a device does that is unmasked
// with an event pending: the interrupt comes at the next look, at the old instant.
func TestRaiseFromTheCoreItself(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := interruptible(mode)
		c := m.Cores[0]
		j := &journal{m: m}
		line := c.NewLine(1, "dev", func(*Core) { j.note("handler") })
		start(c, "task", TaskConfig{}, func(*Task) {
			c.Look()
			j.from = c.Now()
			line.Raise()
			line.Raise()
			j.note("raised")
			c.Work(10 * us)
			c.Look()
			j.note("done")
			c.IRQDisable()
			line.Raise()
			c.Work(10 * us)
			c.IRQEnable()
			j.note("enabled")
		})
		run(t, m, sim.Millisecond)
		j.expect(t, "0ps raised", "1us handler", "12us done", "23us handler", "24us enabled")
	})
}

// fakeSoftirqs notes how it is called.
type fakeSoftirqs struct {
	c       *Core
	j       *journal
	pending bool
	work    func() // what a softirq does, nothing if nil
	timers  bool
}

func (f *fakeSoftirqs) Pending() bool  { return f.pending || f.timers }
func (f *fakeSoftirqs) RaiseTimer()    { f.timers = true }
func (f *fakeSoftirqs) InvokeSoftirq() { f.serve("invoke", Softirq) }
func (f *fakeSoftirqs) DoSoftirq()     { f.serve("do", Softirq) }

func (f *fakeSoftirqs) serve(how string, x Context) {
	c := f.c
	if f.j != nil {
		f.j.note("%s: irqs off %v, hardirq %v, serving %v", how, c.irqsOff, c.InHardirq(), c.ServingSoftirq())
	}
	off := c.IRQSave()
	prev, entered := c.BeginSoftirq(x)
	timers := f.timers
	f.pending, f.timers = false, false
	c.IRQEnable()
	if timers {
		c.RunTimers()
	}
	if f.work != nil {
		f.work()
	}
	c.IRQDisable()
	c.EndSoftirq(prev, entered)
	c.IRQRestore(off)
}

// Who runs softirqs that a hardirq raises (kernel-facts 3.2, 3.4, C1): the exit of
// that hardirq; the end of the BH-off section that it interrupted; nobody, when it
// interrupted a softirq, as the running loop looks again.
func TestSoftirqHooks(t *testing.T) {
	setup := func(mode sim.Mode, task func(c *Core, f *fakeSoftirqs)) (*Machine, *journal) {
		m := interruptible(mode)
		c := m.Cores[0]
		j := &journal{m: m}
		f := &fakeSoftirqs{c: c, j: j}
		c.SetSoftirqs(f)
		line := c.NewLine(1, "dev", func(*Core) {
			j.note("handler")
			f.pending = true
		})
		start(c, "task", TaskConfig{}, func(*Task) {
			c.Look()
			j.from = c.Now()
			at(m, j.from+10*us, line.Raise)
			task(c, f)
			c.Look()
			j.note("end")
		})
		return m, j
	}
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m, j := setup(mode, func(c *Core, _ *fakeSoftirqs) { c.Work(20 * us) })
		run(t, m, sim.Millisecond)
		j.expect(t, "11us handler", "12us invoke: irqs off true, hardirq false, serving false", "22us end")

		m, j = setup(mode, func(c *Core, _ *fakeSoftirqs) {
			c.BHDisable()
			c.BHDisable()
			c.Work(20 * us)
			c.BHEnable()
			j.note("inner end")
			c.Work(10 * us)
			c.BHEnable()
		})
		run(t, m, sim.Millisecond)
		j.expect(t, "11us handler", "22us inner end", "32us do: irqs off false, hardirq false, serving false", "32us end")

		m, j = setup(mode, func(c *Core, f *fakeSoftirqs) {
			f.work = func() {
				f.work = nil
				c.Work(20 * us)
				c.BHDisable()
				c.BHEnable() // does not nest
			}
			c.BHDisable()
			f.pending = true
			c.BHEnable()
			j.note("pending %v", f.pending)
		})
		run(t, m, sim.Millisecond)
		j.expect(t, "0ps do: irqs off false, hardirq false, serving false", "11us handler", "22us pending true", "22us end")
	})
}

// What follows a softirq inside the interrupt's exit is charged to the interrupt, and
// is paid before the interrupted code goes on.
func TestContextsAreCharged(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := newMachine(mode, nil)
		c := m.Cores[0]
		f := &fakeSoftirqs{c: c, work: func() { c.Work(30 * us) }}
		c.SetSoftirqs(f)
		line := c.NewLine(1, "dev", func(c *Core) {
			c.Work(5 * us)
			f.pending = true
		})
		at(m, 50*us, line.Raise)  // over the task in user mode
		at(m, 500*us, line.Raise) // over idle
		start(c, "task", TaskConfig{}, func(task *Task) {
			c.Work(7 * us)
			task.ToUser()
			c.Work(100 * us)
			task.ToKernel()
			c.Work(11 * us)
			prev := c.Enter(Ksoftirqd)
			c.Work(13 * us)
			c.Leave(prev)
			c.Work(2 * us)
		})
		run(t, m, sim.Millisecond)
		want := [NumContexts]sim.Time{
			Idle: (1000 - 100 - 20 - 13 - 2*35) * us, User: 100 * us, System: 20 * us,
			Hardirq: 2 * 5 * us, Softirq: 2 * 30 * us, Ksoftirqd: 13 * us,
		}
		if got := c.Account(); got != want {
			t.Errorf("account %v, want %v", got, want)
		}
	})
}

// The books are right at any instant, also when a core has just been interrupted and
// not gone on yet.
func TestBooksInTheMiddle(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := interruptible(mode)
		c := m.Cores[0]
		line := c.NewLine(1, "dev", func(c *Core) { c.Work(3 * us) })
		start(c, "task", TaskConfig{}, func(*Task) {
			c.Work(100 * us)
			c.Look()
		})
		for n := range sim.Time(60) {
			at(m, n*us*2, func() {
				checkBooks(t, m)
				if n%8 == 3 {
					line.Raise()
				}
				checkBooks(t, m)
			})
		}
		at(m, 40*us, func() {
			c.Settle()
			// 2 us of interrupt at the start, then interrupts of 5 us at 6 and 22 and, just
			// begun, at 38 us: the third has taken 2 us.
			if got, want := c.Account()[System], 40*us-(2+5+5+2)*us; got != want {
				t.Errorf("at 40us system time is %v, want %v", got, want)
			}
		})
		run(t, m, sim.Millisecond)
	})
}

// Wrong books are found.
func TestCheckCanFail(t *testing.T) {
	m := newMachine(sim.Lazy, nil)
	c := m.Cores[0]
	start(c, "hog", TaskConfig{}, hog)
	run(t, m, sim.Millisecond)
	c.account[User]--
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "of 1ms") {
		t.Errorf("a lost picosecond gives %v", err)
	}
	c.account[Idle]++
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "owes") {
		t.Errorf("a shifted picosecond gives %v", err)
	}
}

// Interrupts that come in each task switch and preempt again do not nest: the stack
// stays as it was.
func TestPreemptionDoesNotNest(t *testing.T) {
	m := newMachine(sim.Lazy, func(c *Config) {
		c.Preempt = PreemptFull
		c.Costs[model.StageContextSwitch] = us
	})
	c := m.Cores[0]
	deepest := 0
	var tasks []*Task
	line := c.NewLine(1, "dev", func(c *Core) {
		deepest = max(deepest, runtime.Callers(0, make([]uintptr, 1000)))
		c.fair.Charge(sim.Second) // the other one is next
		c.needResched = true
	})
	for i := range 2 {
		tasks = append(tasks, start(c, fmt.Sprint("task", i), TaskConfig{}, func(task *Task) {
			for {
				c.Work(sim.Second)
				c.Look()
			}
		}))
	}
	for n := range sim.Time(4000) {
		at(m, 100*us+n*us/2, line.Raise)
	}
	run(t, m, 3*sim.Millisecond)
	if n := tasks[0].Stats().Preempted; n < 900 {
		t.Fatalf("only %d preemptions", n)
	}
	if deepest > 40 {
		t.Errorf("the stack is %d calls deep", deepest)
	}
}

// fault runs a machine and returns the fault that ends the run.
func fault(t *testing.T, m *Machine) (f *sim.Fault) {
	t.Helper()
	defer m.eng.Close()
	defer func() {
		var ok bool
		if f, ok = recover().(*sim.Fault); !ok {
			t.Fatal("no fault")
		}
	}()
	m.eng.Run()
	return nil
}

// What Linux would complain about ends the run and names the task.
func TestFaults(t *testing.T) {
	tests := []struct {
		name string
		body func(t *Task)
		want string
	}{
		{"unbalanced bh", func(t *Task) { t.Core().BHEnable() }, "local_bh_enable without"},
		{"unbalanced preemption", func(t *Task) { t.Core().PreemptEnable() }, "preempt_enable without"},
		{"sleep in atomic", func(t *Task) { t.Core().BHDisable(); t.Sleep() }, "scheduling while atomic in task bad"},
		{"sleep with irqs off", func(t *Task) { t.Core().IRQDisable(); t.Sleep() }, "scheduling while atomic in task bad"},
		{"user in atomic", func(t *Task) { t.Core().PreemptDisable(); t.ToUser() }, "return to user mode while atomic"},
		{"exit in atomic", func(t *Task) { t.Core().BHDisable() }, "exit while atomic in task bad"},
		{"softirqs nest", func(t *Task) { t.Core().BeginSoftirq(Softirq); t.Core().BeginSoftirq(Softirq) }, "do not nest"},
		{"loop", func(t *Task) {
			for {
				t.Core().Look()
			}
		}, "task bad looks again and again"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, mode sim.Mode) {
				m := newMachine(mode, nil)
				start(m.Cores[0], "bad", TaskConfig{}, tt.body)
				f := fault(t, m)
				if !strings.Contains(f.Error(), tt.want) || f.Component != "bad" {
					t.Errorf("fault %q of %s, want %q", f.Error(), f.Component, tt.want)
				}
			})
		})
	}
}

// A task that sleeps on what it saw before it spent time may miss a wakeup. The lazy
// mode sees the debt; the eager one has paid it.
func TestSleepingOnADebtIsAFault(t *testing.T) {
	m := newMachine(sim.Lazy, nil)
	start(m.Cores[0], "bad", TaskConfig{}, func(t *Task) {
		t.Core().Work(us)
		t.Sleep()
	})
	if f := fault(t, m); !strings.Contains(f.Error(), "sleeps on what it saw") {
		t.Errorf("fault %q", f.Error())
	}
}

// A loop that looks often but makes progress is none; a million looks are a lot.
func TestManyLooksWithProgress(t *testing.T) {
	m := newMachine(sim.Lazy, nil)
	c := m.Cores[0]
	start(c, "task", TaskConfig{}, func(*Task) {
		for range 3 {
			for range looksWithoutProgress - 10 { // the start and the end look too
				c.Look()
			}
			c.Work(1)
			c.Look()
		}
	})
	run(t, m, sim.Millisecond)
}
