package traffic

import (
	"math"
	"math/bits"

	"napisim/sim"
)

// alias draws from a discrete distribution in constant time (A. J. Walker, ACM
// Trans. Math. Softw. 3, 1977; built as M. D. Vose does, IEEE Trans. Softw. Eng. 17,
// 1991), in integers. Each column stands for itself up to accept, which is a share
// of 2^64, and for other above it.
type alias []column

type column struct {
	accept uint64
	other  int32
}

// newAlias returns the distribution of the given weights. There may be 2^20 of
// them, each below 2^41, and their sum must not be zero.
func newAlias(weights []uint64) alias {
	n := uint64(len(weights))
	var sum uint64
	for _, w := range weights {
		sum += w
	}
	table := make(alias, n)
	scaled := make([]uint64, n) // the mean is sum
	var small, large []int32
	for i, w := range weights {
		scaled[i] = w * n
		table[i] = column{math.MaxUint64, int32(i)}
		if scaled[i] < sum {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		accept, _ := bits.Div64(scaled[s], 0, sum)
		table[s] = column{accept, l}
		scaled[l] -= sum - scaled[s]
		if scaled[l] < sum {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	return table
}

// draw takes one random number: its high part picks the column, what remains
// decides within.
func (a alias) draw(r *sim.Rand) int {
	i, rest := bits.Mul64(r.Uint64(), uint64(len(a)))
	if rest < a[i].accept {
		return int(i)
	}
	return int(a[i].other)
}
