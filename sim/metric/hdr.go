package metric

import (
	"fmt"
	"math/bits"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// HDR returns the distribution in the form of HdrHistogram, for its encoding and
// its readers. The buckets are the same, so the counts and quantiles are too; the
// exact sums stay behind. The range ends with the octave of the greatest value:
// whoever merges several must merge into the one with the widest range.
func (h *Histogram) HDR() *hdrhistogram.Histogram {
	const digits = 3
	top := int64(1)<<bits.Len64(uint64(h.max)) - 1
	out := hdrhistogram.New(1, max(top, 2), digits)
	if h.n == 0 {
		return out
	}
	for i := bucketOf(uint64(h.min)); i <= bucketOf(uint64(h.max)); i++ {
		if h.counts[i] == 0 {
			continue
		}
		low, _ := bucketRange(i)
		if err := out.RecordValues(low, h.counts[i]); err != nil {
			panic(fmt.Sprintf("metric: %v", err))
		}
	}
	return out
}
