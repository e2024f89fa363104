package softirq

import (
	"napisim/model"
)

// jiffiesLimit is the time limit of one net_rx_action in jiffies:
// netdev_budget_usecs rounded up, or two jiffies (up to v4.9, and by default since v5.7).
func (sd *Softnet) jiffiesLimit() int64 {
	if sd.cfg.NetdevBudgetUsecs == 0 {
		return 2
	}
	return sd.core.Machine().JiffiesOf(sd.cfg.NetdevBudgetUsecs)
}

// raiseAlways: ____napi_schedule up to v6.3 sets the NET_RX bit whenever it queues
// a NAPI.
func raiseAlways(sd *Softnet) { sd.raiseSoftirqBit(NetRX) }

// raiseUnlessInNetRXAction: ____napi_schedule since v6.4 (8b43fd3d1d7d) leaves a
// running net_rx_action to find the NAPI by itself.
func raiseUnlessInNetRXAction(sd *Softnet) {
	if !sd.inNetRXAction {
		sd.raiseSoftirqBit(NetRX)
	}
}

// raiseAndWakeUnlessInNetRXAction: as raiseUnlessInNetRXAction, but since v6.14
// (77e45145e303) a schedule from a task wakes ksoftirqd, and does not leave NET_RX
// pending for whoever comes along.
func raiseAndWakeUnlessInNetRXAction(sd *Softnet) {
	if !sd.inNetRXAction {
		sd.raiseSoftirqIRQOff(NetRX)
	}
}

// netRXAction is net_rx_action up to v6.3: it takes the poll list once. What is
// scheduled meanwhile has raised NET_RX and waits for the next pass.
func (sd *Softnet) netRXAction() {
	w := sd.beginNetRX()
	w.take()
	if w.poll() == pollsDone && !sd.rpsIPIWaiting() {
		sd.core.Spend(model.StageNetRXTail)
		return
	}
	w.giveBack()
	if !sd.pollList.empty() {
		sd.raiseSoftirqBit(NetRX)
	}
	sd.netRPSActionAndIRQEnable()
	sd.core.Spend(model.StageNetRXTail)
}

// netRXActionRestart is net_rx_action since v6.4: while in_net_rx_action is set,
// ____napi_schedule does not raise, and the function looks at the poll list again
// before it returns. Budget and deadline are not reset by that.
func (sd *Softnet) netRXActionRestart() {
	if sd.netRXActionLoop() == pollsDone {
		return
	}
	if !sd.pollList.empty() {
		sd.raiseSoftirqBit(NetRX)
	} else {
		sd.inNetRXAction = false
	}
	sd.netRPSActionAndIRQEnable()
	sd.core.Spend(model.StageNetRXTail)
}

// netRXActionClearFlag is an experiment from the lan966x thread of May 2023, never
// merged: as netRXActionRestart, but the flag is cleared at the end in any case.
func (sd *Softnet) netRXActionClearFlag() {
	if sd.netRXActionLoop() == pollsDone {
		return
	}
	if !sd.pollList.empty() {
		sd.raiseSoftirqBit(NetRX)
	}
	sd.inNetRXAction = false
	sd.netRPSActionAndIRQEnable()
	sd.core.Spend(model.StageNetRXTail)
}

// netRXActionLoop is the part of net_rx_action since v6.4 before its tail. When it
// returns pollsDone nothing is left to do; otherwise interrupts are off and the
// remaining NAPIs are back on the poll list.
func (sd *Softnet) netRXActionLoop() pollsEnd {
	w := sd.beginNetRX()
	for {
		sd.inNetRXAction = true
		w.take()
		if w.poll() != pollsDone {
			break
		}
		// An interrupt between clearing the flag and looking at the list raises
		// NET_RX; one before it has left its NAPI on the list.
		sd.core.Look()
		sd.inNetRXAction = false
		if !sd.pollList.empty() {
			continue
		}
		if sd.rpsIPIWaiting() {
			break
		}
		sd.core.Spend(model.StageNetRXTail)
		return pollsDone
	}
	w.giveBack()
	return pollsLeft
}

// pollsEnd says how a round of polls ended.
type pollsEnd uint8

const (
	pollsDone pollsEnd = iota // every NAPI has been polled and none asks for more
	pollsLeft                 // budget or deadline, or NAPIs that ask to be polled again
)

// netRXWork is the state of one net_rx_action: its limits and its two lists.
type netRXWork struct {
	sd           *Softnet
	list, repoll napiList
	budget       int
	deadline     int64
}

func (sd *Softnet) beginNetRX() netRXWork {
	c := sd.core
	c.Spend(model.StageNetRXAction)
	c.Look()
	return netRXWork{sd: sd, budget: sd.cfg.NetdevBudget, deadline: c.Machine().Jiffies() + sd.jiffiesLimit()}
}

// take moves the core's whole poll list to the private list.
func (w *netRXWork) take() {
	w.sd.core.IRQDisable()
	w.list.splice(&w.sd.pollList)
	w.sd.core.IRQEnable()
}

// poll polls each NAPI of the private list once, until the list is empty or a
// limit is reached. The limits are looked at only after a poll, so at least one
// poll is done.
func (w *netRXWork) poll() pollsEnd {
	sd := w.sd
	for {
		sd.heads.FlushDeferred(sd.core)
		if w.list.empty() {
			if w.repoll.empty() {
				return pollsDone
			}
			return pollsLeft
		}
		n := w.list.popFront()
		w.budget -= sd.napiPoll(n, &w.repoll)
		sd.core.Spend(model.StageNAPIPollTail)
		sd.core.Look()
		if w.budget <= 0 || sd.core.Machine().Jiffies() >= w.deadline {
			sd.stats.TimeSqueeze++
			return pollsLeft
		}
	}
}

// giveBack puts what is left on the poll list, in the kernel's order: NAPIs not
// polled yet, those scheduled meanwhile, those that ask to be polled again. It
// returns with interrupts off.
func (w *netRXWork) giveBack() {
	w.sd.core.IRQDisable()
	w.list.splice(&w.sd.pollList)
	w.list.splice(&w.repoll)
	w.sd.pollList.splice(&w.list)
}
