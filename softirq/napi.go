package softirq

import (
	"fmt"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim/trace"
	"napisim/softirq/gro"
)

// NAPIPollWeight is NAPI_POLL_WEIGHT, the default weight of a NAPI.
const NAPIPollWeight = 64

// napiState holds the bits of napi_struct.state.
type napiState uint8

const (
	stateSched   napiState = 1 << iota // somebody owns the NAPI
	stateMissed                        // it was scheduled while owned
	stateDisable                       // napi_disable is in progress
	stateNPSvc                         // netpoll owns it
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

	gro     *gro.Table
	rxList  model.SKBList
	rxCount int

	stats NAPIStats
}

// NAPIStats are the counters of one NAPI.
type NAPIStats struct {
	// Scheduled counts successful napi_schedule calls, Missed those that found the
	// NAPI owned.
	Scheduled, Missed int64
	// Completed counts completions that let the driver enable its interrupt.
	Completed int64
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
	// TXOnly marks a NAPI that polls transmit completions only: its polls are no part of
	// the distribution of work.
	TXOnly bool
	// GRO configures the GRO table; nil turns GRO off.
	GRO *gro.Config
	// Poll is the driver's poll function: it handles up to budget frames and returns how many it
	// handled. If that is less than budget it has called NAPI.CompleteDone.
	Poll func(budget int) int
}

// NewNAPI is netif_napi_add and napi_enable.
func NewNAPI(cfg NAPIConfig) *NAPI {
	n := &NAPI{Name: cfg.Name, ID: cfg.ID, poll: cfg.Poll, weight: cfg.Weight, txOnly: cfg.TXOnly, listOwner: -1}
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

// schedulePrep is napi_schedule_prep since v4.11: it takes the NAPI, or notes with
// MISSED that it was wanted while owned.
func (n *NAPI) schedulePrep() bool {
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

// NAPISchedule is napi_schedule on this core: napi_schedule_prep and
// __napi_schedule. A driver calls it from its interrupt handler.
func (sd *Softnet) NAPISchedule(n *NAPI) {
	sd.core.Spend(model.StageNAPISchedule)
	off := sd.core.IRQSave()
	sd.core.Look() // another core may own the NAPI, and IRQSave does not look where interrupts are off already
	if n.schedulePrep() {
		n.stats.Scheduled++
		sd.napiSchedule(n)
	}
	sd.core.IRQRestore(off)
}

// napiSchedule is ____napi_schedule: it queues a NAPI that the caller owns on this
// core, and raises NET_RX by the rule of the version. Interrupts are off, and the
// caller has looked.
func (sd *Softnet) napiSchedule(n *NAPI) {
	n.sd = sd
	n.listOwner = sd.core.ID
	sd.pollList.pushBack(n)
	sd.b.napiSchedule.Raise(sd)
}

// napiPoll is napi_poll with __napi_poll: one poll of n, which has been taken off
// its list. A NAPI that used up its weight goes to the repoll list.
func (sd *Softnet) napiPoll(n *NAPI, repoll *napiList) (work int) {
	c := sd.core
	c.Spend(model.StageNAPIPoll)
	if n.state&stateSched != 0 {
		work = n.poll(n.weight)
		sd.tracePoll(n, work)
		sd.stats.Polls++
		if !n.txOnly {
			sd.stats.Work.Add(int64(work))
		}
	}
	if work > n.weight {
		panic(fmt.Sprintf("softirq: %s polled %d frames with weight %d", n.Name, work, n.weight))
	}
	if work < n.weight {
		return work
	}
	if n.state&stateDisable != 0 {
		n.CompleteDone(0)
		return work
	}
	// Hold packets across jiffies only where a jiffy is short.
	n.groFlush(c.Machine().HZ() >= 1000)
	n.groNormalList()
	if n.queued {
		panic("softirq: " + n.Name + " was scheduled again by its own poll")
	}
	repoll.pushBack(n)
	return work
}

// CompleteDone is napi_complete_done without deferral timers: the NAPI is given up, and
// the driver may enable its interrupt if the result is true. It is false when the NAPI was
// scheduled meanwhile (MISSED): then it is queued again and stays masked. The order
// is that of v5.4.18 and later: GRO flush, list, state.
func (n *NAPI) CompleteDone(workDone int) bool {
	if n.state&stateNPSvc != 0 {
		return false
	}
	if n.state&stateSched == 0 {
		panic("softirq: " + n.Name + " completed without being scheduled")
	}
	sd := n.sd
	c := sd.core
	c.Spend(model.StageNAPIComplete)
	n.groFlush(false)
	n.groNormalList()
	c.Look()
	if n.queued {
		off := c.IRQSave()
		sd.pollList.remove(n)
		c.IRQRestore(off)
	}
	n.listOwner = -1
	if n.state&stateMissed != 0 {
		n.state &^= stateMissed
		off := c.IRQSave()
		sd.napiSchedule(n)
		c.IRQRestore(off)
		return false
	}
	n.state &^= stateSched
	n.stats.Completed++
	return true
}

// tracePoll emits napi_poll.
func (sd *Softnet) tracePoll(n *NAPI, work int) {
	c := sd.core
	c.Look()
	c.Mix(trace.NAPIPoll, int64(n.ID)<<16|int64(work))
	if c.Recording() {
		e := c.Event(trace.NAPIPoll)
		e.A, e.B, e.C, e.S = int64(n.ID), int64(work), int64(n.weight), n.Name
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
