package emulated

import "napisim/sim"

// The vectors of an E1000E. The third of the real device reports link changes.
const (
	VectorRX = iota
	VectorTX

	numVectors
)

// vectorCause is the cause that each vector reports.
var vectorCause = [numVectors]Cause{VectorRX: CauseRXQ0, VectorTX: CauseTXQ0}

// msix is one vector: a throttling timer and what it remembers.
type msix struct {
	line    Line
	eitr    int
	running bool
	// postponed is set by an interrupt that came while the timer ran. The emulation
	// never clears it: from then on every expiry sends a message.
	postponed bool
}

// E1000E is QEMU's 82574L with MSI-X.
type E1000E struct {
	*Port
	icr, ims Cause
	vectors  [numVectors]msix
}

// NewE1000E returns an unplugged device with every interrupt masked. cfg must be valid.
func NewE1000E(eng *sim.Engine, phase sim.Phase, cfg Config) *E1000E {
	d := &E1000E{Port: newPort(eng, phase, cfg)}
	d.intr = d
	for v := range d.vectors {
		d.vectors[v].eitr = minInterval
	}
	return d
}

// Connect sets where the messages of a vector go, before the run.
func (d *E1000E) Connect(vector int, l Line) { d.vectors[vector].line = l }

// Doorbell is a write of TDT: what was posted is sent at now.
func (d *E1000E) Doorbell(now sim.Time) { d.send(now) }

// SetEITR is a write of a vector's throttling register, in units of 256 ns. Intervals
// below 128 us are raised to it, zero included.
func (d *E1000E) SetEITR(vector, interval int) { d.vectors[vector].eitr = max(interval, minInterval) }

// Unmask is a write of IMS: causes that are set already send their messages.
func (d *E1000E) Unmask(now sim.Time, c Cause) {
	d.ims |= c
	d.update(now)
}

// SetCause is a write of ICS.
func (d *E1000E) SetCause(now sim.Time, c Cause) {
	d.icr |= c
	d.update(now)
}

// Masked reports whether the cause cannot interrupt.
func (d *E1000E) Masked(c Cause) bool { return d.ims&c == 0 }

func (d *E1000E) received(now sim.Time) { d.SetCause(now, CauseRXQ0) }

func (d *E1000E) transmitted(now sim.Time, last bool) {
	if last {
		d.SetCause(now, CauseTXQ0|CauseTXQE)
	}
}

// update sends the messages that are due. Each clears its cause and its mask bit
// (EIAC), also where its vector's timer postpones it.
func (d *E1000E) update(now sim.Time) {
	for v := range d.vectors {
		c := vectorCause[v]
		if d.icr&d.ims&c == 0 {
			continue
		}
		d.icr &^= c
		d.ims &^= c
		m := &d.vectors[v]
		if m.running {
			m.postponed = true
			continue
		}
		m.running = true
		d.eng.Schedule(now+sim.Time(m.eitr)*itrUnit, d.phase, d, uint64(v))
		d.raise(m.line)
	}
}

// Fire is the end of a vector's timer. It is the engine that calls it.
func (d *E1000E) Fire(vector uint64) {
	m := &d.vectors[vector]
	m.running = false
	if m.postponed {
		d.raise(m.line)
	}
}
