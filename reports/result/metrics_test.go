package result

import "testing"

func TestText(t *testing.T) {
	high := 0.66
	for _, c := range []struct {
		metric, unit string
		mean         float64
		high         *float64
		alone, with  string
	}{
		{"cpu_busy", "1", 0.64, &high, "64 %", "64.0 ± 2.0 %"},
		{"cpu_busy", "1", 1, nil, "100 %", "100 %"},
		{"gro_segments_per_frame", "1", 0.64, &high, "0.64", "0.640 ± 0.020"},
		{"goodput", "bit/s", 529e6, nil, "529 Mbit/s", "529 Mbit/s"},
	} {
		if got := Text(c.metric, c.unit, c.mean); got != c.alone {
			t.Errorf("%s alone is %q, want %q", c.metric, got, c.alone)
		}
		if got := TextWithin(c.metric, c.unit, c.mean, c.high); got != c.with {
			t.Errorf("%s with its interval is %q, want %q", c.metric, got, c.with)
		}
	}
}
