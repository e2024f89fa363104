package driver

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/nic"
	"napisim/softirq"
)

// refillBatch is how many consumed descriptors the generic driver gathers before it
// refills them, as ixgbe does (IXGBE_RX_BUFFER_WRITE).
const refillBatch = 16

// Generic drives a device with a vector and a NAPI for each direction.
type Generic struct {
	*Netdev
	txNAPI   *softirq.NAPI
	consumed int // descriptors that await refill
}

// NewGeneric registers the interface; Open brings it up. dev must have a vector for each ring.
func NewGeneric(cfg Config, host Host, dev *nic.Device) *Generic {
	d := &Generic{Netdev: newNetdev(cfg, host, dev)}
	d.napi = softirq.NewNAPI(softirq.NAPIConfig{Name: cfg.Name, ID: napiID(cfg), GRO: cfg.GRO, Poll: d.pollRX})
	d.txNAPI = softirq.NewNAPI(softirq.NAPIConfig{Name: cfg.Name, ID: napiID(cfg) + 1, Poll: d.pollTX})
	d.connect(dev.RXVector(0), cfg.RXCPU, cfg.RXIRQ, cfg.Name+"-rx-0", func(c *cpu.Core) { d.irqHandler(c, dev.RXVector(0), d.napi) })
	d.connect(dev.TXVector(0), cfg.TXCPU, cfg.TXIRQ, cfg.Name+"-tx-0", func(c *cpu.Core) { d.irqHandler(c, dev.TXVector(0), d.txNAPI) })
	return d
}

// irqHandler masks the vector, which MSI-X devices do by themselves, and schedules
// its NAPI.
func (d *Generic) irqHandler(c *cpu.Core, v *nic.Vector, n *softirq.NAPI) {
	c.Spend(model.StageIRQHandler)
	c.Look()
	v.Mask()
	v.Ack(c.Now())
	d.host.Softnets[c.ID].NAPISchedule(n)
}

// pollRX receives frames and refills the ring in batches on the way.
func (d *Generic) pollRX(budget int) int {
	c := d.napi.Core()
	work := d.receive(c, budget, func(taken int) {
		if d.consumed += taken; d.consumed >= refillBatch {
			d.refill(c, d.consumed)
			c.Spend(model.StageDoorbell)
			d.consumed = 0
		}
	})
	if work < budget && d.napi.CompleteDone(work) {
		d.unmask(c, d.dev.RXVector(0))
	}
	return work
}

// pollTX reclaims transmitted frames; it counts as no work, as in Linux.
func (d *Generic) pollTX(int) int {
	c := d.txNAPI.Core()
	d.reclaimTX(c)
	if d.txNAPI.CompleteDone(0) {
		d.unmask(c, d.dev.TXVector(0))
	}
	return 0
}

func (d *Generic) unmask(c *cpu.Core, v *nic.Vector) {
	c.Spend(model.StageIRQUnmask)
	c.Look()
	v.Unmask(c.Now())
}
