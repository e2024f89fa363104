package link

import (
	"fmt"

	"napisim/model"
	"napisim/sim"
)

// Receiver is the peer at the far end of an Egress.
type Receiver interface {
	// Deliver is called in the engine's context when the last bit of s has arrived;
	// s.Arrival says so, too. The segment is the link's: it is valid until Deliver
	// returns. Deliver may offer frames to a Pipe and send on this Egress.
	Deliver(s *model.Segment)
}

// Egress is the direction of a link from the simulated host to its peer.
type Egress struct {
	eng   *sim.Engine
	phase sim.Phase
	line  line
	free  moment
	peer  Receiver
	// flight holds the segments that wait for the line or are on the wire, Arrival
	// set. The oldest one's arrival is the only pending event.
	flight queue[model.Segment]
	drop   Drop
	stats  Stats
}

// NewEgress returns an idle Egress; its events have the given phase. cfg must be
// valid. A nil peer takes everything at once and does nothing with it: traffic
// that nobody answers then costs no events.
func NewEgress(eng *sim.Engine, phase sim.Phase, cfg Config, peer Receiver) *Egress {
	return &Egress{eng: eng, phase: phase, line: newLine(cfg), peer: peer}
}

// SetDrop installs the loss script; nil loses nothing. It belongs to the
// construction of a run.
func (e *Egress) SetDrop(d Drop) { e.drop = d }

// Send puts a copy of s on the line at the current instant, behind what waits
// there, and returns the instant at which its last bit leaves.
func (e *Egress) Send(now sim.Time, s *model.Segment) (departed sim.Time) {
	if now < e.eng.Now() {
		panic(fmt.Sprintf("link: segment sent at %v, but it is %v", now, e.eng.Now()))
	}
	e.free = e.line.after(e.free, now, s.Len)
	departed = e.free.up()
	n := e.stats.Sent
	e.stats.Sent++
	switch {
	case e.drop != nil && e.drop(n, &s.Frame):
		e.stats.Lost++
	case e.peer == nil:
		e.stats.Delivered++
	default:
		f := e.flight.push()
		*f = *s
		f.Arrival = departed + e.line.delay
		if e.flight.len() == 1 {
			e.eng.Schedule(f.Arrival, e.phase, e, 0)
		}
	}
	return departed
}

// Gap returns the least time between two departures: what the shortest frame takes.
func (e *Egress) Gap() sim.Time { return e.line.gap() }

// Fire delivers the segment that arrives now. It is the engine that calls it.
func (e *Egress) Fire(uint64) {
	// The segment keeps its place while the peer looks at it, also if the peer sends.
	e.peer.Deliver(e.flight.front())
	e.flight.pop()
	e.stats.Delivered++
	if e.flight.len() > 0 {
		e.eng.Schedule(e.flight.front().Arrival, e.phase, e, 0)
	}
}

// Stats returns what has become of the segments.
func (e *Egress) Stats() Stats {
	s := e.stats
	s.InFlight = int64(e.flight.len())
	return s
}
