package softirq

import (
	"fmt"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
	"napisim/sim/trace"
)

// The limits of the softirq loop (MAX_SOFTIRQ_TIME, MAX_SOFTIRQ_RESTART; all versions).
const (
	maxSoftirqTime    = 2 * sim.Millisecond
	maxSoftirqRestart = 10
)

func (v Vector) bit() uint32 { return 1 << v }

// raiseSoftirqBit is __raise_softirq_irqoff (all versions): it only sets the pending bit, and
// never wakes ksoftirqd. Interrupts are off.
func (sd *Softnet) raiseSoftirqBit(v Vector) {
	sd.tracePoint(trace.SoftirqRaise, int64(v))
	sd.pending |= v.bit()
}

// raiseSoftirqIRQOff is raise_softirq_irqoff (all versions): outside interrupts and BH-off
// sections nobody would run the vector soon, so ksoftirqd is woken.
func (sd *Softnet) raiseSoftirqIRQOff(v Vector) {
	sd.raiseSoftirqBit(v)
	if !sd.core.InInterrupt() && !sd.core.BHLocked() {
		sd.wakeupSoftirqd()
	}
}

// RaiseSoftirq is raise_softirq (all versions).
func (sd *Softnet) RaiseSoftirq(v Vector) {
	off := sd.core.IRQSave()
	sd.raiseSoftirqIRQOff(v)
	sd.core.IRQRestore(off)
}

// RaiseTimer raises the TIMER vector from the tick.
func (sd *Softnet) RaiseTimer() { sd.raiseTimerSoftirq(Timer) }

// RaiseHRTimer raises the HRTIMER vector from the timer interrupt, on PREEMPT_RT.
func (sd *Softnet) RaiseHRTimer() { sd.raiseTimerSoftirq(HRTimer) }

// Pending is local_softirq_pending() != 0 (all versions).
func (sd *Softnet) Pending() bool { return sd.pending != 0 }

// InvokeSoftirq is invoke_softirq: irq_exit has found pending vectors. Where handlers are
// forced into threads (threadirqs, and always on PREEMPT_RT) they are ksoftirqd's, unless a
// local_bh_enable comes first; since v5.14 not before there is a ksoftirqd, which here is
// always. Interrupts are off before and after.
func (sd *Softnet) InvokeSoftirq() {
	switch {
	case sd.b.ksoftirqd.Defer(sd):
	case sd.cfg.ForcedThreaded, sd.core.ForcedThreaded():
		if !sd.core.BHLocked() { // on PREEMPT_RT by a task that was preempted
			sd.wakeupSoftirqd()
		}
	default:
		sd.handleSoftirqs(cpu.Softirq)
	}
}

// DoSoftirq is do_softirq (all versions): the last local_bh_enable has found pending vectors,
// which run in the context of the caller.
func (sd *Softnet) DoSoftirq() {
	off := sd.core.IRQSave()
	if sd.pending != 0 && !sd.b.ksoftirqd.Defer(sd) {
		sd.handleSoftirqs(cpu.Softirq)
	}
	sd.core.IRQRestore(off)
}

// neverDefer: up to v4.8, and again since v6.5 (d15121be7485), softirqs run at irq
// exit and local_bh_enable whether or not ksoftirqd is running.
func neverDefer(*Softnet) bool { return false }

// deferAlways: from v4.9 to v4.17 (4cd13c21b207) softirqs are left to a ksoftirqd
// that is running or runnable, so that the scheduler shares the core fairly.
func deferAlways(sd *Softnet) bool { return sd.ksoftirqd.Runnable() }

// deferWhileRunning: from v4.18 to v5.2 (3c53776e29f8) as deferAlways, but a pending HI or
// TASKLET vector lets everything pending run.
func deferWhileRunning(sd *Softnet) bool {
	return sd.pending&(HI.bit()|Tasklet.bit()) == 0 && deferAlways(sd)
}

// deferUnlessParked: from v5.3 to v6.4 (1342d8080f61) as deferWhileRunning, but a
// ksoftirqd that has been told to park does not count as running.
func deferUnlessParked(sd *Softnet) bool { return !sd.parked && deferWhileRunning(sd) }

// Park is kthread_park of ksoftirqd, and with false kthread_unpark: CPU hotplug tells it
// to park before its core goes. It still serves what is pending.
func (sd *Softnet) Park(parked bool) { sd.parked = parked }

// handleSoftirqs is __do_softirq, called handle_softirqs in the v6.12 tree and in
// v6.1.192: passes over
// the pending vectors until none is left, or until ten passes, two milliseconds in
// jiffies or a due task switch end it; then ksoftirqd gets the rest. Interrupts
// are off before and after, and on while vectors run. x is what the time is charged to.
func (sd *Softnet) handleSoftirqs(x cpu.Context) {
	c := sd.core
	m := c.Machine()
	end := m.Jiffies() + m.JiffiesOf(maxSoftirqTime)
	prev, entered := c.BeginSoftirq(x)
	sd.stats.Invocations++
	for restart := maxSoftirqRestart; ; sd.stats.Restarts++ {
		c.Spend(model.StageSoftirqEntry)
		sd.runPending()
		if sd.pending == 0 {
			break
		}
		if restart--; restart == 0 || m.Jiffies() >= end || c.NeedResched() {
			sd.wakeupSoftirqd()
			break
		}
	}
	c.Spend(model.StageSoftirqExit)
	c.EndSoftirq(prev, entered)
}

// runPending is one pass: it takes the pending vectors and runs each, in order.
// What is raised meanwhile waits for the next pass.
func (sd *Softnet) runPending() {
	c := sd.core
	c.Look()
	pending := sd.pending
	sd.pending = 0
	c.IRQEnable()
	for v := range NumVectors {
		if pending&v.bit() == 0 {
			continue
		}
		sd.stats.Softirqs[v]++
		sd.tracePoint(trace.SoftirqEntry, int64(v))
		if action := sd.actions[v]; action != nil {
			action()
		}
		sd.tracePoint(trace.SoftirqExit, int64(v))
	}
	c.IRQDisable()
}

// wakeupSoftirqd is wakeup_softirqd. Waking a ksoftirqd that is running or
// runnable does nothing: up to v5.12 the function looks at its state, since v5.14 it
// leaves that to the wakeup.
func (sd *Softnet) wakeupSoftirqd() {
	if !sd.ksoftirqd.Runnable() {
		sd.stats.KsoftirqdWakeups++
		sd.core.Spend(model.StageKsoftirqdWakeup)
		sd.core.Wake(sd.ksoftirqd)
	}
}

// newKsoftirqd makes the ksoftirqd of a core; it sleeps until it is first woken.
func newKsoftirqd(sd *Softnet) *cpu.Task {
	c := sd.core
	return c.Machine().NewTask(c, fmt.Sprintf("ksoftirqd/%d", c.ID), cpu.TaskConfig{Sleeper: true, Lag: threadLag}, sd.runKsoftirqd)
}

// runKsoftirqd is smpboot_thread_fn around run_ksoftirqd (all versions). The task counts as
// running from its wakeup until it has found nothing pending, also while it waits
// for the core.
func (sd *Softnet) runKsoftirqd(t *cpu.Task) {
	c := sd.core
	c.Enter(cpu.Ksoftirqd)
	for {
		c.Look()
		if sd.pending == 0 {
			c.Spend(model.StageKsoftirqdTurn)
			if c.Look(); sd.pending == 0 { // else it was woken on its way
				t.Sleep()
				c.Spend(model.StageKsoftirqdTurn)
			}
			continue
		}
		c.KsoftirqdRunBegin()
		if sd.pending == 0 {
			c.KsoftirqdRunEnd()
			continue
		}
		sd.handleSoftirqs(cpu.Ksoftirqd)
		c.KsoftirqdRunEnd()
		c.CondResched()
	}
}

// tracePoint looks, mixes the fingerprint and records an event that has one
// argument.
func (sd *Softnet) tracePoint(p trace.Point, a int64) {
	c := sd.core
	c.Look()
	c.Mix(p, a)
	if c.Recording() {
		e := c.Event(p)
		e.A = a
		c.Emit(e)
	}
}
