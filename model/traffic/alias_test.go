package traffic

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// The share of each outcome is the sum of its parts of all columns. It must be its
// weight, but for the 2^-64 by which each column was rounded.
func TestAliasIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint64Max(1<<40), 1, 50).Draw(t, "weights")
		weights[0]++
		table := newAlias(weights)
		mass := make([]big.Int, len(weights)) // in parts of 2^64*len
		one := new(big.Int).Lsh(big.NewInt(1), 64)
		for i, c := range table {
			accept := new(big.Int).SetUint64(c.accept)
			mass[i].Add(&mass[i], accept)
			mass[c.other].Add(&mass[c.other], new(big.Int).Sub(one, accept))
		}
		sum := new(big.Int)
		for _, w := range weights {
			sum.Add(sum, new(big.Int).SetUint64(w))
		}
		for i, w := range weights {
			// mass/(2^64 n) = w/sum, up to n roundings of 2^-64.
			got := new(big.Int).Mul(&mass[i], sum)
			want := new(big.Int).SetUint64(w)
			want.Mul(want, one).Mul(want, big.NewInt(int64(len(weights))))
			limit := new(big.Int).Mul(sum, big.NewInt(int64(len(weights))))
			if got.Sub(got, want).CmpAbs(limit) > 0 {
				t.Fatalf("outcome %d of %v errs by %v, allowed is %v", i, weights, got, limit)
			}
		}
	})
}
