package result

import (
	"math"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*math.Abs(b) }

func TestNewHistogram(t *testing.T) {
	// 1 to 1000 nanoseconds, once each. Below 2048 three significant digits
	// keep every integer apart, so the percentiles are exact: 500, 900, 990 and
	// 999 of 1000 values are at or below them.
	h := hdrhistogram.New(1, 1e10, 3)
	for v := range int64(1000) {
		if err := h.RecordValue(v + 1); err != nil {
			t.Fatal(err)
		}
	}
	got, err := NewHistogram("s", 1e-9, h)
	if err != nil {
		t.Fatal(err)
	}
	// The mean is (1 + 1000) / 2 = 500.5.
	want := Histogram{
		Unit: "s", Scale: 1e-9, Count: 1000, Mean: 500.5e-9, Max: 1000e-9,
		P50: 500e-9, P90: 900e-9, P99: 990e-9, P999: 999e-9,
	}
	got.HDR, want.HDR = "", ""
	approximately := cmp.Comparer(func(a, b float64) bool { return near(a, b, 1e-12) })
	if diff := cmp.Diff(want, got, approximately); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNewHistogramOfNothing(t *testing.T) {
	got, err := NewHistogram("s", 1, hdrhistogram.New(1, 1000, 3))
	if err != nil {
		t.Fatal(err)
	}
	if got.Count != 0 || got.Mean != 0 || got.Max != 0 || got.P999 != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestNewHistogramRefusesScale(t *testing.T) {
	for _, scale := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := NewHistogram("s", scale, hdrhistogram.New(1, 1000, 3)); err == nil {
			t.Errorf("scale %v was taken", scale)
		}
	}
}

// TestMergeProperty holds the pool of several recorders against one recorder
// that saw all values.
func TestMergeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.SliceOfN(rapid.Int64Range(1, 1e9), 0, 50), 1, 5).Draw(t, "values")
		all := hdrhistogram.New(1, 1e10, 3)
		var parts []Histogram
		var largest int64
		for _, some := range values {
			// The ranges differ, as those of runs of different length do.
			h := hdrhistogram.New(1, 1e9+int64(len(some)), 3)
			for _, v := range some {
				if h.RecordValue(v) != nil || all.RecordValue(v) != nil {
					t.Fatalf("cannot record %d", v)
				}
				largest = max(largest, v)
			}
			part, err := NewHistogram("s", 1e-9, h)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, part)
		}
		want, err := NewHistogram("s", 1e-9, all)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Merge(parts...)
		if err != nil {
			t.Fatal(err)
		}
		if got.Count != want.Count || got.P50 != want.P50 || got.P999 != want.P999 || got.Max != want.Max {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		if !near(got.Mean, want.Mean, 1e-9) {
			t.Fatalf("mean %v, want %v", got.Mean, want.Mean)
		}
	})
}

func TestMergeKeepsExactMeans(t *testing.T) {
	a, b := recorded(t, 1, 10), recorded(t, 1, 20, 20, 20)
	a.Mean, a.Max = 10.25, 10.5
	// (1·10.25 + 3·20) / 4 = 70.25 / 4 = 17.5625.
	got, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if got.Mean != 17.5625 || got.Max != 20 {
		t.Errorf("mean %v, max %v", got.Mean, got.Max)
	}
}

func TestMergeRefuses(t *testing.T) {
	seconds := recorded(t, 1e-9, 1)
	micros := recorded(t, 1e-6, 1)
	frames := recorded(t, 1e-9, 1)
	frames.Unit = "frames"
	bare := Histogram{Unit: "s", Scale: 1e-9, Count: 1}
	tests := map[string]struct {
		parts []Histogram
		want  string
	}{
		"nothing":         {nil, "no histogram"},
		"scales":          {[]Histogram{seconds, micros}, "steps of 1e-09 s with one in steps of 1e-06 s"},
		"units":           {[]Histogram{seconds, frames}, "steps of 1e-09 s with one in steps of 1e-09 frames"},
		"no distribution": {[]Histogram{seconds, bare}, "holds no distribution"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Merge(test.parts...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
