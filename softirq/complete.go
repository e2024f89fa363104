package softirq

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
	"napisim/sim/trace"
)

// CompleteDone is napi_complete_done (all versions), and with no work napi_complete: a poll has
// handled workDone frames, fewer than its budget, and gives the NAPI up. The driver may enable
// its interrupt if the result is true. It is false when the NAPI was scheduled meanwhile
// (MISSED), when a timer takes the place of the interrupt, and when netpoll or a busy-polling
// task owns it.
func (n *NAPI) CompleteDone(workDone int) bool {
	sd := n.sd // the next owner may be on another core
	sd.core.Spend(model.StageCompleteStart)
	idle := sd.b.napiComplete.Done(n, workDone)
	sd.core.Spend(model.StageCompleteEnd)
	return idle
}

// completeUnmasking: napi_complete_done up to v4.9. It has no result, so drivers
// enable their interrupt in any case. With a gro_flush_timeout, what GRO holds stays for
// the timer.
func completeUnmasking(n *NAPI, workDone int) bool {
	if n.state&stateNPSvc != 0 {
		return true
	}
	if n.state&stateInBusyPoll != 0 {
		return false // no kernel of that time has it: busy_poll is a later one's
	}
	n.beginComplete()
	n.holdOrFlush(workDone)
	return n.release()
}

// completeHolding: napi_complete_done from v4.10 to v4.20 reports whether the NAPI is
// idle; what GRO holds stays as before.
func completeHolding(n *NAPI, workDone int) bool {
	if n.state&(stateNPSvc|stateInBusyPoll) != 0 {
		return false
	}
	n.beginComplete()
	n.holdOrFlush(workDone)
	return n.release()
}

// completeFlushingOld: napi_complete_done from v5.0 to v5.7. With a gro_flush_timeout,
// packets held since an earlier jiffy are flushed, the others wait for the timer.
func completeFlushingOld(n *NAPI, workDone int) bool {
	if n.state&(stateNPSvc|stateInBusyPoll) != 0 {
		return false
	}
	n.beginComplete()
	timeout := n.holdTimeout(workDone)
	n.groFlushNormal(timeout > 0)
	if timeout > 0 {
		n.sd.core.Look()
		n.startTimer(timeout)
	}
	return n.release()
}

// completeDeferring: napi_complete_done since v5.8 (6f8b12d661d0). After a poll with
// work, napi_defer_hard_irqs completions in a row leave the interrupt masked, and the timer
// polls instead. The timer is armed after the NAPI is given up, and not at all when MISSED
// has scheduled it again.
func completeDeferring(n *NAPI, workDone int) bool {
	if n.state&(stateNPSvc|stateInBusyPoll) != 0 {
		return false
	}
	n.beginComplete()
	timeout := n.holdTimeout(workDone)
	if workDone > 0 {
		n.deferrals = n.deferHardIRQs
	}
	deferred := false
	if n.deferrals > 0 {
		n.deferrals--
		timeout = n.groFlushTimeout
		deferred = timeout > 0
	}
	n.groFlushNormal(timeout > 0)
	if !n.release() {
		return false
	}
	if timeout > 0 {
		n.startTimer(timeout) // at the instant of release, before anybody else can act on it
	}
	if deferred {
		n.stats.Completed--
		n.stats.Deferred++
	}
	return !deferred
}

// beginComplete is common to all forms: the NAPI must be owned.
func (n *NAPI) beginComplete() {
	if n.state&stateSched == 0 {
		panic("softirq: " + n.Name + " completed without being scheduled")
	}
	n.sd.core.Spend(model.StageNAPIComplete)
}

// holding reports whether GRO holds packets.
func (n *NAPI) holding() bool { return n.gro != nil && n.gro.Held() > 0 }

// holdTimeout is the time for which GRO may hold packets across this completion.
func (n *NAPI) holdTimeout(workDone int) sim.Time {
	if workDone > 0 && n.holding() {
		return n.groFlushTimeout
	}
	return 0
}

// holdOrFlush arms the timer for all that GRO holds, or flushes all (up to v4.20).
func (n *NAPI) holdOrFlush(workDone int) {
	if timeout := n.holdTimeout(workDone); timeout > 0 {
		n.groNormalList()
		n.sd.core.Look()
		n.startTimer(timeout)
		return
	}
	n.groFlushNormal(false)
}

// release is the end of napi_complete_done: the NAPI leaves the list it may be on, and
// its owner. The result is false when it was wanted meanwhile (MISSED): then it stays
// owned and is queued again on this core. No kernel with MISSED ignores it, so this is
// the same for all behaviours.
func (n *NAPI) release() bool {
	sd := n.sd
	c := sd.core
	c.Look()
	if n.queued {
		off := c.IRQSave()
		sd.pollList.remove(n)
		c.IRQRestore(off)
	}
	n.listOwner = -1
	missed := n.state&stateMissed != 0
	n.state &^= stateMissed | stateSchedThreaded | statePreferBusyPoll
	if missed {
		off := c.IRQSave()
		sd.napiSchedule(n)
		c.IRQRestore(off)
		return false
	}
	n.state &^= stateSched
	n.stats.Completed++
	return true
}

// startTimer arms the NAPI's timer (napi_struct.timer) on the core that polls it, where
// it stays (HRTIMER_MODE_REL_PINNED). The caller has looked.
func (n *NAPI) startTimer(d sim.Time) { n.startTimerOn(n.sd, d) }

// startTimerOn arms the timer on the core of sd, where it may not have been before.
func (n *NAPI) startTimerOn(sd *Softnet, d sim.Time) {
	if n.timer == nil {
		n.timer = sd.core.NewHRTimer(n.expire)
	}
	sd.core.Spend(model.StageHRTimerStart)
	sd.core.Look()
	expires := sd.core.Now() + d
	n.traceTimer(sd.core, trace.HRTimerStart, expires)
	n.timer.StartOn(sd.core, expires)
	sd.core.Spend(model.StageHRTimerStart)
}

// expire is __run_hrtimer of the NAPI's timer, in hardirq context on the core that armed it.
func (n *NAPI) expire(c *cpu.Core) {
	c.Look()
	n.traceTimer(c, trace.HRTimerExpireEntry, c.Now())
	n.watchdog(c)
	c.Look()
	n.traceTimer(c, trace.HRTimerExpireExit, c.Now())
}

// watchdog is napi_watchdog: it schedules the NAPI unless somebody owns it. It does not set MISSED. Up to v5.7 it has
// nothing to do when GRO holds nothing. That the application wanted to poll by itself
// (PREFER_BUSY_POLL, v5.11) is forgotten: it has not come.
func (n *NAPI) watchdog(c *cpu.Core) {
	sd := c.Softirqs().(*Softnet) // by now another core may have armed the timer again
	c.Spend(model.StageNAPISchedule)
	c.Look()
	if n.state&(stateDisable|stateSched) != 0 {
		return
	}
	if sd.b.napiComplete.TimerNeedsHeld && !n.holding() {
		return
	}
	n.state |= stateSched
	n.state &^= statePreferBusyPoll
	n.stats.Watchdog++
	sd.napiSchedule(n)
}

// traceTimer emits hrtimer_start, before the timer is armed, or an event of its expiry.
func (n *NAPI) traceTimer(c *cpu.Core, p trace.Point, expires sim.Time) {
	c.Mix(p, int64(n.ID))
	if !c.Recording() {
		return
	}
	e := c.Event(p)
	e.A, e.B, e.S = int64(n.ID), int64(expires), "napi_watchdog"
	if p == trace.HRTimerStart {
		e.T = "REL|PINNED"
		e.Flags.IRQsOff = true // it holds the lock of the core's timers
		e.Flags.PreemptDepth++
		if n.timer.Armed() {
			e.C = 1
		}
	}
	c.Emit(e)
}
