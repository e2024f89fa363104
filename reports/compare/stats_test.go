package compare

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func near(a, b, tolerance float64) bool {
	return a == b || math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b))
}

// sleep is the data of Student, Biometrika 6 (1908): hours of additional sleep of
// ten patients under two drugs.
var sleep = [2][]float64{
	{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0, 2},
	{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4},
}

// TestPairedPublished holds the paired test against R's documentation of the same
// data: t = -4.0621, df = 9, p-value = 0.002833, interval from -2.4598858 to
// -0.7001142, half of which is 0.8798858.
func TestPairedPublished(t *testing.T) {
	got := Paired.test(sleep[0], sleep[1])
	if !near(got.p, 0.002833, 1e-3) || !near(got.half, 0.8798858, 1e-6) || got.note != "" {
		t.Errorf("got %+v", got)
	}
}

// TestPairedByHand: differences 1, 2, 3 have mean 2 and s = 1, so t = 2/(1/√3) =
// 2√3. With two degrees of freedom Student's distribution has the closed form
// P(T > t) = 1/2 - t/(2√(t²+2)); t² = 12, so p = 1 - √(12/14) = 0.0741799.
func TestPairedByHand(t *testing.T) {
	got := Paired.test([]float64{10, 20, 30}, []float64{11, 22, 33})
	if want := 1 - math.Sqrt(12.0/14); !near(got.p, want, 1e-9) {
		t.Errorf("p = %v, want %v", got.p, want)
	}
}

// TestUnpairedPublished holds the U test against the example of R's wilcox.test,
// from Hollander and Wolfe (1973), table 4.1: permeability constants of the human
// chorioamnion, W = 35, one-sided p-value 0.1272, which is half of ours.
func TestUnpairedPublished(t *testing.T) {
	term := []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	early := []float64{1.15, 0.88, 0.90, 0.74, 1.21}
	if got := Unpaired.test(term, early); !near(got.p, 2*0.1272, 1e-3) {
		t.Errorf("got %+v", got)
	}
}

// TestUnpairedByHand: of the C(8,4) = 70 orders of two samples of four, two keep
// them apart.
func TestUnpairedByHand(t *testing.T) {
	got := Unpaired.test([]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8})
	if want := 2.0 / 70; !near(got.p, want, 1e-9) {
		t.Errorf("p = %v, want %v", got.p, want)
	}
	if want := leastU(4, 4); !near(got.p, want, 1e-9) {
		t.Errorf("leastU says %v", want)
	}
}

func TestDegenerate(t *testing.T) {
	nan := math.NaN()
	tests := map[string]struct {
		design Design
		a, b   []float64
		want   test
	}{
		"equal pairs": {Paired, []float64{1, 2, 3}, []float64{1, 2, 3}, test{p: 1, identical: true}},
		"equal constants": {
			Paired, []float64{7, 7}, []float64{7, 7}, test{p: 1, identical: true},
		},
		"equal constants without pairs": {
			Unpaired, []float64{7, 7}, []float64{7, 7, 7}, test{p: 1, half: nan, identical: true},
		},
		"one equal pair": {Paired, []float64{7}, []float64{7}, test{p: 1, half: nan, identical: true}},
		"one other pair": {Paired, []float64{7}, []float64{8}, test{p: nan, half: nan, note: "one pair: no test"}},
		"one run": {
			Unpaired, []float64{7}, []float64{8, 9}, test{p: nan, half: nan, note: "one run: no test"},
		},
		"no seed changes it": {
			Paired, []float64{0.1, 0.1, 0.1}, []float64{0.3, 0.3, 0.3}, test{p: 0, note: "exact: no seed changes it"},
		},
		"no seed changes it, without pairs": {
			Unpaired, []float64{1, 1, 1, 1}, []float64{3, 3, 3}, test{p: 0, note: "exact: no seed changes it"},
		},
		// Two drops in each of two runs may be chance: 2 · 2⁻² = 1/2.
		"two constants": {
			Paired,
			[]float64{0, 0},
			[]float64{2, 2},
			test{p: 0.5, note: "every seed moved by the same amount: sign test"},
		},
		// Five seeds all gain one: 2 · 2⁻⁵ = 1/16.
		"shifted": {
			Paired,
			[]float64{1, 2, 3, 4, 5},
			[]float64{2, 3, 4, 5, 6},
			test{p: 0.0625, note: "every seed moved by the same amount: sign test"},
		},
		// 2/C(6,3) = 1/10 is as small as three against three can get.
		"few without pairs": {
			Unpaired,
			[]float64{1, 2, 3},
			[]float64{4, 5, 6},
			test{p: 0.1, half: nan, note: "need >= 4 samples to detect a difference at alpha level 0.05"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := tt.design.test(tt.a, tt.b)
			diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(test{}), cmpopts.EquateNaNs(), cmpopts.EquateApprox(1e-9, 0))
			if diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestHolmPublished is the example of R's p.adjust and of most textbooks:
// 0.005·4 = 0.02, 0.01·3 = 0.03, 0.03·2 = 0.06, and 0.04·1 is raised to 0.06.
func TestHolmPublished(t *testing.T) {
	got := holm([]float64{0.01, 0.04, 0.03, 0.005})
	want := []float64{0.03, 0.06, 0.06, 0.02}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := holm(nil); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// TestHolmProperty holds the adjusted values against the procedure as Holm states
// it: go through the p-values in order and reject while p·(those left) < alpha.
func TestHolmProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ps := rapid.SliceOfN(rapid.Float64Range(0, 0.2), 1, 12).Draw(t, "p")
		alpha := rapid.Float64Range(0.001, 0.5).Draw(t, "alpha")
		sorted := slices.Sorted(slices.Values(ps))
		rejected := 0
		for rejected < len(sorted) && float64(len(sorted)-rejected)*sorted[rejected] < alpha {
			rejected++
		}
		got := 0
		for i, p := range holm(ps) {
			if p < ps[i] || p > 1 {
				t.Fatalf("%v was adjusted to %v", ps[i], p)
			}
			if p < alpha {
				got++
			}
		}
		if got != rejected {
			t.Fatalf("%d of %v below %v, Holm rejects %d", got, ps, alpha, rejected)
		}
	})
}
