package beside

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"napisim/reports/result"
	"napisim/reports/result/quantity"
)

const (
	red   = "\x1b[31m"
	reset = "\x1b[0m"
)

// WriteText writes the rows as a table, a group for each metric and source, and what
// it amounts to; nothing if there are no rows. Colour only repeats what the text says.
func WriteText(w io.Writer, rows []Row, colour bool) error {
	if len(rows) == 0 {
		return nil
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "published figures\trole\tpublished\tsimulated\tsim/pub\tchange published\tsimulated\t")
	for i, r := range rows {
		if i == 0 || r.Metric != rows[i-1].Metric || r.Source != rows[i-1].Source {
			// Empty cells keep the columns of the groups in line.
			fmt.Fprintf(table, "%s, %s\t\t\t\t\t\t\t\n", r.Metric, r.Source)
		}
		verdict := agreement(r)
		if colour && verdict == wrong {
			verdict = red + verdict + reset
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Variant, r.Role, result.Text(r.Metric, r.Unit, r.Published),
			simulated(r), factor(r.Ratio), change(r, r.PublishedChange), change(r, r.SimulatedChange), verdict)
	}
	_ = table.Flush() // what it writes to does not fail
	b.WriteString("\n" + reading(rows))
	for line := range strings.Lines(b.String()) {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func simulated(r Row) string {
	if r.Simulated == nil {
		return "none"
	}
	return result.TextWithin(r.Metric, r.Unit, *r.Simulated, r.High)
}

// factor writes a ratio with the digits that matter.
func factor(f *float64) string {
	if f == nil {
		return "-"
	}
	switch {
	case *f > 0.1 && *f < 10:
		return fmt.Sprintf("%.2f", *f)
	case *f >= 1000:
		return fmt.Sprintf("%.2g", *f) // a level is missed, and digits would not say more
	}
	return quantity.Format(*f, "1")
}

func change(r Row, by *float64) string {
	switch {
	case r.Variant == r.Base:
		return "base"
	case by == nil && r.Agrees != nil:
		return "from 0"
	case by == nil:
		return "-"
	}
	return "x " + factor(by)
}

// The verdicts on a change.
const (
	right = "right"
	wrong = "WRONG"
)

func agreement(r Row) string {
	switch {
	case r.Agrees == nil:
		return ""
	case *r.Agrees:
		return right
	}
	return wrong
}

// reading says how to read the table, and what the predictions amount to.
func reading(rows []Row) string {
	var changes, agreeing, immense int
	worst := 1.0
	text := "No cost was chosen to meet these figures.\n"
	for _, r := range rows {
		if r.Role == result.RoleFitted {
			text = "Costs were chosen to meet the fitted figures, which therefore prove nothing; predicted ones were left alone.\n"
		}
		if r.Role != result.RolePredicted || r.Agrees == nil {
			continue
		}
		changes++
		if *r.Agrees {
			agreeing++
		}
		switch off := over(r.SimulatedChange, r.PublishedChange); {
		case off == nil || *off == 0:
			immense++
		default:
			worst = max(worst, *off, 1 / *off)
		}
	}
	if changes == 0 {
		return text + "No change is predicted here: a change needs a published figure of two variants.\n"
	}
	switch {
	case changes > 1:
		text += fmt.Sprintf("Of %d predicted changes %d go", changes, agreeing)
	case agreeing == 1:
		text += "The one predicted change goes"
	default:
		text += "The one predicted change does not go"
	}
	text += fmt.Sprintf(" the published way (less than %.0f %% counts as none)", 100*small)
	switch {
	case immense == changes:
	case immense > 0:
		text += fmt.Sprintf("; the worst that is not from or to 0 is off by a factor of %s", factor(&worst))
	default:
		text += fmt.Sprintf("; the worst is off by a factor of %s", factor(&worst))
	}
	return text + ".\n"
}
