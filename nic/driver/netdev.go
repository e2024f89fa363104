package driver

import (
	"cmp"
	"fmt"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/skbuff"
	"napisim/nic"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq"
	"napisim/softirq/gro"
	"napisim/softirq/rps"
)

// Config describes an interface as a driver brings it up.
type Config struct {
	// Name is the interface's name.
	Name string
	// Buffer is the size of one receive buffer in bytes, which a received skb is
	// charged for: 4096 with a page per frame, 2048 with half a page.
	Buffer int
	// XDPDrop lets an XDP program drop every frame before an skb is made.
	XDPDrop bool
	// Pool is the page_pool of the receive ring.
	Pool PagePoolConfig
	// RXCsum tells that the device verifies checksums (ethtool -K rx).
	RXCsum bool
	// GRO configures GRO; nil turns it off (ethtool -K gro off).
	GRO *gro.Config
	// BuildSKB says that the driver allocates its skbs with build_skb, which does not draw
	// on the cache of descriptors; otherwise it is one of the napi_alloc_skb family.
	BuildSKB bool
	// RPS steers received packets to other cores; nil does not.
	RPS *rps.Queue
	// GROFlushTimeout and DeferHardIRQs are gro_flush_timeout and napi_defer_hard_irqs of
	// the interface.
	GROFlushTimeout sim.Time
	DeferHardIRQs   int
	// IRQSuspendTimeout is irq_suspend_timeout of its NAPIs (v6.13).
	IRQSuspendTimeout sim.Time
	// GROFrags lets the driver call napi_gro_frags: headers are copied into a head of the
	// NAPI's own, the payload stays in a page fragment.
	GROFrags bool
	// Head is the size in bytes of the data area of such a head, skb_shared_info included;
	// 0 means 1024, as in v6.1.
	Head int
	// RXIRQ and TXIRQ are the Linux interrupt numbers of the vectors.
	RXIRQ, TXIRQ int
	// RXCPU and TXCPU are the cores that take the interrupts (smp_affinity).
	RXCPU, TXCPU int
}

// Validate returns every fault of the configuration.
func (c *Config) Validate() []error {
	faults := c.Pool.Validate()
	if c.Buffer < model.MinFrame || c.Buffer > 65536 {
		faults = append(faults, fmt.Errorf("buffer: %d is not between %d and 65536", c.Buffer, model.MinFrame))
	}
	if c.GRO != nil {
		if err := c.GRO.Validate(); err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

// Host is what an interface needs of the machine it is plugged into.
type Host struct {
	Machine  *cpu.Machine
	Softnets []*softirq.Softnet // by core
	SKBs     *model.SKBPool
	Losses   *model.Losses
	// Heads are the caches of skb descriptors; nil leaves them out.
	Heads *skbuff.Heads
}

// Netdev is an interface: what the drivers have in common.
type Netdev struct {
	cfg    Config
	host   Host
	dev    *nic.Device
	rx     *nic.RXRing
	tx     *nic.TXRing
	pool   *PagePool
	napi   *softirq.NAPI // polls the receive ring
	napis  []*softirq.NAPI
	lines  []*cpu.Line
	qdisc  qdisc
	sent   int64
	missed int64 // of those missed by the ring, how many the trace tells of
	stats  Stats
}

// Stats are the counters of a driver beside those of its device.
type Stats struct {
	// XDPDropped counts frames that the XDP program dropped.
	XDPDropped int64
	// TXQueued counts segments that found the transmit ring full and waited,
	// TXDropped those that found the queue full too.
	TXQueued, TXDropped int64
}

func newNetdev(cfg Config, host Host, dev *nic.Device) *Netdev {
	d := &Netdev{cfg: cfg, host: host, dev: dev, rx: dev.RX(0), tx: dev.TX(0)}
	owner := func() int { return d.napi.ListOwner() }
	d.pool = NewPagePool(cfg.Pool, cfg.Buffer, host.Machine.Cores, owner)
	return d
}

// addNAPI is netif_napi_add.
func (d *Netdev) addNAPI(cfg softirq.NAPIConfig) *softirq.NAPI {
	cfg.Name = d.cfg.Name
	cfg.GROFlushTimeout, cfg.DeferHardIRQs = d.cfg.GROFlushTimeout, d.cfg.DeferHardIRQs
	cfg.IRQSuspendTimeout = d.cfg.IRQSuspendTimeout
	n := softirq.NewNAPI(cfg)
	d.napis = append(d.napis, n)
	return n
}

// SetThreaded is dev_set_threaded: the interface's NAPIs are polled by threads of their
// own on the core of sd. It belongs to the construction of a run.
func (d *Netdev) SetThreaded(sd *softirq.Softnet, how softirq.Threading) error {
	for _, n := range d.napis {
		if err := n.SetThreaded(sd, how); err != nil {
			return err
		}
	}
	return nil
}

// Open posts the receive ring and enables the interrupts (ndo_open). It belongs to
// the construction of a run, after the link has got its sources.
func (d *Netdev) Open() {
	d.pool.Prefill(d.rx.Size())
	d.rx.Refill(0, d.rx.Size())
	for _, v := range d.dev.Vectors() {
		v.Unmask(0)
	}
}

// connect leads a vector to a core and calls handler there for each interrupt.
func (d *Netdev) connect(v *nic.Vector, cpuID, irq int, name string, handler func(*cpu.Core)) {
	l := d.host.Machine.Cores[cpuID].NewLine(irq, name, handler)
	v.Connect(l)
	d.lines = append(d.lines, l)
}

// unmask enables the interrupt of a vector at the end of a poll.
func (d *Netdev) unmask(c *cpu.Core, v *nic.Vector) {
	c.Spend(model.StageIRQUnmask)
	c.Look()
	v.Unmask(c.Now())
}

// Device returns the interface's device.
func (d *Netdev) Device() *nic.Device { return d.dev }

// NAPI returns the NAPI that polls the receive ring.
func (d *Netdev) NAPI() *softirq.NAPI { return d.napi }

// Pool returns the interface's page_pool.
func (d *Netdev) Pool() *PagePool { return d.pool }

// Lines returns the interface's interrupt lines.
func (d *Netdev) Lines() []*cpu.Line { return d.lines }

// Stats returns the driver's counters.
func (d *Netdev) Stats() Stats { return d.stats }

// receive takes up to budget frames off the ring and hands them up, in the poll of
// the receive NAPI on core c; fewer if it comes to a descriptor that is not filled.
// The device is looked at only when no frame is known to be there: a filled
// descriptor stays filled.
func (d *Netdev) receive(c *cpu.Core, budget int) (work int) {
	for work < budget {
		if d.rx.Filled() == 0 && !d.pull(c) {
			c.Spend(model.StageRingLook)
			break
		}
		if d.cfg.XDPDrop {
			n := min(d.rx.Filled(), budget-work)
			d.xdpDrop(c, n)
			work += n
			continue
		}
		d.receiveOne(c)
		work++
	}
	return work
}

// pull reads the next descriptor; it reports whether that is filled.
func (d *Netdev) pull(c *cpu.Core) bool {
	c.Look()
	d.rx.Pull(c.Now())
	d.traceMissed(c)
	return d.rx.Filled() > 0
}

// traceMissed records that the ring has missed frames, when the driver learns of it.
func (d *Netdev) traceMissed(c *cpu.Core) {
	n := d.rx.Missed() - d.missed
	d.missed += n
	if n > 0 && c.Recording() {
		e := c.Event(trace.RxMissed)
		e.B, e.S = n, d.cfg.Name
		c.Emit(e)
	}
}

// receiveOne builds an skb around the next frame's page and gives it to GRO.
func (d *Netdev) receiveOne(c *cpu.Core) {
	if c.Machine().Trace != nil {
		c.Look() // which skb it is shows in a trace, and all cores take them from one pool
	}
	f := d.rx.Take()
	s := d.host.SKBs.Get()
	s.Dev = d.cfg.Name
	s.Frame = *f
	s.Segs = 1
	s.Payload = int(f.Payload)
	s.LastSeg = int(f.Payload)
	s.Truesize = d.cfg.Buffer + model.SKBHead
	s.Pages = 1
	s.Pool = d.pool
	s.NAPIID, s.AllocCPU = d.napi.ID, c.ID
	s.CsumNone = !d.cfg.RXCsum
	s.Arrivals = append(s.Arrivals, f.Arrival)
	c.Spend(model.StageRXDescriptor)
	c.Spend(model.StageDMASync)
	c.SpendN(model.StageDMASyncByte, int(s.Frame.Len))
	if !d.cfg.GROFrags || !d.napi.GetFrags() {
		d.host.Heads.On(c).Alloc(!d.cfg.BuildSKB)
	}
	c.Spend(model.StageSKBBuild)
	if d.cfg.GROFrags {
		s.Frags, s.Head = 1, cmp.Or(d.cfg.Head, groFragsHead)
		s.Truesize = d.cfg.Buffer + s.Head + model.SKBHead
		d.napi.GROFrags(s)
		return
	}
	d.napi.GROReceive(s)
}

// groFragsHead is the data area of the head that napi_get_frags allocates for headers.
const groFragsHead = 1024

// xdpDrop runs the XDP program on the next n frames, which drops them; their pages
// go straight back to the pool.
func (d *Netdev) xdpDrop(c *cpu.Core, n int) {
	c.Look() // what is lost is seen outside
	d.stats.XDPDropped += int64(n)
	d.host.Losses.Add(model.DropXDP, n)
	bytes := 0
	for range n {
		bytes += int(d.rx.Take().Len)
	}
	d.pool.hand += n
	c.SpendN(model.StageDMASyncByte, bytes)
	c.SpendN(model.StageRXDescriptor, n)
	c.SpendN(model.StageDMASync, n)
	c.SpendN(model.StageXDP, n)
	d.pool.RecycleDirect(c, n)
}

// refill makes n descriptors ready, a page for each, and tells the device of all of
// them with one doorbell. It does not see them before.
func (d *Netdev) refill(c *cpu.Core, n int) {
	d.pool.Alloc(c, n)
	c.SpendN(model.StageRefill, n)
	c.Spend(model.StageDoorbell)
	c.Look()
	d.pool.hand -= n
	d.rx.Refill(c.Now(), n)
	d.traceMissed(c)
}

// Check holds the books of the interface against each other at the present instant:
// those of the device, and the pages of the pool. held is the number of its pages in
// skbs.
func (d *Netdev) Check(held int) error {
	if err := d.dev.Check(d.host.Machine.Engine().Now()); err != nil {
		return err
	}
	return d.pool.Check(d.rx.Free()+d.rx.Filled(), held)
}
