package driver

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/nic"
	"napisim/softirq"
)

// LAN966x drives the FDMA of the Microchip LAN966x: one vector and one NAPI for both
// directions, no moderation, and pending bits that are acknowledged before the
// poll. A frame that completes after the acknowledgement leaves its bit set even if
// this very poll consumes it, so enabling the interrupt fires at once.
type LAN966x struct {
	*Netdev
	vector *nic.Vector
}

// NewLAN966x registers the interface; Open brings it up. dev must share its vector
// between RX and TX and latch events.
func NewLAN966x(cfg Config, host Host, dev *nic.Device) *LAN966x {
	d := &LAN966x{Netdev: newNetdev(cfg, host, dev), vector: dev.RXVector(0)}
	d.napi = d.addNAPI(softirq.NAPIConfig{
		ID: napiID(cfg), GRO: cfg.GRO, RPS: cfg.RPS, Poll: d.poll,
	})
	d.connect(d.vector, cfg.RXCPU, cfg.RXIRQ, "fdma", d.irqHandler)
	return d
}

// irqHandler is lan966x_fdma_irq_handler: mask all channels, acknowledge, schedule.
func (d *LAN966x) irqHandler(c *cpu.Core) {
	c.Spend(model.StageIRQHandler)
	c.Look()
	d.vector.Mask()
	d.vector.Ack(c.Now())
	d.host.Softnets[c.ID].NAPISchedule(d.napi)
}

// poll is lan966x_fdma_napi_poll: transmitted frames, received frames, one reload
// per consumed descriptor, completion.
func (d *LAN966x) poll(budget int) int {
	c := d.napi.Core()
	d.reclaimTX(c)
	work := d.receive(c, budget)
	for range work {
		d.refill(c, 1)
	}
	if work < budget && d.napi.CompleteDone(work) {
		d.unmask(c, d.vector)
	}
	return work
}

// napiID gives each interface's NAPI an id above those of CPUs, as the kernel does.
func napiID(cfg Config) int { return cpu.MaxCores + 1 + cfg.RXIRQ }
