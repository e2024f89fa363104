package guest

import (
	"fmt"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/nic/driver"
	"napisim/nic/emulated"
	"napisim/softirq"
)

// copybreak is the length up to which e1000 and e1000e copy a frame to a small skb;
// what virtio_net copies is shorter, and no frame lies between.
const copybreak = 256

// The truesize of a copied frame in all drivers, as recorded.
const smallTruesize = 1280

// Netdev is an interface: what the drivers have in common.
type Netdev struct {
	cfg  Config
	host driver.Host
	port *emulated.Port
	rx   *emulated.RXRing
	tx   *emulated.TXRing
	napi *softirq.NAPI // polls the receive ring
	// txNAPI polls the transmit ring of virtio_net.
	txNAPI *softirq.NAPI
	lines  []*cpu.Line
	itr    itr
	large  int // truesize of a frame that is not copied
	buffer int // size of a receive buffer
	// shape tells where the payload of a frame that is not copied lies; nil for build_skb.
	shape func(s *model.SKB)

	// Receive descriptors ever made ready, and of those the ones that the device was
	// told of. tail says how many it is told of.
	made, shown int64
	tail        func(made int64) int64

	// start is ndo_start_xmit, ring the doorbell.
	start   func(c *cpu.Core, p *packet, more bool) bool
	ring    func(c *cpu.Core)
	stopped bool // __QUEUE_STATE_DRV_XOFF
	bql     bql
	qdisc   qdisc
	netTX   bool
	sent    int64

	refs  []reference // of the transmit ring, by place
	held  []heldSKB   // whose they are, by place
	skb   int64       // the number of pktgen's current skb
	fresh bool        // which has not been sent yet
	// completions are skbs that wait for net_tx_action.
	completions []heldSKB

	slabBuffers int64 // the first buffers come from the slab, not from a page: GRO cannot move them
	bufferless  int   // descriptors whose buffer an skb has kept
	page        *int  // what is left of the page that buffers are cut from
	mergeable   bool  // every frame keeps its buffer, and has a small head
	slabSKBs    bool  // buffers are skbs already
	stats       Stats
}

// Stats are the counters of a driver beside those of its device.
type Stats struct {
	// TXQueued counts segments that found the queue stopped and waited, TXDropped those
	// that found the qdisc full too, TXBusy those refused to a caller without a qdisc.
	TXQueued, TXDropped, TXBusy int64
	// Doorbells counts writes of the transmit doorbell.
	Doorbells int64
}

func newNetdev(cfg Config, host driver.Host, port *emulated.Port) *Netdev {
	d := &Netdev{cfg: cfg, host: host, port: port, rx: port.RX(), tx: port.TX(), itr: newITR(cfg), page: new(int)}
	if cfg.Memory != nil {
		d.page = &cfg.Memory.page
	}
	d.bql = newBQL(cfg, host.Machine.HZ())
	d.refs, d.held = make([]reference, d.tx.Size()), make([]heldSKB, d.tx.Size())
	d.tail = func(made int64) int64 { return made }
	return d
}

// napiID gives each NAPI an id above those of CPUs, as the kernel does.
func napiID(irq int) int { return cpu.MaxCores + 1 + irq }

// line makes an interrupt line on the interface's core.
func (d *Netdev) line(irq int, name string, handler func(*cpu.Core)) *cpu.Line {
	l := d.host.Machine.Cores[d.cfg.CPU].NewLine(irq, name, handler)
	d.lines = append(d.lines, l)
	return l
}

// open posts the receive ring before the run, which costs nothing then.
func (d *Netdev) open(descriptors int) {
	d.made = int64(descriptors)
	d.shown = d.tail(d.made)
	d.rx.Refill(0, int(d.shown))
}

// Port returns the interface's end of the hub.
func (d *Netdev) Port() *emulated.Port { return d.port }

// NAPI returns the NAPI that polls the receive ring, TXNAPI that of the transmit ring,
// nil where there is none.
func (d *Netdev) NAPI() *softirq.NAPI { return d.napi }

// TXNAPI returns the NAPI that polls the transmit ring, nil where the driver has none.
func (d *Netdev) TXNAPI() *softirq.NAPI { return d.txNAPI }

// Lines returns the interface's interrupt lines, in the order of their making.
func (d *Netdev) Lines() []*cpu.Line { return d.lines }

// Stats returns the driver's counters.
func (d *Netdev) Stats() Stats { return d.stats }

// schedule is napi_schedule_prep with __napi_schedule; it reports whether the NAPI was
// free.
func (d *Netdev) schedule(c *cpu.Core, n *softirq.NAPI) bool {
	before := n.Stats().Scheduled
	d.host.Softnets[c.ID].NAPISchedule(n)
	return n.Stats().Scheduled != before
}

// receive takes up to budget frames off the ring and hands them up, in the poll of the
// receive NAPI. It calls took after each. The device is looked at only when no frame is
// known to be there: a filled descriptor stays filled.
func (d *Netdev) receive(c *cpu.Core, budget int, took func(c *cpu.Core, work int)) (work int) {
	for work < budget {
		if d.rx.Filled() == 0 {
			c.Look()
			if d.rx.Filled() == 0 {
				c.Spend(model.StageRingLook)
				break
			}
		}
		d.receiveOne(c)
		work++
		took(c, work)
	}
	return work
}

// receiveOne gives the next frame to GRO in an skb of its own.
func (d *Netdev) receiveOne(c *cpu.Core) {
	if c.Machine().Trace != nil {
		c.Look() // which skb it is shows in a trace, and all cores take them from one pool
	}
	f := d.rx.Take()
	d.itr.rxPackets++
	d.itr.rxBytes += int(f.Len)
	s := d.host.SKBs.Get()
	s.Dev, s.NAPIID = d.cfg.Name, d.napi.ID
	s.Frame = *f
	s.Segs = 1
	s.Payload = int(f.Payload)
	s.LastSeg = int(f.Payload)
	s.Truesize = d.large
	if f.Len <= copybreak {
		s.Truesize = smallTruesize
	}
	s.CsumNone = !d.cfg.RXCsum
	s.Arrivals = append(s.Arrivals, f.Arrival)
	d.memory(c, s)
	c.Spend(model.StageRXDescriptor)
	c.Spend(model.StageDMASync)
	c.SpendN(model.StageDMASyncByte, int(s.Frame.Len))
	c.Spend(model.StageSKBBuild)
	if s.Frame.Len <= copybreak {
		c.Spend(model.StageRXCopy)
	}
	d.napi.GROReceive(s)
}

// refill makes n descriptors ready and tells the device of those that its tail covers.
// Frames that the hub holds back arrive at that instant.
func (d *Netdev) refill(c *cpu.Core, n int) {
	if n <= 0 {
		return
	}
	kept := min(n, d.bufferless)
	d.bufferless -= kept
	c.SpendN(model.StagePageSlow, d.cut(kept))
	c.SpendN(model.StageRefillBuffer, kept)
	c.SpendN(model.StageRefill, n)
	d.made += int64(n)
	show := int(d.tail(d.made) - d.shown)
	if show <= 0 {
		return
	}
	c.Spend(model.StageDoorbell)
	c.Look()
	d.shown += int64(show)
	d.rx.Refill(c.Now(), show)
}

// unused is E1000_DESC_UNUSED: the descriptors to make ready, one always stays free.
func (d *Netdev) unused() int { return d.rx.Size() - 1 - int(d.made-d.rx.Taken()) }

// Check holds the books of the interface against each other: those of the device, and
// of the receive descriptors.
func (d *Netdev) Check() error {
	if err := d.port.Check(); err != nil {
		return err
	}
	if d.shown > d.made || d.made > d.rx.Taken()+int64(d.rx.Size()) {
		return fmt.Errorf("guest: %s: %d descriptors made, %d shown, %d taken of a ring of %d",
			d.cfg.Name, d.made, d.shown, d.rx.Taken(), d.rx.Size())
	}
	return nil
}
