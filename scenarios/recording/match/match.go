package match

import (
	"fmt"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/observe"
)

// Verdicts.
const (
	Full    = "full"    // all interrupts, raises with context, passes and polls are equal
	Partial = "partial" // at least half of the items; for kinds with numbers, all of them within tolerance
	None    = "none"
)

// A Match is the outcome of one comparison.
type Match struct {
	ID         string         `json:"id"`
	Kind       recording.Kind `json:"kind"`
	Match      string         `json:"match"`
	Compared   int            `json:"compared"` // items of the longer sequence
	Equal      int            `json:"equal"`    // items of the longest common subsequence
	Recorded   int            `json:"recorded"`
	Simulated  int            `json:"simulated"`
	Streams    []Stream       `json:"streams"` // each kind of item on its own
	Split      Split          `json:"split"`
	Quantities []Quantity     `json:"quantities,omitempty"` // of saturation, tcp and rr
	Within     bool           `json:"within_tolerance"`     // all quantities are; true if there are none

	FirstDivergence *Divergence `json:"first_divergence,omitempty"`
}

// A Stream is the comparison of one kind of item.
type Stream struct {
	Kind      string `json:"kind"`
	Recorded  int    `json:"recorded"`
	Simulated int    `json:"simulated"`
	Equal     int    `json:"equal"`
}

// A Split says who ran the passes, aligned like the rest but on its own.
type Split struct {
	Recorded  map[string]int `json:"recorded"`
	Simulated map[string]int `json:"simulated"`
	Compared  int            `json:"compared"`
	Equal     int            `json:"equal"`
}

// A Divergence is the first place where the sequences differ.
type Divergence struct {
	Index     int      `json:"index"`     // from 0; equal in both sequences up to here
	At        int64    `json:"at_ns"`     // of the recorded item; of the last one if the recording ends here
	Recorded  string   `json:"recorded"`  // "" if the recording ends here
	Simulated string   `json:"simulated"` // "" if the simulation ends here
	Context   []string `json:"context"`   // both sequences around the place: "r" recorded, "s" simulated, "=" both, ">" the place
}

// around is how many items of context stand before and after a divergence.
const around = 4

// Compare compares two observations of one machine; id and kind are the recording's.
func Compare(id string, kind recording.Kind, recorded, simulated *observe.Observation) Match {
	a, b := recorded.Items, simulated.Items
	m := Match{
		ID: id, Kind: kind, Recorded: len(a), Simulated: len(b), Compared: max(len(a), len(b)), Within: true,
		Split: split(a, b),
	}
	keysA, keysB := keys(a, observe.Item.Key), keys(b, observe.Item.Key)
	m.Equal = common(keysA, keysB)
	for _, k := range []string{observe.IRQ, observe.Raise, observe.Pass, observe.Poll} {
		sa, sb := only(a, k), only(b, k)
		m.Streams = append(m.Streams, Stream{k, len(sa), len(sb), common(keys(sa, observe.Item.Key), keys(sb, observe.Item.Key))})
	}
	m.FirstDivergence = diverge(a, b, keysA, keysB)
	switch kind {
	case recording.KindSaturation, recording.KindTCP, recording.KindRR:
		m.Quantities = quantities(&recorded.Stats, &simulated.Stats)
		for _, q := range m.Quantities {
			m.Within = m.Within && q.OK
		}
	}
	switch {
	case m.Equal == m.Compared && m.Compared > 0:
		m.Match = Full
	case len(m.Quantities) > 0 && m.Within, len(m.Quantities) == 0 && m.Equal*2 >= m.Compared && m.Compared > 0:
		m.Match = Partial
	default:
		m.Match = None
	}
	return m
}

// only returns the items of one kind.
func only(items []observe.Item, kind string) []observe.Item {
	var out []observe.Item
	for _, i := range items {
		if i.Kind == kind {
			out = append(out, i)
		}
	}
	return out
}

// keys returns one text per item.
func keys(items []observe.Item, key func(observe.Item) string) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = key(item)
	}
	return out
}

// split compares who ran the passes.
func split(a, b []observe.Item) Split {
	by := func(i observe.Item) string { return i.Who }
	wa, wb := keys(only(a, observe.Pass), by), keys(only(b, observe.Pass), by)
	count := func(words []string) map[string]int {
		m := map[string]int{}
		for _, w := range words {
			m[w]++
		}
		return m
	}
	return Split{count(wa), count(wb), max(len(wa), len(wb)), common(wa, wb)}
}

// diverge finds the first difference, nil if there is none.
func diverge(a, b []observe.Item, keysA, keysB []string) *Divergence {
	i := prefix(keysA, keysB)
	if i == len(a) && i == len(b) {
		return nil
	}
	d := Divergence{Index: i}
	for n := max(0, i-around); n < i; n++ {
		d.Context = append(d.Context, "  = "+a[n].String())
	}
	if i < len(a) {
		d.At, d.Recorded = a[i].At, a[i].String()
	} else if len(a) > 0 {
		d.At = a[len(a)-1].At
	}
	if i < len(b) {
		d.Simulated = b[i].String()
	}
	for _, side := range []struct {
		name  string
		items []observe.Item
	}{{"r", a}, {"s", b}} {
		for n := i; n < min(len(side.items), i+1+around); n++ {
			mark := " "
			if n == i {
				mark = ">"
			}
			d.Context = append(d.Context, fmt.Sprintf("%s %s %s", mark, side.name, side.items[n]))
		}
	}
	return &d
}
