package virtual

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/link"
	"napisim/sim"
	"napisim/softirq"
)

// Qdiscs are the queueing disciplines of one core that let frames out by the clock, as
// netem with slots does: their timer raises NET_TX, and that softirq sends whatever is
// due (qdisc_watchdog and net_tx_action, without the quota of dev_tx_weight).
type Qdiscs struct {
	eng   *sim.Engine
	phase sim.Phase
	sd    *softirq.Softnet
	timer *cpu.Line
	all   []*qdisc
}

type qdisc struct {
	src   link.Source
	at    sim.Time // of the next frame
	armed bool
	xmit  func(*cpu.Core, *model.Frame)
}

// NewQdiscs takes the NET_TX softirq of a core. The timer's events are of the given phase.
func NewQdiscs(eng *sim.Engine, phase sim.Phase, sd *softirq.Softnet) *Qdiscs {
	q := &Qdiscs{eng: eng, phase: phase, sd: sd}
	q.timer = sd.Core().NewLine(-1, "hrtimer", func(*cpu.Core) { sd.RaiseSoftirq(softirq.NetTX) })
	sd.OpenSoftirq(softirq.NetTX, q.netTXAction)
	return q
}

// Add lets xmit send the frames of a source, each at the instant at which it is offered.
func (q *Qdiscs) Add(src link.Source, xmit func(*cpu.Core, *model.Frame)) {
	d := &qdisc{src: src, xmit: xmit}
	d.at, _ = src.Peek()
	q.all = append(q.all, d)
	q.arm(len(q.all) - 1)
}

// arm sets the timer of a discipline to its next frame.
func (q *Qdiscs) arm(i int) {
	d := q.all[i]
	if !d.armed && d.at != sim.Never {
		d.armed = true
		q.eng.Schedule(max(d.at, q.eng.Now()), q.phase, q, uint64(i))
	}
}

// Fire is the timer of a discipline; the engine calls it.
func (q *Qdiscs) Fire(i uint64) {
	q.all[i].armed = false
	q.timer.Raise()
}

// netTXAction is net_tx_action as far as queueing disciplines go.
func (q *Qdiscs) netTXAction() {
	c := q.sd.Core()
	var frame model.Frame
	for i, d := range q.all {
		for c.Look(); d.at <= c.Now(); c.Look() {
			d.at, _ = d.src.Next(&frame)
			d.xmit(c, &frame)
		}
		q.arm(i)
	}
}
