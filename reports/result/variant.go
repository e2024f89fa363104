package result

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Confidence is the level of every interval that napisim reports.
const Confidence = 0.95

// A Variant is a set of runs that differ in nothing but the seed.
type Variant struct {
	Label string
	Runs  []Run
}

// Variants groups the runs of a document by variant, in the order in which the
// variants first appear. The runs are shared with d.
func (d *Document) Variants() []Variant {
	var variants []Variant
	for _, run := range d.Runs {
		i := slices.IndexFunc(variants, func(v Variant) bool { return v.Label == run.Variant })
		if i < 0 {
			i = len(variants)
			variants = append(variants, Variant{Label: run.Variant})
		}
		variants[i].Runs = append(variants[i].Runs, run)
	}
	return variants
}

// MetricNames returns the name of every metric that some run of v has, in the
// order of reports.
func (v Variant) MetricNames() []string {
	seen := map[string]bool{}
	var names []string
	for _, run := range v.Runs {
		for name := range run.Metrics {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	slices.SortFunc(names, CompareNames)
	return names
}

// Values returns the values of one metric in the order of the runs, passing
// over runs that do not have it.
func (v Variant) Values(metric string) []float64 {
	var values []float64
	for _, run := range v.Runs {
		if m, ok := run.Metrics[metric]; ok {
			values = append(values, m.Value)
		}
	}
	return values
}

// A Summary is the mean of a metric over N seeds; the 95 % interval of the mean
// is Mean ± Half. Half is NaN when N < 2, since one run says nothing about
// spread.
type Summary struct {
	N    int
	Mean float64
	Half float64
}

// Summarize returns the mean of values with Student's interval,
// t(0.975, n-1) · s/√n. Equal values have exactly that mean and no spread, free
// of the rounding that a sum would bring in. No values give a NaN mean.
func Summarize(values []float64) Summary {
	s := Summary{N: len(values), Mean: math.NaN(), Half: math.NaN()}
	if s.N == 0 {
		return s
	}
	if slices.Min(values) == slices.Max(values) {
		s.Mean = values[0]
		if s.N > 1 {
			s.Half = 0
		}
		return s
	}
	mean, deviation := stat.MeanStdDev(values, nil)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(s.N - 1)}.Quantile(0.5 + Confidence/2)
	s.Mean = mean
	s.Half = t * stat.StdErr(deviation, float64(s.N))
	return s
}
