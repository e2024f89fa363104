package cpu

import (
	"testing"

	"napisim/model"
	"napisim/sim"
	"napisim/sim/trace"

	"github.com/google/go-cmp/cmp"
)

// threadedSoftirqs is fakeSoftirqs with the rule of kernels whose handlers are threaded.
type threadedSoftirqs struct {
	fakeSoftirqs
	ksoftirqd int
}

func (f *threadedSoftirqs) InvokeSoftirq() {
	if !f.c.BHLocked() {
		f.ksoftirqd++
	}
}

// Forced threads (kernel-facts 3.8, fact 19 of the recordings): the hard interrupt only
// wakes irq/30-dev, a FIFO task of priority 50. The handler runs there with BH off, and
// what it raises runs where the thread enables BH. The tick stays hard.
func TestThreadedHandler(t *testing.T) {
	for _, rt := range []bool{false, true} {
		eachMode(t, func(t *testing.T, mode sim.Mode) {
			m := newMachine(mode, func(c *Config) {
				c.ThreadIRQs, c.PreemptRT, c.Preempt = !rt, rt, PreemptFull
				c.Costs[model.StageHardirqEntry] = us
				c.Costs[model.StageContextSwitch] = 2 * us
			})
			m.Trace = trace.NewLog(0, sim.Never, 1000)
			c := m.Cores[0]
			f := &threadedSoftirqs{fakeSoftirqs: fakeSoftirqs{c: c}}
			c.SetSoftirqs(f)
			if !c.ForcedThreaded() || c.PreemptRT() != rt {
				t.Error("the core does not know how interrupts run")
			}
			var handled, served instants
			check := func(what string, serving bool) {
				if name := c.Current().Name; name != "irq/30-dev" || c.InHardirq() || !c.InInterrupt() ||
					c.ServingSoftirq() != serving || !c.BHLocked() || c.Current().prio() != 49 {
					t.Errorf("%s in %s, hardirq %v", what, name, c.InHardirq())
				}
			}
			f.work = func() {
				check("softirq", true)
				served = append(served, c.Now())
			}
			line := c.NewLine(30, "dev", func(c *Core) {
				c.Look()
				check("handler", false)
				handled = append(handled, c.Now())
				f.pending = true
				c.Work(5 * us)
			})
			start(c, "hog", TaskConfig{}, hog)
			at(m, 100*us, line.Raise)
			at(m, 104*us+500*sim.Nanosecond, line.Raise) // while the handler runs: again
			run(t, m, 5*ms)
			// 1 us of interrupt, 2 us of the switch; then at once the handler's second turn,
			// with the interrupt of 104.5 us taken when interrupts are on again.
			handled.expect(t, "handled", 103*us, 109*us)
			served.expect(t, "served", 109*us, 114*us)
			if line.Count != 2 || f.ksoftirqd != 0 {
				t.Errorf("%d hard interrupts, ksoftirqd wanted %d times", line.Count, f.ksoftirqd)
			}
			if c.Stats().Ticks != 1 { // at 4 ms
				t.Errorf("%d ticks", c.Stats().Ticks)
			}
			var order []string
			for _, e := range m.Trace.Events() {
				if e.At >= 100*us && e.At < 104*us {
					order = append(order, e.Point.String()+" in "+e.Comm)
				}
			}
			want := []string{"irq_handler_entry in hog", "sched_wakeup in hog", "irq_handler_exit in hog", "sched_switch in hog"}
			if diff := cmp.Diff(want, order); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// PREEMPT_RT: a BH-off section can be preempted. A task that wants BH off too waits for
// its end, and lends the owner its priority, so that nobody in between delays it.
//
// The owner runs from 0, its section takes 100 us. "between" runs from 15 us, for 5 us
// before "urgent" comes at 20 us and waits: the owner has 85 us left.
func TestBHLockOfRT(t *testing.T) {
	for _, tt := range []struct {
		rt                    bool
		between, urgent, last sim.Time // when they begin, get BH off, and the section ends
	}{
		{true, 15 * us, 105 * us, 105 * us},
		{false, 100 * us, 100 * us, 100 * us},
	} {
		eachMode(t, func(t *testing.T, mode sim.Mode) {
			m := newMachine(mode, func(c *Config) { c.PreemptRT, c.Preempt = tt.rt, PreemptFull })
			c := m.Cores[0]
			f := &threadedSoftirqs{fakeSoftirqs: fakeSoftirqs{c: c}}
			c.SetSoftirqs(f)
			var ran, between, urgent, last, served instants
			f.work = func() { served = append(served, c.Now()) }
			owner := start(c, "owner", TaskConfig{}, func(task *Task) {
				c.BHDisable()
				c.Work(100 * us)
				c.Look()
				f.pending = true
				c.BHEnable()
				last = append(last, c.Now())
				c.Work(10 * us)
				c.Look()
				ran = append(ran, c.Now())
			})
			at(m, 15*us, func() {
				start(c, "between", TaskConfig{FIFO: 10}, func(*Task) {
					between = append(between, c.Now())
					c.Work(200 * us)
				})
			})
			at(m, 20*us, func() {
				start(c, "urgent", TaskConfig{FIFO: 20}, func(*Task) {
					c.BHDisable()
					urgent = append(urgent, c.Now())
					if c.Current().Name != "urgent" || owner.fifo() != 0 {
						t.Errorf("%s runs, the owner has priority %d", c.Current().Name, owner.fifo())
					}
					c.BHEnable()
				})
			})
			at(m, 50*us, func() {
				if tt.rt && (c.Current() != owner || owner.prio() != 79) {
					t.Errorf("%s runs, the owner has priority %d", c.Current().Name, owner.prio())
				}
			})
			run(t, m, 2*ms)
			between.expect(t, "between", tt.between)
			urgent.expect(t, "urgent", tt.urgent)
			served.expect(t, "softirq of the section", tt.last)
			// The owner goes on when the others are done: 200 us of one of them, 110 of its own.
			ran.expect(t, "owner", 310*us)
		})
	}
}

// PREEMPT_RT: softirqs are preempted by what is more urgent than the task in which
// they run; elsewhere they are not.
func TestSoftirqIsPreemptibleOnRT(t *testing.T) {
	for _, rt := range []bool{false, true} {
		m := newMachine(sim.Lazy, func(c *Config) { c.PreemptRT, c.Preempt = rt, PreemptFull })
		c := m.Cores[0]
		f := &threadedSoftirqs{fakeSoftirqs: fakeSoftirqs{c: c}}
		c.SetSoftirqs(f)
		var softirq, urgent instants
		f.work = func() {
			c.Work(100 * us)
			c.Look()
			softirq = append(softirq, c.Now())
		}
		start(c, "task", TaskConfig{}, func(*Task) {
			c.BHDisable()
			f.pending = true
			c.BHEnable()
		})
		at(m, 40*us, func() {
			start(c, "urgent", TaskConfig{FIFO: 1}, func(*Task) {
				urgent = append(urgent, c.Now())
				c.Work(7 * us)
			})
		})
		run(t, m, 2*ms)
		if rt {
			urgent.expect(t, "urgent", 40*us)
			softirq.expect(t, "softirq", 107*us)
		} else {
			urgent.expect(t, "urgent", 100*us)
			softirq.expect(t, "softirq", 100*us)
		}
	}
}

// PREEMPT_RT needs a kernel in which kernel code can be preempted.
func TestRTNeedsPreemption(t *testing.T) {
	for p := PreemptNone; p <= PreemptLazy; p++ {
		cfg := Config{Cores: 1, HZ: 250, Preempt: p, PreemptRT: true}
		if got := len(cfg.Validate()) == 0; got != (p >= PreemptFull) {
			t.Errorf("%v is valid: %v", p, got)
		}
	}
}

// PREEMPT_RT: an hrtimer that falls due is left to the HRTIMER softirq, and so is the
// sleep of a normal task; a FIFO task is woken by the interrupt itself.
func TestSoftHRTimersOnRT(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := newMachine(mode, func(c *Config) { c.PreemptRT, c.Preempt = true, PreemptFull })
		c := m.Cores[0]
		w := &world{m: m, spec: &worldSpec{}, budget: 1}
		s := &miniSoftirqs{w: w, c: c}
		s.ksoftirqd = m.NewTask(c, "ksoftirqd/0", TaskConfig{}, s.run)
		c.SetSoftirqs(s)
		var fired, normal, fifo instants
		timer := c.NewHRTimer(func(c *Core) {
			c.Look()
			if c.InHardirq() || !c.ServingSoftirq() || c.Current() != s.ksoftirqd || !c.IRQsDisabled() {
				t.Errorf("in %s, hardirq %v", c.Current().Name, c.InHardirq())
			}
			fired = append(fired, c.Now())
		})
		stopped := c.NewHRTimer(func(*Core) { t.Error("a stopped timer expires") })
		timer.Start(100 * us)
		start(c, "fifo", TaskConfig{FIFO: 90}, func(task *Task) {
			stopped.Start(150 * us)
			task.SleepUntil(150 * us) // before ksoftirqd, which wakes up at the same instant
			fifo = append(fifo, c.Now())
			if !stopped.Armed() {
				t.Error("it has expired already")
			}
			stopped.Cancel()
			c.Work(20 * us)
		})
		start(c, "normal", TaskConfig{}, func(task *Task) {
			task.SleepUntil(160 * us)
			normal = append(normal, c.Now())
		})
		run(t, m, ms)
		fired.expect(t, "expired", 100*us)
		fifo.expect(t, "FIFO task", 150*us)
		normal.expect(t, "normal task", 170*us)
	})
}
