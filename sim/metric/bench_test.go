package metric

import (
	"testing"

	"napisim/sim"
)

// latencies spread over three octaves, as those of a loaded receive path do.
func latencies() []int64 {
	r := sim.NewRand(1, "latencies")
	v := make([]int64, 1<<16)
	for i := range v {
		v[i] = int64(r.Exp(20 * sim.Microsecond))
	}
	return v
}

func BenchmarkHistogramAdd(b *testing.B) {
	v := latencies()
	var h Histogram
	i := 0
	for b.Loop() {
		h.Add(v[i&(len(v)-1)])
		i++
	}
}

func BenchmarkLevelSet(b *testing.B) {
	var l Level
	at := sim.Time(0)
	for b.Loop() {
		l.Set(at, int64(at)&1023)
		at += 1000
	}
}

func BenchmarkHistogramQuantile(b *testing.B) {
	h := fill(latencies())
	for b.Loop() {
		h.Quantile(0.99)
	}
}
