package cost

import (
	"slices"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/input"
)

// A Value is a cost with where it comes from.
type Value struct {
	Name string  `json:"name"`
	NS   float64 `json:"ns"`  // median, or slope or intercept of a line
	N    int     `json:"n"`   // samples
	Min  int64   `json:"min"` // of the samples, ns
	Max  int64   `json:"max"`
	R2   float64 `json:"r2,omitempty"` // of lines: share of the variance that the line explains
	How  string  `json:"how"`
	Rows []int   `json:"rows"` // lines of the trace at which the samples end
}

// Costs are the values of one recording, in a fixed order. Values without samples are
// left out.
type Costs struct {
	From   string  `json:"from"`
	Kernel string  `json:"kernel"`
	Values []Value `json:"values"`
}

// Get returns a value by its name and whether it was found.
func (c *Costs) Get(name string) (Value, bool) {
	i := slices.IndexFunc(c.Values, func(v Value) bool { return v.Name == name })
	if i < 0 {
		return Value{}, false
	}
	return c.Values[i], true
}

// Of fits the costs of a recording; in is the recording's input.
//
// Names: traced_event (upper bound of what recording one event costs); irq_entry_to_raise,
// irq_raise_to_exit, irq_handler DEV QUEUE, irq_to_irq (pending together),
// irq_exit_to_softirq; softirq_next_vector, softirq_restart, softirq_restart_ksoftirqd,
// ksoftirqd_next_invocation; pass_begin, poll_to_exit, repoll_raise, repoll_to_exit;
// poll_fixed DEV, poll_per_frame DEV, poll_empty DEV; gro_receive, gro_to_next_frame,
// netif_receive_skb; switch_to_ksoftirqd, ksoftirqd_to_switch, switch, wake_ksoftirqd;
// tx_clean_fixed, tx_clean_per_frame; sender_fixed, sender_per_frame, sender_burst, xmit_step;
// reader_fixed, reader_per_datagram.
func Of(r *recording.Recording, in *input.Input) *Costs {
	c := &Costs{From: r.ID, Kernel: r.Kernel.Release}
	for _, s := range distances(r) {
		c.median(s)
	}
	c.tracedEvent()
	_, empty := polls(r)
	_, burst := sender(in)
	for _, s := range append(empty, burst) {
		c.median(s)
	}
	for _, l := range lines(r, in) {
		c.line(l)
	}
	return c
}

// A sample is one measurement of a value.
type sample struct {
	x    float64 // frames, of lines
	ns   int64
	line int // of the trace
}

// A series are the samples of one value.
type series struct {
	name, how string
	samples   []sample
}

// add adds a sample.
func (s *series) add(x float64, ns int64, line int) {
	s.samples = append(s.samples, sample{x, ns, line})
}

// value describes samples without their number yet.
func (s *series) value() Value {
	v := Value{Name: s.name, How: s.how, N: len(s.samples), Min: s.samples[0].ns, Max: s.samples[0].ns}
	for _, p := range s.samples {
		v.Min, v.Max = min(v.Min, p.ns), max(v.Max, p.ns)
		v.Rows = append(v.Rows, p.line)
	}
	return v
}

// median adds the median of a series.
func (c *Costs) median(s series) {
	if len(s.samples) == 0 {
		return
	}
	v := s.value()
	ns := make([]int64, 0, len(s.samples))
	for _, p := range s.samples {
		ns = append(ns, p.ns)
	}
	slices.Sort(ns)
	v.NS = float64(ns[len(ns)/2]+ns[(len(ns)-1)/2]) / 2
	c.Values = append(c.Values, v)
}

// A straight is a series through which a line is laid, with the names of its two values.
type straight struct {
	series
	fixed, slope string
}

// line adds intercept and slope of the least squares line; without three samples and
// two different numbers of frames there is none.
func (c *Costs) line(l straight) {
	n := float64(len(l.samples))
	var sx, sy, sxx, sxy float64
	for _, p := range l.samples {
		sx, sy = sx+p.x, sy+float64(p.ns)
		sxx, sxy = sxx+p.x*p.x, sxy+p.x*float64(p.ns)
	}
	det := n*sxx - sx*sx
	if n < 3 || det == 0 {
		return
	}
	slope := (n*sxy - sx*sy) / det
	fixed := (sy - slope*sx) / n
	var off, spread float64
	for _, p := range l.samples {
		y := float64(p.ns)
		off += (y - fixed - slope*p.x) * (y - fixed - slope*p.x)
		spread += (y - sy/n) * (y - sy/n)
	}
	v := l.value()
	v.R2 = 1
	if spread > 0 {
		v.R2 = 1 - off/spread
	}
	for _, half := range []struct {
		name string
		ns   float64
	}{{l.fixed, fixed}, {l.slope, slope}} {
		v.Name, v.NS = half.name, half.ns
		c.Values = append(c.Values, v)
	}
}

// tracedEvent adds the least of the medians between neighbours: an event costs at most
// that, as there is always some code between two.
func (c *Costs) tracedEvent() {
	var least *Value
	for i := range c.Values {
		if v := &c.Values[i]; v.N >= 3 && (least == nil || v.NS < least.NS) {
			least = v
		}
	}
	if least == nil {
		return
	}
	v := *least
	v.How = "least median distance of two neighbours, " + v.Name + ": an upper bound"
	v.Name = "traced_event"
	c.Values = append(c.Values, v)
}
