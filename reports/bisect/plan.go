package bisect

import (
	"math"
	"math/rand/v2"
	"slices"

	"napisim/reports/result"
)

// A Method says how the combinations to run are chosen.
type Method string

// The methods, from the surest to the cheapest.
const (
	// Exhaustive runs every combination.
	Exhaustive Method = "all"
	// Screened runs each difference alone, and then every combination of those that
	// move the metric and of all others together.
	Screened Method = "screened"
	// SampledOrders runs each difference alone, and then random orders of those that
	// move the metric and of all others together.
	SampledOrders Method = "sampled"
)

// samplePairs is the least number of pairs of orders: their spread is the error.
const samplePairs = 2

// Least returns the smallest number of combinations with which n differences can be told
// apart: all of them, or each alone and a few orders.
func Least(n int) int {
	return int(min(math.Exp2(float64(n)), float64(2*n+2+2*samplePairs*max(n-1, 0))))
}

// Choose returns the method for n differences and a budget of combinations: whether all
// fit. Which of the other methods it will be shows after the first runs.
func Choose(n, budget int) Method {
	if math.Exp2(float64(n)) <= float64(budget) {
		return Exhaustive
	}
	return Screened
}

// All returns every combination of n players.
func All(n int) []Set {
	var sets []Set
	for s := Set(0); s <= Full(n); s++ {
		sets = append(sets, s)
	}
	return sets
}

// OneAtATime returns the two ends, and next to each of them the combinations that differ
// in one player.
func OneAtATime(n int) []Set {
	sets := []Set{0, Full(n)}
	for i := range n {
		for _, s := range []Set{Set(0).With(i), Full(n).Without(i)} {
			if !slices.Contains(sets, s) {
				sets = append(sets, s)
			}
		}
	}
	return sets
}

// MinMove is the share of the change that a sure move has to have to count as one.
const MinMove = 0.01

// Movers returns the players that move the metric when they are alone, on either side: by
// more than Margin of the change, or surely and by more than MinMove of it; and those of
// which that is not known.
func Movers(g Game) []int {
	change := math.Abs(result.Summarize(g.step(0, g.Full())).Mean)
	moves := func(step []float64) bool {
		s := result.Summarize(step)
		return step == nil || math.Abs(s.Mean) > Margin*change || sure(s) && math.Abs(s.Mean) > MinMove*change
	}
	var movers []int
	for i := range g.Players {
		if moves(g.step(0, Set(0).With(i))) || moves(g.step(g.Full().Without(i), g.Full())) {
			movers = append(movers, i)
		}
	}
	return movers
}

// Groups returns each of the movers as a group of its own, and all others as the last.
func Groups(n int, movers []int) []Set {
	var groups []Set
	rest := Full(n)
	for _, i := range movers {
		groups = append(groups, Set(0).With(i))
		rest = rest.Without(i)
	}
	if rest != 0 {
		groups = append(groups, rest)
	}
	return groups
}

// Combinations returns every combination of groups.
func Combinations(groups []Set) []Set {
	var sets []Set
	for _, s := range All(len(groups)) {
		sets = append(sets, Expand(s, groups))
	}
	return sets
}

// SampleOrders returns random orders of n players, each followed by its reverse, as many
// as need no more than budget new combinations; known are those that cost nothing. A
// combination is known in terms of the same n players. The same arguments give the same
// orders.
func SampleOrders(n, budget int, known func(Set) bool) (orders [][]int, fresh []Set) {
	const most = 1000 // orders repeat, and then cost nothing
	random := rand.New(rand.NewPCG(uint64(n), 0))
	for len(orders) < most {
		order := random.Perm(n)
		reverse := slices.Clone(order)
		slices.Reverse(reverse)
		needed := slices.Clone(fresh)
		for _, o := range [][]int{order, reverse} {
			s := Set(0)
			for _, player := range o {
				if s = s.With(player); !known(s) && !slices.Contains(needed, s) {
					needed = append(needed, s)
				}
			}
		}
		if len(needed) > budget {
			break
		}
		orders, fresh = append(orders, order, reverse), needed
	}
	return orders, fresh
}
