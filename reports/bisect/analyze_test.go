package bisect_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"napisim/reports/bisect"
)

// over builds a game of several seeds: noise is added to all combinations of a seed
// alike, as common traffic does.
func over(players int, noise []float64, value func(bisect.Set) float64) bisect.Game {
	g := bisect.Game{Players: players, Values: map[bisect.Set][]float64{}}
	for _, s := range bisect.All(players) {
		for _, n := range noise {
			g.Values[s] = append(g.Values[s], value(s)+n)
		}
	}
	return g
}

var noise = []float64{-30, 40, 10, -20, 0}

// TestCauseAndCleared: player 0 takes 100 off 1000, player 1 takes 5 % of that, player
// 2 puts 40 back. Noise that all share is in no interval but those of the ends.
func TestCauseAndCleared(t *testing.T) {
	g := over(3, noise, func(s bisect.Set) float64 {
		v := 1000.0
		for i, d := range []float64{-100, -5, 40} {
			if s.Has(i) {
				v += d
			}
		}
		return v
	})
	a := bisect.Analyze(g, nil)
	if !bisect.Differs(g) || a.Good.Mean != 1000 || a.Bad.Mean != 935 || a.Change.Mean != -65 || a.Change.Half != 0 || a.Good.Half == 0 {
		t.Errorf("%+v", a)
	}
	for i, want := range []struct {
		value, share float64
		verdict      bisect.Verdict
	}{{-100, 100. / 65, bisect.Cause}, {-5, 5. / 65, bisect.Cleared}, {40, -40. / 65, bisect.Against}} {
		e := a.Effects[i]
		if math.Abs(e.Value.Mean-want.value) > 1e-9 || math.Abs(e.Share.Mean-want.share) > 1e-9 || e.Verdict != want.verdict {
			t.Errorf("player %d: %+v", i, e)
		}
		if math.Abs(e.First.Mean-want.value) > 1e-9 || math.Abs(e.Last.Mean-want.value) > 1e-9 {
			t.Errorf("player %d alone: %+v, %+v", i, e.First, e.Last)
		}
	}
	if len(a.Pairs) != 0 {
		t.Errorf("additive, but %+v interact", a.Pairs)
	}
}

// TestInterval: the differences of one player are -8, -10 and -12. Their mean is -10,
// their standard deviation 2, and t(0.975, 2) = 4.3027: the half width is 4.3027·2/√3 =
// 4.9683. With one player the share is 1, however the seeds vary.
func TestInterval(t *testing.T) {
	g := bisect.Game{Players: 1, Values: map[bisect.Set][]float64{0: {100, 100, 100}, 1: {92, 90, 88}}}
	e := bisect.Analyze(g, nil).Effects[0]
	if math.Abs(e.Value.Mean+10) > 1e-9 || math.Abs(e.Value.Half-4.9683) > 1e-4 {
		t.Errorf("%+v", e.Value)
	}
	if math.Abs(e.Share.Mean-1) > 1e-9 || e.Share.Half > 1e-9 || e.Verdict != bisect.Cause {
		t.Errorf("%+v, %s", e.Share, e.Verdict)
	}
}

// TestUnclear: what moves by as much as it varies is neither cause nor cleared.
func TestUnclear(t *testing.T) {
	g := bisect.Game{Players: 2, Values: map[bisect.Set][]float64{
		0: {100, 100, 100}, 1: {50, 51, 49}, 2: {130, 70, 100}, 3: {80, 21, 49},
	}}
	a := bisect.Analyze(g, nil)
	if a.Effects[1].Verdict != bisect.Unclear {
		t.Errorf("%+v", a.Effects[1])
	}
}

// TestPairs: an AND shows on the good kernel, where both together do what none does
// alone; among three, one that needs all others shows in the bad kernel only.
func TestPairs(t *testing.T) {
	and := over(2, noise, func(s bisect.Set) float64 {
		if has(s, 0, 1) {
			return 100
		}
		return 200
	})
	pairs := bisect.Analyze(and, nil).Pairs
	if len(pairs) != 1 || pairs[0].OnBad || pairs[0].Joint.Mean != -100 || pairs[0].Sum.Mean != 0 || pairs[0].Excess.Mean != -100 {
		t.Errorf("%+v", pairs)
	}
	all := over(3, noise, func(s bisect.Set) float64 {
		if has(s, 0, 1, 2) {
			return 100
		}
		return 200
	})
	// Taking out one or both puts 100 back: 100 together, 200 one by one.
	pairs = bisect.Analyze(all, nil).Pairs
	if len(pairs) != 3 || !pairs[0].OnBad || pairs[0].Joint.Mean != 100 || pairs[0].Sum.Mean != 200 {
		t.Errorf("%+v", pairs)
	}
}

func TestDiffers(t *testing.T) {
	for name, test := range map[string]struct {
		good, bad []float64
		want      bool
	}{
		"equal":           {[]float64{5, 6}, []float64{5, 6}, false},
		"half a per cent": {[]float64{1000, 1001, 1002}, []float64{995, 996, 997}, false},
		"two per cent":    {[]float64{1000, 1001, 1002}, []float64{980, 981, 982}, true},
		"noise":           {[]float64{100, 100, 100}, []float64{150, 60, 120}, false},
		"one seed":        {[]float64{100}, []float64{90}, true},
		"from nothing":    {[]float64{0, 0, 0}, []float64{1, 1.2, 1.1}, true},
	} {
		g := bisect.Game{Players: 1, Values: map[bisect.Set][]float64{0: test.good, 1: test.bad}}
		if got := bisect.Differs(g); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestPlan: which combinations are run.
func TestPlan(t *testing.T) {
	if got := bisect.OneAtATime(3); !slices.Equal(got, []bisect.Set{0, 7, 1, 6, 2, 5, 4, 3}) {
		t.Errorf("one at a time: %v", got)
	}
	if got := bisect.OneAtATime(2); len(got) != 4 {
		t.Errorf("of two: %v", got)
	}
	if got := bisect.Groups(4, []int{1, 3}); !slices.Equal(got, []bisect.Set{2, 8, 5}) {
		t.Errorf("groups: %v", got)
	}
	if got := bisect.Combinations([]bisect.Set{2, 5}); !slices.Equal(got, []bisect.Set{0, 2, 5, 7}) {
		t.Errorf("combinations: %v", got)
	}
	if bisect.Choose(5, 32) != bisect.Exhaustive || bisect.Choose(6, 63) != bisect.Screened {
		t.Error("the budget is misread")
	}
	// Two of two differences are four combinations; of twenty, 42 and 4 orders of 19 each.
	if a, b := bisect.Least(2), bisect.Least(20); a != 4 || b != 42+76 {
		t.Errorf("least: %d, %d", a, b)
	}
}

// TestMovers: 0 acts alone, 1 and 2 only together, 3 not at all.
func TestMovers(t *testing.T) {
	g := over(4, noise, func(s bisect.Set) float64 {
		v := 100.0
		if s.Has(0) {
			v -= 50
		}
		if has(s, 1, 2) {
			v -= 20
		}
		return v
	})
	movers := bisect.Movers(g)
	if !slices.Equal(movers, []int{0, 1, 2}) {
		t.Fatalf("movers: %v", movers)
	}
	// Told apart from the others together, they have the values of the whole game.
	groups := bisect.Groups(4, movers)
	part := bisect.Game{Players: 4, Values: map[bisect.Set][]float64{}}
	for _, s := range append(bisect.OneAtATime(4), bisect.Combinations(groups)...) {
		part.Values[s] = g.Values[s]
	}
	values, _ := part.Reduce(groups).Shapley()
	for i, want := range []float64{-50, -10, -10, 0} {
		if math.Abs(values[i][0]-want) > 1e-9 {
			t.Errorf("group %d: %v, want %v", i, values[i], want)
		}
	}
}

// TestSampleOrders: they keep to the budget, come with their reverses, are the same each
// time, and their mean is a division of the change.
func TestSampleOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, budget := rapid.IntRange(2, 9).Draw(t, "n"), rapid.IntRange(0, 80).Draw(t, "budget")
		known := func(s bisect.Set) bool { return s.Size() <= 1 || s.Size() >= n-1 }
		orders, fresh := bisect.SampleOrders(n, budget, known)
		again, _ := bisect.SampleOrders(n, budget, known)
		if len(fresh) > budget || len(orders)%2 != 0 || len(again) != len(orders) {
			t.Fatalf("%d orders, %d combinations", len(orders), len(fresh))
		}
		if budget >= 4*n && len(orders) < 4 {
			t.Fatalf("only %d orders", len(orders))
		}
		g := one(n, func(s bisect.Set) float64 { return math.Sin(float64(s)) })
		for s := range g.Values {
			if !known(s) && !slices.Contains(fresh, s) {
				delete(g.Values, s)
			}
		}
		if len(orders) == 0 {
			return
		}
		a := bisect.Analyze(g, orders)
		sum := 0.0
		for i := range orders {
			if !slices.Equal(orders[i], again[i]) {
				t.Fatal("not the same each time")
			}
		}
		for _, e := range a.Effects {
			sum += e.Value.Mean
		}
		if !near(sum, a.Change.Mean) {
			t.Fatalf("sum %v, change %v", sum, a.Change.Mean)
		}
	})
}

// TestFewOrders: two orders are one pair, which says nothing about the error.
func TestFewOrders(t *testing.T) {
	g := over(2, noise, func(s bisect.Set) float64 { return 100 - float64(s) })
	e := bisect.Analyze(g, [][]int{{0, 1}, {1, 0}}).Effects
	if e[0].Verdict != bisect.Unclear || !math.IsNaN(e[0].Value.Half) {
		t.Errorf("%+v", e[0])
	}
	e = bisect.Analyze(g, [][]int{{0, 1}, {1, 0}, {0, 1}, {1, 0}}).Effects
	if e[1].Verdict != bisect.Cause || e[1].Share.Half > 1e-9 {
		t.Errorf("%+v", e[1])
	}
}

// TestNoOrder: without a chain of combinations there are only the single steps.
func TestNoOrder(t *testing.T) {
	g := bisect.Game{Players: 3, Values: map[bisect.Set][]float64{0: {5}, 7: {9}, 1: {6}}}
	a := bisect.Analyze(g, nil)
	if a.Orders != 0 || a.Effects[0].First.Mean != 1 || a.Effects[0].Last != nil || a.Effects[0].Verdict != bisect.Unclear {
		t.Errorf("%+v", a)
	}
}

// TestCoverage: where every combination of every seed has noise of its own, the intervals
// of values and shares hold the truth in about 95 of 100 games. With 600 games the number
// that do is within 3 standard deviations, 16, of 570.
func TestCoverage(t *testing.T) {
	const games, seeds = 600, 8
	random := rand.New(rand.NewPCG(1, 2))
	values, shares := 0, 0
	for range games {
		g := bisect.Game{Players: 2, Values: map[bisect.Set][]float64{}}
		for _, s := range bisect.All(2) {
			for range seeds {
				v := 1000 + 5*random.NormFloat64()
				if s.Has(0) {
					v -= 80
				}
				if has(s, 0, 1) {
					v -= 20 // 10 for each, beside the 80
				}
				g.Values[s] = append(g.Values[s], v)
			}
		}
		e := bisect.Analyze(g, nil).Effects[0]
		if math.Abs(e.Value.Mean+90) <= e.Value.Half {
			values++
		}
		if math.Abs(e.Share.Mean-0.9) <= e.Share.Half {
			shares++
		}
	}
	for name, n := range map[string]int{"values": values, "shares": shares} {
		if n < 570-16 || n > 570+16 {
			t.Errorf("%d of %d intervals of %s hold the truth", n, games, name)
		}
	}
}
