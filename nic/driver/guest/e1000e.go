package guest

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/nic/driver"
	"napisim/nic/emulated"
	"napisim/softirq"
)

// e1000eSpare is what e1000_maybe_stop_tx of e1000e asks for: a descriptor for each
// page of the largest skb, and four.
const e1000eSpare = model.MaxSKBFrags + 1 + 4

// E1000E is the driver of the 82574L with MSI-X (drivers/net/ethernet/intel/e1000e,
// v6.1 and v6.12). The receive vector has a NAPI; transmitted frames are freed in the
// hard interrupt of the other.
type E1000E struct {
	*Netdev
	dev    *emulated.E1000E
	setITR bool // the next receive interrupt writes the rate
}

// NewE1000E registers the interface; Open brings it up.
func NewE1000E(cfg Config, host driver.Host, dev *emulated.E1000E) *E1000E {
	d := &E1000E{Netdev: newNetdev(cfg, host, dev.Port), dev: dev}
	d.large, d.buffer = largeTruesize, largeTruesize-model.SKBHead
	// The tail is written with every 16th descriptor only, before that is ready.
	d.tail = func(made int64) int64 { return max(made-1, 0) &^ (rxBufferWrite - 1) }
	d.start = func(c *cpu.Core, p *packet, more bool) bool { return d.xmitFrame(c, p, more, e1000eSpare) }
	d.ring = func(c *cpu.Core) { dev.Doorbell(c.Now()) }
	d.napi = softirq.NewNAPI(softirq.NAPIConfig{
		Name: cfg.Name, ID: napiID(cfg.RXIRQ), GRO: cfg.GRO, RPS: cfg.RPS, Poll: d.poll,
		GROFlushTimeout: cfg.GROFlushTimeout, DeferHardIRQs: cfg.DeferHardIRQs,
	})
	dev.Connect(emulated.VectorTX, d.line(cfg.TXIRQ, named(cfg.TXIRQName, cfg.Name+"-tx-0"), d.intrTX))
	dev.Connect(emulated.VectorRX, d.line(cfg.RXIRQ, named(cfg.RXIRQName, cfg.Name+"-rx-0"), d.intrRX))
	return d
}

// Open posts the receive ring and enables interrupts. It belongs to the construction of
// a run, after the devices were joined. The link is up by then: see linkUp. Buffers that
// are made while memory may be waited for are no page fragments (__netdev_alloc_skb).
func (d *E1000E) Open() {
	d.slabBuffers = int64(d.rx.Size() - 1)
	d.open(d.rx.Size() - 1)
	d.bufferless = 1 // the last place has no buffer until the ring has come around
	d.dev.SetEITR(emulated.VectorRX, d.itr.interval())
	d.dev.SetEITR(emulated.VectorTX, d.itr.interval())
	if !d.cfg.FixedITR {
		d.linkUp()
	}
	d.dev.Unmask(0, emulated.CauseRXQ0|emulated.CauseTXQ0)
}

// linkUp leaves what the two receive interrupts leave that e1000_watchdog_task asks for
// while the link comes up. The poll of the first still finds an unknown speed, for which
// e1000_set_itr has 4000 a second; the second interrupt writes that to the device, and
// its poll begins to raise the rate, which the first interrupt of the run will write.
func (d *E1000E) linkUp() {
	d.itr.rate = rates[bulkLatency]
	d.dev.SetEITR(emulated.VectorRX, d.itr.interval())
	d.setITR = d.itr.set()
}

// intrRX is e1000_intr_msix_rx. The device has masked the vector itself.
func (d *E1000E) intrRX(c *cpu.Core) {
	c.Spend(model.StageIRQHandler)
	c.Look()
	if d.setITR {
		d.setITR = false
		d.dev.SetEITR(emulated.VectorRX, d.itr.interval())
	}
	if d.schedule(c, d.napi) {
		d.itr.rxBytes, d.itr.rxPackets = 0, 0
	}
}

// intrTX is e1000_intr_msix_tx.
func (d *E1000E) intrTX(c *cpu.Core) {
	c.Spend(model.StageIRQHandler)
	d.itr.txBytes, d.itr.txPackets = 0, 0
	done := d.cleanTX(c, wakeThreshold)
	c.Spend(model.StageIRQUnmask)
	c.Look()
	if !done {
		d.dev.SetCause(c.Now(), emulated.CauseTXQ0)
	}
	d.dev.Unmask(c.Now(), emulated.CauseTXQ0)
}

// poll is e1000e_poll with MSI-X: it only receives.
func (d *E1000E) poll(budget int) int {
	c := d.napi.Core()
	work := d.cleanRX(c, budget)
	if work == budget {
		return budget
	}
	if d.napi.CompleteDone(work) {
		c.Look()
		if d.itr.set() {
			d.setITR = true
		}
		c.Spend(model.StageIRQUnmask)
		c.Look()
		d.dev.Unmask(c.Now(), emulated.CauseRXQ0)
	}
	return work
}
