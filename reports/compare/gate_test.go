package compare

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"napisim/reports/result"
)

func rules(t testing.TB, texts ...string) []Rule {
	t.Helper()
	var list []Rule
	for _, text := range texts {
		rule, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, rule)
	}
	return list
}

func TestParseRule(t *testing.T) {
	for text, want := range map[string]Rule{
		"goodput worse 2%":        {Metric: "goodput", Threshold: 0.02},
		"goodput worse":           {Metric: "goodput", Threshold: 0.01},
		" any  worse 0.5% ":       {Metric: "any", Threshold: 0.005},
		"interrupts changed 150%": {Metric: "interrupts", Either: true, Threshold: 1.5},
		"goodput worse 0%":        {Metric: "goodput"},
	} {
		if got, err := ParseRule(text); err != nil || !cmp.Equal(want, got, cmpopts.EquateApprox(1e-12, 0)) {
			t.Errorf("ParseRule(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestParseRuleErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "expected METRIC worse|changed [N%]",
		"goodput":             "expected METRIC worse|changed [N%]",
		"goodput worse 2 %":   "expected METRIC worse|changed [N%]",
		"goodput better 2%":   `expected worse or changed, found "better"`,
		"goodput worse 2":     `threshold "2" needs a % sign`,
		"goodput worse two%":  `threshold "two%" is not a percentage`,
		"goodput worse -2%":   `threshold "-2%" is not a percentage`,
		"goodput worse NaN%":  `threshold "NaN%" is not a percentage`,
		"goodput worse +Inf%": `threshold "+Inf%" is not a percentage`,
	} {
		if _, err := ParseRule(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseRule(%q): %v, want %s", text, err, want)
		}
	}
}

func TestRuleRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Rule{
			Metric:    rapid.StringMatching(`[a-z_]{1,20}`).Draw(t, "metric"),
			Either:    rapid.Bool().Draw(t, "either"),
			Threshold: float64(rapid.IntRange(0, 100000).Draw(t, "threshold")) / 1e4,
		}
		got, err := ParseRule(want.String())
		if err != nil || !cmp.Equal(want, got, cmpopts.EquateApprox(1e-12, 0)) {
			t.Fatalf("%+v is written %q and read as %+v (%v)", want, want.String(), got, err)
		}
	})
}

// base is 100 on average; the other variants differ by known amounts, give or take
// noise far smaller than that.
func gateComparison(t testing.TB) *Comparison {
	t.Helper()
	shifted := func(by float64) []float64 {
		noise := []float64{0.1, -0.1, 0.05, -0.05, 0.02, -0.02}
		list := make([]float64, len(noise))
		for i := range list {
			list[i] = 100 + float64(i) + by + noise[i]
		}
		return list
	}
	plain := []float64{100, 101, 102, 103, 104, 105}
	return compared(t,
		variant("base", values{"goodput": plain, "latency_p99": plain, "polls": plain, "retransmits": {0, 0, 0, 0, 0, 0}, "rcvbuf_errors": plain}),
		variant("new", values{"goodput": shifted(-3), "latency_p99": shifted(-3), "polls": shifted(3), "retransmits": {4, 4, 4, 4, 4, 4}, "rcvbuf_errors": plain}))
}

func TestEvaluate(t *testing.T) {
	// All changes are 3 of 102.5, which is 2.93 %.
	tests := map[string]struct {
		rule  string
		fails []string
	}{
		"beyond the threshold":     {"goodput worse 2%", []string{"goodput"}},
		"within the threshold":     {"goodput worse 3%", nil},
		"an improvement":           {"latency_p99 worse 0%", nil},
		"a change for the better":  {"latency_p99 changed 2%", []string{"latency_p99"}},
		"no direction":             {"polls changed", []string{"polls"}},
		"from 0":                   {"retransmits worse 1000%", []string{"retransmits"}},
		"nothing happened":         {"rcvbuf_errors changed 0%", nil},
		"any":                      {"any worse", []string{"goodput", "retransmits"}},
		"any, with higher demands": {"any worse 50%", []string{"retransmits"}},
	}
	c := gateComparison(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			gate, err := Evaluate(c, rules(t, test.rule))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range gate.Findings {
				got = append(got, f.Metric)
				if f.Label != "new" || f.Rule != rules(t, test.rule)[0].String() {
					t.Errorf("got %+v", f)
				}
			}
			if diff := cmp.Diff(test.fails, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if gate.Regression != (len(test.fails) > 0) {
				t.Errorf("regression is %v", gate.Regression)
			}
		})
	}
}

func TestEvaluateErrors(t *testing.T) {
	c := gateComparison(t)
	for text, want := range map[string]string{
		"goodputt worse 2%": `the comparison has no such metric, but goodput, retransmits, rcvbuf_errors, polls, latency_p99`,
		"polls worse":       `neither direction of polls is worse; ask for changed`,
	} {
		gate, err := Evaluate(c, rules(t, text, "goodput worse"))
		if err == nil || !strings.Contains(err.Error(), want) || gate.Regression {
			t.Errorf("%q: %+v, %v, want %s", text, gate, err, want)
		}
	}
}

// TestInsignificantDoesNotFail loses 5 % on average, but as much by chance.
func TestInsignificantDoesNotFail(t *testing.T) {
	c := compared(t,
		variant("base", values{"goodput": {100, 100, 100, 100, 101}}),
		variant("new", values{"goodput": {80, 120, 70, 110, 96}}))
	if gate, err := Evaluate(c, rules(t, "goodput worse 1%")); err != nil || gate.Regression {
		t.Errorf("got %+v, %v", gate, err)
	}
}

func TestGateThatCannotFailSaysSo(t *testing.T) {
	c := compared(t, variant("base", values{"goodput": {100}}), variant("new", values{"goodput": {10}}))
	gate, err := Evaluate(c, rules(t, "goodput worse 2%"))
	if err != nil || gate.Regression {
		t.Fatalf("got %+v, %v", gate, err)
	}
	want := []string{`the rule "goodput worse 2%" cannot fail: goodput of new has too few runs for a test`}
	if diff := cmp.Diff(want, gate.Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGateCorrectsForItsOwnRules has a p-value of 0.0741799 = 1 - √(12/14) in each
// of two metrics at a level of 0.1: alone it passes, twice it has to be below 0.05.
func TestGateCorrectsForItsOwnRules(t *testing.T) {
	a := values{"goodput": {10, 20, 30}, "rx_bytes": {10, 20, 30}}
	b := values{"goodput": {9, 18, 27}, "rx_bytes": {9, 18, 27}}
	c, err := Compare([]result.Variant{variant("a", a), variant("b", b)}, Options{Alpha: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rules []string
		want  bool
	}{
		{[]string{"goodput worse"}, true},
		{[]string{"goodput worse", "goodput worse 2%"}, true}, // one hypothesis, asked twice
		{[]string{"goodput worse", "rx_bytes worse"}, false},
		{[]string{"any worse"}, false},
	} {
		gate, err := Evaluate(c, rules(t, test.rules...))
		if err != nil || gate.Regression != test.want {
			t.Errorf("%q: %+v, %v, want %v", test.rules, gate, err, test.want)
		}
	}
}

func TestFindingText(t *testing.T) {
	f := Finding{Rule: "goodput worse 2%", Metric: "goodput", Label: "new", Delta: new(-0.25), P: 0.0021}
	if got, want := f.String(), `goodput of new changed by -25% (p=0.0021), against the rule "goodput worse 2%"`; got != want {
		t.Errorf("got %s", got)
	}
	f.Delta = nil
	if got, want := f.String(), `goodput of new moved away from 0 (p=0.0021), against the rule "goodput worse 2%"`; got != want {
		t.Errorf("got %s", got)
	}
}
