package nic_test

import (
	"napisim/model"
	"napisim/model/link"
	"napisim/nic"
	"napisim/sim"
)

// oracle is a device that looks at every picosecond: frames are put on the wire,
// arrive and are written one by one, and at each instant each vector asks by the
// definition of its moderation whether an interrupt is due. The rate of the link is
// one picosecond a byte.
type oracle struct {
	cfg   nic.Config
	delay sim.Time
	now   sim.Time

	sources  [][]model.Frame // Arrival is the instant of the offer
	drop     link.Drop
	carried  int64
	lineFree sim.Time
	wire     []model.Frame

	free, awaiting int
	filled         []model.Frame
	written        []sim.Time // of every frame ever written
	taken          int
	missed         int

	outFree sim.Time
	done    []sim.Time // of every segment ever posted
	reaped  int

	vectors []*oracleVector
	raised  func(vector int)
}

type oracleVector struct {
	rx, tx  bool
	masked  bool
	fired   bool
	last    sim.Time
	restart sim.Time // last when the moderation was restarted
	acked   sim.Time
	rxBase  int // completions that were consumed when it was armed
	txBase  int
}

func newOracle(cfg nic.Config, delay sim.Time) *oracle {
	o := &oracle{cfg: cfg, delay: delay, awaiting: cfg.RXRing}
	o.vectors = []*oracleVector{{rx: true, masked: true, last: -sim.Never / 4, restart: -sim.Never / 4, acked: -1}}
	if cfg.SharedVector {
		o.vectors[0].tx = true
	} else {
		o.vectors = append(o.vectors, &oracleVector{tx: true, masked: true, last: -sim.Never / 4, restart: -sim.Never / 4, acked: -1})
	}
	return o
}

// step does what happens at o.now before the driver acts.
func (o *oracle) step() {
	for i := range o.sources {
		for len(o.sources[i]) > 0 && o.sources[i][0].Arrival == o.now {
			o.offer(o.sources[i][0])
			o.sources[i] = o.sources[i][1:]
		}
	}
	for len(o.wire) > 0 && o.wire[0].Arrival == o.now {
		f := o.wire[0]
		o.wire = o.wire[1:]
		o.carried++
		if o.drop != nil && o.drop(o.carried-1, &f) {
			continue
		}
		if o.free == 0 {
			o.missed++
			continue
		}
		o.free--
		o.filled = append(o.filled, f)
		o.written = append(o.written, o.now)
	}
	o.check()
}

func (o *oracle) offer(f model.Frame) {
	o.lineFree = max(o.lineFree, o.now) + sim.Time(model.WireBytes(f.Len))
	f.Arrival = o.lineFree + o.delay
	o.wire = append(o.wire, f)
}

func (o *oracle) xmit(length int32) bool {
	if len(o.done)-o.reaped == o.cfg.TXRing {
		return false
	}
	o.outFree = max(o.outFree, o.now) + sim.Time(model.WireBytes(length))
	o.done = append(o.done, o.outFree+o.cfg.TXLatency)
	return true
}

func (o *oracle) reap() int {
	n := 0
	for o.reaped < len(o.done) && o.done[o.reaped] <= o.now {
		o.reaped++
		n++
	}
	return n
}

func (o *oracle) unmask(v *oracleVector) {
	v.masked, v.fired = false, false
	if o.cfg.Rearm == nic.NewerThanConsumer {
		v.rxBase, v.txBase, v.restart = o.taken, o.reaped, v.last
	}
}

func (o *oracle) ack(v *oracleVector) {
	if o.cfg.Rearm == nic.LatchEvents {
		v.acked, v.restart, v.fired = o.now, v.last, false
	}
}

// events returns the completions by now that the vector knows of.
func (o *oracle) events(v *oracleVector, all []sim.Time, base int) []sim.Time {
	var known []sim.Time
	for i, at := range all {
		if at > o.now {
			break
		}
		if o.cfg.Rearm == nic.LatchEvents && at > v.acked || o.cfg.Rearm == nic.NewerThanConsumer && i >= base {
			known = append(known, at)
		}
	}
	return known
}

// due is the definition of moderation.
func due(c nic.Coalesce, at []sim.Time, last sim.Time) sim.Time {
	if len(at) == 0 {
		return sim.Never
	}
	if c.Usecs == 0 && c.Frames == 0 {
		return at[0]
	}
	when := sim.Never
	if c.Frames > 0 && len(at) >= c.Frames {
		when = at[c.Frames-1]
	}
	if c.Usecs == 0 {
		return when
	}
	switch c.Mode {
	case nic.FromFirst:
		when = min(when, at[0]+c.Usecs)
	case nic.SinceInterrupt:
		when = min(when, max(at[0], last+c.Usecs))
	case nic.FromLast:
		for i := range at {
			if i+1 == len(at) || at[i+1] >= at[i]+c.Usecs {
				when = min(when, at[i]+c.Usecs)
				break
			}
		}
	}
	return when
}

// check raises what is due.
func (o *oracle) check() {
	for i, v := range o.vectors {
		if v.masked || v.fired {
			continue
		}
		when := sim.Never
		if v.rx {
			when = due(o.cfg.RX, o.events(v, o.written, v.rxBase), v.restart)
		}
		if v.tx {
			when = min(when, due(o.cfg.TX, o.events(v, o.done, v.txBase), v.restart))
		}
		if when <= o.now {
			v.fired, v.last = true, o.now
			o.raised(i)
		}
	}
}

func (o *oracle) pending(v *oracleVector) bool {
	if o.cfg.Rearm == nic.LatchEvents {
		return v.rx && len(o.events(v, o.written, 0)) > 0 || v.tx && len(o.events(v, o.done, 0)) > 0
	}
	return v.rx && len(o.filled) > 0 || v.tx && o.reaped < len(o.done) && o.done[o.reaped] <= o.now
}

// source is a link.Source of given frames; Arrival is the instant of the offer.
type source []model.Frame

var _ link.Source = (*source)(nil)

func (s *source) Peek() (sim.Time, int32) {
	if len(*s) == 0 {
		return sim.Never, 0
	}
	return (*s)[0].Arrival, (*s)[0].Len
}

func (s *source) Next(f *model.Frame) (sim.Time, int32) {
	*f = (*s)[0]
	*s = (*s)[1:]
	return s.Peek()
}
