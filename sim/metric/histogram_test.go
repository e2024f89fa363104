package metric

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// naive is what a histogram stands for: the values themselves.
type naive []int64

func (n naive) mean() float64 {
	if len(n) == 0 {
		return 0
	}
	f, _ := new(big.Float).SetInt(n.sum(1)).Float64()
	return f / float64(len(n))
}

// sum returns the sum of the values raised to a power.
func (n naive) sum(power int64) *big.Int {
	total := new(big.Int)
	for _, v := range n {
		total.Add(total, new(big.Int).Exp(big.NewInt(v), big.NewInt(power), nil))
	}
	return total
}

func (n naive) stdDev() float64 {
	if len(n) < 2 {
		return 0
	}
	mean := new(big.Rat).SetFrac(n.sum(1), big.NewInt(int64(len(n))))
	total := new(big.Rat)
	for _, v := range n {
		d := new(big.Rat).Sub(new(big.Rat).SetInt64(v), mean)
		total.Add(total, d.Mul(d, d))
	}
	f, _ := total.Quo(total, big.NewRat(int64(len(n)-1), 1)).Float64()
	return math.Sqrt(f)
}

// quantile returns the value of the rank that Histogram documents.
func (n naive) quantile(q float64) int64 {
	sorted := slices.Sorted(slices.Values(n))
	rank := int(math.Floor(q*float64(len(n)) + 0.5))
	return sorted[min(max(rank, 1), len(n))-1]
}

// anyValue draws from all octaves alike, so that no bucket is out of reach.
func anyValue() *rapid.Generator[int64] {
	return rapid.Custom(func(t *rapid.T) int64 {
		return rapid.Int64Range(0, math.MaxInt64).Draw(t, "value") >> rapid.IntRange(0, 62).Draw(t, "shift")
	})
}

func fill(values []int64) *Histogram {
	h := new(Histogram)
	for _, v := range values {
		h.Add(v)
	}
	return h
}

func TestHistogramAgainstValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := naive(rapid.SliceOfN(anyValue(), 1, 200).Draw(t, "values"))
		h := fill(values)
		if h.Count() != int64(len(values)) || h.Min() != slices.Min(values) || h.Max() != slices.Max(values) {
			t.Errorf("count %d, min %d, max %d of %v", h.Count(), h.Min(), h.Max(), values)
		}
		if h.Mean() != values.mean() {
			t.Errorf("mean %v, want %v", h.Mean(), values.mean())
		}
		if got, want := h.StdDev(), values.stdDev(); got != want {
			t.Errorf("standard deviation %v, want %v", got, want)
		}
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		got, want := h.Quantile(q), values.quantile(q)
		if got < want || got-want > want/1024 {
			t.Errorf("quantile %v is %d, want %d and at most a thousandth more", q, got, want)
		}
	})
}

func TestHistogramMergeIsRecording(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOf(anyValue()).Draw(t, "a")
		b := rapid.SliceOf(anyValue()).Draw(t, "b")
		merged := fill(a)
		merged.Merge(fill(b))
		sameHistogram(t, merged, fill(append(a, b...)))
	})
}

func TestHistogramResetForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOf(anyValue()).Draw(t, "before")
		after := rapid.SliceOf(anyValue()).Draw(t, "after")
		h := fill(before)
		h.Reset()
		for _, v := range after {
			h.Add(v)
		}
		sameHistogram(t, h, fill(after))
	})
}

// sameHistogram compares what was recorded, whatever room there is for more.
func sameHistogram(t *rapid.T, a, b *Histogram) {
	t.Helper()
	trim := func(h *Histogram) Histogram {
		out := *h
		out.min = h.Min()
		out.counts = nil
		if h.n > 0 {
			out.counts = h.counts[:bucketOf(uint64(h.max))+1]
		}
		return out
	}
	if diff := cmp.Diff(trim(b), trim(a), cmp.AllowUnexported(Histogram{})); diff != "" {
		t.Error(diff)
	}
}

func TestBucketsAreThoseOfHdrHistogram(t *testing.T) {
	ref := hdrhistogram.New(1, math.MaxInt64, 3)
	rapid.Check(t, func(t *rapid.T) {
		a := anyValue().Draw(t, "a")
		low, high := bucketRange(bucketOf(uint64(a)))
		if a < low || a > high {
			t.Fatalf("%d lies outside its bucket [%d, %d]", a, low, high)
		}
		if !ref.ValuesAreEquivalent(low, high) {
			t.Errorf("the library parts bucket [%d, %d]", low, high)
		}
		if low > 0 && ref.ValuesAreEquivalent(low-1, low) {
			t.Errorf("the library joins %d to the bucket below", low)
		}
		if high < math.MaxInt64 && ref.ValuesAreEquivalent(high, high+1) {
			t.Errorf("the library joins %d to the bucket above", high)
		}
	})
}

func TestBucketsAreContiguous(t *testing.T) {
	next := int64(0)
	for i := range maxBuckets {
		low, high := bucketRange(i)
		if low != next || bucketOf(uint64(low)) != i || bucketOf(uint64(high)) != i {
			t.Fatalf("bucket %d is [%d, %d], its ends fall into %d and %d; the one before ends at %d",
				i, low, high, bucketOf(uint64(low)), bucketOf(uint64(high)), next-1)
		}
		next = high + 1
	}
	if next != math.MinInt64 {
		t.Errorf("the last bucket ends at %d", next-1)
	}
}

func TestHDRKeepsCountsAndQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(anyValue(), 1, 200).Draw(t, "values")
		h := fill(values)
		encoded, err := h.HDR().Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		back, err := hdrhistogram.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if back.TotalCount() != h.Count() {
			t.Errorf("%d values read back, %d recorded", back.TotalCount(), h.Count())
		}
		for _, p := range []float64{0.001, 50, 90, 99, 99.9, 100} {
			// Only the exact maximum, which the library does not have, may differ.
			if got, want := h.Quantile(p/100), min(back.ValueAtQuantile(p), h.Max()); got != want {
				t.Errorf("p%v is %d here and %d in the library", p, got, want)
			}
		}
	})
}

func TestEmptyHistogram(t *testing.T) {
	var h Histogram
	if h.Count() != 0 || h.Min() != 0 || h.Max() != 0 || h.Mean() != 0 || h.StdDev() != 0 || h.Quantile(0.5) != 0 {
		t.Errorf("an empty histogram reads %+v", h)
	}
	if n := h.HDR().TotalCount(); n != 0 {
		t.Errorf("an empty histogram became one of %d values", n)
	}
	h.Reset()
	h.Merge(new(Histogram))
	h.Add(7)
	if h.Min() != 7 || h.Max() != 7 {
		t.Errorf("min %d, max %d after one value of 7", h.Min(), h.Max())
	}
}

func TestQuantileBeyondItsRange(t *testing.T) {
	h := fill([]int64{10, 20, 30})
	if low, high := h.Quantile(-1), h.Quantile(2); low != 10 || high != 30 {
		t.Errorf("quantiles -1 and 2 are %d and %d", low, high)
	}
}

func TestSumsDoNotOverflow(t *testing.T) {
	h := fill([]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64 - 2})
	if got, want := h.Mean(), float64(math.MaxInt64); got != want {
		t.Errorf("mean %v, want %v", got, want)
	}
	// The deviations are 0.5, 0.5, 0.5 and -1.5: 19 digits below the values.
	if got := h.StdDev(); got != 1 {
		t.Errorf("standard deviation %v, want 1", got)
	}
}

func TestNegativeValueIsABug(t *testing.T) {
	for _, v := range []int64{-1, math.MinInt64} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d was recorded", v)
				}
			}()
			new(Histogram).Add(v)
		}()
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	var h Histogram
	h.Add(1 << 40)
	v := int64(1)
	if n := testing.AllocsPerRun(1000, func() { h.Add(v); v = v * 3 & (1<<40 - 1) }); n != 0 {
		t.Errorf("%v allocations per Add", n)
	}
}

func TestGrowsSeldom(t *testing.T) {
	var h Histogram
	room, times := 0, 0
	for v := int64(1); v > 0; v <<= 1 {
		h.Add(v)
		if len(h.counts) != room {
			room, times = len(h.counts), times+1
		}
	}
	if times > 14 || room != maxBuckets {
		t.Errorf("grew %d times to %d buckets", times, room)
	}
}
