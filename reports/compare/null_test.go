package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"napisim/reports/result"
)

// The tests of this file ask how often a comparison cries wolf. Their generators
// are seeded, so they always give the same answer; the bounds say that the answer is
// no accident. Of n trials with a probability q each, about nq hit, and five
// standard deviations more or less are as good as impossible (p < 1e-6).
func withinFiveSigma(t *testing.T, what string, hits, n int, least, most float64) {
	t.Helper()
	low := float64(n)*least - 5*math.Sqrt(float64(n)*least*(1-least))
	high := float64(n)*most + 5*math.Sqrt(float64(n)*most*(1-most))
	t.Logf("%s: %d of %d", what, hits, n)
	if h := float64(hits); h < low || h > high {
		t.Errorf("%s: %d of %d, expected %.0f to %.0f", what, hits, n, low, high)
	}
}

// noisy makes runs of a simulator: the traffic of a seed moves every metric, and the
// variant adds some noise of its own.
func noisy(r *rand.Rand, label string, traffic [][]float64, firstSeed uint64) result.Variant {
	v := result.Variant{Label: label}
	for i, metrics := range traffic {
		run := result.Run{Seed: firstSeed + uint64(i), Metrics: map[string]result.Metric{}}
		for j, level := range metrics {
			value := 1000 + 20*level + 5*r.NormFloat64()
			run.Metrics[fmt.Sprintf("m%02d", j)] = result.Metric{Value: value, Unit: "1", Better: result.Higher}
		}
		v.Runs = append(v.Runs, run)
	}
	return v
}

func trafficOf(r *rand.Rand, seeds, metrics int) [][]float64 {
	traffic := make([][]float64, seeds)
	for i := range traffic {
		traffic[i] = make([]float64, metrics)
		for j := range traffic[i] {
			traffic[i][j] = r.NormFloat64()
		}
	}
	return traffic
}

func compared(t testing.TB, variants ...result.Variant) *Comparison {
	t.Helper()
	c, err := Compare(variants, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNullOtherSeeds compares a scenario with itself under other seeds, one metric
// at a time. The U test of ten against ten cannot hit 5 % exactly; it rejects at
// U <= 23, which has probability 0.0433.
func TestNullOtherSeeds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const trials, seeds = 2000, 10
	hits := 0
	for range trials {
		a := noisy(r, "a", trafficOf(r, seeds, 1), 1)
		b := noisy(r, "b", trafficOf(r, seeds, 1), 101)
		c := compared(t, a, b)
		if c.Design != Unpaired {
			t.Fatal("runs with other seeds were paired")
		}
		if c.Rows[0].Variants[1].Verdict != Insignificant {
			hits++
		}
	}
	withinFiveSigma(t, "differences between equal variants", hits, trials, 0.0433, 0.0433)
}

// TestNullPaired does the same with common seeds, where the t test is exact for
// normal noise.
func TestNullPaired(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	const trials, seeds = 2000, 10
	hits := 0
	for range trials {
		traffic := trafficOf(r, seeds, 1)
		c := compared(t, noisy(r, "a", traffic, 1), noisy(r, "b", traffic, 1))
		if c.Design != Paired {
			t.Fatal("runs with the same seeds were not paired")
		}
		if c.Rows[0].Variants[1].Verdict != Insignificant {
			hits++
		}
	}
	withinFiveSigma(t, "differences between equal variants", hits, trials, 0.05, 0.05)
}

// TestNullFamily compares twenty metrics at once. Uncorrected, one in twenty would
// be marked; Holm allows any mark at all in one comparison of twenty. For
// independent metrics the bound is met almost exactly: 1 - (1 - 0.05/20)²⁰ = 0.0488.
func TestNullFamily(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	const trials, seeds, metrics = 500, 10, 20
	family, raw := 0, 0
	for range trials {
		traffic := trafficOf(r, seeds, metrics)
		c := compared(t, noisy(r, "a", traffic, 1), noisy(r, "b", traffic, 1))
		if c.Comparisons != metrics || !near(c.ExpectedByChance, 1, 1e-12) {
			t.Fatalf("%d comparisons, %v expected by chance", c.Comparisons, c.ExpectedByChance)
		}
		marked := false
		for _, row := range c.Rows {
			if *row.P < c.Alpha {
				raw++
			}
			marked = marked || row.Variants[1].Verdict != Insignificant
		}
		if marked {
			family++
		}
	}
	withinFiveSigma(t, "comparisons with a mark", family, trials, 0.0488, 0.0488)
	withinFiveSigma(t, "p-values below 0.05", raw, trials*metrics, 0.05, 0.05)
}

// TestPairsSeeMore gives a difference of 1 % against traffic that varies by 2 %.
// With ten pairs whose own noise is 0.5 % it is 10/(5√2/√10) = 4.5 standard errors
// and shows; without pairs it is 10/(20.6·√(2/10)) = 1.1 and mostly does not.
func TestPairsSeeMore(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	const trials = 200
	paired, unpaired := 0, 0
	for range trials {
		traffic := trafficOf(r, 10, 1)
		a, b, other := noisy(r, "a", traffic, 1), noisy(r, "b", traffic, 1), noisy(r, "b", trafficOf(r, 10, 1), 101)
		for _, v := range []result.Variant{b, other} {
			for _, run := range v.Runs {
				m := run.Metrics["m00"]
				m.Value += 10
				run.Metrics["m00"] = m
			}
		}
		if compared(t, a, b).Rows[0].Variants[1].Verdict == Improved {
			paired++
		}
		if compared(t, a, other).Rows[0].Variants[1].Verdict == Improved {
			unpaired++
		}
	}
	t.Logf("seen in %d of %d with pairs, in %d without", paired, trials, unpaired)
	if paired < 9*trials/10 || unpaired > trials/2 {
		t.Error("pairs should see this difference nearly always, independent runs rarely")
	}
}
