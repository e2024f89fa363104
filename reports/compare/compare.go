package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"napisim/reports/result"
)

// Schema names the JSON form of a Comparison.
const Schema = "napisim.compare/1"

// DefaultAlpha is the level of significance unless the caller chooses another.
const DefaultAlpha = 0.05

// fewSeeds is where a comparison starts to warn: with fewer pairs Student's t is
// large and a few per cent of difference are hard to see.
const fewSeeds = 5

// A Comparison holds the first of several variants, the base, against the others,
// metric by metric. It is plain data; pointers are nil where a number does not
// exist, and null in JSON.
type Comparison struct {
	Schema string  `json:"schema"`
	Design Design  `json:"design"`
	Alpha  float64 `json:"alpha"`
	// Comparisons counts the tests that Holm's correction is over;
	// ExpectedByChance is how many of them would pass Alpha uncorrected if nothing
	// differed.
	Comparisons      int      `json:"comparisons"`
	ExpectedByChance float64  `json:"expected_by_chance"`
	Rows             []Row    `json:"rows"`
	Warnings         []string `json:"warnings"`
}

// Design says how runs were held against each other.
type Design string

// The designs of a comparison.
const (
	Paired   Design = "paired"
	Unpaired Design = "unpaired"
)

// A Row compares one metric. Delta and P repeat those of the last variant.
type Row struct {
	Metric   string        `json:"metric"`
	Unit     string        `json:"unit"`
	Better   result.Better `json:"better"`
	Variants []Cell        `json:"variants"`
	Delta    *float64      `json:"delta"`
	P        *float64      `json:"p"`
}

// A Cell is one metric of one variant. Low and High bound the 95 % interval of the
// mean over N runs. The fields from Delta on compare with the base and say nothing
// in the base's own cell.
type Cell struct {
	Label string   `json:"label"`
	Mean  float64  `json:"mean"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	N     int      `json:"n"`
	// Delta is (mean - base mean) / base mean, nil if the base mean is 0.
	// DeltaLow and DeltaHigh bound its 95 % interval where runs are paired; the
	// base mean counts as known there.
	Delta     *float64 `json:"delta"`
	DeltaLow  *float64 `json:"delta_low"`
	DeltaHigh *float64 `json:"delta_high"`
	// Identical says that no run differs from its partner or, without partners, that
	// no two runs differ. Such a metric is not counted as a test.
	Identical bool `json:"identical"`
	// P is the chance of a difference at least this large if there were none, nil if
	// there are too few runs for a test. AdjustedP is P after Holm's correction;
	// Verdict goes by it.
	P         *float64 `json:"p"`
	AdjustedP *float64 `json:"p_holm"`
	Verdict   Verdict  `json:"verdict"`
	// Note explains how P came about where that is not the usual test.
	Note string `json:"note"`
}

// Verdict is what a cell amounts to.
type Verdict string

// The verdicts. Changed is for metrics of which neither direction is better.
const (
	Insignificant Verdict = "insignificant"
	Improved      Verdict = "better"
	Worsened      Verdict = "worse"
	Changed       Verdict = "changed"
	IsBase        Verdict = "base"
)

// Options change how Compare decides. The zero value is the default.
type Options struct {
	// Alpha is the level of significance; 0 stands for DefaultAlpha.
	Alpha float64
}

// Compare holds every variant against the first. It fails if there are fewer than
// two, if labels repeat, or if a variant has no runs or two with one seed.
func Compare(variants []result.Variant, o Options) (*Comparison, error) {
	if o.Alpha == 0 {
		o.Alpha = DefaultAlpha
	}
	if err := check(variants, o); err != nil {
		return nil, err
	}
	c := &Comparison{Schema: Schema, Alpha: o.Alpha, Rows: []Row{}, Warnings: []string{}}
	m := match(variants)
	c.Design = m.design
	c.Warnings = append(c.Warnings, m.warnings...)

	for _, name := range c.shared(m.variants) {
		if row, ok := c.row(name, m); ok {
			c.Rows = append(c.Rows, row)
		}
	}
	c.judge()
	c.warnOfFewRuns(m)
	return c, nil
}

func check(variants []result.Variant, o Options) error {
	if len(variants) < 2 {
		return fmt.Errorf("nothing to compare: %d variant given, at least 2 needed", len(variants))
	}
	if !(o.Alpha > 0 && o.Alpha < 1) {
		return fmt.Errorf("level of significance %v is not between 0 and 1", o.Alpha)
	}
	labels := map[string]bool{}
	for _, v := range variants {
		if labels[v.Label] {
			return fmt.Errorf("two variants are labelled %q", v.Label)
		}
		labels[v.Label] = true
		if len(v.Runs) == 0 {
			return fmt.Errorf("variant %q has no runs", v.Label)
		}
		seeds := map[uint64]bool{}
		for _, run := range v.Runs {
			if seeds[run.Seed] {
				return fmt.Errorf("variant %q has two runs with seed %d", v.Label, run.Seed)
			}
			seeds[run.Seed] = true
		}
	}
	return nil
}

// shared returns the metrics that all variants have, in the order of reports, and
// warns of those that cannot be compared.
func (c *Comparison) shared(variants []result.Variant) []string {
	count := map[string]int{}
	units := map[string][]string{}
	var all []string
	for _, v := range variants {
		for _, name := range v.MetricNames() {
			if count[name] == 0 {
				all = append(all, name)
			}
			count[name]++
		}
		for _, run := range v.Runs {
			for name, m := range run.Metrics {
				if !slices.Contains(units[name], m.Unit) {
					units[name] = append(units[name], m.Unit)
				}
			}
		}
	}
	slices.SortFunc(all, result.CompareNames)
	var names, partial []string
	for _, name := range all {
		switch {
		case count[name] < len(variants):
			partial = append(partial, name)
		case len(units[name]) > 1:
			slices.Sort(units[name])
			c.warn("%s is not compared: its units differ (%s)", name, strings.Join(units[name], ", "))
		default:
			names = append(names, name)
		}
	}
	if len(partial) > 0 {
		c.warn("not compared, since not every variant has them: %s", strings.Join(partial, ", "))
	}
	return names
}

// row summarizes one metric and tests each variant against the base. A metric that
// no seed has in every variant makes no row.
func (c *Comparison) row(name string, m matched) (row Row, ok bool) {
	samples, missing := m.samples(name)
	if len(samples[0]) == 0 {
		c.warn("%s is not compared: no seed has it in every variant", name)
		return Row{}, false
	}
	if missing > 0 {
		c.warn("%s is undefined in some runs: %d left out", name, missing)
	}
	first := m.first(name)
	row = Row{Metric: name, Unit: first.Unit, Better: first.Better}
	base := result.Summarize(samples[0])
	for i, sample := range samples {
		s := result.Summarize(sample)
		cell := Cell{Label: m.variants[i].Label, Mean: s.Mean, N: s.N, Verdict: IsBase}
		cell.Low, cell.High = defined(s.Mean-s.Half), defined(s.Mean+s.Half)
		if i > 0 {
			cell.against(base.Mean, c.Design.test(samples[0], sample))
		}
		row.Variants = append(row.Variants, cell)
	}
	last := row.Variants[len(row.Variants)-1]
	row.Delta, row.P = last.Delta, last.P
	return row, true
}

// against fills in what a cell says about the base. It is insignificant until all
// tests are known.
func (cell *Cell) against(base float64, t test) {
	cell.Verdict = Insignificant
	cell.P, cell.Identical, cell.Note = defined(t.p), t.identical, t.note
	cell.Delta = defined((cell.Mean - base) / base)
	if cell.Delta != nil {
		half := t.half / math.Abs(base)
		cell.DeltaLow, cell.DeltaHigh = defined(*cell.Delta-half), defined(*cell.Delta+half)
	}
}

// judge corrects the p-values of all tests together and gives the verdicts.
func (c *Comparison) judge() {
	type tested struct {
		cell *Cell
		row  Row
	}
	var all []tested
	var ps []float64
	for _, row := range c.Rows {
		for i := range row.Variants {
			cell := &row.Variants[i]
			switch {
			case cell.P == nil:
			case cell.Identical:
				cell.AdjustedP = defined(*cell.P)
			default:
				all = append(all, tested{cell, row})
				ps = append(ps, *cell.P)
			}
		}
	}
	c.Comparisons = len(ps)
	c.ExpectedByChance = c.Alpha * float64(len(ps))
	for i, p := range holm(ps) {
		t := all[i]
		t.cell.AdjustedP = defined(p)
		if p < c.Alpha {
			t.cell.Verdict = verdict(t.cell.Mean-t.row.Variants[0].Mean, t.row.Better)
		}
	}
}

// verdict reads a significant difference in the metric's own direction.
func verdict(difference float64, better result.Better) Verdict {
	switch {
	case better == result.Neither:
		return Changed
	case (difference > 0) == (better == result.Higher):
		return Improved
	}
	return Worsened
}

// defined returns a pointer to v, nil if v is no number.
func defined(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func (c *Comparison) warn(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}
