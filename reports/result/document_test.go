package result

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sample returns a small document that uses every field.
func sample(t testing.TB) *Document {
	t.Helper()
	return &Document{
		Schema:   Schema,
		Tool:     Tool{Name: "napisim", Version: "v0.1.0"},
		Scenario: Scenario{Name: "two-frames", Digest: "sha256:5f3a", Resolved: "napisim: 1\nname: two-frames # <&>\n"},
		Runs: []Run{{
			Seed: 1, Variant: "base", Kernel: "v6.1", Fingerprint: "00c0ffee00c0ffee",
			SimulatedSeconds: 1.25, MeasuredSeconds: 1,
			Metrics: map[string]Metric{
				"goodput":    {Value: 529e6, Unit: "bit/s", Better: Higher},
				"interrupts": {Value: 100.1, Unit: "1/s", Better: Lower},
			},
			Histograms: map[string]Histogram{"latency": recorded(t, 1e-9, 1000, 2000, 3000)},
			Cores:      []Core{{CPU: 0, Shares: map[string]float64{"softirq": 0.25, "idle": 0.75}}},
			Losses:     []Loss{{Place: "eth0 rx-0", Reason: "no free descriptor", Counter: "rx_missed_errors", Count: 7}},
			Provenance: []Provenance{{
				Kind: KindFitted, Share: 1, Seconds: 0.25,
				Stages: []StageCost{{Stage: "poll_fixed", Seconds: 0.25, Source: "evidence", Rows: []string{"row 1"}}},
			}},
			Published: []Published{{Source: "a thread", Metric: "goodput", Value: 516e6, Unit: "bit/s", Role: RolePredicted, Note: "reverted"}},
			Warnings:  []string{"drifts"},
		}},
	}
}

// recorded makes a histogram in seconds of integer values.
func recorded(t testing.TB, scale float64, values ...int64) Histogram {
	t.Helper()
	h := hdrhistogram.New(1, 1e10, 3)
	for _, v := range values {
		if err := h.RecordValue(v); err != nil {
			t.Fatal(err)
		}
	}
	out, err := NewHistogram("s", scale, h)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	want := sample(t)
	data, err := Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(bytes.NewReader(data), "sample.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read differs from written (-want +got):\n%s", diff)
	}
	again, err := Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, again) {
		t.Error("writing what was read gives other bytes")
	}
}

// TestMarshalForm pins what scripts rely on: the schema comes first, keys are
// sorted, floats are as short as they can be, lists are never null.
func TestMarshalForm(t *testing.T) {
	d := &Document{Runs: []Run{{
		Fingerprint: "ab",
		Metrics: map[string]Metric{
			"zeta":  {Value: 0.30000000000000004, Unit: "1"},
			"alpha": {Value: 5e8, Unit: "bit/s", Better: Higher},
			"zero":  {Value: math.Copysign(0, -1), Unit: "1"},
		},
	}}}
	data, err := Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "schema": "napisim.result/1",
  "tool": {
    "name": "",
    "version": ""
  },
  "scenario": {
    "name": "",
    "digest": "",
    "resolved": ""
  },
  "runs": [
    {
      "seed": 0,
      "variant": "",
      "fingerprint": "ab",
      "simulated_seconds": 0,
      "measured_seconds": 0,
      "metrics": {
        "alpha": {
          "value": 500000000,
          "unit": "bit/s",
          "better": "higher"
        },
        "zero": {
          "value": 0,
          "unit": "1",
          "better": ""
        },
        "zeta": {
          "value": 0.30000000000000004,
          "unit": "1",
          "better": ""
        }
      },
      "histograms": {},
      "cores": [],
      "losses": [],
      "provenance": [],
      "published": [],
      "warnings": []
    }
  ]
}
`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d.Schema != "" || d.Runs[0].Cores != nil {
		t.Error("Marshal changed the document")
	}
}

func TestMarshalLeavesOutUndefinedValues(t *testing.T) {
	d := sample(t)
	run := &d.Runs[0]
	run.Metrics["frames_per_interrupt"] = Metric{Value: math.NaN(), Unit: "frames", Better: Higher}
	run.Metrics["broken"] = Metric{Value: math.Inf(1), Unit: "1"}
	run.Histograms["empty"] = Histogram{Unit: "s", Mean: math.NaN()}
	run.Cores[0].Shares["user"] = math.NaN()
	run.Provenance[0].Stages[0].Seconds = math.NaN()
	run.Published[0].Value = math.NaN()
	data, err := Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(bytes.NewReader(data), "x")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"drifts",
		"metric broken is undefined (+Inf) and was left out",
		"metric frames_per_interrupt is undefined (NaN) and was left out",
		"histogram empty is undefined (NaN) and was left out",
		"share of user on cpu 0 is undefined (NaN) and was left out",
		"cost of stage poll_fixed is undefined (NaN) and was left out",
		"published goodput of a thread is undefined (NaN) and was left out",
	}
	if diff := cmp.Diff(want, got.Runs[0].Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if len(got.Runs[0].Metrics) != 2 || len(got.Runs[0].Histograms) != 1 || len(got.Runs[0].Published) != 0 {
		t.Errorf("undefined values are still there: %+v", got.Runs[0])
	}
	if len(run.Warnings) != 1 {
		t.Error("Marshal changed the document")
	}
}

func TestMarshalRefusesInvalid(t *testing.T) {
	d := sample(t)
	d.Runs = append(d.Runs, d.Runs[0])
	if _, err := Marshal(d); err == nil || !strings.Contains(err.Error(), `runs[1]: seed 1 of variant "base" is already in runs[0]`) {
		t.Errorf("two runs with one seed: %v", err)
	}
}

// TestMarshalProperty writes documents of arbitrary numbers and reads them
// back: values come back to the bit, and bytes do not depend on the order in
// which maps were filled.
func TestMarshalProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.MapOf(rapid.StringMatching(`[a-z_0-9]{1,12}`), rapid.Float64()).Draw(t, "values")
		seed := rapid.Uint64().Draw(t, "seed")
		build := func() *Document {
			metrics := map[string]Metric{}
			for name, v := range values {
				metrics[name] = Metric{Value: v, Unit: "1"}
			}
			return &Document{Runs: []Run{{Seed: seed, Fingerprint: "0", Metrics: metrics}}}
		}
		first, err := Marshal(build())
		if err != nil {
			t.Fatal(err)
		}
		second, err := Marshal(build())
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("equal documents give other bytes (%v)", err)
		}
		got, err := Read(bytes.NewReader(first), "x")
		if err != nil {
			t.Fatal(err)
		}
		if got.Runs[0].Seed != seed {
			t.Fatalf("seed %d came back as %d", seed, got.Runs[0].Seed)
		}
		for name, v := range values {
			m, ok := got.Runs[0].Metrics[name]
			if ok != finite(v) || ok && m.Value != v {
				t.Fatalf("%s: wrote %v, read %v (%v)", name, v, m.Value, ok)
			}
		}
	})
}
