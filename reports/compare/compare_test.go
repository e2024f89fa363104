package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"napisim/reports/result"
)

// values are those of metrics over the seeds 1, 2, 3 and so on.
type values map[string][]float64

// variant makes runs from values. Units and directions are those of the known
// metrics.
func variant(label string, v values) result.Variant {
	out := result.Variant{Label: label}
	for name, list := range v {
		d, known := result.Lookup(name)
		if !known {
			d.Unit = "1"
		}
		for i, value := range list {
			if i == len(out.Runs) {
				out.Runs = append(out.Runs, result.Run{Seed: uint64(i + 1), Metrics: map[string]result.Metric{}})
			}
			out.Runs[i].Metrics[name] = result.Metric{Value: value, Unit: d.Unit, Better: d.Better}
		}
	}
	return out
}

// reseed gives the runs of a variant other seeds.
func reseed(v result.Variant, seeds ...uint64) result.Variant {
	for i, seed := range seeds {
		v.Runs[i].Seed = seed
	}
	return v
}

func row(t testing.TB, c *Comparison, metric string) Row {
	t.Helper()
	i := slices.IndexFunc(c.Rows, func(r Row) bool { return r.Metric == metric })
	if i < 0 {
		t.Fatalf("no row for %s", metric)
	}
	return c.Rows[i]
}

// TestRow follows one metric through. The base has mean 0.75 and the variant 2.33,
// so delta = 1.58/0.75 = 2.10667; the interval of the difference, 0.7001142 to
// 2.4598858 by R, is 0.9334856 to 3.2798477 of the base. The intervals of the means
// are mean ± 2.2621572·s/√10 with s = 1.789010 and 2.002249.
func TestRow(t *testing.T) {
	c := compared(t, variant("one", values{"sleep": sleep[0]}), variant("other", values{"sleep": sleep[1]}))
	want := Row{
		Metric: "sleep", Unit: "1",
		Variants: []Cell{
			{Label: "one", Mean: 0.75, Low: new(-0.5297804), High: new(2.0297804), N: 10, Verdict: IsBase},
			{
				Label: "other", Mean: 2.33, Low: new(0.8976776), High: new(3.7623224), N: 10,
				Delta: new(2.1066667), DeltaLow: new(0.9334856), DeltaHigh: new(3.2798477),
				P: new(0.0028329), AdjustedP: new(0.0028329), Verdict: Changed,
			},
		},
		Delta: new(2.1066667), P: new(0.0028329),
	}
	if diff := cmp.Diff(want, c.Rows[0], cmpopts.EquateApprox(1e-5, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.Design != Paired || c.Comparisons != 1 || c.ExpectedByChance != 0.05 || len(c.Warnings) > 0 {
		t.Errorf("got %+v", c)
	}
}

func TestVerdicts(t *testing.T) {
	up, down := []float64{10, 11, 12, 13, 14}, []float64{5, 5.1, 5.3, 5.2, 5}
	c := compared(t,
		variant("base", values{"goodput": up, "latency_p99": up, "interrupts": down, "polls": up, "retransmits": up, "time_squeeze": {0, 0, 0, 0, 0}}),
		variant("new", values{"goodput": down, "latency_p99": down, "interrupts": up, "polls": down, "retransmits": up, "time_squeeze": {3, 3, 3, 3, 3}}))
	want := map[string]Verdict{
		"goodput": Worsened, "latency_p99": Improved, "interrupts": Worsened, "polls": Changed,
		"retransmits": Insignificant, "time_squeeze": Worsened,
	}
	for metric, verdict := range want {
		if got := row(t, c, metric).Variants[1]; got.Verdict != verdict {
			t.Errorf("%s: %+v, want %s", metric, got, verdict)
		}
	}
	if squeeze := row(t, c, "time_squeeze"); squeeze.Delta != nil || squeeze.P == nil || *squeeze.P != 0 {
		t.Errorf("from 0: %+v", squeeze)
	}
	// Retransmits are the same in every pair: no test.
	if c.Comparisons != 5 {
		t.Errorf("%d comparisons", c.Comparisons)
	}
}

// TestIdentical compares documents with themselves.
func TestIdentical(t *testing.T) {
	for n := 1; n <= 10; n++ {
		v := values{}
		for i := range 5 {
			for seed := range n {
				name := fmt.Sprintf("m%d", i)
				v[name] = append(v[name], float64(seed*i)+0.1)
			}
		}
		c := compared(t, variant("a", v), variant("b", v))
		if c.Comparisons != 0 {
			t.Errorf("%d seeds: %d comparisons of identical runs", n, c.Comparisons)
		}
		for _, row := range c.Rows {
			cell := row.Variants[1]
			if cell.P == nil || *cell.P != 1 || *cell.AdjustedP != 1 || *cell.Delta != 0 || cell.Verdict != Insignificant || !cell.Identical {
				t.Errorf("%d seeds, %s: %+v", n, row.Metric, cell)
			}
		}
		var b strings.Builder
		if err := c.WriteText(&b, false); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(b.String(), "  ~  "); got != len(c.Rows) {
			t.Errorf("%d seeds: %d of %d rows show ~:\n%s", n, got, len(c.Rows), b.String())
		}
	}
}

func TestOrderOfRows(t *testing.T) {
	v := values{"zeta": {1}, "alpha": {1}, "cpu_busy": {1}, "interrupts": {1}, "goodput": {1}, "latency_p99": {1}}
	var got []string
	for _, row := range compared(t, variant("a", v), variant("b", v)).Rows {
		got = append(got, row.Metric)
	}
	want := []string{"goodput", "interrupts", "latency_p99", "cpu_busy", "alpha", "zeta"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPairing(t *testing.T) {
	list := []float64{1, 2, 3, 4, 5}
	tests := map[string]struct {
		a, b   result.Variant
		design Design
		n      [2]int
		warns  []string
	}{
		"same seeds, other order": {
			variant("a", values{"x": list}), reseed(variant("b", values{"x": {5, 4, 3, 2, 1}}), 5, 4, 3, 2, 1),
			Paired,
			[2]int{5, 5},
			nil,
		},
		"one run is missing": {
			variant("a", values{"x": append(list, 6)}), variant("b", values{"x": list}),
			Paired,
			[2]int{5, 5},
			[]string{"1 of 6 runs of a have no partner"},
		},
		"some seeds": {
			variant("a", values{"x": list}), reseed(variant("b", values{"x": list}), 1, 2, 3, 8, 9),
			Unpaired,
			[2]int{5, 5},
			[]string{"the seeds differ"},
		},
		"few seeds": {
			variant("a", values{"x": list[:3]}), variant("b", values{"x": list[:3]}),
			Paired,
			[2]int{3, 3},
			[]string{"3 seeds are few"},
		},
		"one seed": {
			variant("a", values{"x": list[:1]}), variant("b", values{"x": list[:1]}),
			Paired,
			[2]int{1, 1},
			[]string{"one run is not enough"},
		},
		// 2/C(6,3) = 0.1 is not below 0.05.
		"hopeless": {
			variant("a", values{"x": list[:3]}), reseed(variant("b", values{"x": list[:3]}), 7, 8, 9),
			Unpaired,
			[2]int{3, 3},
			[]string{"the seeds differ", "3 seeds are few", "nothing can be significant: the U test of so few runs cannot go below p=0.1, which is 0.1 over 1 tests"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := compared(t, test.a, test.b)
			cells := c.Rows[0].Variants
			if c.Design != test.design || cells[0].N != test.n[0] || cells[1].N != test.n[1] {
				t.Errorf("%s, n=%d and %d", c.Design, cells[0].N, cells[1].N)
			}
			if len(c.Warnings) != len(test.warns) {
				t.Fatalf("warnings %q, want %q", c.Warnings, test.warns)
			}
			for i, want := range test.warns {
				if !strings.HasPrefix(c.Warnings[i], want) {
					t.Errorf("warning %q, want %q", c.Warnings[i], want)
				}
			}
		})
	}
}

// TestPairsGoBySeed swaps the runs of one side; only pairing by seed finds the
// runs identical.
func TestPairsGoBySeed(t *testing.T) {
	a := variant("a", values{"x": {1, 2, 3}})
	b := variant("b", values{"x": {3, 2, 1}})
	b.Runs[0].Seed, b.Runs[2].Seed = 3, 1
	if cell := compared(t, a, b).Rows[0].Variants[1]; !cell.Identical {
		t.Errorf("got %+v", cell)
	}
}

func TestWhatCannotBeCompared(t *testing.T) {
	a := variant("a", values{"goodput": {1, 2, 3, 4, 5}, "only_a": {1}, "seconds": {1, 1, 1, 1, 1}, "sparse": {1, 2}})
	b := variant("b", values{"goodput": {1, 2, 3, 4, 5}, "also": {1}, "seconds": {1, 1, 1, 1, 1}, "sparse": {0, 0, 0, 1, 2}})
	for i := range b.Runs {
		b.Runs[i].Metrics["seconds"] = result.Metric{Value: 1, Unit: "s"}
	}
	// Run 2 of b has no goodput, so the pair cannot be used; sparse has no pair left.
	delete(b.Runs[1].Metrics, "goodput")
	for i := range 3 {
		delete(b.Runs[i].Metrics, "sparse")
	}
	c := compared(t, a, b)
	want := []string{
		"seconds is not compared: its units differ (1, s)",
		"not compared, since not every variant has them: also, only_a",
		"goodput is undefined in some runs: 2 left out",
		"sparse is not compared: no seed has it in every variant",
	}
	if diff := cmp.Diff(want, c.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if len(c.Rows) != 1 || c.Rows[0].Variants[0].N != 4 || c.Rows[0].Variants[1].N != 4 {
		t.Errorf("rows %+v", c.Rows)
	}
}

func TestThreeVariants(t *testing.T) {
	c := compared(t,
		variant("base", values{"goodput": {100, 101, 99, 100, 102}}),
		variant("equal", values{"goodput": {100, 101, 99, 100, 102}}),
		variant("half", values{"goodput": {50, 51, 49, 50, 52}}))
	got := c.Rows[0]
	// The means are 502/5 = 100.4 and 252/5 = 50.4; delta is -50/100.4.
	if got.Delta == nil || !near(*got.Delta, -50/100.4, 1e-12) {
		t.Errorf("the row's delta is not that of the last variant: %v", got.Delta)
	}
	if !got.Variants[1].Identical || got.Variants[2].Note != "every seed moved by the same amount: sign test" {
		t.Errorf("got %+v", got.Variants)
	}
}

func TestErrors(t *testing.T) {
	good := variant("a", values{"x": {1, 2}})
	tests := map[string]struct {
		variants []result.Variant
		options  Options
		want     string
	}{
		"one variant":   {[]result.Variant{good}, Options{}, "nothing to compare: 1 variant given"},
		"same label":    {[]result.Variant{good, good}, Options{}, `two variants are labelled "a"`},
		"no runs":       {[]result.Variant{good, {Label: "b"}}, Options{}, `variant "b" has no runs`},
		"seed twice":    {[]result.Variant{good, reseed(variant("b", values{"x": {1, 2}}), 5, 5)}, Options{}, `variant "b" has two runs with seed 5`},
		"alpha too big": {[]result.Variant{good, good}, Options{Alpha: 5}, "level of significance 5"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Compare(test.variants, test.options); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestVariantsOfDocuments(t *testing.T) {
	single := &result.Document{Runs: []result.Run{{Seed: 1, Variant: "x"}, {Seed: 2, Variant: "x"}}}
	double := &result.Document{Runs: []result.Run{{Seed: 1, Variant: "old"}, {Seed: 1, Variant: "new"}}}
	labels := func(documents ...Labelled) string {
		var list []string
		for _, v := range Variants(documents...) {
			list = append(list, fmt.Sprintf("%s/%d", v.Label, len(v.Runs)))
		}
		return strings.Join(list, " ")
	}
	for want, got := range map[string]string{
		"before/2 after/2":         labels(Labelled{"before", single}, Labelled{"after", single}),
		"old/1 new/1":              labels(Labelled{"d", double}),
		"before/2 d:old/1 d:new/1": labels(Labelled{"before", single}, Labelled{"d", double}),
		"a:old/1 a:new/1 before/2": labels(Labelled{"a", double}, Labelled{"before", single}),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestJSON pins the keys that scripts read, and null where there is no number.
func TestJSON(t *testing.T) {
	c := compared(t, variant("a", values{"time_squeeze": {0}}), variant("b", values{"time_squeeze": {4}}))
	var first, second bytes.Buffer
	if err := c.WriteJSON(&first); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteJSON(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("not stable (%v)", err)
	}
	var got any
	if err := json.Unmarshal(first.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	cell := func(label string, mean float64, verdict, note string) map[string]any {
		return map[string]any{
			"label": label, "mean": mean, "low": nil, "high": nil, "n": 1.0, "delta": nil, "delta_low": nil, "delta_high": nil,
			"identical": false, "p": nil, "p_holm": nil, "verdict": verdict, "note": note,
		}
	}
	want := map[string]any{
		"schema": "napisim.compare/1", "design": "paired", "alpha": 0.05, "comparisons": 0.0, "expected_by_chance": 0.0,
		"rows": []any{map[string]any{
			"metric": "time_squeeze", "unit": "1", "better": "lower", "delta": nil, "p": nil,
			"variants": []any{cell("a", 0, "base", ""), cell("b", 4, "insignificant", "one pair: no test")},
		}},
		"warnings": []any{"one run is not enough for a test: it says nothing about how much runs vary"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRecords(t *testing.T) {
	c := compared(t, variant("a", values{"goodput": {100, 100, 100}}), variant("b", values{"goodput": {125, 125, 125}}))
	header, records := c.Records()
	want := [][]string{
		{"goodput", "bit/s", "higher", "a", "100", "100", "100", "3", "", "", "", "", "", "base", ""},
		{"goodput", "bit/s", "higher", "b", "125", "125", "125", "3", "0.25", "0.25", "0.25", "0", "0", "better", "exact: no seed changes it"},
	}
	if diff := cmp.Diff(want, records); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, record := range records {
		if len(record) != len(header) {
			t.Errorf("%d cells under %d names", len(record), len(header))
		}
	}
}
