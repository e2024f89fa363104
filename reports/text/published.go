package text

import (
	"cmp"
	"math"
	"slices"

	"napisim/reports/result"
	"napisim/reports/result/quantity"
)

// published writes published numbers beside the results of this variant.
// Ratio is simulated over published. Direction asks, against the first variant of
// the document with a row of the same source and metric, whether the result
// moves the way the published number does; that survives a wrong scale.
func (p *page) published(all []result.Variant, v result.Variant) {
	rows := publishedRows(v)
	if len(rows) == 0 {
		return
	}
	p.heading("published numbers", "simulated / published")
	t := Table{Columns: []Column{
		{Name: "metric"},
		{Name: "published", Right: true},
		{Name: "simulated", Right: true},
		{Name: "ratio", Right: true},
		{Name: "role"},
		{Name: "direction"},
		{Name: "source", Wrap: true},
	}}
	for _, row := range rows {
		predicted, ratio := "none", "-"
		if value, unit, ok := prediction(v, row.Metric); ok {
			predicted = result.Text(row.Metric, unit, value)
			if unit == row.Unit && row.Value != 0 {
				ratio = quantity.Format(value/row.Value, "1")
			}
		}
		source := row.Source
		if row.Note != "" {
			source += ": " + row.Note
		}
		direction := direction(all, v, row)
		if direction == "wrong" {
			direction = p.opts.paint(red, direction)
		}
		t.Rows = append(t.Rows, []string{
			row.Metric, result.Text(row.Metric, row.Unit, row.Value), predicted, ratio, string(row.Role), direction, source,
		})
	}
	p.table(t)
}

// publishedRows returns the rows of a variant once each; its runs repeat them.
func publishedRows(v result.Variant) []result.Published {
	var rows []result.Published
	for _, run := range v.Runs {
		for _, row := range run.Published {
			if !slices.Contains(rows, row) {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// prediction returns the mean of a metric over the runs of a variant.
func prediction(v result.Variant, metric string) (value float64, unit string, ok bool) {
	for _, run := range v.Runs {
		if m, found := run.Metrics[metric]; found {
			return result.Summarize(v.Values(metric)).Mean, m.Unit, true
		}
	}
	return 0, "", false
}

// direction compares the step from the reference variant to v in the published
// rows with that in the predictions.
func direction(all []result.Variant, v result.Variant, row result.Published) string {
	for _, reference := range all {
		rows := publishedRows(reference)
		i := slices.IndexFunc(rows, func(r result.Published) bool {
			return r.Source == row.Source && r.Metric == row.Metric && r.Unit == row.Unit
		})
		if i < 0 {
			continue
		}
		if reference.Label == v.Label {
			return "reference"
		}
		before, _, haveBefore := prediction(reference, row.Metric)
		after, _, haveAfter := prediction(v, row.Metric)
		published := cmp.Compare(row.Value, rows[i].Value)
		switch {
		case !haveBefore || !haveAfter || published == 0 || math.IsNaN(after-before):
			return "-"
		case cmp.Compare(after, before) == published:
			return "right"
		}
		return "wrong"
	}
	return "-"
}
