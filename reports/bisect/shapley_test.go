package bisect_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"napisim/reports/bisect"
)

// one returns a game of one seed.
func one(players int, value func(bisect.Set) float64) bisect.Game {
	g := bisect.Game{Players: players, Values: map[bisect.Set][]float64{}}
	for _, s := range bisect.All(players) {
		g.Values[s] = []float64{value(s)}
	}
	return g
}

func has(s bisect.Set, players ...int) bool {
	return !slices.ContainsFunc(players, func(i int) bool { return !s.Has(i) })
}

// TestByHand: values that are computed on paper.
func TestByHand(t *testing.T) {
	for name, test := range map[string]struct {
		players int
		value   func(bisect.Set) float64
		want    []float64
	}{
		// Each adds what it adds: -3, 5 and 0.
		"additive": {3, func(s bisect.Set) float64 {
			v := 100.0
			if s.Has(0) {
				v -= 3
			}
			if s.Has(1) {
				v += 5
			}
			return v
		}, []float64{-3, 5, 0}},
		// Only both together matter. In half of the orders each comes last.
		"and": {2, func(s bisect.Set) float64 {
			if has(s, 0, 1) {
				return -10
			}
			return 0
		}, []float64{-5, -5}},
		// The first of two that comes takes all.
		"or": {2, func(s bisect.Set) float64 {
			if s != 0 {
				return 8
			}
			return 0
		}, []float64{4, 4}},
		// The AND of two, and a third that never matters.
		"dummy": {3, func(s bisect.Set) float64 {
			if has(s, 0, 2) {
				return 6
			}
			return 0
		}, []float64{3, 0, 3}},
		// Any two of three: the second in each order, which is each player in 2 of 6.
		"majority": {3, func(s bisect.Set) float64 {
			if s.Size() >= 2 {
				return 9
			}
			return 0
		}, []float64{3, 3, 3}},
		// The glove game: 0 has the left glove, 1 and 2 a right one. 0 completes the pair
		// unless it comes first: 4 of 6 orders. The others do in one order each.
		"gloves": {3, func(s bisect.Set) float64 {
			if s.Has(0) && (s.Has(1) || s.Has(2)) {
				return 6
			}
			return 0
		}, []float64{4, 1, 1}},
		"nobody": {0, func(bisect.Set) float64 { return 7 }, nil},
	} {
		values, orders := one(test.players, test.value).Shapley()
		factorial := 1.0
		for i := 2; i <= test.players; i++ {
			factorial *= float64(i)
		}
		if orders != factorial {
			t.Errorf("%s: %v orders, want %v", name, orders, factorial)
		}
		for i, want := range test.want {
			if got := values[i][0]; math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: player %d has %v, want %v", name, i, got, want)
			}
		}
	}
}

// TestMissingCombination: {1} cannot be built, so the only order is 0, 1.
func TestMissingCombination(t *testing.T) {
	g := one(2, func(s bisect.Set) float64 { return float64(s * s) }) // 0, 1, 4, 9
	delete(g.Values, bisect.Set(2))
	values, orders := g.Shapley()
	if orders != 1 || values[0][0] != 1 || values[1][0] != 8 {
		t.Errorf("%v orders, %v", orders, values)
	}
	delete(g.Values, bisect.Set(1))
	if values, orders := g.Shapley(); values != nil || orders != 0 {
		t.Errorf("no order is left: %v, %v", orders, values)
	}
}

// games draws games of up to five players and some seeds; combinations other than the
// ends may be missing.
func games(complete bool) *rapid.Generator[bisect.Game] {
	return rapid.Custom(func(t *rapid.T) bisect.Game {
		g := bisect.Game{Players: rapid.IntRange(1, 5).Draw(t, "players"), Values: map[bisect.Set][]float64{}}
		seeds := rapid.IntRange(1, 3).Draw(t, "seeds")
		for _, s := range bisect.All(g.Players) {
			if s == 0 || s == g.Full() || complete || rapid.IntRange(0, 3).Draw(t, "kept") > 0 {
				g.Values[s] = rapid.SliceOfN(rapid.Float64Range(-100, 100), seeds, seeds).Draw(t, "values")
			}
		}
		return g
	})
}

// oracle walks all orders that pass known combinations.
func oracle(g bisect.Game) (values [][]float64, orders [][]int) {
	seeds := len(g.Values[0])
	values = make([][]float64, g.Players)
	for i := range values {
		values[i] = make([]float64, seeds)
	}
	var walk func(order []int)
	walk = func(order []int) {
		s := bisect.Set(0)
		for _, i := range order {
			s = s.With(i)
		}
		if g.Values[s] == nil {
			return
		}
		if len(order) == g.Players {
			orders = append(orders, slices.Clone(order))
			before := bisect.Set(0)
			for _, i := range order {
				for seed := range seeds {
					values[i][seed] += g.Values[before.With(i)][seed] - g.Values[before][seed]
				}
				before = before.With(i)
			}
			return
		}
		for i := range g.Players {
			if !s.Has(i) {
				walk(append(order, i))
			}
		}
	}
	walk(nil)
	for i := range values {
		for seed := range values[i] {
			values[i][seed] /= float64(len(orders))
		}
	}
	return values, orders
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9*(1+math.Abs(a)+math.Abs(b)) }

func TestAgainstAllOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := games(false).Draw(t, "game")
		want, orders := oracle(g)
		got, n := g.Shapley()
		if n != float64(len(orders)) {
			t.Fatalf("%v orders, want %d", n, len(orders))
		}
		for i := range got {
			for seed := range got[i] {
				if !near(got[i][seed], want[i][seed]) {
					t.Fatalf("player %d, seed %d: %v, want %v", i, seed, got[i][seed], want[i][seed])
				}
			}
		}
		if len(orders) == 0 {
			return
		}
		// The sample of all orders is the exact value, and each part of it sums up.
		bySeed, byOrder := g.Sampled(orders)
		for i := range bySeed {
			sum := 0.0
			for _, v := range byOrder[i] {
				sum += v / float64(len(orders))
			}
			mean := 0.0
			for seed, v := range bySeed[i] {
				mean += v / float64(len(bySeed[i]))
				if !near(v, want[i][seed]) {
					t.Fatalf("sampled: player %d, seed %d: %v, want %v", i, seed, v, want[i][seed])
				}
			}
			if !near(sum, mean) {
				t.Fatalf("sampled: %v by order, %v by seed", sum, mean)
			}
		}
	})
}

// TestAxioms: what Shapley's value is defined by.
func TestAxioms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, h := games(true).Draw(t, "g"), bisect.Game{Values: map[bisect.Set][]float64{}}
		values, _ := g.Shapley()
		seeds := len(g.Values[0])
		for seed := range seeds { // efficiency
			sum := 0.0
			for i := range values {
				sum += values[i][seed]
			}
			if !near(sum, g.Values[g.Full()][seed]-g.Values[0][seed]) {
				t.Fatalf("the values sum to %v", sum)
			}
		}
		// Linearity: 3g + another game.
		h.Players = g.Players
		sum := bisect.Game{Players: g.Players, Values: map[bisect.Set][]float64{}}
		for _, s := range bisect.All(g.Players) {
			h.Values[s] = rapid.SliceOfN(rapid.Float64Range(-100, 100), seeds, seeds).Draw(t, "h")
			for seed := range seeds {
				sum.Values[s] = append(sum.Values[s], 3*g.Values[s][seed]+h.Values[s][seed])
			}
		}
		other, _ := h.Shapley()
		both, _ := sum.Shapley()
		for i := range both {
			for seed := range both[i] {
				if !near(both[i][seed], 3*values[i][seed]+other[i][seed]) {
					t.Fatalf("not linear: %v", both[i][seed])
				}
			}
		}
		// One more player that never matters gets 0 and changes nobody's value; one that
		// always acts as player 0 does gets as much as that.
		dummy := bisect.Game{Players: g.Players + 1, Values: map[bisect.Set][]float64{}}
		twin := bisect.Game{Players: g.Players + 1, Values: map[bisect.Set][]float64{}}
		for _, s := range bisect.All(g.Players + 1) {
			without := s.Without(g.Players)
			dummy.Values[s] = g.Values[without]
			if s.Has(g.Players) {
				without = without.With(0)
			}
			twin.Values[s] = g.Values[without]
		}
		same, _ := dummy.Shapley()
		alike, _ := twin.Shapley()
		for seed := range seeds {
			if same[g.Players][seed] != 0 || !near(same[0][seed], values[0][seed]) {
				t.Fatalf("dummy: %v", same)
			}
			if !near(alike[g.Players][seed], alike[0][seed]) {
				t.Fatalf("symmetry: %v", alike)
			}
		}
	})
}
