package emulated

import "napisim/sim"

// Cause is a set of bits of an interrupt cause register.
type Cause uint32

// The causes that matter, with the values of the data sheets. An E1000 reports TXDW
// and RXT0, an E1000E with MSI-X RXQ0 and TXQ0.
const (
	CauseTXDW Cause = 1 << 0
	CauseTXQE Cause = 1 << 1
	CauseRXT0 Cause = 1 << 7
	CauseRXQ0 Cause = 1 << 20
	CauseTXQ0 Cause = 1 << 22
)

// itrUnit is the unit of the throttling registers, and minInterval the least interval
// that the emulation grants: 128 us, for at most 7813 interrupts a second.
const (
	itrUnit     = 256 * sim.Nanosecond
	minInterval = 500
)

// E1000 is QEMU's 82540EM: one level-triggered line for everything, and a timer that
// postpones its next raising edge.
type E1000 struct {
	*Port
	line     Line
	icr, ims Cause
	level    bool
	itr      int
	off      bool // mitigation=off
	running  bool // the mitigation timer
}

// NewE1000 returns an unplugged device with every interrupt masked. cfg must be valid.
func NewE1000(eng *sim.Engine, phase sim.Phase, cfg Config) *E1000 {
	d := &E1000{Port: newPort(eng, phase, cfg), off: cfg.NoMitigation}
	d.intr = d
	return d
}

// Connect sets where interrupts go, before the run.
func (d *E1000) Connect(l Line) { d.line = l }

// Doorbell is a write of TDT: what was posted is sent at now.
func (d *E1000) Doorbell(now sim.Time) { d.send(now) }

// ReadICR is a read of ICR: it returns the causes and clears them, which lowers the line.
func (d *E1000) ReadICR(now sim.Time) Cause {
	c := d.icr
	d.set(now, 0)
	return c
}

// Mask is a write of IMC.
func (d *E1000) Mask(now sim.Time, c Cause) {
	d.ims &^= c
	d.set(now, d.icr)
}

// Unmask is a write of IMS: causes that are set already raise the line.
func (d *E1000) Unmask(now sim.Time, c Cause) {
	d.ims |= c
	d.set(now, d.icr)
}

// Masked reports whether no cause can interrupt.
func (d *E1000) Masked() bool { return d.ims == 0 }

// SetITR is a write of ITR, in units of 256 ns. The timer that runs keeps its interval.
func (d *E1000) SetITR(interval int) { d.itr = interval }

func (d *E1000) received(now sim.Time) { d.set(now, d.icr|CauseRXT0) }

func (d *E1000) transmitted(now sim.Time, last bool) {
	if last {
		d.set(now, d.icr|CauseTXDW|CauseTXQE)
	}
}

// set changes the causes and works out the level of the line. A rising edge is left out
// while the mitigation timer runs; the others start it.
func (d *E1000) set(now sim.Time, c Cause) {
	d.icr = c
	pending := d.icr&d.ims != 0
	if !d.level && pending {
		if d.running {
			return
		}
		if !d.off {
			d.running = true
			d.eng.Schedule(now+sim.Time(d.interval())*itrUnit, d.phase, d, 0)
		}
	}
	if pending && !d.level {
		d.raise(d.line)
	}
	d.level = pending
}

// interval returns the mitigation interval. The delays of transmission that drivers set
// (TADV) are below the minimum and decide nothing.
func (d *E1000) interval() int { return max(d.itr, minInterval) }

// Fire is the end of the mitigation timer. It is the engine that calls it.
func (d *E1000) Fire(uint64) {
	d.running = false
	d.set(d.eng.Now(), d.icr)
}
