package bisect

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
)

// MaxPlayers is how many players a Set has room for.
const MaxPlayers = 62

// A Set is a combination: bit i is set if player i is on the bad side.
type Set uint64

// Full returns the combination with all of n players.
func Full(n int) Set { return 1<<n - 1 }

// Has reports whether player i is in the set.
func (s Set) Has(i int) bool { return s&(1<<i) != 0 }

// With returns the set with player i in it.
func (s Set) With(i int) Set { return s | 1<<i }

// Without returns the set without player i.
func (s Set) Without(i int) Set { return s &^ (1 << i) }

// Size returns the number of players in the set.
func (s Set) Size() int { return bits.OnesCount64(uint64(s)) }

// A Game is what was measured of some combinations of Players players: the metric by
// seed, of the same seeds in the same order for each combination.
type Game struct {
	Players int
	Values  map[Set][]float64
}

// Full returns the combination with all players of the game.
func (g Game) Full() Set { return Full(g.Players) }

// known returns the combinations of the game, small ones first.
func (g Game) known() []Set {
	return slices.SortedFunc(maps.Keys(g.Values), func(a, b Set) int {
		return cmp.Or(cmp.Compare(a.Size(), b.Size()), cmp.Compare(a, b))
	})
}

// step returns, seed by seed, what the metric does from one combination to another;
// nil if one of them is not known.
func (g Game) step(from, to Set) []float64 {
	a, b := g.Values[from], g.Values[to]
	if a == nil || b == nil {
		return nil
	}
	return difference(a, b)
}

// difference returns b - a.
func difference(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range d {
		d[i] = b[i] - a[i]
	}
	return d
}

// Reduce returns the game in which each group moves as one player. The groups divide the
// players among them.
func (g Game) Reduce(groups []Set) Game {
	reduced := Game{Players: len(groups), Values: map[Set][]float64{}}
	for whole, values := range g.Values {
		if s, ok := reduceSet(whole, groups); ok {
			reduced.Values[s] = values
		}
	}
	return reduced
}

// reduceSet writes a combination in terms of groups; ok is false if it splits one.
func reduceSet(whole Set, groups []Set) (s Set, ok bool) {
	for i, group := range groups {
		switch whole & group {
		case group:
			s = s.With(i)
		case 0:
		default:
			return 0, false
		}
	}
	return s, true
}

// Expand is the reverse of what Reduce does to a combination.
func Expand(s Set, groups []Set) Set {
	var whole Set
	for i, group := range groups {
		if s.Has(i) {
			whole |= group
		}
	}
	return whole
}
