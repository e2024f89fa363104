package match

import (
	"maps"
	"math"
	"slices"

	"napisim/scenarios/recording/observe"
)

// Tolerance is how far a number may be off: the share of the recorded one.
const Tolerance = 0.15

// few is the count below which a difference of one or two is no difference in behaviour.
const few = 2

// A Quantity is one number of both sides. Numbers that are distances between
// histograms are 0 recorded, the distance simulated, and the distance as error.
type Quantity struct {
	Name      string  `json:"name"`
	Recorded  float64 `json:"recorded"`
	Simulated float64 `json:"simulated"`
	Error     float64 `json:"error"` // share of the recorded number; of distances, the distance
	OK        bool    `json:"ok"`
}

// quantities compares what two runs have in numbers; a is the recorded one, and what its
// events do not tell is not compared.
func quantities(a, b *observe.Stats) []Quantity {
	var out []Quantity
	for _, dev := range union(a.DeviceIRQs, b.DeviceIRQs) {
		out = append(out, counts("interrupts "+dev, a.DeviceIRQs[dev], b.DeviceIRQs[dev]))
	}
	for _, dev := range union(a.Work, b.Work) {
		out = append(
			out,
			counts("polls "+dev, observe.Sum(a.Work[dev]), observe.Sum(b.Work[dev])),
			counts("frames "+dev, a.Frames(dev), b.Frames(dev)),
			distance("work per poll "+dev, a.Work[dev], b.Work[dev]),
		)
	}
	if len(a.GRO) > 0 { // the events were recorded, and not left out of a trimmed recording
		out = append(out, gro(a, b)...)
	}
	if len(a.Delivered) > 0 {
		for _, dev := range union(a.Delivered, b.Delivered) {
			out = append(out, counts("delivered "+dev, observe.Sum(a.Delivered[dev]), observe.Sum(b.Delivered[dev])))
		}
	}
	rx := func(s *observe.Stats, who string) int { return s.Entries["NET_RX/"+who] }
	for _, who := range []string{observe.Inline, observe.Ksoftirqd} {
		out = append(out, counts("NET_RX runs "+who, rx(a, who), rx(b, who)))
	}
	if a.Wakeups > 0 {
		out = append(out, counts("ksoftirqd wakeups", a.KsoftirqdWakeups, b.KsoftirqdWakeups))
	}
	return out
}

// gro compares the results of GRO and the sizes of its aggregates.
func gro(a, b *observe.Stats) []Quantity {
	var out []Quantity
	for _, dev := range union(a.GRO, b.GRO) {
		for _, result := range union(a.GRO[dev], b.GRO[dev]) {
			out = append(out, counts("GRO "+result+" "+dev, a.GRO[dev][result], b.GRO[dev][result]))
		}
	}
	for _, dev := range union(a.Aggregates, b.Aggregates) {
		out = append(
			out,
			number64("segments per aggregate "+dev, mean(a.Aggregates[dev]), mean(b.Aggregates[dev])),
			distance("aggregates "+dev, a.Aggregates[dev], b.Aggregates[dev]),
		)
	}
	return out
}

// union returns the keys of both maps in order.
func union[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// counts compares two counts.
func counts(name string, a, b int) Quantity {
	q := number64(name, float64(a), float64(b))
	q.OK = q.OK || max(a-b, b-a) <= few
	return q
}

// number64 compares two numbers.
func number64(name string, a, b float64) Quantity {
	q := Quantity{Name: name, Recorded: a, Simulated: b}
	if a != 0 {
		q.Error = math.Abs(b-a) / math.Abs(a)
	} else if b != 0 {
		q.Error = 1
	}
	q.OK = q.Error <= Tolerance
	return q
}

// distance compares two histograms by their shape: half the sum of the differences of
// the shares, 0 if they are alike and 1 if they have nothing in common.
func distance(name string, a, b map[int]int) Quantity {
	na, nb := observe.Sum(a), observe.Sum(b)
	q := Quantity{Name: name + " (distance)"}
	switch {
	case na == 0 && nb == 0:
	case na == 0 || nb == 0:
		q.Error = 1
	default:
		sizes := maps.Clone(a)
		maps.Copy(sizes, b)
		for _, k := range slices.Sorted(maps.Keys(sizes)) {
			q.Error += math.Abs(float64(a[k])/float64(na)-float64(b[k])/float64(nb)) / 2
		}
	}
	q.Simulated, q.OK = q.Error, q.Error <= Tolerance
	return q
}

// mean returns the mean of a histogram.
func mean(h map[int]int) float64 {
	n, sum := 0, 0
	for k, c := range h {
		n += c
		sum += k * c
	}
	if n == 0 {
		return 0
	}
	return float64(sum) / float64(n)
}
