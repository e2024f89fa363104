package link

import (
	"fmt"

	"napisim/model"
	"napisim/sim"
)

// Source is an open-loop stream of frames: it sends what it sends, whatever becomes
// of it. The pipe draws its frames when it knows that they have arrived, so what a
// source yields must not depend on when it is asked.
type Source interface {
	// Peek returns the length of the next frame and the instant at which the sender
	// hands it to its line, which never falls. Never ends the stream.
	Peek() (offered sim.Time, length int32)
	// Next fills f with the frame that Peek tells of, goes on to the one after it, and
	// returns what Peek now returns. The pipe sets f.Arrival.
	Next(f *model.Frame) (offered sim.Time, length int32)
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

	sources []input
	offers  queue[model.Frame] // Arrival is the instant of the offer
	last    sim.Time           // the latest offer
	drop    Drop
	notify  func()
}

// offered is the value of Pipe.from for frames of Offer.
const offered = -1

// input is a source and what it said of its next frame.
type input struct {
	source Source
	at     sim.Time
	length int32
}

// NewPipe returns an idle pipe. cfg must be valid.
func NewPipe(cfg Config) *Pipe {
	return &Pipe{line: newLine(cfg), next: sim.Never}
}

// Attach adds an open-loop source and tells the receiver. It belongs to the
// construction of a run: nothing must have been popped yet.
func (p *Pipe) Attach(s Source) {
	if p.stats.Delivered+p.stats.Lost > 0 {
		panic("link: source attached to a pipe in use")
	}
	at, length := s.Peek()
	p.sources = append(p.sources, input{s, at, length})
	p.predict()
	p.tell()
}

// SetDrop installs the loss script; nil loses nothing. It belongs to the
// construction of a run.
func (p *Pipe) SetDrop(d Drop) { p.drop = d }

// SetNotify installs what is called after each Offer and Attach, so that the receiver
// can predict its next interrupt anew. It must not offer or pop.
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
	p.tell()
}

func (p *Pipe) tell() {
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

// Pop takes frames that have arrived by now off the wire, in order, until dst is
// full, and returns how many. Each has its Arrival set. The receiver calls it with
// the current instant; what is not popped waits.
func (p *Pipe) Pop(now sim.Time, dst []model.Frame) int {
	n := 0
	for n < len(dst) && p.next <= now {
		if len(p.sources) == 1 && p.offers.len() == 0 && p.drop == nil {
			n += p.popAlone(now, dst[n:])
			break
		}
		f := &dst[n]
		if p.from == offered {
			*f = *p.offers.front()
			p.offers.pop()
		} else {
			in := &p.sources[p.from]
			in.at, in.length = in.source.Next(f)
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
		n++
	}
	return n
}

// popAlone is Pop for a single source that has the line for itself, the usual case
// at high rates: the state of the line stays in registers.
func (p *Pipe) popAlone(now sim.Time, dst []model.Frame) int {
	in := &p.sources[0]
	next, after, at, length := p.next, p.after, in.at, in.length
	n := 0
	for n < len(dst) && next <= now {
		at, length = in.source.Next(&dst[n])
		dst[n].Arrival = next
		n++
		p.free = after
		if at == sim.Never {
			next = sim.Never
			break
		}
		after = p.line.after(after, at, length)
		next = after.up() + p.line.delay
	}
	p.next, p.after, in.at, in.length = next, after, at, length
	p.stats.Sent += int64(n)
	p.stats.Delivered += int64(n)
	return n
}

// predict chooses the frame that would go next on the line by what is known now.
func (p *Pipe) predict() {
	at, length := sim.Never, int32(0)
	for i := range p.sources {
		if in := &p.sources[i]; in.at < at {
			at, length, p.from = in.at, in.length, i
		}
	}
	if p.offers.len() > 0 {
		if f := p.offers.front(); f.Arrival < at {
			at, length, p.from = f.Arrival, f.Len, offered
		}
	}
	if at == sim.Never {
		p.next = sim.Never
		return
	}
	p.after = p.line.after(p.free, at, length)
	p.next = p.after.up() + p.line.delay
}

// Stats returns what has become of the frames. The receiver must have popped
// everything that has arrived by now.
func (p *Pipe) Stats() Stats {
	s := p.stats
	s.InFlight = int64(p.offers.len())
	return s
}
