package softirq

import (
	"fmt"
	"testing"

	"napisim/model/cpu"
	"napisim/sim"
	"napisim/sim/trace"
)

// This file tests who runs softirqs by the version's rule for ksoftirqd, and tasklets.

// Vector S10 and pitfall 8: while ksoftirqd is runnable (from 100 us on, behind a FIFO
// task that ends after 1 ms), interrupts raise TIMER at 200 us, NET_TX at 300 us, a tasklet
// at 400 us and RCU at 500 us. Inline rules run each at its interrupt's exit. The others
// let all of them wait, not only NET_RX; from v4.18 on the tasklet lets everything that is
// pending run, in the order of the vectors.
func TestPitfall08KsoftirqdDelaysAllVectors(t *testing.T) {
	const inline = "TIMER 200 NET_TX 300 TASKLET 400 RCU 500 "
	for _, c := range []struct {
		rule   string
		parked bool
		hi     bool
		want   string
	}{
		{"inline", false, false, inline},
		{"defer_always", false, false, "TIMER 1000 NET_TX 1000 TASKLET 1000 RCU 1000 "},
		{"defer_always", true, false, "TIMER 1000 NET_TX 1000 TASKLET 1000 RCU 1000 "},
		{"defer_while_running", false, false, "TIMER 400 NET_TX 400 TASKLET 400 RCU 1000 "},
		{"defer_while_running", false, true, "HI 400 TIMER 400 NET_TX 400 RCU 1000 "},
		{"defer_while_running", true, false, "TIMER 400 NET_TX 400 TASKLET 400 RCU 1000 "},
		{"defer_unless_parked", false, false, "TIMER 400 NET_TX 400 TASKLET 400 RCU 1000 "},
		{"defer_unless_parked", true, false, inline},
	} {
		for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
			s := defaultSetup()
			s.mode = mode
			s.machine.TickPhase = 3 * sim.Millisecond
			s.kernel.Ksoftirqd = c.rule
			r := newRig(s)
			sd := r.sds[0]
			var ran string
			note := func(v Vector) func() {
				return func() {
					sd.core.Look()
					ran += fmt.Sprintf("%s %d ", vectorName(int64(v)), (sd.core.Now()/sim.Microsecond+10)/100*100)
				}
			}
			for _, v := range []Vector{Timer, NetTX, RCU} {
				sd.OpenSoftirq(v, note(v))
			}
			tasklet, hi := NewTasklet(note(Tasklet)), NewTasklet(note(HI))
			for i, raise := range []func(){
				func() { sd.RaiseSoftirq(Timer) },
				func() { sd.RaiseSoftirq(NetTX) },
				func() {
					if c.hi {
						sd.TaskletHISchedule(hi)
					} else {
						sd.TaskletSchedule(tasklet)
					}
				},
				func() { sd.RaiseSoftirq(RCU) },
			} {
				line := sd.core.NewLine(14+i, "disk", func(*cpu.Core) { raise() })
				r.at(sim.Time(200+100*i)*sim.Microsecond, phaseDevices, line.Raise)
			}
			r.task("hog", cpu.TaskConfig{FIFO: 50}, hog(sim.Millisecond))
			r.at(100*sim.Microsecond, phaseDevices, sd.Ksoftirqd().WakeFromDevice)
			sd.Park(c.parked)
			r.run(t, 2*sim.Millisecond)
			same(t, fmt.Sprintf("%s, parked %v", c.rule, c.parked), ran, c.want)
		}
	}
}

// A tasklet runs once however often it is scheduled, in the order of the schedules, HI
// before TASKLET; what is scheduled by a tasklet runs in the next pass.
func TestTasklets(t *testing.T) {
	r := newRig(defaultSetup())
	sd := r.sds[0]
	var ran string
	again := true
	var b *TaskletStruct
	a := NewTasklet(func() { ran += "a" })
	b = NewTasklet(func() {
		ran += "b"
		if again {
			again = false
			sd.TaskletSchedule(b)
		}
	})
	h := NewTasklet(func() { ran += "h" })
	line := sd.core.NewLine(14, "disk", func(*cpu.Core) {
		for _, x := range []*TaskletStruct{b, a, b, a} {
			sd.TaskletSchedule(x)
		}
		sd.TaskletHISchedule(h)
	})
	r.at(10*sim.Microsecond, phaseDevices, line.Raise)
	r.at(100*sim.Microsecond, phaseDevices, line.Raise)
	r.run(t, sim.Millisecond)
	same(t, "order", ran, "hbab"+"hba")
	same(t, "passes of TASKLET", sd.Stats().Softirqs[Tasklet], 3)
}

// A vector without a handler is counted and does nothing.
func TestVectorWithoutHandler(t *testing.T) {
	r := newRig(defaultSetup())
	sd := r.sds[0]
	line := sd.core.NewLine(14, "disk", func(*cpu.Core) {
		for v := range NumVectors {
			sd.RaiseSoftirq(v)
		}
	})
	r.at(10*sim.Microsecond, phaseDevices, line.Raise)
	r.run(t, sim.Millisecond)
	for v := range NumVectors {
		same(t, vectorName(int64(v)), sd.Stats().Softirqs[v], 1)
	}
}

// Pitfall 16: napi_schedule from a task, which then sleeps. Up to v6.13 the CPU goes idle
// with NET_RX pending, keeps its tick for that, and the exit of the next tick, at 3 ms,
// runs it; from v6.14 on ksoftirqd is woken and runs it at once.
func TestPitfall16ScheduleFromATask(t *testing.T) {
	for _, c := range []struct {
		form          string
		ran           sim.Time
		wakeups, idle int64
	}{
		{"always_raise", 3 * sim.Millisecond, 0, 1},
		{"skip_in_net_rx_action", 3 * sim.Millisecond, 0, 1},
		{"skip_and_wake", 0, 1, 0},
	} {
		for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
			s := defaultSetup()
			s.mode = mode
			s.machine.TickPhase = 3 * sim.Millisecond
			s.kernel.NAPISchedule = c.form
			r := newRig(s)
			d := r.nic("eth0", nil, 0)
			d.masked = true // nobody else schedules it
			d.arrive(0, 1)
			r.task("task", cpu.TaskConfig{}, func(*cpu.Task) { r.sds[0].NAPISchedule(d.napi) })
			r.run(t, 10*sim.Millisecond)
			polls := pollTimes(&played{events: s.log.Events()})
			if len(polls) != 1 || polls[0] < c.ran/sim.Nanosecond || polls[0] > c.ran/sim.Nanosecond+15000 {
				t.Errorf("%s: polled at %d, want %v", c.form, polls, c.ran)
			}
			same(t, "ksoftirqd wakeups", r.sds[0].Stats().KsoftirqdWakeups, c.wakeups)
			same(t, "idle with pending softirqs", r.m.Cores[0].Stats().IdlePending, c.idle)
		}
	}
}

// Section 3.8: with forced interrupt threads a softirq raised by a hardirq wakes ksoftirqd,
// whatever the rule for one that is running; one raised in a section with softirqs off still
// runs where that ends.
func TestForcedThreadsLeaveSoftirqsToKsoftirqd(t *testing.T) {
	for _, rule := range KsoftirqdNames() {
		for _, c := range []struct {
			forced bool
			ran    []string
		}{{false, []string{"swapper/0", "task"}}, {true, []string{"ksoftirqd/0", "task"}}} {
			s := defaultSetup()
			s.kernel.Ksoftirqd, s.kernel.ForcedThreaded = rule, c.forced
			r := newRig(s)
			sd := r.sds[0]
			line := sd.core.NewLine(14, "disk", func(*cpu.Core) { sd.RaiseSoftirq(RCU) })
			r.at(10*sim.Microsecond, phaseDevices, line.Raise)
			task := r.m.NewTask(sd.core, "task", cpu.TaskConfig{}, func(*cpu.Task) {
				sd.core.BHDisable()
				sd.RaiseSoftirq(RCU)
				sd.core.BHEnable()
			})
			r.at(100*sim.Microsecond, phaseDevices, task.WakeFromDevice)
			r.run(t, sim.Millisecond)
			var ran []string
			for _, e := range s.log.Events() {
				if e.Point == trace.SoftirqEntry {
					ran = append(ran, e.Comm)
				}
			}
			same(t, fmt.Sprintf("%s, forced %v", rule, c.forced), ran, c.ran)
		}
	}
}

// Fact 19 of the recordings: on PREEMPT_RT the hard interrupt only wakes the interrupt's
// thread. NET_RX is raised in the thread and served there where it enables BH, in the same
// passes as elsewhere; ksoftirqd has no part in it. With threadirqs it is the same.
func TestFact19InterruptThreadServesNetRX(t *testing.T) {
	for _, rt := range []bool{true, false} {
		for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
			s := defaultSetup()
			s.mode = mode
			s.machine.PreemptRT, s.machine.ThreadIRQs, s.machine.Preempt = rt, !rt, cpu.PreemptFull
			r := newRig(s)
			d := r.nic("eth0", nil, 0)
			r.task("hog", cpu.TaskConfig{}, func(task *cpu.Task) {
				task.ToUser()
				task.Core().Work(3 * sim.Millisecond)
				task.ToKernel()
			})
			d.arrive(100*sim.Microsecond, 130)
			r.run(t, 10*sim.Millisecond)
			var seen []string
			for _, e := range s.log.Events() {
				switch e.Point {
				case trace.IRQHandlerEntry, trace.SoftirqRaise, trace.SoftirqEntry:
					seen = append(seen, fmt.Sprintf("%v in %s", e.Point, e.Comm))
				case trace.NAPIPoll:
					seen = append(seen, fmt.Sprintf("poll of %d in %s", e.B, e.Comm))
				}
			}
			const thread = " in irq/24-eth0"
			same(t, fmt.Sprintf("RT %v, mode %v", rt, mode), seen, []string{
				"irq_handler_entry in hog", "softirq_raise" + thread,
				"softirq_entry" + thread, "poll of 64" + thread, "softirq_raise" + thread,
				"softirq_entry" + thread, "poll of 64" + thread, "softirq_raise" + thread,
				"softirq_entry" + thread, "poll of 2" + thread,
			})
			same(t, "ksoftirqd wakeups", r.sds[0].Stats().KsoftirqdWakeups, 0)
		}
	}
}

// Correction C6: on 6.12 RT the TIMER and HRTIMER softirqs that a hard interrupt raises are
// run by ktimers/N; before, like all others, by ksoftirqd. Without forced threads they run
// where the interrupt ends, and hrtimers in it. The vectors are 1 TIMER, 8 HRTIMER, 9 RCU.
func TestC6TimerSoftirqsOfRTRunInKtimers(t *testing.T) {
	for _, c := range []struct {
		rt, thread bool
		want       []string
	}{
		{true, true, []string{"8 in ktimers/0", "1 in ktimers/0", "9 in ksoftirqd/0"}},
		{true, false, []string{"8 in ksoftirqd/0", "1 in ksoftirqd/0", "9 in ksoftirqd/0"}},
		{false, true, []string{"1 in hog", "9 in ksoftirqd/0"}},
	} {
		for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
			s := defaultSetup()
			s.mode = mode
			s.machine.PreemptRT, s.machine.Preempt = c.rt, cpu.PreemptFull
			s.kernel.TimerThread = c.thread
			r := newRig(s)
			sd := r.sds[0]
			var hr, timer sim.Time
			sd.core.NewHRTimer(func(c *cpu.Core) { c.Look(); hr = c.Now() }).Start(500 * sim.Microsecond)
			sd.core.NewTimer(func(c *cpu.Core) { c.Look(); timer = c.Now() }).Mod(4 * sim.Millisecond) // the tick of 5 ms
			r.task("hog", cpu.TaskConfig{}, func(task *cpu.Task) {
				c := task.Core()
				c.Work(7 * sim.Millisecond)
				c.Look()
				sd.RaiseSoftirq(RCU) // from a task: ksoftirqd's in any case
				task.ToUser()
				c.Work(sim.Millisecond)
			})
			r.run(t, 10*sim.Millisecond)
			var ran []string
			for _, e := range s.log.Events() {
				if e.Point == trace.SoftirqEntry {
					ran = append(ran, fmt.Sprintf("%d in %s", e.A, e.Comm))
				}
			}
			same(t, fmt.Sprintf("RT %v, thread %v", c.rt, c.thread), ran, c.want)
			if hr < 500*sim.Microsecond || hr > 510*sim.Microsecond || timer < 5*sim.Millisecond {
				t.Errorf("RT %v, thread %v: expired at %v and %v", c.rt, c.thread, hr, timer)
			}
		}
	}
}

// Section 3.1 and 3.8: on PREEMPT_RT nobody wakes ksoftirqd while a task that was preempted has
// softirqs off: its local_bh_enable runs what is pending. The softirq is raised by a task that
// preempts it, or by a hard interrupt.
func TestPreemptedBHOwnerRunsSoftirqs(t *testing.T) {
	for _, hard := range []bool{false, true} {
		for _, held := range []bool{false, true} {
			s := defaultSetup()
			s.machine.PreemptRT, s.machine.Preempt = true, cpu.PreemptFull
			r := newRig(s)
			sd := r.sds[0]
			c := sd.core
			if hard {
				c.NewTimer(func(*cpu.Core) {}).Mod(500 * sim.Microsecond) // the tick of 1 ms raises TIMER
			}
			r.task("owner", cpu.TaskConfig{}, func(*cpu.Task) {
				if held {
					c.BHDisable()
				}
				work(c, 3*sim.Millisecond)
				if held {
					c.BHEnable()
				}
			})
			r.task("urgent", cpu.TaskConfig{FIFO: 1}, func(task *cpu.Task) {
				task.SleepUntil(800 * sim.Microsecond)
				if !hard {
					sd.RaiseSoftirq(RCU)
				}
				work(c, 400*sim.Microsecond)
			})
			r.run(t, 10*sim.Millisecond)
			what := fmt.Sprintf("in a hard interrupt %v, softirqs off %v: ", hard, held)
			woken, who := int64(1), "ksoftirqd/0"
			if held {
				woken, who = 0, "owner"
			}
			same(t, what+"wakeups of ksoftirqd", sd.Stats().KsoftirqdWakeups, woken)
			for _, e := range s.log.Events() {
				if e.Point == trace.SoftirqEntry {
					same(t, what+"who runs it", e.Comm, who)
				}
			}
		}
	}
}
