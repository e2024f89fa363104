// Package beside holds what was published against what was simulated, variant by
// variant. A simulator is worth what it predicts, so a comparison ends with this
// table: it keeps the figures that costs were fitted to, which prove nothing, apart
// from those that nobody looked at when the costs were chosen.
package beside

import (
	"slices"

	"napisim/reports/result"
)

// A Row is one published figure of one variant. Pointers are nil where a number does
// not exist.
type Row struct {
	Metric  string      `json:"metric"`
	Unit    string      `json:"unit"`
	Source  string      `json:"source"`
	Note    string      `json:"note"`
	Role    result.Role `json:"role"`
	Variant string      `json:"variant"`

	Published float64 `json:"published"`
	// Simulated is the mean over N runs, Low and High bound its 95 % interval. Ratio is
	// Simulated over Published.
	Simulated *float64 `json:"simulated"`
	Low       *float64 `json:"low"`
	High      *float64 `json:"high"`
	N         int      `json:"n"`
	Ratio     *float64 `json:"ratio"`

	// Base is the variant that the changes are relative to: the first that has a figure
	// of the same metric from the same source, "" if no other variant has one. The
	// changes are factors, nil for that variant itself and where the figure is the same
	// one. They survive a wrong scale, which Ratio does not.
	Base            string   `json:"base"`
	PublishedChange *float64 `json:"published_change"`
	SimulatedChange *float64 `json:"simulated_change"`
	// Agrees says whether both changes go the same way, up, down or nowhere, which a
	// change from 0 does, too, though it is no factor; nil if one of them is not known.
	Agrees *bool `json:"agrees"`

	figure result.Published
}

// small is the change that counts as none. Published figures are seldom averages over
// several boots, and their last per cent says nothing.
const small = 0.05

// Rows returns the published figures of all variants, those of one metric and source
// together, variants in their order.
func Rows(variants []result.Variant) []Row {
	var rows []Row
	for _, v := range variants {
		for _, p := range figures(v) {
			rows = append(rows, row(v, p))
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return result.CompareNames(a.Metric, b.Metric) })
	rows = bySource(rows)
	relate(rows)
	return rows
}

// figures returns the published figures of a variant once each; its runs repeat them.
func figures(v result.Variant) []result.Published {
	var all []result.Published
	for _, run := range v.Runs {
		for _, p := range run.Published {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

func row(v result.Variant, p result.Published) Row {
	r := Row{
		Metric: p.Metric, Unit: p.Unit, Source: p.Source, Note: p.Note, Role: p.Role,
		Variant: v.Label, Published: p.Value, figure: p,
	}
	var values []float64
	for _, run := range v.Runs {
		if m, ok := run.Metrics[p.Metric]; ok && m.Unit == p.Unit {
			values = append(values, m.Value)
		}
	}
	if len(values) == 0 {
		return r
	}
	s := result.Summarize(values)
	r.N, r.Simulated = s.N, &s.Mean
	if s.N > 1 {
		r.Low, r.High = new(s.Mean-s.Half), new(s.Mean+s.Half)
	}
	r.Ratio = over(r.Simulated, &r.Published)
	return r
}

// bySource puts the rows of one source together, sources in the order in which they
// first appear for a metric.
func bySource(rows []Row) []Row {
	var sorted []Row
	for _, first := range rows {
		same := func(r Row) bool { return r.Metric == first.Metric && r.Source == first.Source }
		if slices.ContainsFunc(sorted, same) {
			continue
		}
		for _, r := range rows {
			if same(r) {
				sorted = append(sorted, r)
			}
		}
	}
	return sorted
}

// relate fills in what rows say about the first of their metric and source.
func relate(rows []Row) {
	for i := range rows {
		r := &rows[i]
		group := func(o Row) bool { return o.Metric == r.Metric && o.Source == r.Source }
		base := &rows[slices.IndexFunc(rows, group)]
		if !slices.ContainsFunc(rows, func(o Row) bool { return group(o) && o.Variant != base.Variant }) {
			continue
		}
		if r.Base = base.Variant; r.Variant == r.Base || r.figure == base.figure {
			continue // the very same figure says nothing about a change
		}
		r.PublishedChange = over(&r.Published, &base.Published)
		r.SimulatedChange = over(r.Simulated, base.Simulated)
		if r.Simulated != nil && base.Simulated != nil {
			r.Agrees = new(way(base.Published, r.Published) == way(*base.Simulated, *r.Simulated))
		}
	}
}

// over returns a/b, nil where that is not defined.
func over(a, b *float64) *float64 {
	if a == nil || b == nil || *b == 0 {
		return nil
	}
	return new(*a / *b)
}

// way returns where a change leads: 1 up, -1 down, 0 nowhere. From 0 every change leads
// somewhere.
func way(from, to float64) int {
	switch {
	case to > from*(1+small):
		return 1
	case to < from/(1+small):
		return -1
	}
	return 0
}
