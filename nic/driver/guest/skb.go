package guest

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

// An SKB is a packet of a socket: a segment, or several with the headers of the first.
type SKB struct {
	model.Segment
	// MSS is the payload of each segment.
	MSS int
	// TSO lets the device cut it (e1000 with TSO); without it that is done in software,
	// when it leaves the qdisc.
	TSO bool
	// Truesize is what its owner is charged for. Freed is told in parts when the driver has
	// freed what was sent; it runs on the core that frees. It may be nil.
	Truesize int
	Freed    func(c *cpu.Core, size int)
}

// heldSKB is what is to be told when an skb is freed; freed is nil for segments that nobody
// owns, or that share one skb.
type heldSKB struct {
	size  int
	freed func(c *cpu.Core, size int)
	// own says that the driver frees its memory: nobody else holds it.
	own    bool
	linear bool // its payload is in its linear part
}

// XmitSKB is dev_queue_xmit of an skb of a socket. Softirqs are off on core c. The skb is
// the caller's again afterwards.
func (d *Netdev) XmitSKB(c *cpu.Core, s *SKB) {
	p := packet{Segment: s.Segment, ref: ownReference, heldSKB: heldSKB{size: s.Truesize, freed: s.Freed}}
	if s.Freed == nil {
		p.freed, p.own = nobody, true
		d.host.Heads.On(c).AllocSent(false)
	}
	if s.MSS > 0 && int(s.Payload) > s.MSS {
		if s.TSO {
			p.mss = s.MSS
		} else {
			p.gso = s.MSS
		}
	}
	d.xmit(c, &p, false)
}

// startSKB is sch_direct_xmit of one skb: what is not for the device to cut is cut now
// (validate_xmit_skb), and its segments follow each other until the ring is full. Byte
// queue limits stop the queue only for what comes after. It reports false if something is
// left, which p holds then.
func (d *Netdev) startSKB(c *cpu.Core, p *packet, more bool) bool {
	if p.gso == 0 {
		return d.startXmit(c, p, more)
	}
	total := int(p.Payload)
	segs := (total + p.gso - 1) / p.gso
	c.SpendN(model.StageGSOSegment, segs)
	for range segs {
		d.host.Heads.On(c).AllocSent(d.cfg.NoSG)
	}
	p.own, p.linear = true, d.cfg.NoSG
	c.Look()
	each := p.size - total // the head of each
	for i := range segs {
		seg := *p
		n := min(p.gso, int(p.Payload))
		last := i+1 == segs
		seg.gso, seg.Payload, seg.Len = 0, int32(n), p.Len-p.Payload+int32(n)
		if !last {
			seg.Flags &^= model.PSH | model.FIN
		}
		seg.size = each + n
		if i > 0 { // the owner was charged for one head only
			p.freed(c, -each)
		}
		if !d.startXmit(c, &seg, more || !last) {
			if i > 0 {
				p.freed(c, each)
			}
			p.size = each + int(p.Payload)
			return false
		}
		p.Seq += uint64(n)
		p.IPID++
		p.Payload -= int32(n)
		p.Len -= int32(n)
	}
	return true
}

func nobody(*cpu.Core, int) {}

// fragPage is the size of the pages that receive buffers are cut from.
const fragPage = 32768

// headsPerPage is how many heads of small skbs a page gives (page_frag_1k, since v6.1).
const headsPerPage = 4

// Memory is what the allocators of a core have in store for the skbs of its softirqs: what
// an allocation costs depends on how many came before it.
type Memory struct {
	// HeadPage is what a new page for the heads of small skbs costs. The kernels of the
	// recordings zero all pages that they allocate, a byte with each instruction.
	HeadPage sim.Time
	// Heads is how many heads the page still gives.
	Heads int
	// FreePage is what it costs to free a page of receive buffers whose frames were all
	// copied.
	FreePage sim.Time

	page int // bytes left of the page that netdev_alloc_frag cuts from
}

// head pays for the head of a small skb (napi_alloc_skb).
func (m *Memory) head(c *cpu.Core) {
	if m == nil {
		return
	}
	if m.Heads == 0 {
		c.Work(m.HeadPage)
		m.Heads = headsPerPage
	}
	m.Heads--
}

// cut takes n receive buffers from pages and returns how many new ones that takes.
func (d *Netdev) cut(n int) (pages int) {
	for range n {
		if *d.page -= d.buffer; *d.page < 0 {
			*d.page = fragPage - d.buffer
			pages++
		}
	}
	return pages
}

// memory pays for the memory of the next frame's skb, and notes where its data is. A small
// frame is copied into the head of a small skb. Its buffer stays in its place; virtio_net
// frees it, and needs another as for other frames.
func (d *Netdev) memory(c *cpu.Core, s *model.SKB) {
	copied := s.Frame.Len <= copybreak
	if !copied {
		d.keep(s)
	}
	if copied || s.Frags > 0 {
		d.cfg.Memory.head(c)
	}
	if !copied || d.mergeable {
		d.bufferless++
	}
	if copied && d.mergeable && d.rx.Taken()%int64(fragPage/d.buffer) == 0 {
		c.Work(d.cfg.Memory.freePage())
	}
	if copied || s.Frags > 0 || !d.slabSKBs && !d.mergeable {
		d.host.Heads.On(c).Alloc(true)
	}
}

func (m *Memory) freePage() sim.Time {
	if m == nil {
		return 0
	}
	return m.FreePage
}

// keep lets an skb have its buffer: build_skb around it, as e1000 and e1000e do, or what
// the driver has instead.
func (d *Netdev) keep(s *model.SKB) {
	if d.rx.Taken() > d.slabBuffers {
		s.Pages = 1
	}
	if d.shape != nil {
		d.shape(s)
	}
}
