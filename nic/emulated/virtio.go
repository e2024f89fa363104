package emulated

import "napisim/sim"

// never is an event index that is not reached: callbacks are disabled.
const never = -1

// Virtqueue is the interrupt side of one virtqueue with an event index: the device
// interrupts when the count of used buffers passes the one that the driver has named.
// Counts do not wrap here; in the ring they have 16 bits.
type Virtqueue struct {
	line      Line
	used      int64 // buffers that the device has used
	event     int64 // the driver's event index
	signalled int64 // used at the last look whether to interrupt
	valid     bool  // there was such a look
}

// Used returns how many buffers the device has ever used. The caller has looked.
func (q *Virtqueue) Used() int64 { return q.used }

// DisableCB is virtqueue_disable_cb: no interrupt is wanted.
func (q *Virtqueue) DisableCB() { q.event = never }

// EnableCB asks for an interrupt when the count of used buffers passes event.
func (q *Virtqueue) EnableCB(event int64) { q.event = event }

// use notes one used buffer and reports whether the driver wants to know. The first
// look of all always interrupts.
func (q *Virtqueue) use() bool {
	q.used++
	old, valid := q.signalled, q.valid
	q.signalled, q.valid = q.used, true
	return !valid || old <= q.event && q.event < q.used
}

// Virtio is QEMU's virtio-net-pci with one pair of virtqueues.
type Virtio struct {
	*Port
	RXQueue, TXQueue Virtqueue
	delay            sim.Time
	scheduled        bool // the transmission in the main loop
}

// NewVirtio returns an unplugged device. cfg must be valid.
func NewVirtio(eng *sim.Engine, phase sim.Phase, cfg Config) *Virtio {
	d := &Virtio{Port: newPort(eng, phase, cfg), delay: cfg.TXDelay}
	d.intr = d
	d.TXQueue.event = never
	return d
}

// Connect sets where the interrupts of the queues go, before the run.
func (d *Virtio) Connect(rx, tx Line) { d.RXQueue.line, d.TXQueue.line = rx, tx }

// Doorbell is a notification of the transmit queue: what was posted is sent after
// TXDelay, with what is posted until then.
func (d *Virtio) Doorbell(now sim.Time) {
	switch {
	case d.scheduled:
	case d.delay == 0:
		d.send(now)
	default:
		d.scheduled = true
		d.eng.Schedule(now+d.delay, d.phase, d, 0)
	}
}

// Fire is the transmission in the main loop. It is the engine that calls it.
func (d *Virtio) Fire(uint64) {
	d.scheduled = false
	d.send(d.eng.Now())
}

func (d *Virtio) received(sim.Time) {
	if d.RXQueue.use() {
		d.raise(d.RXQueue.line)
	}
}

func (d *Virtio) transmitted(_ sim.Time, last bool) {
	if !last && d.TXQueue.use() {
		d.raise(d.TXQueue.line)
	}
}
