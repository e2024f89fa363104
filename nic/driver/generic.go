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
	txNAPI *softirq.NAPI
	batch  int // refillBatch, but not more than the ring has
}

// NewGeneric registers the interface; Open brings it up. dev must have a vector for
// each ring.
func NewGeneric(cfg Config, host Host, dev *nic.Device) *Generic {
	d := &Generic{Netdev: newNetdev(cfg, host, dev)}
	d.batch = min(refillBatch, d.rx.Size())
	d.napi = d.addNAPI(softirq.NAPIConfig{
		ID: napiID(cfg), GRO: cfg.GRO, RPS: cfg.RPS, Poll: d.pollRX,
	})
	d.txNAPI = d.addNAPI(softirq.NAPIConfig{
		ID: napiID(cfg) + 1, TXOnly: true, Poll: d.pollTX,
	})
	rx, tx := dev.RXVector(0), dev.TXVector(0)
	d.connect(rx, cfg.RXCPU, cfg.RXIRQ, cfg.Name+"-rx-0", func(c *cpu.Core) { d.irqHandler(c, rx, d.napi) })
	d.connect(tx, cfg.TXCPU, cfg.TXIRQ, cfg.Name+"-tx-0", func(c *cpu.Core) { d.irqHandler(c, tx, d.txNAPI) })
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

// pollRX receives frames. Like ixgbe_clean_rx_irq it refills the ring before it looks
// at the next descriptor when a batch of them awaits it; what is left at the end of
// the poll waits for the next one.
func (d *Generic) pollRX(budget int) (work int) {
	c := d.napi.Core()
	for work < budget {
		if n := d.rx.Awaiting(); n >= d.batch {
			d.refill(c, n)
		}
		want := min(budget-work, d.batch-d.rx.Awaiting())
		n := d.receive(c, want)
		work += n
		if n < want {
			break
		}
	}
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
