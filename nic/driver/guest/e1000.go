package guest

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/nic/driver"
	"napisim/nic/emulated"
	"napisim/softirq"
)

// rxBufferWrite is E1000_RX_BUFFER_WRITE: how many consumed descriptors are gathered
// before they are made ready again.
const rxBufferWrite = 16

// largeTruesize is the truesize of a full frame in e1000 and e1000e, as recorded.
const largeTruesize = 2176

// e1000Spare is what an skb may need at most (MAX_SKB_FRAGS + 2).
const e1000Spare = model.MaxSKBFrags + 2

// e1000Causes is IMS_ENABLE_MASK as far as the device sets it.
const e1000Causes = emulated.CauseTXDW | emulated.CauseRXT0

// E1000 is the driver of the 82540EM (drivers/net/ethernet/intel/e1000, v6.1 and
// v6.12): one interrupt and one NAPI for both directions.
type E1000 struct {
	*Netdev
	dev *emulated.E1000
}

// NewE1000 registers the interface; Open brings it up.
func NewE1000(cfg Config, host driver.Host, dev *emulated.E1000) *E1000 {
	d := &E1000{Netdev: newNetdev(cfg, host, dev.Port), dev: dev}
	d.large, d.buffer = largeTruesize, largeTruesize-model.SKBHead
	d.tail = func(made int64) int64 { return made - 1 } // RDT names the last ready descriptor
	d.start = func(c *cpu.Core, p *packet, more bool) bool { return d.xmitFrame(c, p, more, e1000Spare) }
	d.ring = func(c *cpu.Core) { dev.Doorbell(c.Now()) }
	d.napi = softirq.NewNAPI(softirq.NAPIConfig{
		Name: cfg.Name, ID: napiID(cfg.RXIRQ), GRO: cfg.GRO, RPS: cfg.RPS, Poll: d.clean,
		GROFlushTimeout: cfg.GROFlushTimeout, DeferHardIRQs: cfg.DeferHardIRQs,
	})
	dev.Connect(d.line(cfg.RXIRQ, named(cfg.RXIRQName, cfg.Name), d.intr))
	return d
}

// Open posts the receive ring and enables interrupts. It belongs to the construction of
// a run, after the devices were joined.
func (d *E1000) Open() {
	d.open(d.rx.Size() - 1)
	d.bufferless = 1 // the last place has no buffer until the ring has come around
	d.dev.SetITR(d.itr.interval())
	d.dev.Unmask(0, e1000Causes)
}

// intr is e1000_intr: reading the causes lowers the line, then everything is masked. A
// NAPI that is owned already leaves the interrupt enabled.
func (d *E1000) intr(c *cpu.Core) {
	c.Spend(model.StageIRQHandler)
	c.Look()
	if d.dev.ReadICR(c.Now()) == 0 {
		return
	}
	d.dev.Mask(c.Now(), e1000Causes)
	if !d.schedule(c, d.napi) {
		d.irqEnable(c)
		return
	}
	d.itr.rxBytes, d.itr.rxPackets, d.itr.txBytes, d.itr.txPackets = 0, 0, 0, 0
}

// clean is e1000_clean: transmitted frames, received frames, and the interrupt is
// enabled if less than the budget was there.
func (d *E1000) clean(budget int) int {
	c := d.napi.Core()
	txDone := d.cleanTX(c, wakeThreshold)
	work := d.cleanRX(c, budget)
	if !txDone || work == budget {
		return budget
	}
	if d.napi.CompleteDone(work) {
		if d.itr.set() {
			c.Look()
			d.dev.SetITR(d.itr.interval())
		}
		d.irqEnable(c)
	}
	return work
}

// irqEnable is e1000_irq_enable.
func (d *E1000) irqEnable(c *cpu.Core) {
	c.Spend(model.StageIRQUnmask)
	c.Look()
	d.dev.Unmask(c.Now(), e1000Causes)
}

// cleanRX is e1000_clean_rx_irq of e1000 and e1000e: descriptors are made ready in
// batches, and the rest at the end.
func (d *Netdev) cleanRX(c *cpu.Core, budget int) int {
	work := d.receive(c, budget, d.cleanedOne)
	d.refill(c, d.unused())
	return work
}

func (d *Netdev) cleanedOne(c *cpu.Core, work int) {
	if work%rxBufferWrite == 0 {
		d.refill(c, rxBufferWrite)
	}
}
