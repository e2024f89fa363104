package compare

import (
	"errors"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"napisim/reports/result"
)

// A test is the outcome of holding one sample against another.
type test struct {
	// p is NaN if there are too few values for a test.
	p float64
	// half is the half width of the 95 % interval of the difference of the means, NaN
	// where there is none.
	half float64
	// identical marks samples without a difference in any run. Whatever sign the
	// differences had, p would be 1; hypotheses that no outcome could reject need no
	// correction (Tarone, Biometrics 46, 1990).
	identical bool
	note      string
}

// exactSeeds is how many runs have to agree before a metric counts as independent
// of the seed. Small counters often agree in two runs.
const exactSeeds = 3

// test holds sample b against a in the way of the design.
func (d Design) test(a, b []float64) test {
	constant := isConstant(a) && isConstant(b)
	switch {
	case constant && a[0] != b[0] && min(len(a), len(b)) >= exactSeeds:
		return test{p: 0, note: "exact: no seed changes it"}
	case d == Paired:
		return pairedTest(a, b)
	case constant && a[0] == b[0]:
		return test{p: 1, half: math.NaN(), identical: true}
	}
	return unpairedTest(a, b)
}

// pairedTest is Student's test of the differences between partners. Differences that
// are all the same have no variance to hold them against. That is typical for
// counters that rarely move, so chance must not be ruled out: if either sign were
// as likely, all n would agree with p = 2 · 2⁻ⁿ.
func pairedTest(a, b []float64) test {
	differences := floats.SubTo(make([]float64, len(a)), b, a)
	n := len(differences)
	half := result.Summarize(differences).Half
	switch {
	case isConstant(differences) && differences[0] == 0:
		return test{p: 1, half: half, identical: true}
	case n < 2:
		return test{p: math.NaN(), half: half, note: "one pair: no test"}
	case isConstant(differences):
		return test{p: math.Exp2(float64(1 - n)), half: half, note: "every seed moved by the same amount: sign test"}
	}
	return test{p: studentP(differences), half: half}
}

// studentP returns the two-sided p-value of Student's one-sample test that the mean
// of differences, which vary, is 0.
func studentP(differences []float64) float64 {
	n := float64(len(differences))
	mean, deviation := stat.MeanStdDev(differences, nil)
	t := mean / stat.StdErr(deviation, n)
	return min(1, 2*distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.CDF(-math.Abs(t)))
}

// unpairedTest is the Mann-Whitney U test of benchstat, which assumes nothing about
// the distributions.
func unpairedTest(a, b []float64) test {
	if min(len(a), len(b)) < 2 {
		return test{p: math.NaN(), half: math.NaN(), note: "one run: no test"}
	}
	thresholds := benchmath.DefaultThresholds
	outcome := benchmath.AssumeNothing.Compare(
		benchmath.NewSample(slices.Clone(a), &thresholds), benchmath.NewSample(slices.Clone(b), &thresholds))
	t := test{p: outcome.P, half: math.NaN()}
	if err := errors.Join(outcome.Warnings...); err != nil {
		t.note = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return t
}

func isConstant(values []float64) bool { return slices.Min(values) == slices.Max(values) }

// holm returns p-values corrected for their number by the step-down method of Holm
// (Scandinavian Journal of Statistics 6, 1979): rejecting those below alpha rejects
// any true hypothesis with a probability of at most alpha, however the tests depend
// on each other.
func holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case ps[i] < ps[j]:
			return -1
		case ps[i] > ps[j]:
			return 1
		}
		return 0
	})
	adjusted := make([]float64, len(ps))
	largest := 0.0
	for rank, i := range order {
		largest = max(largest, min(1, float64(len(ps)-rank)*ps[i]))
		adjusted[i] = largest
	}
	return adjusted
}
