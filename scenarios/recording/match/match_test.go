package match

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/observe"
)

// burst is a burst of 65 on an idle machine: two polls, a raise between them.
func burst() []observe.Item {
	return []observe.Item{
		{At: 10, Kind: observe.IRQ, Dev: "nb", Queue: "rx", Context: "h"},
		{At: 20, Kind: observe.Raise, Context: "h"},
		{At: 30, Kind: observe.Pass, Who: observe.Inline, Work: 64},
		{At: 40, Kind: observe.Poll, Dev: "nb", Work: 64, Budget: 64, Context: "s", Who: observe.Inline},
		{At: 50, Kind: observe.Raise, Context: "s"},
		{At: 60, Kind: observe.Pass, Who: observe.Ksoftirqd, Work: 1},
		{At: 70, Kind: observe.Poll, Dev: "nb", Work: 1, Budget: 64, Context: "s", Who: observe.Ksoftirqd},
	}
}

// TestCompare: what is equal, what is nearly so, and what is not.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func([]observe.Item) []observe.Item
		match  string
		equal  int
		first  int // -1: no divergence
		who    int
	}{
		{"same", func(i []observe.Item) []observe.Item { return i }, Full, 7, -1, 2},
		{"other instants", func(i []observe.Item) []observe.Item { i[3].At += 5; return i }, Full, 7, -1, 2},
		{"who is apart", func(i []observe.Item) []observe.Item { i[5].Who = observe.Inline; return i }, Full, 7, -1, 1},
		{"one missing", func(i []observe.Item) []observe.Item { return slices.Delete(i, 1, 2) }, Partial, 6, 1, 2},
		{"one more", func(i []observe.Item) []observe.Item {
			return slices.Insert(i, 4, observe.Item{Kind: observe.IRQ, Dev: "na", Context: "H"})
		}, Partial, 7, 4, 2},
		{"other work", func(i []observe.Item) []observe.Item { i[6].Work = 2; return i }, Partial, 6, 6, 2},
		{"other context", func(i []observe.Item) []observe.Item { i[1].Context = "H"; return i }, Partial, 6, 1, 2},
		{"nothing", func([]observe.Item) []observe.Item { return nil }, None, 0, 0, 0},
	} {
		m := Compare("x", recording.KindBurst, &observe.Observation{Items: burst()}, &observe.Observation{Items: c.change(burst())})
		first := -1
		if m.FirstDivergence != nil {
			first = m.FirstDivergence.Index
		}
		if m.Match != c.match || m.Equal != c.equal || first != c.first || m.Split.Equal != c.who {
			t.Errorf("%s: %s %d equal, first %d, who %d", c.name, m.Match, m.Equal, first, m.Split.Equal)
		}
	}
}

// TestDivergenceShowsBothSides: four items before, four after on each side.
func TestDivergenceShowsBothSides(t *testing.T) {
	other := burst()
	other[4].Context = "H"
	d := Compare("x", recording.KindBurst, &observe.Observation{Items: burst()}, &observe.Observation{Items: other}).FirstDivergence
	if d.At != 50 || !strings.Contains(d.Recorded, "raise s") || !strings.Contains(d.Simulated, "raise H") || len(d.Context) != 4+3+3 {
		t.Error(d)
	}
}

// TestStatistics: 15 % decide where a sequence cannot be the same.
func TestStatistics(t *testing.T) {
	stats := func(irqs, full int) *observe.Observation {
		o := observe.Events(nil, nil)
		o.Stats.DeviceIRQs["nb rx"] = irqs
		o.Stats.Work["nb"] = map[int]int{64: full, 1: 100 - full}
		o.Items = []observe.Item{{Kind: observe.IRQ, At: int64(irqs), Work: full, Dev: strings.Repeat("x", irqs)}}
		return o
	}
	for _, c := range []struct {
		irqs, full int
		match      string
	}{
		{100, 50, Full},
		{114, 50, Partial}, // 14 % more
		{116, 50, None},
		{101, 60, None}, // frames: 50*64+50 and 60*64+40 are 19 % apart
		{101, 55, Partial},
	} {
		m := Compare("x", recording.KindSaturation, stats(100, 50), stats(c.irqs, c.full))
		if m.Match != c.match {
			t.Errorf("%d irqs, %d full: %s, %+v", c.irqs, c.full, m.Match, m.Quantities)
		}
	}
}

// TestCommonAgainstTable compares with the textbook's table.
func TestCommonAgainstTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 30)
		a, b := words.Draw(t, "a"), words.Draw(t, "b")
		table := make([][]int, len(a)+1)
		for i := range table {
			table[i] = make([]int, len(b)+1)
			for j := range b {
				if i == 0 {
					continue
				}
				table[i][j+1] = max(table[i-1][j+1], table[i][j])
				if a[i-1] == b[j] {
					table[i][j+1] = table[i-1][j] + 1
				}
			}
		}
		if got, want := common(a, b), table[len(a)][len(b)]; got != want {
			t.Fatalf("common(%v, %v) = %d, want %d", a, b, got, want)
		}
	})
}
