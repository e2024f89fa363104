package virtual

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/nic/driver"
	"napisim/sim/trace"
	"napisim/softirq"
	"napisim/softirq/gro"
	"napisim/softirq/rps"
)

// vethRingSize is the size of the ring between the ends of a pair (VETH_RING_SIZE).
const vethRingSize = 256

// VethConfig describes the receiving end of a veth pair, and what it needs to know of
// the sending end.
type VethConfig struct {
	// Name is the name of the receiving end, ID the id of its NAPI.
	Name string
	ID   int
	// Peer is the name of the sending end.
	Peer string
	// GRO configures GRO of the receiving end; nil turns it off.
	GRO *gro.Config
	// SenderTSO tells that the sending end has TSO on.
	SenderTSO bool
	// RPS steers what the receiving end gets to other cores; nil does not.
	RPS *rps.Queue
}

// Veth is one direction of a veth pair. By its NAPI go frames only if the receiving end
// has GRO on and the sending end TSO off, as of others there would be nothing to merge
// (veth_skb_is_eligible_for_gro, since v5.13); all others take the backlog.
type Veth struct {
	cfg    VethConfig
	host   driver.Host
	napi   *softirq.NAPI // nil where frames take the backlog
	ring   model.SKBList
	masked bool // rx_notify_masked: the NAPI is scheduled already
	stats  VethStats
}

// VethStats are the counters of one direction.
type VethStats struct {
	// Frames and Bytes count what was sent, Full what found the ring full.
	Frames, Bytes, Full int64
}

// NewVeth makes one direction of a pair.
func NewVeth(cfg VethConfig, host driver.Host) *Veth {
	d := &Veth{cfg: cfg, host: host}
	if cfg.GRO != nil && !cfg.SenderTSO {
		d.napi = softirq.NewNAPI(softirq.NAPIConfig{Name: cfg.Name, ID: cfg.ID, GRO: cfg.GRO, RPS: cfg.RPS, Poll: d.poll})
	}
	return d
}

// Stats returns the counters.
func (d *Veth) Stats() VethStats { return d.stats }

// Xmit is veth_xmit with veth_forward_skb on core c, where softirqs are off. The skb is
// that of the sender, whose copy and allocation are charged here.
func (d *Veth) Xmit(c *cpu.Core, f *model.Frame) {
	d.forward(c, build(c, &d.host, d.cfg.Name, f))
}

// Release is Xmit for a frame whose sender paid for it before a queueing discipline
// kept it.
func (d *Veth) Release(c *cpu.Core, f *model.Frame) {
	d.forward(c, wrap(c, &d.host, d.cfg.Name, f))
}

// A Packet is an skb of a socket on its way through a pair: a segment, or several of MSS
// bytes each with the headers of the first.
type Packet struct {
	model.Segment
	// MSS is the payload of each segment, 0 for a single one.
	MSS int
	// Truesize is what its owner is charged for.
	Truesize int
}

// XmitSKB is dev_queue_xmit of an skb of a socket. Softirqs are off on core c. With TSO at
// the sending end the skb goes over as it is; otherwise it is cut into its segments
// (validate_xmit_skb). That more of them will come does not keep the first from waking the
// receiving end. The packet is the caller's again afterwards.
func (d *Veth) XmitSKB(c *cpu.Core, p *Packet) {
	d.xmit(c, p)
	c.Spend(model.StageXmitTail)
}

func (d *Veth) xmit(c *cpu.Core, p *Packet) {
	total := int(p.Payload)
	if p.MSS <= 0 || total <= p.MSS {
		d.forward(c, d.skb(c, &p.Frame, 1, total, p.Truesize))
		return
	}
	segs := (total + p.MSS - 1) / p.MSS
	if d.cfg.SenderTSO {
		first := p.Frame
		first.Payload, first.Len = int32(p.MSS), p.Len-p.Payload+int32(p.MSS)
		d.forward(c, d.skb(c, &first, segs, total, p.Truesize))
		return
	}
	c.SpendN(model.StageGSOSegment, segs)
	seg, head := p.Frame, p.Truesize-total
	for left := total; left > 0; left -= p.MSS {
		n := min(left, p.MSS)
		seg.Payload, seg.Len = int32(n), p.Len-p.Payload+int32(n)
		seg.Flags = p.Flags
		if n < left {
			seg.Flags &^= model.PSH | model.FIN
		}
		s := d.skb(c, &seg, 1, n, head+n)
		d.forward(c, s)
		seg.Seq += uint64(n)
		seg.IPID++
	}
}

// skb makes an skb of segs segments with payload bytes in all.
func (d *Veth) skb(c *cpu.Core, first *model.Frame, segs, payload, size int) *model.SKB {
	s := wrap(c, &d.host, d.cfg.Name, first)
	s.Segs, s.Payload, s.LastSeg = segs, payload, payload-(segs-1)*int(first.Payload)
	if size > 0 {
		s.Truesize = size
	}
	if payload > 0 {
		s.Head, s.Frags = 1024, 1
	}
	return s
}

func (d *Veth) forward(c *cpu.Core, s *model.SKB) {
	// The receiver may free s at once.
	id, length := s.ID, int64(s.Frame.Len-s.Frame.Payload)+int64(s.Payload)
	d.stats.Frames++
	d.stats.Bytes += length
	d.vethXmit(c, s)
	if c.Machine().Trace == nil {
		return
	}
	c.Look()
	if c.Recording() {
		e := c.Event(trace.NetDevXmit)
		e.A, e.B, e.S = id, length, d.cfg.Peer
		c.Emit(e)
	}
}

func (d *Veth) vethXmit(c *cpu.Core, s *model.SKB) {
	c.Spend(model.StageVethXmit)
	sd := d.host.Softnets[c.ID]
	if d.napi == nil {
		sd.NetifRx(d.cfg.RPS, s)
		return
	}
	c.Look()
	if d.ring.Len() == vethRingSize {
		d.stats.Full++
		drop(c, &d.host, s, model.DropFullRing)
		return
	}
	d.ring.PushBack(s)
	if !d.masked {
		d.masked = true
		sd.NAPISchedule(d.napi)
	}
}

// poll is veth_poll: it takes frames off the ring. The senders' notifications are on
// again before the last look at the ring, so that no frame is forgotten.
func (d *Veth) poll(budget int) (work int) {
	c := d.napi.Core()
	for work < budget {
		c.Look()
		s := d.ring.PopFront()
		if s == nil {
			break
		}
		work++
		c.Spend(model.StageRXDescriptor)
		d.napi.GROReceive(s)
	}
	if work < budget && d.napi.CompleteDone(work) {
		c.Look()
		d.masked = d.ring.Len() > 0
		if d.masked {
			d.host.Softnets[c.ID].NAPISchedule(d.napi)
		}
	}
	return work
}
