package compare

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"napisim/reports/result"
	"napisim/reports/result/quantity"
)

// marks say a verdict without colour. What is insignificant has the mark in place
// of its delta.
var marks = map[Verdict]string{
	Insignificant: "",
	Improved:      "+ better",
	Worsened:      "- worse",
	Changed:       "* changed",
}

// colours repeat the verdicts of marks.
var colours = map[Verdict]string{Improved: "\x1b[32m", Worsened: "\x1b[31m", Changed: "\x1b[33m"}

const resetColour = "\x1b[0m"

// WriteText writes a table like benchstat's for each variant against the base, then
// how to read it and what to beware of. Colour, if asked for, only repeats the
// marks.
func (c *Comparison) WriteText(w io.Writer, colour bool) error {
	var b strings.Builder
	if len(c.Rows) == 0 {
		b.WriteString("no metric in common\n")
	} else {
		for i := range c.Rows[0].Variants[1:] {
			c.writeTable(&b, i+1, colour)
		}
		c.writeReading(&b)
	}
	for _, warning := range c.Warnings {
		b.WriteString("! " + warning + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeTable writes the table of one variant and its footnotes.
func (c *Comparison) writeTable(b *strings.Builder, variant int, colour bool) {
	var notes []string
	var aligned strings.Builder
	table := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	labels := c.Rows[0].Variants
	fmt.Fprintf(table, "metric\t%s\t%s\tdelta\tp\n", labels[0].Label, labels[variant].Label)
	for _, row := range c.Rows {
		base, cell := row.Variants[0], row.Variants[variant]
		mark := marks[cell.Verdict]
		if colour && mark != "" {
			mark = colours[cell.Verdict] + mark + resetColour
		}
		if cell.Note != "" {
			if !slices.Contains(notes, cell.Note) {
				notes = append(notes, cell.Note)
			}
			mark = strings.TrimSpace(mark + " " + footnote(slices.Index(notes, cell.Note)))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n",
			row.Metric, cellText(row, base), cellText(row, cell), deltaText(cell), pText(cell), mark)
	}
	_ = table.Flush() // what it writes to does not fail
	for line := range strings.Lines(aligned.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	for i, note := range notes {
		b.WriteString(footnote(i) + " " + note + "\n")
	}
	b.WriteString("\n")
}

// writeReading explains how the verdicts came about.
func (c *Comparison) writeReading(b *strings.Builder) {
	design := "Runs are paired by seed: paired t test."
	if c.Design == Unpaired {
		design = "Runs are not paired: U test."
	}
	b.WriteString("Means with 95 % intervals. " + design + "\n")
	if c.Comparisons > 0 {
		fmt.Fprintf(b, "Of %d comparisons %.2g expected below p=%v by chance. p is uncorrected; ~ and the marks follow p after Holm's correction for that many.\n",
			c.Comparisons, c.ExpectedByChance, c.Alpha)
	}
}

func cellText(row Row, cell Cell) string {
	return result.TextWithin(row.Metric, row.Unit, cell.Mean, cell.High)
}

// deltaText writes a significant change in per cent.
func deltaText(cell Cell) string {
	switch {
	case cell.Delta != nil && cell.P == nil:
		// Without a test the change is still what happened, in this one run.
		return percent(*cell.Delta, math.NaN())
	case cell.Verdict == Insignificant:
		return "~"
	case cell.Delta == nil:
		return "from 0"
	case cell.DeltaHigh == nil:
		return percent(*cell.Delta, math.NaN())
	}
	return percent(*cell.Delta, *cell.DeltaHigh-*cell.Delta)
}

// percent writes a signed fraction with the half width of its interval, if it has
// one.
func percent(fraction, half float64) string {
	number, _ := quantity.Interval(100*fraction, 100*half, "%")
	if fraction > 0 {
		number = "+" + number
	}
	return number + "%"
}

func pText(cell Cell) string {
	switch {
	case cell.P == nil:
		return fmt.Sprintf("n=%d", cell.N)
	case *cell.P == 0:
		return fmt.Sprintf("p=0 n=%d", cell.N)
	case *cell.P < 0.001:
		return fmt.Sprintf("p<0.001 n=%d", cell.N)
	}
	return fmt.Sprintf("p=%.3f n=%d", *cell.P, cell.N)
}

// footnote returns a number as a superscript.
func footnote(i int) string {
	superscript := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	var b strings.Builder
	for _, digit := range fmt.Sprint(i + 1) {
		b.WriteRune(superscript[digit-'0'])
	}
	return b.String()
}
