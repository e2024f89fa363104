package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"napisim/reports/result"
)

// A Labelled is a document under the name that the comparison uses for it.
type Labelled struct {
	Label    string
	Document *result.Document
}

// Variants returns what documents hold to compare. A document with one variant goes
// by its label. One with several gives all of them, named label:variant, or by
// their own names if it is the only document.
func Variants(documents ...Labelled) []result.Variant {
	var variants []result.Variant
	for _, d := range documents {
		parts := d.Document.Variants()
		for _, part := range parts {
			switch {
			case len(parts) == 1:
				part.Label = d.Label
			case len(documents) > 1:
				part.Label = d.Label + ":" + part.Label
			}
			variants = append(variants, part)
		}
	}
	return variants
}

// WriteJSON writes the comparison for programs, the same bytes for the same
// comparison.
func (c *Comparison) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(c); err != nil {
		return fmt.Errorf("writing a comparison as JSON: %w", err)
	}
	return nil
}

// Records returns the comparison as a flat table for CSV and the like: a record for
// each cell, numbers in base units with every digit, nothing where a number does
// not exist.
func (c *Comparison) Records() (header []string, records [][]string) {
	header = []string{
		"metric", "unit", "better", "variant", "mean", "low", "high", "n",
		"delta", "delta_low", "delta_high", "p", "p_holm", "verdict", "note",
	}
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	for _, row := range c.Rows {
		for _, cell := range row.Variants {
			records = append(records, []string{
				row.Metric, row.Unit, string(row.Better), cell.Label, number(&cell.Mean), number(cell.Low), number(cell.High),
				strconv.Itoa(cell.N), number(cell.Delta), number(cell.DeltaLow), number(cell.DeltaHigh),
				number(cell.P), number(cell.AdjustedP), string(cell.Verdict), cell.Note,
			})
		}
	}
	return header, records
}
