package guest

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim/trace"
	"napisim/softirq"
)

// txQueueLen is the length of the qdisc (txqueuelen).
const txQueueLen = 1000

// wakeThreshold is TX_WAKE_THRESHOLD of e1000 and e1000e: descriptors that must be
// unused before a full ring starts again.
const wakeThreshold = 32

// packet is an skb to send: a segment, or with an mss one that the device cuts.
type packet struct {
	model.Segment
	mss int
	gso int // it is cut into segments of so many bytes in software, on its way to the driver
	ref reference
	heldSKB
}

// reference says who else holds an skb that is on the transmit ring. One of the stack
// is the driver's alone. The frames of a burst of pktgen are references to one skb,
// which pktgen gives up when it makes the next.
type reference int64

const (
	ownReference   reference = -1
	otherReference reference = 0
	// Above are the last references of an skb of pktgen, by its number.
)

// qdisc is pfifo_fast with one band. It takes no memory before it is needed.
type qdisc struct {
	all     []packet
	head, n int
}

func (q *qdisc) push(p *packet) {
	if q.all == nil {
		q.all = make([]packet, txQueueLen)
	}
	q.all[(q.head+q.n)%txQueueLen] = *p
	q.n++
}

func (q *qdisc) front() *packet { return &q.all[q.head] }

func (q *qdisc) pop() {
	q.head = (q.head + 1) % txQueueLen
	q.n--
}

// OpenNetTX installs net_tx_action on a core for these interfaces: skbs that a hard
// interrupt could not free are freed there, and a queue that is started again goes on
// with its qdisc. It belongs to the construction of a run. Without it nothing raises
// NET_TX, which is right only where nobody looks at it and only Burst sends.
func OpenNetTX(sd *softirq.Softnet, devs ...*Netdev) {
	for _, d := range devs {
		d.netTX = true
	}
	sd.OpenSoftirq(softirq.NetTX, func() {
		for _, d := range devs {
			d.freeCompletions(sd.Core())
		}
		for _, d := range devs {
			d.runQdisc(sd.Core())
		}
	})
}

// Stopped is netif_xmit_frozen_or_drv_stopped: the ring is too full to take a frame.
// The caller has looked.
func (d *Netdev) Stopped() bool { return d.stopped }

// xmitStopped is netif_xmit_stopped: the ring is too full, or byte queue limits forbid.
func (d *Netdev) xmitStopped() bool { return d.stopped || d.bql.xoff }

// NewSKB is pktgen's preparation of a burst: it gives up its own reference to the skb of
// the burst before. It comes before the wait for the next burst. Burst does it too
// where the caller has not.
func (d *Netdev) NewSKB() {
	d.skb++
	d.fresh = true
}

// Burst is pktgen_xmit with "burst n": it posts n copies of seg, telling the driver for
// all but the last that more will come. Byte queue limits do not stop it, a full ring
// does. It returns how many were sent; softirqs are off on core c meanwhile. The
// segment stays the caller's.
func (d *Netdev) Burst(c *cpu.Core, seg *model.Segment, n int) (sent int) {
	c.Look()
	if !d.fresh {
		d.NewSKB()
	}
	d.fresh = false
	p := packet{Segment: *seg}
	for ; sent < n && !d.stopped; sent++ {
		if sent+1 == n {
			p.ref = reference(d.skb)
		}
		if !d.start(c, &p, sent+1 < n) {
			d.stats.TXBusy++
			break
		}
	}
	return sent
}

// Xmit is dev_queue_xmit of one segment: it goes to the driver, or waits in the qdisc
// while the queue is stopped. Softirqs are off on core c. The segment is the caller's
// again afterwards.
func (d *Netdev) Xmit(c *cpu.Core, seg *model.Segment) {
	d.xmit(c, &packet{Segment: *seg, ref: ownReference}, false)
}

// XmitTSO is Xmit of an skb of several segments that the device cuts (an e1000 with
// TSO): its payload is that of all, mss that of each.
func (d *Netdev) XmitTSO(c *cpu.Core, seg *model.Segment, mss int) {
	d.xmit(c, &packet{Segment: *seg, mss: mss, ref: ownReference}, false)
}

// XmitList is dev_queue_xmit of an skb that was segmented in software: the driver is
// told for all but the last that more will come, so there is one doorbell, unless the
// queue stops in between. The segments are the caller's again afterwards.
func (d *Netdev) XmitList(c *cpu.Core, segs []model.Segment) {
	for i := range segs {
		d.xmit(c, &packet{Segment: segs[i], ref: ownReference}, i+1 < len(segs))
	}
}

func (d *Netdev) xmit(c *cpu.Core, p *packet, more bool) {
	c.Look()
	switch {
	case d.qdisc.n == 0 && !d.xmitStopped() && d.startSKB(c, p, more):
		c.Spend(model.StageXmitTail)
	case d.qdisc.n < txQueueLen:
		d.stats.TXQueued++
		d.qdisc.push(p)
		if d.qdisc.n == 1 {
			// An empty qdisc is bypassed; sch_direct_xmit finds the queue stopped, puts the
			// skb back and leaves the rest to NET_TX (dev_requeue_skb, qdisc_run_end).
			d.wake(c)
		}
	default:
		d.stats.TXDropped++
	}
}

// startXmit is ndo_start_xmit with net_dev_xmit, which is traced when the driver has
// returned. Sent segments have no skb in the model, so their number stands for its
// address.
func (d *Netdev) startXmit(c *cpu.Core, p *packet, more bool) bool {
	c.Spend(model.StageDevXmit)
	if !d.start(c, p, more) {
		return false
	}
	d.sent++
	if c.Recording() {
		c.Look()
		e := c.Event(trace.NetDevXmit)
		e.A, e.B, e.S = d.sent, int64(p.Len), d.cfg.Name
		c.Emit(e)
	}
	return true
}

// runQdisc is __qdisc_run: segments leave together as far as byte queue limits allow.
func (d *Netdev) runQdisc(c *cpu.Core) {
	c.Look()
	for d.qdisc.n > 0 && !d.xmitStopped() {
		more := d.qdisc.n > 1 && (!d.bql.on || d.bql.avail() > int64(d.qdisc.front().Len))
		if !d.startSKB(c, d.qdisc.front(), more) {
			return
		}
		d.qdisc.pop()
		c.Look()
	}
}

// wake starts a queue again: __netif_schedule, which leaves the qdisc to NET_TX.
func (d *Netdev) wake(c *cpu.Core) {
	if d.netTX {
		d.host.Softnets[c.ID].RaiseSoftirq(softirq.NetTX)
	}
}

// post writes a descriptor and stops the queue when fewer than spare are left, as the
// next skb could need that many. It reports false if there is no room for this one.
func (d *Netdev) post(c *cpu.Core, p *packet, spare int) bool {
	c.SpendN(model.StageTXPost, p.descriptors())
	c.Look()
	if d.tx.Unused() < spare {
		d.stopped = true
		return false
	}
	place := d.tx.Posted() % int64(d.tx.Size())
	d.refs[place], d.held[place] = p.ref, p.heldSKB
	d.tx.Post(&p.Frame, p.mss)
	d.stopped = d.tx.Unused() < spare
	return true
}

// descriptors returns how many descriptors an skb takes to post: headers and data of one
// that the device cuts are apart, and e1000 has 4 KiB at most in each.
func (p *packet) descriptors() int {
	const most = 4096
	if p.mss == 0 {
		return 1
	}
	return 1 + (int(p.Payload)+most-1)/most
}

// xmitFrame is e1000_xmit_frame of e1000 and e1000e: the doorbell is left to a later
// frame only while the queue goes on. A byte queue limit that is still zero stops it
// with each frame, so each has its own doorbell.
func (d *Netdev) xmitFrame(c *cpu.Core, p *packet, more bool, spare int) bool {
	if !d.post(c, p, spare) {
		return false
	}
	d.bql.sent(int(p.Len))
	if !more || d.xmitStopped() {
		d.doorbell(c)
	}
	return true
}

func (d *Netdev) doorbell(c *cpu.Core) {
	c.Spend(model.StageDoorbell)
	c.Look()
	d.stats.Doorbells++
	d.ring(c)
}

// cleanTX frees what was sent, and starts the queue again where that made room
// (e1000_clean_tx_irq, free_old_xmit). In NAPI context skbs go to the NAPI's cache. It reports false if all of the ring was freed,
// when there could be more.
func (d *Netdev) cleanTX(c *cpu.Core, wakeAt int, napi bool) bool {
	count, bytes := 0, 0
	for c.Look(); count < d.tx.Size() && d.tx.Done() > 0; c.Look() {
		n := min(d.tx.Done(), d.tx.Size()-count)
		if c.InHardirq() {
			n = 1 // each raises NET_TX at its own instant
		}
		place := int64(0)
		for range n {
			place = d.tx.Reaped() % int64(d.tx.Size())
			if !c.InHardirq() {
				d.freeNow(c, place, napi)
			}
			s := d.tx.Reap()
			d.itr.txPackets += s.Segments
			d.itr.txBytes += s.Bytes
			bytes += s.Len
		}
		count += n
		c.SpendN(model.StageTXCompletion, n)
		if c.InHardirq() && d.held[place].freed != nil {
			c.Spend(model.StageTXCompletion) // the descriptor of its payload
		}
		if c.InHardirq() && d.lastReference(d.refs[place]) {
			d.freeLater(c, d.held[place])
		}
	}
	wake := d.bql.done(bytes, c.Machine().Jiffies())
	if count > 0 && d.stopped && d.tx.Unused() >= wakeAt {
		d.stopped, wake = false, true
	}
	if wake {
		d.wake(c)
	}
	return count < d.tx.Size()
}

// lastReference reports whether the driver frees an skb by giving up r.
func (d *Netdev) lastReference(r reference) bool {
	return r == ownReference || r > otherReference && int64(r) < d.skb
}

// freeNow is consume_skb of what is at a place of the ring, if nobody else holds it.
func (d *Netdev) freeNow(c *cpu.Core, place int64, napi bool) {
	if !d.lastReference(d.refs[place]) {
		return
	}
	h := d.held[place]
	if h.freed != nil { // the stream's, from a cache of their own
		c.Spend(model.StageSKBFree)
		if d.txNAPI == nil && h.size > 0 { // the descriptor of its payload
			c.Spend(model.StageTXCompletion)
		}
		if h.own {
			d.host.Heads.On(c).FreeSent(napi, h.linear)
		}
		h.freed(c, h.size)
	} else if napi {
		c.Spend(model.StageSKBFree)
		d.host.Heads.On(c).FreeN(1)
	}
}

// freeLater is dev_kfree_skb_irq: an skb cannot be freed in a hard interrupt, so it
// goes to the completion queue, and each raises NET_TX.
func (d *Netdev) freeLater(c *cpu.Core, h heldSKB) {
	if d.netTX {
		c.Look()
		d.completions = append(d.completions, h)
		d.wake(c)
	}
}

// freeCompletions is the first part of net_tx_action.
func (d *Netdev) freeCompletions(c *cpu.Core) {
	c.Look()
	for n := len(d.completions); n > 0; n-- {
		h := d.completions[0]
		d.completions = append(d.completions[:0], d.completions[1:]...)
		c.Spend(model.StageSKBFree)
		if h.freed != nil {
			if h.own {
				d.host.Heads.On(c).FreeSent(true, h.linear)
			}
			c.Look()
			h.freed(c, h.size)
		} else {
			d.host.Heads.On(c).FreeN(1)
		}
		c.Look()
	}
}
