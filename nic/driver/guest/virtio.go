package guest

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/nic/driver"
	"napisim/nic/emulated"
	"napisim/softirq"
)

// virtioSpare is what an skb may need at most (2 + MAX_SKB_FRAGS).
const virtioSpare = 2 + model.MaxSKBFrags

// mergeableBuffer is the size of a receive buffer with frames of 1500 bytes, and
// virtioHeader what the device writes before a frame.
const (
	mergeableBuffer = 1536
	virtioHeader    = 12
)

// virtioTruesize is the truesize of a full frame in a mergeable buffer, as recorded.
const virtioTruesize = 2816

// Virtio is virtio_net (v6.1, and v6.12 with BQL): a NAPI for each direction, and a
// callback that is disabled while its NAPI is scheduled.
type Virtio struct {
	*Netdev
	dev *emulated.Virtio
}

// NewVirtio registers the interface; Open brings it up.
func NewVirtio(cfg Config, host driver.Host, dev *emulated.Virtio) *Virtio {
	d := &Virtio{Netdev: newNetdev(cfg, host, dev.Port), dev: dev}
	d.large, d.buffer, d.shape = virtioTruesize, mergeableBuffer, d.pageToSKB
	d.start = d.startXmit1
	d.ring = func(c *cpu.Core) { dev.Doorbell(c.Now()) }
	d.napi = softirq.NewNAPI(softirq.NAPIConfig{
		Name: cfg.Name, ID: napiID(cfg.RXIRQ), GRO: cfg.GRO, RPS: cfg.RPS, Poll: d.poll,
		GROFlushTimeout: cfg.GROFlushTimeout, DeferHardIRQs: cfg.DeferHardIRQs,
	})
	d.txNAPI = softirq.NewNAPI(softirq.NAPIConfig{Name: cfg.Name, ID: napiID(cfg.TXIRQ), TXOnly: true, Poll: d.pollTX})
	tx := d.line(cfg.TXIRQ, named(cfg.TXIRQName, cfg.Name+"-output.0"), d.xmitDone)
	rx := d.line(cfg.RXIRQ, named(cfg.RXIRQName, cfg.Name+"-input.0"), d.recvDone)
	dev.Connect(rx, tx)
	return d
}

// Open fills the receive queue. It belongs to the construction of a run, after the
// devices were joined.
func (d *Virtio) Open() { d.open(d.rx.Size()) }

// pageToSKB is page_to_skb: the skb is built around a buffer that has room for what
// stands behind the data of such an skb, as with short frames and with the last buffer of
// each page, which is longer by the rest of the page. Otherwise the buffer is a fragment.
func (d *Virtio) pageToSKB(s *model.SKB) {
	size := mergeableBuffer
	if each := int64(fragPage / mergeableBuffer); d.rx.Taken()%each == 0 {
		size += fragPage % mergeableBuffer
	}
	if size >= virtioHeader+int(s.Frame.Len)+model.SharedInfo {
		s.Truesize = size + model.SKBHead
		return
	}
	s.Frags = 1
}

// recvDone is skb_recv_done, called by vring_interrupt if the queue has used buffers.
func (d *Virtio) recvDone(c *cpu.Core) {
	c.Spend(model.StageIRQHandler)
	c.Look()
	if d.dev.RXQueue.Used() != d.rx.Taken() {
		d.napiSchedule(c, d.napi, &d.dev.RXQueue)
	}
}

// xmitDone is skb_xmit_done: it disables further callbacks whoever owns the NAPI.
func (d *Virtio) xmitDone(c *cpu.Core) {
	c.Spend(model.StageIRQHandler)
	c.Look()
	if d.dev.TXQueue.Used() != d.tx.Reaped() {
		d.dev.TXQueue.DisableCB()
		d.napiSchedule(c, d.txNAPI, &d.dev.TXQueue)
	}
}

// napiSchedule is virtqueue_napi_schedule.
func (d *Virtio) napiSchedule(c *cpu.Core, n *softirq.NAPI, q *emulated.Virtqueue) {
	if d.schedule(c, n) {
		q.DisableCB()
	}
}

// napiComplete is virtqueue_napi_complete, for both directions: the callback is enabled
// before the NAPI is given up, and what came in between schedules it again.
func (d *Virtio) napiComplete(c *cpu.Core, n *softirq.NAPI, q *emulated.Virtqueue, last int64, work int) {
	c.Spend(model.StageIRQUnmask)
	c.Look()
	q.EnableCB(last)
	if !n.CompleteDone(work) {
		c.Look()
		q.DisableCB()
		return
	}
	c.Look()
	if q.Used() != last {
		d.napiSchedule(c, n, q)
	}
}

// poll is virtnet_poll: it also frees what the queue beside it has sent.
func (d *Virtio) poll(budget int) int {
	c := d.napi.Core()
	d.freeOld(c, true)
	work := d.receive(c, budget, func(*cpu.Core, int) {})
	if free := d.rx.Size() - int(d.made-d.rx.Taken()); free > min(budget, d.rx.Size())/2 {
		d.refill(c, free)
	}
	if work < budget {
		d.napiComplete(c, d.napi, &d.dev.RXQueue, d.rx.Taken(), work)
	}
	return work
}

// pollTX is virtnet_poll_tx. It counts as no work.
func (d *Virtio) pollTX(int) int {
	c := d.txNAPI.Core()
	c.Look()
	d.dev.TXQueue.DisableCB()
	d.cleanTX(c, virtioSpare)
	d.napiComplete(c, d.txNAPI, &d.dev.TXQueue, d.tx.Reaped(), 0)
	return 0
}

// freeOld frees sent frames with callbacks disabled, and then asks for a callback when
// three quarters of the rest are sent (virtqueue_enable_cb_delayed), if enable is set.
func (d *Virtio) freeOld(c *cpu.Core, enable bool) {
	q := &d.dev.TXQueue
	for {
		c.Look()
		q.DisableCB()
		d.cleanTX(c, virtioSpare)
		if !enable || d.enableDelayed() {
			return
		}
	}
}

// enableDelayed is virtqueue_enable_cb_delayed.
func (d *Virtio) enableDelayed() bool {
	last := d.tx.Reaped()
	wait := (d.tx.Posted() - last) * 3 / 4
	d.dev.TXQueue.EnableCB(last + wait)
	return d.dev.TXQueue.Used()-last <= wait
}

// startXmit1 is start_xmit: it frees old frames first. With byte queue limits (since
// v6.11) a frame of a batch does not stop the queue, only the last does.
func (d *Virtio) startXmit1(c *cpu.Core, p *packet, more bool) bool {
	d.freeOld(c, !more)
	if !d.post(c, p, virtioSpare) {
		return false
	}
	if d.stopped && !d.enableDelayed() {
		d.napiSchedule(c, d.txNAPI, &d.dev.TXQueue) // more was used than a callback would wait for
	}
	switch {
	case !d.bql.on:
	case more:
		d.bql.count(int(p.Len))
	default:
		d.bql.sent(int(p.Len))
	}
	if !more || d.stopped {
		d.doorbell(c)
	}
	return true
}
