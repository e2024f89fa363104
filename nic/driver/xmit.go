package driver

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim/trace"
)

// txQueueLen is the length of the qdisc behind a full transmit ring (txqueuelen).
const txQueueLen = 1000

// qdisc is pfifo_fast with one band: a FIFO of up to txQueueLen segments. It takes
// no memory before it is needed.
type qdisc struct {
	segs    []model.Segment
	head, n int
}

func (q *qdisc) full() bool { return q.n == txQueueLen }

// push appends a copy of seg; the queue must not be full.
func (q *qdisc) push(seg *model.Segment) {
	if q.segs == nil {
		q.segs = make([]model.Segment, txQueueLen)
	}
	q.segs[(q.head+q.n)%txQueueLen] = *seg
	q.n++
}

// front returns the oldest segment, which must be there.
func (q *qdisc) front() *model.Segment { return &q.segs[q.head] }

func (q *qdisc) pop() {
	q.head = (q.head + 1) % txQueueLen
	q.n--
}

// Xmit is dev_queue_xmit down to ndo_start_xmit: the segment goes to the transmit
// ring, or waits in the qdisc while that is full. It is called with softirqs off.
func (d *Netdev) Xmit(c *cpu.Core, seg *model.Segment) {
	c.Spend(model.StageDevXmit)
	c.Look()
	switch {
	case d.qdisc.n == 0 && d.startXmit(c, seg):
	case !d.qdisc.full():
		d.stats.TXQueued++
		d.qdisc.push(seg)
	default:
		d.stats.TXDropped++
	}
}

// reclaimTX frees transmitted frames and lets the queue behind the ring go on.
// Other cores may transmit meanwhile: what they find is a queue that is not empty.
func (d *Netdev) reclaimTX(c *cpu.Core) {
	c.Look()
	if n := d.tx.Reap(c.Now()); n > 0 {
		c.SpendN(model.StageTXCompletion, n)
		d.host.Heads.On(c).FreeN(n) // napi_consume_skb
		c.Look()
	}
	for d.qdisc.n > 0 && !d.tx.Full() {
		c.Spend(model.StageDevXmit)
		c.Look()
		if d.startXmit(c, d.qdisc.front()) {
			d.qdisc.pop()
		}
	}
}

// startXmit is ndo_start_xmit with net_dev_xmit; it reports false if the ring is full.
// The caller has looked. Sent segments have no skb in the model, so their number
// stands for its address.
func (d *Netdev) startXmit(c *cpu.Core, seg *model.Segment) bool {
	if !d.tx.Xmit(c.Now(), seg) {
		return false
	}
	d.sent++
	if c.Recording() {
		e := c.Event(trace.NetDevXmit)
		e.A, e.B, e.S = d.sent, int64(seg.Len), d.cfg.Name
		c.Emit(e)
	}
	return true
}
