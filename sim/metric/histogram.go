package metric

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

// Values below 2^(subBits+1) have a bucket each; from there on every octave is cut
// into 2^subBits buckets, so a bucket is never wider than a thousandth of its
// values. These are the buckets of HdrHistogram at three significant digits.
//
// Seven bits would save memory but no time (2.3 ns an Add either way, measured
// over latencies of three octaves), and buckets of 0.8 % would hide differences
// that a comparison is asked to find.
const (
	subBits    = 10
	octave     = 1 << subBits
	maxBuckets = (63 - subBits + 1) * octave
)

// Histogram records the distribution of non-negative integers: the count of each
// bucket, and the exact count, sum, sum of squares, least and greatest value. The
// zero Histogram is empty and ready for use.
//
// Memory follows the greatest value recorded: 8 KiB for each octave up to it, at
// least 32 KiB. A run touches only the octaves in which its values lie.
type Histogram struct {
	counts   []int64
	n        int64
	min, max int64
	// sum and squares are little-endian. They cannot overflow: 2^63 squares below
	// 2^126 need 189 bits.
	sum     [2]uint64
	squares [3]uint64
}

// Add records one value, which must not be negative. It allocates only when v lies
// octaves above everything recorded before, at most fourteen times.
func (h *Histogram) Add(v int64) {
	u := uint64(v)
	i := bucketOf(u)
	if uint(i) >= uint(len(h.counts)) {
		h.grow(v)
	}
	h.counts[i]++
	h.n++
	var carry uint64
	h.sum[0], carry = bits.Add64(h.sum[0], u, 0)
	h.sum[1] += carry
	hi, lo := bits.Mul64(u, u)
	h.squares[0], carry = bits.Add64(h.squares[0], lo, 0)
	h.squares[1], carry = bits.Add64(h.squares[1], hi, carry)
	h.squares[2] += carry
	if v < h.min {
		h.min = v
	}
	if v > h.max {
		h.max = v
	}
}

// Count returns how many values were recorded.
func (h *Histogram) Count() int64 { return h.n }

// Min returns the least value recorded, or 0 if there is none.
func (h *Histogram) Min() int64 {
	if h.n == 0 {
		return 0
	}
	return h.min
}

// Max returns the greatest value recorded, or 0 if there is none.
func (h *Histogram) Max() int64 { return h.max }

// Sum returns the sum of the values as a float; the sum itself is kept exactly.
func (h *Histogram) Sum() float64 { return wide(h.sum[1], h.sum[0]) }

// Mean returns the mean of the values themselves, not of their buckets, or 0 if
// there is none.
func (h *Histogram) Mean() float64 {
	if h.n == 0 {
		return 0
	}
	return h.Sum() / float64(h.n)
}

// StdDev returns the standard deviation of the values as a sample, or 0 if there
// are fewer than two. The difference n*Σv² - (Σv)² is taken in whole numbers: in
// floats it would lose every digit for values that vary little around a large mean.
func (h *Histogram) StdDev() float64 {
	if h.n < 2 {
		return 0
	}
	n := big.NewInt(h.n)
	sum, squares := integer(h.sum[:]), integer(h.squares[:])
	dev := squares.Mul(squares, n)
	dev.Sub(dev, sum.Mul(sum, sum))
	variance := new(big.Rat).SetFrac(dev, n.Mul(n, big.NewInt(h.n-1)))
	f, _ := variance.Float64()
	return math.Sqrt(f)
}

// Quantile returns a value that the share q of the recorded values does not
// exceed, to the resolution of a bucket, or 0 if nothing was recorded. The rank is
// rounded, and the upper end of the bucket returned, as HdrHistogram does, so that
// the same number comes out of a stored result.
func (h *Histogram) Quantile(q float64) int64 {
	if h.n == 0 {
		return 0
	}
	rank := h.n
	// The conversion forbids a fused multiply-add, whose last bit may differ.
	if r := float64(q*float64(h.n)) + 0.5; r < float64(h.n) {
		rank = max(1, int64(r))
	}
	for i := bucketOf(uint64(h.min)); ; i++ {
		if rank -= h.counts[i]; rank <= 0 {
			_, high := bucketRange(i)
			return min(high, h.max)
		}
	}
}

// Merge adds everything recorded in from, as if it had been recorded here.
func (h *Histogram) Merge(from *Histogram) {
	if from.n == 0 {
		return
	}
	last := bucketOf(uint64(from.max))
	if last >= len(h.counts) {
		h.grow(from.max)
	}
	for i := bucketOf(uint64(from.min)); i <= last; i++ {
		h.counts[i] += from.counts[i]
	}
	h.n += from.n
	h.min, h.max = min(h.min, from.min), max(h.max, from.max)
	var carry uint64
	h.sum[0], carry = bits.Add64(h.sum[0], from.sum[0], 0)
	h.sum[1] += from.sum[1] + carry
	h.squares[0], carry = bits.Add64(h.squares[0], from.squares[0], 0)
	h.squares[1], carry = bits.Add64(h.squares[1], from.squares[1], carry)
	h.squares[2] += from.squares[2] + carry
}

// Reset forgets everything recorded and keeps the memory.
func (h *Histogram) Reset() {
	if h.n > 0 {
		clear(h.counts[bucketOf(uint64(h.min)) : bucketOf(uint64(h.max))+1])
	}
	*h = Histogram{counts: h.counts, min: math.MaxInt64}
}

// grow makes room for v and for values a few octaves above it, because latencies
// rarely come in the order that would make every octave an allocation.
func (h *Histogram) grow(v int64) {
	if v < 0 {
		panic(fmt.Sprintf("metric: histogram of non-negative values given %d", v))
	}
	if h.counts == nil {
		h.min = math.MaxInt64
	}
	counts := make([]int64, min(maxBuckets, (bucketOf(uint64(v))>>subBits+4)<<subBits))
	copy(counts, h.counts)
	h.counts = counts
}

// bucketOf returns the index of the bucket of u. Values of 2^63 and more, which
// are negative integers in disguise, have an index beyond maxBuckets.
func bucketOf(u uint64) int {
	shift := uint(bits.Len64(u|(2*octave-1)) - (subBits + 1))
	// The mask tells the compiler that no shift is too large.
	return int(shift<<subBits) + int(u>>(shift&63))
}

// bucketRange returns the least and the greatest value of bucket i.
func bucketRange(i int) (low, high int64) {
	shift := max(i>>subBits-1, 0)
	low = int64(i-shift<<subBits) << shift
	return low, low + 1<<shift - 1
}

// integer returns the number whose little-endian words are given.
func integer(words []uint64) *big.Int {
	x := new(big.Int)
	for i := len(words) - 1; i >= 0; i-- {
		x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(words[i]))
	}
	return x
}
