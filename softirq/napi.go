package softirq

import (
	"fmt"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq/gro"
	"napisim/softirq/rps"
)

// NAPIPollWeight is NAPI_POLL_WEIGHT, the default weight of a NAPI.
const NAPIPollWeight = 64

// napiState holds the bits of napi_struct.state.
type napiState uint16

const (
	stateSched            napiState = 1 << iota // somebody owns the NAPI
	stateMissed                                 // it was scheduled while owned (v4.11)
	stateDisable                                // napi_disable is in progress
	stateNPSvc                                  // netpoll polls it
	stateInBusyPoll                             // a busy-poll loop owns it (v4.10)
	statePreferBusyPoll                         // an application would rather poll by itself (v5.11)
	stateThreaded                               // it is polled by its own thread (v5.12)
	stateSchedThreaded                          // it is scheduled to its thread
	stateThreadedBusyPoll                       // its thread polls without a pause (v6.18)
)

// NAPI mirrors struct napi_struct: one instance that a driver schedules and that
// net_rx_action polls.
type NAPI struct {
	// Name is the device's name, as napi_poll traces it.
	Name string
	// ID is the napi id.
	ID int

	poll      func(budget int) int
	weight    int
	txOnly    bool
	state     napiState
	sd        *Softnet // whose list or poll it is on; valid while scheduled
	listOwner int
	next      *NAPI
	queued    bool
	rps       *rps.Queue
	polling   bool // napi_struct.poll_owner: it is in its poll function

	groFlushTimeout sim.Time
	deferHardIRQs   int
	// irqSuspendTimeout keeps the interrupt masked while a task handles its events.
	irqSuspendTimeout sim.Time

	deferrals int // napi_struct.defer_hard_irqs_count
	timer     *cpu.HRTimer
	thread    *cpu.Task
	threadSD  *Softnet // of the thread's core
	threading Threading

	gro     *gro.Table
	rxList  model.SKBList
	rxCount int
	reuse   bool // the skb of a merged packet waits for the next napi_get_frags

	stats NAPIStats
}

// NAPIStats are the counters of one NAPI.
type NAPIStats struct {
	// Scheduled counts successful napi_schedule calls, Missed those that found the
	// NAPI owned.
	Scheduled, Missed int64
	// Completed counts completions that let the driver enable its interrupt.
	Completed int64
	// Deferred counts completions that left the interrupt masked and a timer armed.
	Deferred int64
	// Watchdog counts schedules by that timer.
	Watchdog int64
	// GROReceived counts packets given to GRO.
	GROReceived int64
}

// NAPIConfig describes a NAPI for netif_napi_add.
type NAPIConfig struct {
	// Name is the device's name.
	Name string
	// ID is the napi id.
	ID int
	// Weight is the most frames of one poll; 0 means NAPIPollWeight.
	Weight int
	// TXOnly marks a NAPI that polls transmit completions only, or the backlog: its polls are no
	// part of the distribution of work.
	TXOnly bool
	// RPS steers what the NAPI receives to other cores; nil does not.
	RPS *rps.Queue
	// GROFlushTimeout is how long GRO may hold packets across completions, and the wait of a
	// deferred interrupt (/sys/class/net/IF/gro_flush_timeout; 0: neither). DeferHardIRQs is
	// napi_defer_hard_irqs. Kernels since v6.13 have both for each NAPI, those before for
	// the device.
	GROFlushTimeout sim.Time
	DeferHardIRQs   int
	// IRQSuspendTimeout is irq_suspend_timeout (v6.13): how long the interrupt stays masked
	// after a preferring epoll instance has got events; 0: no longer than otherwise.
	IRQSuspendTimeout sim.Time
	// GRO configures the GRO table; nil turns GRO off.
	GRO *gro.Config
	// Poll is the driver's poll function: it handles up to budget frames and returns how many it
	// handled. If that is less than budget it has called NAPI.CompleteDone.
	Poll func(budget int) int
}

// NewNAPI is netif_napi_add and napi_enable (all versions).
func NewNAPI(cfg NAPIConfig) *NAPI {
	n := &NAPI{Name: cfg.Name, ID: cfg.ID, poll: cfg.Poll, weight: cfg.Weight, txOnly: cfg.TXOnly, listOwner: -1, rps: cfg.RPS}
	n.groFlushTimeout, n.deferHardIRQs = cfg.GROFlushTimeout, cfg.DeferHardIRQs
	n.irqSuspendTimeout = cfg.IRQSuspendTimeout
	if n.weight == 0 {
		n.weight = NAPIPollWeight
	}
	if cfg.GRO != nil {
		n.gro = gro.New(*cfg.GRO, n)
	}
	return n
}

// Stats returns the NAPI's counters.
func (n *NAPI) Stats() NAPIStats { return n.stats }

// GRO returns the NAPI's GRO table, nil when GRO is off.
func (n *NAPI) GRO() *gro.Table { return n.gro }

// ListOwner is napi_struct.list_owner (since v6.4): the core on which the NAPI is
// scheduled, -1 when it is not. page_pool recycles directly on that core.
func (n *NAPI) ListOwner() int { return n.listOwner }

// prepLosing: napi_schedule_prep up to v4.10 takes the NAPI, or does nothing while it
// is owned: a driver has to look at its ring again after it has enabled the interrupt.
func prepLosing(n *NAPI) bool {
	if n.state&(stateDisable|stateSched) != 0 {
		return false
	}
	n.state |= stateSched
	return true
}

// prepMissing: napi_schedule_prep since v4.11 (39e6c8208d7b) takes the NAPI, or notes
// with MISSED that it was wanted while owned.
func prepMissing(n *NAPI) bool {
	if n.state&stateDisable != 0 {
		return false
	}
	if n.state&stateSched != 0 {
		n.state |= stateMissed
		n.stats.Missed++
		return false
	}
	n.state |= stateSched
	return true
}

// NAPISchedule is napi_schedule (all versions) on this core: napi_schedule_prep and
// __napi_schedule. A driver calls it from its interrupt handler.
func (sd *Softnet) NAPISchedule(n *NAPI) {
	sd.core.Spend(model.StageNAPISchedule)
	off := sd.core.IRQSave()
	sd.core.Look() // another core may own the NAPI, and IRQSave does not look where interrupts are off already
	if sd.b.napiSchedulePrep.Prep(n) {
		n.stats.Scheduled++
		sd.core.Spend(model.StageNAPIQueue)
		sd.core.Look()
		sd.napiSchedule(n)
	}
	sd.core.IRQRestore(off)
}

// napiSchedule is ____napi_schedule (all versions): it wakes the thread of a NAPI that the
// caller owns, or queues the NAPI on this core and raises NET_RX by the rule of the version.
// Interrupts are off, and the caller has looked.
func (sd *Softnet) napiSchedule(n *NAPI) {
	n.sd = sd
	if sd.b.napiThreaded.Wake(sd, n) {
		return
	}
	n.listOwner = sd.core.ID
	sd.pollList.pushBack(n)
	sd.b.napiSchedule.Raise(sd)
}

// napiPoll is napi_poll (all versions): one poll of n, which has been taken off its list. A
// NAPI that wants to be polled again goes to the repoll list.
func (sd *Softnet) napiPoll(n *NAPI, repoll *napiList) (work int) {
	work, again := sd.pollOnce(n)
	if again {
		if n.queued {
			panic("softirq: " + n.Name + " was scheduled again by its own poll")
		}
		repoll.pushBack(n)
	}
	return work
}

// pollOnce is __napi_poll (v5.12; before, in napi_poll): one poll of n. A NAPI that used up its
// weight is still owned and is to be polled again, after what GRO holds is flushed.
func (sd *Softnet) pollOnce(n *NAPI) (work int, again bool) {
	c := sd.core
	c.Spend(model.StageNAPIPoll)
	weight := n.weight // process_backlog changes it
	if n.state&stateSched != 0 {
		n.polling = true
		work = n.poll(weight)
		n.polling = false
		sd.tracePoll(n, work, weight)
		sd.stats.Polls++
		if !n.txOnly {
			sd.stats.Work.Add(int64(work))
		}
	}
	if work > weight {
		panic(fmt.Sprintf("softirq: %s polled %d frames with weight %d", n.Name, work, weight))
	}
	if work < weight {
		return work, false
	}
	if n.state&stateDisable != 0 {
		n.CompleteDone(0)
		return work, false
	}
	if n.state&statePreferBusyPoll != 0 {
		// Since v5.11 the application is given the NAPI; where no timer sees to it
		// that somebody polls, it is scheduled again.
		if n.CompleteDone(work) {
			sd.NAPISchedule(n)
		}
		return work, false
	}
	// Hold packets across jiffies only where a jiffy is short.
	n.groFlushNormal(c.Machine().HZ() >= 1000)
	return work, true
}

// tracePoll emits napi_poll.
func (sd *Softnet) tracePoll(n *NAPI, work, budget int) {
	c := sd.core
	c.Look()
	c.Mix(trace.NAPIPoll, int64(n.ID)<<16|int64(work))
	if c.Recording() {
		e := c.Event(trace.NAPIPoll)
		e.A, e.B, e.C, e.S = int64(n.ID), int64(work), int64(budget), n.Name
		c.Emit(e)
	}
}

// Core returns the core on which the NAPI is being polled. A driver asks in its poll
// function: it is the core whose interrupt scheduled the NAPI, which changes with the
// interrupt's affinity.
func (n *NAPI) Core() *cpu.Core { return n.sd.core }

// napiList is a FIFO of NAPIs linked through themselves, as the poll lists are.
type napiList struct{ head, tail *NAPI }

func (l *napiList) empty() bool { return l.head == nil }

func (l *napiList) pushBack(n *NAPI) {
	if n.queued {
		panic("softirq: " + n.Name + " is on a list already")
	}
	n.queued, n.next = true, nil
	if l.tail == nil {
		l.head = n
	} else {
		l.tail.next = n
	}
	l.tail = n
}

func (l *napiList) popFront() *NAPI {
	n := l.head
	l.head = n.next
	if l.head == nil {
		l.tail = nil
	}
	n.queued, n.next = false, nil
	return n
}

// splice moves all of other behind this list.
func (l *napiList) splice(other *napiList) {
	switch {
	case other.head == nil:
		return
	case l.tail == nil:
		l.head = other.head
	default:
		l.tail.next = other.head
	}
	l.tail = other.tail
	*other = napiList{}
}

// remove unlinks n, which must be on the list.
func (l *napiList) remove(n *NAPI) {
	var before *NAPI
	for p := l.head; p != n; p = p.next {
		before = p
	}
	if before == nil {
		l.popFront()
		return
	}
	before.next = n.next
	if l.tail == n {
		l.tail = before
	}
	n.queued, n.next = false, nil
}
