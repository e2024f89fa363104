package verdict

import (
	"fmt"
	"io"
	"math"
	"strings"

	pretty "github.com/jedib0t/go-pretty/v6/text"

	"napisim/reports/bisect"
	"napisim/reports/result"
	"napisim/reports/text"
)

// colours repeat verdicts.
var colours = map[bisect.Verdict]string{bisect.Cause: "\x1b[31m", bisect.Against: "\x1b[33m", bisect.Cleared: "\x1b[32m"}

const resetColour = "\x1b[0m"

// minText is the narrowest view that is laid out.
const minText = 40

// A view collects the text of a report.
type view struct {
	strings.Builder
	*Report
	o text.Options
}

// WriteText writes the report for people: the verdict first, then what it rests on.
func (r *Report) WriteText(w io.Writer, o text.Options) error {
	o.Width = max(o.Width, minText)
	v := &view{Report: r, o: o}
	v.prose(fmt.Sprintf("%s  %s  good %s  bad %s  %s", r.Scenario, r.Metric, r.Good.Kernel, r.Bad.Kernel, r.seeds()))
	if r.Partial {
		v.prose("! interrupted: only what was finished by then")
	}
	v.WriteString("\n")
	v.change()
	v.WriteString("\n")
	for _, sentence := range r.Verdict {
		v.prose(sentence)
	}
	if len(r.Players) > 0 && r.Differs {
		v.WriteString("\n")
		if err := r.values().Write(v, text.FormatText, o); err != nil {
			return err
		}
	}
	v.waterfall()
	v.interactions()
	if err := v.differences(); err != nil {
		return err
	}
	v.reading()
	text := v.String()
	if o.Colour {
		text = coloured(text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// coloured paints the verdict at the start of each row of the table.
func coloured(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for verdict, colour := range colours {
			if rest, ok := strings.CutPrefix(line, string(verdict)+"  "); ok {
				line = colour + string(verdict) + resetColour + "  " + rest
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

func (v *view) prose(words string) {
	for line := range strings.SplitSeq(pretty.WrapSoft(words, v.o.Width), "\n") {
		v.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// seeds names the seeds, for the title.
func (r *Report) seeds() string {
	if r.Seeds == 1 {
		return fmt.Sprintf("seed %d", r.Seed)
	}
	return fmt.Sprintf("seeds %d..%d", r.Seed, r.Seed+uint64(r.Seeds)-1)
}

// change says what the metric does from good to bad.
func (v *view) change() {
	good := result.TextWithin(v.Metric, v.Unit, *v.Good.Mean, v.Good.High)
	bad := result.TextWithin(v.Metric, v.Unit, *v.Bad.Mean, v.Bad.High)
	says := fmt.Sprintf("%s: %s with %s, %s with %s", v.Metric, good, v.Good.Kernel, bad, v.Bad.Kernel)
	if !v.Differs {
		v.prose(says + ".")
		return
	}
	change, how := *v.Change.Mean, "more"
	if change < 0 {
		how = "less"
	}
	if *v.Good.Mean != 0 {
		says += fmt.Sprintf(": %.3g %% %s", 100*math.Abs(change / *v.Good.Mean), how)
	}
	switch {
	case v.Better == result.Neither:
	case (change > 0) == (v.Better == result.Higher):
		says += ", which is better"
	default:
		says += ", which is worse"
	}
	v.prose(says + ".")
}

// values returns the differences with what they do to the metric.
func (r *Report) values() text.Table {
	s := r.scale()
	t := text.Table{Columns: []text.Column{
		{Name: "verdict"},
		{Name: "difference"},
		{Name: "first", Right: true},
		{Name: "last", Right: true},
		{Name: strings.TrimSpace("value " + s.unit), Right: true},
		{Name: "share", Right: true},
	}}
	for _, p := range r.Players {
		t.Rows = append(t.Rows, []string{
			string(p.Verdict), p.Name, s.signed(p.First.Mean, p.First.half()), s.signed(p.Last.Mean, p.Last.half()),
			s.signed(p.Value.Mean, p.Value.half()), p.share(),
		})
	}
	return t
}

// choices returns the differences with what each kernel does.
func (r *Report) choices() text.Table {
	t := text.Table{Columns: []text.Column{
		{Name: "difference"}, {Name: r.Good.Kernel}, {Name: r.Bad.Kernel}, {Name: "commit", Wrap: true},
	}}
	for _, p := range r.Players {
		about := p.Commit
		if len(p.Members) > 0 {
			about = strings.Join(p.Members, ", ")
		}
		t.Rows = append(t.Rows, []string{p.Name, p.Good, p.Bad, about})
	}
	return t
}

// Table returns both beside each other, for documents.
func (r *Report) Table() text.Table {
	t, c := r.values(), r.choices()
	t.Columns = append(t.Columns, c.Columns[1:]...)
	for i := range t.Rows {
		t.Rows[i] = append(t.Rows[i], c.Rows[i][1:]...)
	}
	return t
}

// Full returns the table with every digit, for CSV.
func (r *Report) Full() text.Table {
	var t text.Table
	for _, name := range []string{
		"verdict", "difference", "path", "good", "bad", "functions", "commit", "unit",
		"first", "first_low", "first_high", "last", "last_low", "last_high",
		"value", "value_low", "value_high", "share", "share_low", "share_high",
	} {
		t.Columns = append(t.Columns, text.Column{Name: name})
	}
	for _, p := range r.Players {
		row := []string{
			string(p.Verdict), p.Name, p.Path, p.Good, p.Bad, strings.Join(p.Functions, ", "), p.Commit, r.Unit,
		}
		for _, n := range []Number{p.First, p.Last, p.Value, p.Share} {
			for _, v := range []*float64{n.Mean, n.Low, n.High} {
				cell := ""
				if v != nil {
					cell = fmt.Sprint(*v)
				}
				row = append(row, cell)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (v *view) interactions() {
	s := v.scale()
	for i, p := range v.Interactions {
		if i == 0 {
			v.WriteString("\n")
		}
		how := "added to"
		if p.Taken {
			how = "taken out of"
		}
		v.prose(sentence(fmt.Sprintf("%s and %s interact: %s %s, both together do %s and one by one %s.",
			p.A, p.B, how, p.On, s.with(p.Joint), s.with(p.Sum))))
	}
}

// differences says what differs, and what the causes do in the kernel.
func (v *view) differences() error {
	if !v.Differs {
		return nil
	}
	v.WriteString("\n")
	if err := v.choices().Write(v, text.FormatText, v.o); err != nil {
		return err
	}
	for _, p := range v.Players {
		if p.Effect != "" && (p.Verdict == bisect.Cause || p.Verdict == bisect.Against) {
			v.WriteString("\n")
			v.prose(p.Name + ": " + p.Effect)
		}
	}
	return nil
}

// reading says what was run, and how to read it.
func (v *view) reading() {
	v.WriteString("\n")
	v.prose(v.Ran())
	if v.Differs && v.Orders > 0 {
		v.prose(fmt.Sprintf("value: the mean over %s in which %s becomes %s; first: alone on %s; last: on top of all others. "+
			"Means with 95 %% intervals over the seeds; cleared: surely less than %.0f %% of the change.",
			v.orders(), v.Good.Kernel, v.Bad.Kernel, v.Good.Kernel, 100*bisect.Margin))
	}
	for _, note := range v.Notes {
		v.prose("note: " + note)
	}
	for _, warning := range v.Warnings {
		v.prose("! " + warning)
	}
	for _, l := range v.LeftOut {
		v.prose(fmt.Sprintf("! left out, since it cannot be built: %s: %s", strings.Join(l.Choices, " "), l.Reason))
	}
}

func (r *Report) orders() string {
	switch {
	case r.Method == bisect.SampledOrders:
		return fmt.Sprintf("%.0f random orders", r.Orders)
	case r.Orders == 1:
		return "the one order"
	case r.Orders == 2:
		return "both orders"
	}
	return fmt.Sprintf("all %.6g orders", r.Orders)
}

// Ran says which combinations were run and what was skipped.
func (r *Report) Ran() string {
	runs := fmt.Sprintf("%d runs", r.Runs)
	if !r.Differs {
		return fmt.Sprintf("Only the two kernels themselves were run: %s.", runs)
	}
	all := r.possible() + " combinations"
	switch r.Method {
	case bisect.Exhaustive:
		if len(r.LeftOut) == 0 && !r.Partial {
			return fmt.Sprintf("All %s were run with %s each: %s.", all, r.each(), runs)
		}
		return fmt.Sprintf("%d of %s were run with %s each: %s.", r.Combinations, all, r.each(), runs)
	case bisect.Screened:
		return fmt.Sprintf("%d of %s were run with %s each: %s. Each difference was run alone, and those that moved the metric by that in every combination; the others moved together.",
			r.Combinations, all, r.each(), runs)
	}
	return fmt.Sprintf("%d of %s were run with %s each: %s. Each difference was run alone, and those that moved the metric by that in random orders; the others moved together. Intervals include the choice of orders.",
		r.Combinations, all, r.each(), runs)
}

// possible writes how many combinations there are: those that cannot be counted at a
// glance as the power of two that they are.
func (r *Report) possible() string {
	if exponent := math.Log2(r.Possible); r.Possible > 1e6 && exponent == math.Trunc(exponent) {
		return fmt.Sprintf("2^%.0f", exponent)
	}
	return fmt.Sprintf("%.6g", r.Possible)
}

func (r *Report) each() string {
	if r.Seeds == 1 {
		return "1 seed"
	}
	return fmt.Sprintf("%d seeds", r.Seeds)
}
