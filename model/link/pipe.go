package link

import (
	"fmt"

	"napisim/model"
	"napisim/sim"
)

// Source is an open-loop stream of frames: it sends what it sends, whatever becomes
// of it.
type Source interface {
	// Next fills f with the next frame and reports true, or reports false for ever
	// once the stream has ended. It sets f.Arrival to the instant at which the sender
	// hands the frame to its line, never earlier than that of the frame before. The
	// pipe calls it one frame ahead of what it delivers, so what a source yields must
	// not depend on when it is asked.
	Next(f *model.Frame) bool
}

// Drop decides that the frame that is the n-th on the wire, counted from zero, is
// lost. It is asked once for each frame, in the order of the wire. A lost frame has
// occupied the line.
type Drop func(n int64, f *model.Frame) bool

// Stats counts what has become of frames, see Pipe.Stats and Egress.Stats.
type Stats struct {
	// Sent is the number of frames that senders have handed over: by an open-loop
	// source when the frame has arrived, by anyone else at the offer.
	Sent int64
	// Lost is the number of frames that the loss script took: model.DropWire.
	Lost int64
	// Delivered is the number of frames that the receiver has got.
	Delivered int64
	// InFlight is the number of frames that wait for the line or are on the wire.
	InFlight int64
}

// Check returns an error unless every frame is accounted for.
func (s Stats) Check() error {
	if s.Sent != s.Lost+s.Delivered+s.InFlight {
		return fmt.Errorf("link: %d sent is not %d lost + %d delivered + %d in flight",
			s.Sent, s.Lost, s.Delivered, s.InFlight)
	}
	return nil
}

// Pipe is one direction of a link whose receiver pulls. Frames from all senders
// share the line in the order of the instants at which they are offered; of those
// offered at one instant, sources come first, in the order in which they were
// attached, and then offers in the order of the calls.
type Pipe struct {
	line line
	// The frame that would arrive next, and the state of the line after it. An offer
	// may still replace it.
	next  sim.Time // Never if there is none
	after moment
	from  int // index of its source, or offered
	// What has arrived is certain.
	free  moment
	stats Stats

	sources []lookahead
	offers  queue[model.Frame] // Arrival is the instant of the offer
	last    sim.Time           // the latest offer
	drop    Drop
	notify  func()
}

// offered is the value of Pipe.from for frames of Offer.
const offered = -1

// lookahead is a source and the frame drawn from it; Never in its Arrival says that
// the source has ended.
type lookahead struct {
	frame  model.Frame
	source Source
}

func (l *lookahead) draw() {
	if !l.source.Next(&l.frame) {
		l.frame.Arrival = sim.Never
	}
}

// NewPipe returns an idle pipe. cfg must be valid.
func NewPipe(cfg Config) *Pipe {
	return &Pipe{line: newLine(cfg), next: sim.Never}
}

// Attach adds an open-loop source. It belongs to the construction of a run: nothing
// must have arrived yet.
func (p *Pipe) Attach(s Source) {
	if p.stats.Sent > 0 {
		panic("link: source attached to a pipe in use")
	}
	l := lookahead{source: s}
	l.draw()
	p.sources = append(p.sources, l)
	p.predict()
}

// SetDrop installs the loss script; nil loses nothing. It belongs to the
// construction of a run.
func (p *Pipe) SetDrop(d Drop) { p.drop = d }

// SetNotify installs what is called after each Offer, so that the receiver can
// predict its next interrupt anew. It must not offer or pop.
func (p *Pipe) SetNotify(f func()) { p.notify = f }

// Offer hands a frame to the line at the current instant. f.Arrival need not be set.
func (p *Pipe) Offer(f model.Frame, now sim.Time) {
	// What has been popped had left the line before the offer was made.
	if t := max(p.last, p.free.at); now < t {
		panic(fmt.Sprintf("link: frame offered at %v, but it has been %v", now, t))
	}
	p.last = now
	p.stats.Sent++
	f.Arrival = now
	*p.offers.push() = f
	// Anything that was to come before still does; among equals offers come last.
	if p.offers.len() == 1 {
		p.predict()
	}
	if p.notify != nil {
		p.notify()
	}
}

// NextArrival returns a lower bound of the instant at which the next frame will
// arrive: exactly that instant, unless a frame is offered earlier than the one
// expected or the loss script takes it. It is Never if no frame is known.
func (p *Pipe) NextArrival() sim.Time { return p.next }

// Gap returns the least time between two arrivals: what the shortest frame takes.
func (p *Pipe) Gap() sim.Time { return p.line.gap() }

// Pop takes the next frame that has arrived by now off the wire, in *f, with its
// Arrival set. It reports false, and leaves *f undefined, if there is none. The
// receiver calls it with the current instant; frames that are not popped wait.
func (p *Pipe) Pop(now sim.Time, f *model.Frame) bool {
	for p.next <= now {
		if p.from == offered {
			*f = *p.offers.front()
			p.offers.pop()
		} else {
			l := &p.sources[p.from]
			*f = l.frame
			l.draw()
			p.stats.Sent++
		}
		f.Arrival = p.next
		p.free = p.after
		p.predict()
		if p.drop != nil && p.drop(p.stats.Lost+p.stats.Delivered, f) {
			p.stats.Lost++
			continue
		}
		p.stats.Delivered++
		return true
	}
	return false
}

// predict chooses the frame that would go next on the line by what is known now.
func (p *Pipe) predict() {
	p.next = sim.Never
	var f *model.Frame
	at := sim.Never
	for i := range p.sources {
		if s := &p.sources[i].frame; s.Arrival < at {
			f, at, p.from = s, s.Arrival, i
		}
	}
	if p.offers.len() > 0 {
		if o := p.offers.front(); o.Arrival < at {
			f, at, p.from = o, o.Arrival, offered
		}
	}
	if f == nil {
		return
	}
	p.after = p.line.after(p.free, at, f.Len)
	p.next = p.after.up() + p.line.delay
}

// Stats returns what has become of the frames. The receiver must have popped
// everything that has arrived by now.
func (p *Pipe) Stats() Stats {
	s := p.stats
	s.InFlight = int64(p.offers.len())
	return s
}
