package softirq

import (
	"fmt"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim/trace"
	"napisim/softirq/rps"
)

// backlog is the part of struct softnet_data that holds the backlog: the queue of
// packets that any core may add to, those that its own core has taken over, and the
// NAPI that delivers them.
type backlog struct {
	napi    *NAPI
	input   model.SKBList // input_pkt_queue
	process model.SKBList // process_queue
	head    uint32        // input_queue_head: packets that have left it
	tail    uint32        // input_queue_tail: packets that have joined it
	limit   *rps.FlowLimit

	ipi     *cpu.Line // call_function_single: another core has queued packets here
	ipiList *Softnet  // rps_ipi_list: cores to be told of packets, linked through ipiNext
	ipiNext *Softnet

	thread *cpu.Task // backlog_napi/N, nil without backlog threads
}

// DropFunc frees a packet that is lost for a reason and counts it. It takes s over, and is
// called on core c.
type DropFunc func(c *cpu.Core, s *model.SKB, r model.DropReason)

// Links are what the cores of a host share.
type Links struct {
	// Drop takes packets that a backlog refuses. Without it their structs go back to their
	// pool, and their pages are lost.
	Drop DropFunc
	// RPS lets cores put packets on each other's backlogs. It adds an interrupt to each core.
	RPS bool
	// Socks is where applications record the CPUs on which they read; nil turns RFS off.
	Socks *rps.SockFlows
}

// Connect joins the cores of a host. sds are all of them, by core. The builder calls it
// once, before the run.
func Connect(sds []*Softnet, links Links) {
	for _, sd := range sds {
		sd.links = links
		if !links.RPS {
			continue
		}
		sd.peers = sds
		sd.backlog.ipi = sd.core.NewLine(-1, "call_function_single", sd.rpsTriggerSoftirq)
	}
}

// initBacklog makes the backlog of a core. Its NAPI has the weight that dev_weight
// has at boot: a later value counts when process_backlog has run.
func (sd *Softnet) initBacklog() {
	b := &sd.backlog
	b.napi = NewNAPI(NAPIConfig{ID: 1 + sd.core.ID, TXOnly: true, Poll: func(quota int) int {
		work := sd.processBacklog(quota)
		sd.stats.BacklogWork.Add(int64(work)) // apart: a device's NAPI may have counted the packets
		return work
	}})
	b.napi.sd = sd
	if sd.cfg.FlowLimitCPUs>>sd.core.ID&1 != 0 {
		b.limit = rps.NewFlowLimit(sd.cfg.FlowLimitTableLen)
	}
	if sd.cfg.BacklogThreads {
		c := sd.core
		b.napi.threadSD = sd
		b.thread = c.Machine().NewTask(c, fmt.Sprintf("backlog_napi/%d", c.ID), cpu.TaskConfig{Sleeper: true}, sd.runBacklogNAPI)
	}
}

// Backlog returns the packets on the core's two backlog queues: input_pkt_queue, whose
// length net.core.netdev_max_backlog limits, and process_queue. They are columns 14
// and 15 of /proc/net/softnet_stat, their sum is column 12.
func (sd *Softnet) Backlog() (input, process int) {
	return sd.backlog.input.Len(), sd.backlog.process.Len()
}

// NetifRx is netif_rx (all versions, as the behaviour says): it puts a packet of the receive
// queue q, which may be nil, on a backlog. It takes s over.
func (sd *Softnet) NetifRx(q *rps.Queue, s *model.SKB) { sd.b.netifRx.Rx(sd, q, s) }

// NetifRxNI is netif_rx_ni, for task context. Since v5.18 there is netif_rx only.
func (sd *Softnet) NetifRxNI(q *rps.Queue, s *model.SKB) { sd.b.netifRx.RxNI(sd, q, s) }

// netifRxInternal is netif_rx_internal (all versions): the backlog is that of the
// core that RPS chooses, else of this one.
func (sd *Softnet) netifRxInternal(q *rps.Queue, s skb) {
	sd.traceNetifRx(s)
	t, f := sd.rpsCPU(q, s)
	if t == nil {
		t = sd
	}
	sd.enqueueToBacklog(t, s, f)
}

// netifRxNI is netif_rx_ni up to v5.17: as nobody else would run the softirq soon, it
// does. do_softirq leaves it to ksoftirqd by the rule of the version.
func netifRxNI(sd *Softnet, q *rps.Queue, s skb) {
	c := sd.core
	c.PreemptDisable()
	sd.netifRxInternal(q, s)
	c.Look()
	if sd.pending != 0 && !c.InInterrupt() {
		sd.DoSoftirq()
	}
	c.PreemptEnable()
}

// netifRxAnywhere is netif_rx since v5.18: in task context it disables softirqs around
// the work, so that local_bh_enable runs what it has raised.
func netifRxAnywhere(sd *Softnet, q *rps.Queue, s skb) {
	c := sd.core
	c.Look()
	needBHOff := !c.InInterrupt()
	if needBHOff {
		c.BHDisable()
	}
	sd.netifRxInternal(q, s)
	if needBHOff {
		c.BHEnable()
	}
}

// NetifReceiveSKB is netif_receive_skb (all versions): a packet of the receive queue q, which
// may be nil, goes up in the caller's context unless RPS sends it elsewhere. It takes s over.
func (sd *Softnet) NetifReceiveSKB(q *rps.Queue, s *model.SKB) {
	if t, f := sd.rpsCPU(q, s); t != nil {
		sd.enqueueToBacklog(t, s, f)
		return
	}
	sd.core.Look()
	sd.count(s)
	sd.stack.ReceiveSKB(sd.core, s)
}

// rpsCPU is get_rps_cpu (all versions); it returns nil where the packet stays.
func (sd *Softnet) rpsCPU(q *rps.Queue, s skb) (t *Softnet, f *rps.Flow) {
	if q == nil || sd.peers == nil {
		return nil, nil
	}
	sd.core.Spend(model.StageRPS)
	sd.core.Look() // the tables are read on all cores
	to, f := q.CPU(s.Frame.Hash, sd.links.Socks, func(id int) uint32 { return sd.peers[id].backlog.head })
	if to == rps.NoCPU {
		return nil, nil
	}
	return sd.peers[to], f
}

// steer takes off a list what RPS sends to a backlog, one by one, as
// netif_receive_skb_list_internal (v4.19) does before anything else.
func (sd *Softnet) steer(q *rps.Queue, list *model.SKBList) {
	var stay model.SKBList
	for s := list.PopFront(); s != nil; s = list.PopFront() {
		if t, f := sd.rpsCPU(q, s); t != nil {
			sd.enqueueToBacklog(t, s, f)
		} else {
			stay.PushBack(s)
		}
	}
	*list = stay
}

// enqueueToBacklog is enqueue_to_backlog (all versions): s joins the backlog of t's
// core. The limit is passed by one packet, and only the packet that finds the queue empty
// schedules the NAPI, if nobody owns it.
func (sd *Softnet) enqueueToBacklog(t *Softnet, s skb, f *rps.Flow) {
	c, b := sd.core, &t.backlog
	c.Spend(model.StageBacklogEnqueue)
	off := c.IRQSave()
	c.Look()
	qlen := b.input.Len()
	if qlen > sd.cfg.NetdevMaxBacklog || sd.flowLimited(qlen, s.Frame.Hash) {
		t.stats.Dropped++
		c.IRQRestore(off)
		if sd.links.Drop == nil {
			sd.skbs.Put(s)
		} else {
			sd.links.Drop(c, s, model.DropBacklog)
		}
		return
	}
	// The queue is locked until the NAPI is scheduled, so that nobody sees the order.
	b.input.PushBack(s)
	b.tail++
	if f != nil {
		f.Enqueued(b.tail)
	}
	if qlen == 0 && b.napi.state&stateSched == 0 {
		b.napi.state |= stateSched
		b.napi.stats.Scheduled++
		sd.napiScheduleRPS(t)
	}
	c.IRQRestore(off)
}

// flowLimited is skb_flow_limit (since v3.11). It is this core that notes and counts, which has
// received the packet, not the one whose backlog it is for.
func (sd *Softnet) flowLimited(qlen int, hash uint32) bool {
	l := sd.backlog.limit
	if l == nil || qlen < sd.cfg.NetdevMaxBacklog>>1 || !l.Refuse(hash) {
		return false
	}
	sd.stats.FlowLimitCount++
	return true
}

// napiScheduleRPS is napi_schedule_rps, rps_ipi_queued up to v6.3: it schedules the
// backlog of this core, or notes that t's core has to be told. Since v6.4 (821eba962d95) a
// running net_rx_action or threaded poll sends the interrupts without a raise; up to then
// in_net_rx_action is never set and threads do not count. Interrupts are off.
func (sd *Softnet) napiScheduleRPS(t *Softnet) {
	switch {
	case t == sd:
		sd.napiSchedule(t.backlog.napi)
	case t.backlog.thread != nil:
		t.backlog.napi.state |= stateSchedThreaded
		sd.core.Wake(t.backlog.thread)
	default:
		t.backlog.ipiNext = sd.backlog.ipiList
		sd.backlog.ipiList = t
		if !sd.inNetRXAction && (!sd.inNAPIThreadedPoll || !sd.b.napiSchedule.Threads) {
			sd.raiseSoftirqBit(NetRX)
		}
	}
}

// rpsIPIWaiting is sd_has_rps_ipi_waiting (all versions); the caller has looked.
func (sd *Softnet) rpsIPIWaiting() bool { return sd.backlog.ipiList != nil }

// netRPSActionAndIRQEnable is net_rps_action_and_irq_enable (all versions): it tells the cores that
// packets wait for, the last one noted first. Interrupts are off before and on
// afterwards.
func (sd *Softnet) netRPSActionAndIRQEnable() {
	c := sd.core
	t := sd.backlog.ipiList
	sd.backlog.ipiList = nil
	c.IRQEnable()
	for t != nil {
		next := t.backlog.ipiNext // t may be noted again as soon as it has been told
		t.backlog.ipiNext = nil
		c.SendIPI(t.backlog.ipi)
		t = next
	}
}

// sendRPSIPIs tells the cores that packets wait for, if any do.
func (sd *Softnet) sendRPSIPIs() {
	sd.core.Look()
	if sd.rpsIPIWaiting() {
		sd.core.IRQDisable()
		sd.netRPSActionAndIRQEnable()
	}
}

// rpsTriggerSoftirq is rps_trigger_softirq (all versions): the interrupt that tells a core of
// packets on its backlog.
func (sd *Softnet) rpsTriggerSoftirq(c *cpu.Core) {
	c.Look()
	sd.stats.ReceivedRPS++
	sd.napiSchedule(sd.backlog.napi)
}

// processBacklog is process_backlog (all versions): the poll function of the backlog's
// NAPI. It does not complete as others do: when there is nothing left, the state is
// simply cleared, and no GRO comes into it.
func (sd *Softnet) processBacklog(quota int) (work int) {
	c, b := sd.core, &sd.backlog
	sd.sendRPSIPIs()
	b.napi.weight = sd.cfg.DevWeight * sd.cfg.DevWeightRXBias
	for {
		for s := b.process.PopFront(); s != nil; s = b.process.PopFront() {
			c.Spend(model.StageBacklogDequeue)
			c.Look()
			sd.count(s)
			sd.stack.ReceiveSKB(c, s)
			c.Look()
			b.head++
			if work++; work >= quota {
				return work
			}
		}
		c.IRQDisable()
		if b.input.Len() == 0 {
			b.napi.state &^= stateSched | stateSchedThreaded
			c.IRQEnable()
			return work
		}
		b.process.Append(&b.input)
		c.IRQEnable()
	}
}

// runBacklogNAPI is run_backlog_napi (since v6.10): the thread that polls the backlog
// for packets of other cores, which wake it instead of sending an interrupt. Packets of
// its own core are polled in the softirq as ever.
func (sd *Softnet) runBacklogNAPI(t *cpu.Task) {
	n := sd.backlog.napi
	for {
		sd.core.Look()
		if n.state&stateSchedThreaded != 0 {
			n.threadedPollLoop(false)
		} else {
			t.Sleep()
		}
	}
}

// GROFragsAlone gives one packet to GRO outside a poll, as a tap device with
// IFF_NAPI_FRAGS does since v6.4: the caller, a task with softirqs off, takes the NAPI,
// calls napi_gro_frags and completes it, so that the packet goes up at once. It
// reports false, and leaves s to the caller, where somebody owns the NAPI (EBUSY).
func (sd *Softnet) GROFragsAlone(n *NAPI, s *model.SKB) bool {
	sd.core.Look()
	if !sd.b.napiSchedulePrep.Prep(n) {
		return false
	}
	n.sd = sd
	n.GROFrags(s)
	n.CompleteDone(0)
	return true
}

// traceNetifRx emits netif_rx, whose length is counted from the IP header on.
func (sd *Softnet) traceNetifRx(s skb) {
	c := sd.core
	if c.Machine().Trace == nil {
		return
	}
	c.Look()
	if c.Recording() {
		e := c.Event(trace.NetifRx)
		e.A, e.B, e.S = s.ID, int64(s.Frame.Len)-model.EthernetHeader, s.Dev
		c.Emit(e)
	}
}
