package result

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVariants(t *testing.T) {
	d := &Document{Runs: []Run{
		{Seed: 1, Variant: "new"}, {Seed: 1, Variant: "old"}, {Seed: 2, Variant: "new"},
	}}
	want := []Variant{
		{Label: "new", Runs: []Run{{Seed: 1, Variant: "new"}, {Seed: 2, Variant: "new"}}},
		{Label: "old", Runs: []Run{{Seed: 1, Variant: "old"}}},
	}
	if diff := cmp.Diff(want, d.Variants()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMetricNamesInReportOrder(t *testing.T) {
	v := Variant{Runs: []Run{
		{Metrics: map[string]Metric{"zeta": {}, "cpu_busy": {}, "alpha": {}}},
		{Metrics: map[string]Metric{"goodput": {}, "page_pool_alloc_fast": {}, "interrupts": {}}},
	}}
	want := []string{"goodput", "interrupts", "cpu_busy", "page_pool_alloc_fast", "alpha", "zeta"}
	if diff := cmp.Diff(want, v.MetricNames()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValuesPassOverMissing(t *testing.T) {
	v := Variant{Runs: []Run{
		{Metrics: map[string]Metric{"a": {Value: 1}}}, {}, {Metrics: map[string]Metric{"a": {Value: 3}}},
	}}
	if diff := cmp.Diff([]float64{1, 3}, v.Values("a")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSummarize(t *testing.T) {
	tests := map[string]struct {
		values     []float64
		mean, half float64
	}{
		// s² = (4+1+0+1+4)/4 = 2.5; t(0.975, 4) = 2.7764451 in any table;
		// 2.7764451 · √(2.5/5) = 1.9632432.
		"one to five": {[]float64{1, 2, 3, 4, 5}, 3, 1.9632432},
		// Student (1908), extra sleep with laevohyoscyamine: mean 2.33,
		// s = 2.002249; t(0.975, 9) = 2.2621572; 2.2621572 · 2.002249/√10 = 1.432322.
		"sleep": {[]float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}, 2.33, 1.432322},
		// s = |3-1|/√2 = √2; t(0.975, 1) = 12.7062047; 12.7062047 · √2/√2.
		"two": {[]float64{1, 3}, 2, 12.7062047},
		// The sum of three times 0.1 is not 0.3; the mean still has to be 0.1.
		"equal": {[]float64{0.1, 0.1, 0.1}, 0.1, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Summarize(test.values)
			if got.N != len(test.values) || !near(got.Mean, test.mean, 1e-15) || !near(got.Half, test.half, 1e-6) {
				t.Errorf("got %+v, want mean %v ± %v", got, test.mean, test.half)
			}
		})
	}
}

func TestSummarizeTooFew(t *testing.T) {
	if got := Summarize([]float64{7}); got.N != 1 || got.Mean != 7 || !math.IsNaN(got.Half) {
		t.Errorf("one value: %+v", got)
	}
	if got := Summarize(nil); got.N != 0 || !math.IsNaN(got.Mean) || !math.IsNaN(got.Half) {
		t.Errorf("no value: %+v", got)
	}
}

// TestDefinitions keeps the table usable: units and directions that Validate
// accepts, names once, a sentence for each.
func TestDefinitions(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range Definitions() {
		var c checker
		c.metric(d.Name, Metric{Unit: d.Unit, Better: d.Better})
		if len(c.faults) > 0 || seen[d.Name] || d.Help == "" {
			t.Errorf("%+v: %v", d, c.faults)
		}
		seen[d.Name] = true
		if got, ok := Lookup(d.Name); !ok || got != d {
			t.Errorf("Lookup(%q) = %+v, %v", d.Name, got, ok)
		}
	}
}

func TestLookupUnknown(t *testing.T) {
	for name, want := range map[string]Block{
		"page_pool_alloc_waive": BlockMemory, "latency_p75": BlockLatency, "cpu_user": BlockCPU, "dim_steps": BlockOther,
	} {
		if d, ok := Lookup(name); ok || d.Block != want {
			t.Errorf("Lookup(%q) = %+v, %v, want block %q", name, d, ok, want)
		}
	}
}
