package result

import (
	"errors"
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Histogram is a distribution: a summary for the eye, and the whole of it in
// HDR, the base64 form of a compressed HdrHistogram V2 that libraries in many
// languages decode.
//
// An HdrHistogram counts integers. Scale is the value of one such integer in
// Unit, for example 1e-9 when nanoseconds were recorded and Unit is s; zero
// stands for 1. The summary fields are already in Unit. Percentiles are the
// upper edge of the bucket they fall in, as HdrHistogram defines them.
type Histogram struct {
	Unit  string  `json:"unit"`
	Scale float64 `json:"scale"`
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	Max   float64 `json:"max"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	HDR   string  `json:"hdr"`
}

// NewHistogram makes a Histogram of what h recorded, in a unit of which one
// recorded step is scale. It reads h and keeps nothing of it. Mean and Max come
// from buckets and share their error; a caller that kept the exact sum and
// maximum may overwrite both.
func NewHistogram(unit string, scale float64, h *hdrhistogram.Histogram) (Histogram, error) {
	if !(scale > 0) || math.IsInf(scale, 0) {
		return Histogram{}, fmt.Errorf("histogram scale %v is not a positive number", scale)
	}
	hdr, err := h.EncodeV2()
	if err != nil {
		return Histogram{}, fmt.Errorf("encoding a histogram: %w", err)
	}
	percentiles := h.ValueAtPercentilesSlice([]float64{50, 90, 99, 99.9})
	return Histogram{
		Unit:  unit,
		Scale: scale,
		Count: h.TotalCount(),
		Mean:  h.Mean() * scale,
		Max:   float64(h.Max()) * scale,
		P50:   float64(percentiles[0]) * scale,
		P90:   float64(percentiles[1]) * scale,
		P99:   float64(percentiles[2]) * scale,
		P999:  float64(percentiles[3]) * scale,
		HDR:   string(hdr),
	}, nil
}

// Decode returns the distribution in recorded steps; multiply by Scale for
// values in Unit. The caller owns it.
func (h Histogram) Decode() (*hdrhistogram.Histogram, error) {
	if h.HDR == "" {
		return nil, errors.New("the histogram holds no distribution")
	}
	decoded, err := hdrhistogram.Decode([]byte(h.HDR))
	if err != nil {
		return nil, fmt.Errorf("decoding a histogram: %w", err)
	}
	return decoded, nil
}

// step returns Scale with its zero value resolved.
func (h Histogram) step() float64 {
	if h.Scale == 0 {
		return 1
	}
	return h.Scale
}

// Merge pools histograms as if one recorder had seen all values. They must
// agree in unit and scale. The pooled Mean weighs the means of its parts by
// their counts and Max is the largest of theirs, so both stay exact if the
// parts are.
func Merge(parts ...Histogram) (Histogram, error) {
	if len(parts) == 0 {
		return Histogram{}, errors.New("no histogram to merge")
	}
	decoded := make([]*hdrhistogram.Histogram, len(parts))
	var lowest, highest, figures int64 = math.MaxInt64, 0, 0
	for i, part := range parts {
		if part.Unit != parts[0].Unit || part.step() != parts[0].step() {
			return Histogram{}, fmt.Errorf("cannot merge a histogram in steps of %v %s with one in steps of %v %s",
				parts[0].step(), parts[0].Unit, part.step(), part.Unit)
		}
		h, err := part.Decode()
		if err != nil {
			return Histogram{}, err
		}
		decoded[i] = h
		lowest = min(lowest, h.LowestTrackableValue())
		highest = max(highest, h.HighestTrackableValue())
		figures = max(figures, h.SignificantFigures())
	}
	pool := hdrhistogram.New(lowest, highest, int(figures))
	for _, h := range decoded {
		if dropped := pool.Merge(h); dropped > 0 {
			return Histogram{}, fmt.Errorf("merging histograms: %d values do not fit", dropped)
		}
	}
	merged, err := NewHistogram(parts[0].Unit, parts[0].step(), pool)
	if err != nil {
		return Histogram{}, err
	}
	merged.Mean, merged.Max = pooledMeanMax(parts)
	return merged, nil
}

// pooledMeanMax combines the summaries of parts; all zero when they are empty.
func pooledMeanMax(parts []Histogram) (mean, largest float64) {
	var total int64
	for _, part := range parts {
		total += part.Count
	}
	for _, part := range parts {
		if part.Count > 0 {
			mean += part.Mean * (float64(part.Count) / float64(total))
			largest = max(largest, part.Max)
		}
	}
	return mean, largest
}
