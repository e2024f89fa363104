package metric

import (
	"fmt"

	"napisim/sim"
)

// Kind says how the value of a metric is to be read.
type Kind uint8

const (
	// KindCounter is a number that grows: its increase counts.
	KindCounter Kind = iota
	// KindLevel is a quantity averaged over time.
	KindLevel
	// KindHistogram is a distribution of values.
	KindHistogram
)

// Set is an ordered list of described metrics. Components register what they keep
// when they are built; the hot path never sees the Set. Order of registration is
// order of reading, so results list metrics in the order of the model.
type Set struct {
	items []item
	names map[string]bool
	since sim.Time
}

type item struct {
	desc  Desc
	read  func() int64 // counters
	base  int64        // what read returned at the cut
	level *Level
	hist  *Histogram
}

// Reading is the value of one metric over the window that began at the last Cut.
type Reading struct {
	Desc
	// Kind says which of the following fields are set.
	Kind Kind
	// Count is the increase of a counter.
	Count int64
	// Mean and Max belong to a level.
	Mean float64
	// Max is the highest value of a level.
	Max int64
	// Histogram is the recorder itself, not a copy: it goes on recording.
	Histogram *Histogram
}

// Counter registers a counter.
func (s *Set) Counter(d Desc, c *Counter) { s.Func(d, c.Value) }

// Func registers a number that grows during the run and is kept elsewhere, such as
// the time charged to a context.
func (s *Set) Func(d Desc, read func() int64) { s.add(item{desc: d, read: read, base: read()}) }

// Level registers a level.
func (s *Set) Level(d Desc, l *Level) { s.add(item{desc: d, level: l}) }

// Histogram registers a histogram.
func (s *Set) Histogram(d Desc, h *Histogram) { s.add(item{desc: d, hist: h}) }

func (s *Set) add(it item) {
	if s.names[it.desc.Name] {
		panic(fmt.Sprintf("metric: %s is registered twice", it.desc.Name))
	}
	if s.names == nil {
		s.names = make(map[string]bool)
	}
	s.names[it.desc.Name] = true
	s.items = append(s.items, it)
}

// Cut ends the warm-up: later readings tell only what happened since now.
func (s *Set) Cut(now sim.Time) {
	s.since = now
	for i := range s.items {
		switch it := &s.items[i]; {
		case it.level != nil:
			it.level.Reset(now)
		case it.hist != nil:
			it.hist.Reset()
		default:
			it.base = it.read()
		}
	}
}

// Since returns the instant of the last Cut, or zero: the start of the window that
// Read reports.
func (s *Set) Since() sim.Time { return s.since }

// Read returns all metrics over the window from the last Cut to now, in the order
// of registration.
func (s *Set) Read(now sim.Time) []Reading {
	out := make([]Reading, len(s.items))
	for i := range s.items {
		it := &s.items[i]
		r := Reading{Desc: it.desc}
		switch {
		case it.level != nil:
			r.Kind, r.Mean, r.Max = KindLevel, it.level.Mean(now), it.level.Max()
		case it.hist != nil:
			r.Kind, r.Histogram = KindHistogram, it.hist
		default:
			r.Count = it.read() - it.base
		}
		out[i] = r
	}
	return out
}
