package softirq

import (
	"fmt"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
)

// BusyPollBudget is BUSY_POLL_BUDGET, the most frames of one busy poll unless the
// application chooses (SO_BUSY_POLL_BUDGET, v5.11).
const BusyPollBudget = 8

// BusyPoller is busy polling as the rest of the kernel sees it: it finds NAPIs by their
// ids (napi_hash) and polls them in the context of tasks.
type BusyPoller struct {
	softnets []*Softnet // by core
	byID     map[int]*NAPI
}

// NewBusyPoller returns a BusyPoller for a machine that knows no NAPI yet; softnets are
// those of its cores.
func NewBusyPoller(softnets []*Softnet) *BusyPoller {
	return &BusyPoller{softnets: softnets, byID: map[int]*NAPI{}}
}

// Add is napi_hash_add. NAPIs for transmit completions are left out (NO_BUSY_POLL).
func (b *BusyPoller) Add(n *NAPI) {
	if n.txOnly {
		return
	}
	if b.byID[n.ID] != nil {
		panic(fmt.Sprintf("softirq: napi id %d is taken", n.ID))
	}
	b.byID[n.ID] = n
}

// BusyLoop is napi_busy_loop, sk_busy_loop up to v4.11, by a task on core c: it polls the
// NAPI of that id until w.End says to stop. An id of no NAPI ends it at once. Frames that
// it polls go up the stack as from any poll.
func (b *BusyPoller) BusyLoop(c *cpu.Core, id int, w *host.BusyWait) {
	if n := b.byID[id]; n != nil {
		sd := b.softnets[c.ID]
		c.Spend(model.StageBusyPollStart)
		c.Look()
		sd.b.busyPoll.Loop(sd, n, w)
	}
}

// SuspendIRQs is napi_suspend_irqs (v6.13): epoll_wait returns with events, and the timer
// that would poll next is put off for irq_suspend_timeout. The task is on core c.
func (b *BusyPoller) SuspendIRQs(c *cpu.Core, id int) {
	if n := b.byID[id]; n != nil && n.irqSuspendTimeout > 0 {
		c.Look()
		n.startTimerOn(b.softnets[c.ID], n.irqSuspendTimeout)
	}
}

// ResumeIRQs is napi_resume_irqs (v6.13): the busy poll of an epoll instance has found
// nothing. A softirq poll gives the NAPI back to its timer and its interrupt.
func (b *BusyPoller) ResumeIRQs(c *cpu.Core, id int) {
	if n := b.byID[id]; n != nil && n.irqSuspendTimeout > 0 {
		c.BHDisable()
		b.softnets[c.ID].NAPISchedule(n)
		c.BHEnable()
	}
}

// busyBudget returns the most frames of one poll.
func busyBudget(w *host.BusyWait) int {
	if w.Budget == 0 {
		return BusyPollBudget
	}
	return w.Budget
}

// busyLoopEachPoll: sk_busy_loop up to v4.11 takes the NAPI for one poll at a time. A poll
// that finds the ring empty completes, so the driver enables its interrupt again and
// again. A due task switch ends the loop.
func busyLoopEachPoll(sd *Softnet, n *NAPI, w *host.BusyWait) {
	c := sd.core
	start := host.BusyLoopTime(c)
	for {
		c.BHDisable()
		if sd.b.napiSchedulePrep.Prep(n) {
			n.sd = sd
			if sd.busyPoll(n, BusyPollBudget) == BusyPollBudget {
				n.CompleteDone(BusyPollBudget)
				sd.NAPISchedule(n)
			}
		}
		c.BHEnable()
		c.Spend(model.StageBusyPollTurn)
		c.Look()
		if w.End == nil || w.End(c, start) || c.NeedResched() {
			return
		}
	}
}

// busyLoopOwning: napi_busy_loop since v4.12 keeps the NAPI from turn to turn. It gives it
// back when a task switch is due, and begins again after the switch.
func busyLoopOwning(sd *Softnet, n *NAPI, w *host.BusyWait) {
	c := sd.core
	start := host.BusyLoopTime(c)
	for !sd.busyTurns(n, w, start) {
		c.CondResched()
		if w.End(c, start) {
			return
		}
	}
}

// busyTurns is the inner loop of napi_busy_loop, which does not let itself be preempted.
// It reports whether the task wants no more, or else gives way to another task.
func (sd *Softnet) busyTurns(n *NAPI, w *host.BusyWait, start int64) (done bool) {
	c := sd.core
	owned := false
	c.PreemptDisable()
	for {
		c.BHDisable()
		owned = owned || sd.takeBusily(n, w.Prefer)
		if owned {
			sd.busyPoll(n, busyBudget(w))
			sd.busyDeliver(n)
		}
		if sd.b.busyPoll.FlushDeferred {
			sd.heads.FlushDeferred(c)
		}
		c.BHEnable()
		c.Spend(model.StageBusyPollTurn)
		c.Look()
		done = w.End == nil || w.End(c, start)
		if done || c.NeedResched() {
			break
		}
	}
	if owned {
		sd.busyPollStop(n, w)
	}
	c.PreemptEnable()
	return done
}

// takeBusily takes an idle NAPI for a busy loop on this core. Of one that somebody owns
// it notes that the loop would rather have it (PREFER_BUSY_POLL, v5.11). The caller has
// looked.
func (sd *Softnet) takeBusily(n *NAPI, prefer bool) bool {
	if n.state&(stateDisable|stateSched|stateInBusyPoll) != 0 {
		if prefer {
			n.state |= statePreferBusyPoll
		}
		return false
	}
	n.state |= stateSched | stateInBusyPoll
	n.sd = sd
	return true
}

// busyPoll is one poll of a NAPI that the loop owns, softirqs off.
func (sd *Softnet) busyPoll(n *NAPI, budget int) (work int) {
	sd.core.Spend(model.StageNAPIPoll)
	n.polling = true
	work = n.poll(budget)
	n.polling = false
	if work > budget {
		panic(fmt.Sprintf("softirq: %s polled %d frames with budget %d", n.Name, work, budget))
	}
	sd.tracePoll(n, work, budget)
	sd.stats.BusyPolls++
	sd.stats.BusyPollRxPackets += int64(work)
	return work
}

// busyDeliver passes up what the poll has left in the NAPI's list, where the version does
// (v5.4). GRO is not flushed: what it holds waits for a rule of its own, or for the end of
// the loop.
func (sd *Softnet) busyDeliver(n *NAPI) {
	if sd.b.groNormal.BusyPoll {
		n.groNormalList()
	}
}

// busyPollStop is busy_poll_stop: the loop lets the NAPI go. That it was wanted meanwhile
// (MISSED) does not matter, for a last poll looks at the ring, whose completion is an
// ordinary one. With PREFER_BUSY_POLL and interrupt deferral (v5.11) a timer covers the
// time until the task comes back.
func (sd *Softnet) busyPollStop(n *NAPI, w *host.BusyWait) {
	c := sd.core
	c.Spend(model.StageBusyPollStop)
	c.Look()
	n.state &^= stateMissed | stateInBusyPoll
	c.BHDisable()
	timed := false
	if w.Prefer {
		n.deferrals = n.deferHardIRQs
		if n.deferrals > 0 && n.groFlushTimeout > 0 {
			n.startTimer(n.groFlushTimeout)
			timed = true
		}
	}
	if budget := busyBudget(w); sd.busyPoll(n, budget) == budget {
		sd.busyPollLeave(n, timed)
	}
	c.BHEnable()
}

// busyPollLeave is __busy_poll_stop: the last poll has used up its budget, so the NAPI is
// owned still. A softirq goes on with it, or, if it is timed, the timer will.
func (sd *Softnet) busyPollLeave(n *NAPI, timed bool) {
	c := sd.core
	if !timed {
		sd.busyDeliver(n)
		off := c.IRQSave()
		c.Look()
		sd.napiSchedule(n)
		c.IRQRestore(off)
		return
	}
	n.groFlushNormal(c.Machine().HZ() >= 1000)
	c.Look()
	n.state &^= stateSched
}
