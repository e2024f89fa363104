package compare

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"

	"napisim/reports/result"
)

// A matched set of variants has its runs in an order in which they can be held
// against each other: if the design is paired, run i of every variant has the same
// seed.
type matched struct {
	variants []result.Variant
	design   Design
	warnings []string
}

// match pairs runs by seed where the seeds of the smallest variant are in all
// others; runs without a partner are left out. Otherwise nothing is left out, and
// the variants count as independent samples. Where some seeds coincide after all
// that errs on the safe side: shared traffic makes differences smaller, not larger.
func match(variants []result.Variant) matched {
	seeds := commonSeeds(variants)
	smallest := math.MaxInt
	for _, v := range variants {
		smallest = min(smallest, len(v.Runs))
	}
	if len(seeds) < smallest {
		return matched{variants: variants, design: Unpaired, warnings: []string{
			"the seeds differ, so runs are not paired and small differences are harder to see",
		}}
	}
	m := matched{design: Paired}
	for _, v := range variants {
		paired := result.Variant{Label: v.Label}
		for _, seed := range seeds {
			i := slices.IndexFunc(v.Runs, func(r result.Run) bool { return r.Seed == seed })
			paired.Runs = append(paired.Runs, v.Runs[i])
		}
		if extra := len(v.Runs) - len(seeds); extra > 0 {
			m.warnings = append(m.warnings,
				fmt.Sprintf("%d of %d runs of %s have no partner with the same seed and are left out", extra, len(v.Runs), v.Label))
		}
		m.variants = append(m.variants, paired)
	}
	return m
}

// commonSeeds returns the seeds that every variant has, in ascending order.
func commonSeeds(variants []result.Variant) []uint64 {
	count := map[uint64]int{}
	var common []uint64
	for _, v := range variants {
		for _, run := range v.Runs {
			count[run.Seed]++
			if count[run.Seed] == len(variants) {
				common = append(common, run.Seed)
			}
		}
	}
	slices.Sort(common)
	return common
}

// samples returns the values of a metric for each variant, and how many runs had
// to be left out because it is undefined in them or, if paired, in a partner.
func (m matched) samples(metric string) (samples [][]float64, missing int) {
	samples = make([][]float64, len(m.variants))
	if m.design == Unpaired {
		for i, v := range m.variants {
			samples[i] = v.Values(metric)
			missing += len(v.Runs) - len(samples[i])
		}
		return samples, missing
	}
	for run := range m.variants[0].Runs {
		var values []float64
		for _, v := range m.variants {
			if value, ok := v.Runs[run].Metrics[metric]; ok {
				values = append(values, value.Value)
			}
		}
		if len(values) < len(m.variants) {
			missing += len(m.variants)
			continue
		}
		for i, value := range values {
			samples[i] = append(samples[i], value)
		}
	}
	return samples, missing
}

// first returns a metric as the first run has it that has it at all, for the unit
// and the direction.
func (m matched) first(metric string) result.Metric {
	for _, v := range m.variants {
		for _, run := range v.Runs {
			if value, ok := run.Metrics[metric]; ok {
				return value
			}
		}
	}
	return result.Metric{}
}

// warnOfFewRuns says when there are too few runs to see much, or anything at all.
func (c *Comparison) warnOfFewRuns(m matched) {
	base, largest := len(m.variants[0].Runs), 0
	smallest := base
	for _, v := range m.variants[1:] {
		smallest, largest = min(smallest, len(v.Runs)), max(largest, len(v.Runs))
	}
	switch {
	case smallest == 1:
		c.warn("one run is not enough for a test: it says nothing about how much runs vary")
		return
	case smallest < fewSeeds:
		c.warn("%d seeds are few: intervals are wide and small differences cannot be seen", smallest)
	}
	if c.Design == Unpaired && c.Comparisons > 0 {
		least := leastU(base, largest)
		if adjusted := least * float64(c.Comparisons); adjusted >= c.Alpha {
			c.warn("nothing can be significant: the U test of so few runs cannot go below p=%.2g, which is %.2g over %d tests",
				least, min(adjusted, 1), c.Comparisons)
		}
	}
}

// leastU is the smallest p-value of a U test, that of two samples which do not
// overlap at all: two of all orders of the runs are as extreme.
func leastU(n1, n2 int) float64 {
	// Beyond this many the value is next to 0, and the binomial would overflow.
	const many = 20
	n1, n2 = min(n1, many), min(n2, many)
	return 2 / float64(combin.Binomial(n1+n2, n1))
}
