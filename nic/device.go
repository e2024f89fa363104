package nic

import (
	"errors"
	"fmt"

	"napisim/model/link"
	"napisim/sim"
)

// Device is a network device: its rings and its vectors, between the two directions
// of a link.
type Device struct {
	in      *link.Pipe
	out     *link.Egress
	rx      []*RXRing
	tx      []*TXRing
	vectors []*Vector
}

// New returns a device with one pair of queues, every vector masked and every
// receive descriptor awaiting its first refill. Its events have the given phase,
// which must be below those of the cores. cfg must be valid.
func New(eng *sim.Engine, phase sim.Phase, cfg Config, in *link.Pipe, out *link.Egress) *Device {
	d := &Device{in: in, out: out}
	rx := newRXRing(cfg.RXRing, in, cfg.RX.Moderation())
	tx := newTXRing(&cfg, out)
	v := d.addVector(eng, phase, cfg.Rearm)
	v.feedRX(rx)
	if !cfg.SharedVector {
		v = d.addVector(eng, phase, cfg.Rearm)
	}
	v.feedTX(tx)
	d.rx, d.tx = append(d.rx, rx), append(d.tx, tx)
	in.SetNotify(func() { rx.vector.predict(eng.Now()) })
	return d
}

// Queues returns the number of pairs of queues.
func (d *Device) Queues() int { return len(d.rx) }

// RX returns the receive ring of a queue.
func (d *Device) RX(queue int) *RXRing { return d.rx[queue] }

// TX returns the transmit ring of a queue.
func (d *Device) TX(queue int) *TXRing { return d.tx[queue] }

// RXVector returns the vector that reports the receive ring of a queue.
func (d *Device) RXVector(queue int) *Vector { return d.rx[queue].vector }

// TXVector returns the vector that reports the transmit ring of a queue: the same as
// RXVector if they share one.
func (d *Device) TXVector(queue int) *Vector { return d.tx[queue].vector }

// Vectors returns the vectors of the device, each once. The slice is the device's.
func (d *Device) Vectors() []*Vector { return d.vectors }

// Stats are the counters of a device, with the names of struct rtnl_link_stats64
// where it has them. Bytes are counted without FCS, as Linux drivers do.
type Stats struct {
	RXPackets      int64 // rx_packets: frames written to memory
	RXBytes        int64 // rx_bytes
	RXMissedErrors int64 // rx_missed_errors: frames that found no free descriptor
	TXPackets      int64 // tx_packets: segments accepted for transmission
	TXBytes        int64 // tx_bytes
	TXBusy         int64 // segments refused because the transmit ring was full
	Interrupts     int64 // of all vectors
}

// Stats returns the counters as of now.
func (d *Device) Stats(now sim.Time) Stats {
	var s Stats
	for _, r := range d.rx {
		r.Pull(now)
		s.RXPackets += r.filled
		s.RXBytes += r.bytes
		s.RXMissedErrors += r.missed
	}
	for _, r := range d.tx {
		s.TXPackets += r.posted
		s.TXBytes += r.bytes
		s.TXBusy += r.busy
	}
	for _, v := range d.vectors {
		s.Interrupts += v.interrupts
	}
	return s
}

// Check returns an error unless every frame and every descriptor is accounted for at
// now: what was taken from the wire was missed or written to memory, what was
// written was taken by the driver or is in a ring, a descriptor is free, filled or
// awaits refill, and what was accepted for transmission was put on the wire.
func (d *Device) Check(now sim.Time) error {
	var missed, written, posted int64
	for i, r := range d.rx {
		r.Pull(now)
		missed += r.missed
		written += r.filled
		if err := r.check(); err != nil {
			return fmt.Errorf("nic: receive ring %d at %v: %w", i, now, err)
		}
	}
	if arrived := d.in.Stats().Delivered; arrived != missed+written {
		return fmt.Errorf("nic: at %v %d frames from the wire are not %d missed + %d written", now, arrived, missed, written)
	}
	for i, r := range d.tx {
		posted += r.posted
		if err := r.check(); err != nil {
			return fmt.Errorf("nic: transmit ring %d at %v: %w", i, now, err)
		}
	}
	if sent := d.out.Stats().Sent; sent != posted {
		return fmt.Errorf("nic: at %v %d segments on the wire, but %d were accepted", now, sent, posted)
	}
	return errors.Join(d.in.Stats().Check(), d.out.Stats().Check())
}
