package verdict

import (
	"fmt"
	"math"
	"strings"

	"napisim/reports/bisect"
	"napisim/reports/figure"
	"napisim/reports/result"
)

// The waterfall is drawn over so many columns, if there are as many as minBar.
const (
	barWidth = 40
	minBar   = 10
)

// A bar is one line of the waterfall: from one level to another.
type bar struct {
	name, number string
	from, to     float64
	mark         string
}

// waterfall draws how the good level becomes the bad one.
func (v *view) waterfall() {
	if len(v.Waterfall) == 0 {
		return
	}
	s := v.scale()
	low, high := *v.Good.Mean, *v.Good.Mean
	for _, step := range v.Waterfall {
		low, high = min(low, step.To), max(high, step.To)
	}
	floor := low - (high-low)/4 // so that the lowest level is seen
	if floor < 0 && *v.Good.Mean >= 0 && *v.Bad.Mean >= 0 {
		floor = min(low, 0)
	}
	bars := v.bars(floor, s.decimals(max(math.Abs(low), math.Abs(high))))
	names, numbers := 0, 0
	for _, b := range bars {
		names, numbers = max(names, len(b.name)), max(numbers, len(b.number))
	}
	width := min(barWidth, v.o.Width-names-numbers-len(s.unit)-5)
	v.WriteString("\n")
	for _, b := range bars {
		line := strings.TrimRight(fmt.Sprintf("%-*s  %*s %s", names, b.name, numbers, b.number, s.unit), " ")
		if width >= minBar {
			line = fmt.Sprintf("%-*s  %s", names+numbers+len(s.unit)+3, line, b.draw(floor, high, width))
		}
		v.WriteString(line + "\n")
	}
}

// Figure returns the waterfall as a picture; it has none where there is no change to
// divide.
func (r *Report) Figure() (figure.Figure, error) {
	if len(r.Waterfall) == 0 {
		return figure.Figure{}, fmt.Errorf("there are no steps from %s to %s to draw", r.Good.Kernel, r.Bad.Kernel)
	}
	s := r.scale()
	level := func(e End) figure.Step {
		return figure.Step{
			Name: e.Kernel, Number: result.TextWithin(r.Metric, r.Unit, *e.Mean, e.High), To: *e.Mean, Half: e.half(), Level: true,
		}
	}
	steps := []figure.Step{level(r.Good)}
	for i, step := range r.Waterfall {
		p := r.Players[i] // in the order of the steps
		steps = append(steps, figure.Step{
			Name: step.Name, From: step.From, To: step.To, Half: p.Value.half(),
			Number: strings.TrimSpace(s.signed(p.Value.Mean, p.Value.half()) + " " + s.unit),
			Strong: p.Verdict == bisect.Cause || p.Verdict == bisect.Against,
		})
	}
	steps = append(steps, level(r.Bad))
	return figure.Waterfall(steps, fmt.Sprintf("%s of %s, %s to %s, %s", r.Metric, r.Scenario, r.Good.Kernel, r.Bad.Kernel, r.seeds()),
		"Shapley values with 95 % intervals over the seeds. Bars are linear; dark steps are causes, or work against one.")
}

// bars returns the lines of the waterfall; those of the two kernels stand on the
// floor, or on 0 if that is above it.
func (v *view) bars(floor float64, places int) []bar {
	s := v.scale()
	level := func(v float64) string { return strings.TrimLeft(s.fixed(v, places), "+") }
	end := func(e End) bar {
		ground := max(floor, min(0, *e.Mean))
		return bar{e.Kernel, level(*e.Mean), min(ground, *e.Mean), max(ground, *e.Mean), "#"}
	}
	bars := []bar{end(v.Good)}
	for _, step := range v.Waterfall {
		mark := "+"
		if step.To < step.From {
			mark = "-"
		}
		bars = append(bars, bar{step.Name, s.fixed(step.To-step.From, places), min(step.From, step.To), max(step.From, step.To), mark})
	}
	return append(bars, end(v.Bad))
}

// draw returns the bar between a floor and the highest level. A floor above 0 is shown
// as a cut.
func (b bar) draw(floor, high float64, width int) string {
	at := func(level float64) int { return int(math.Round((level - floor) / (high - floor) * float64(width))) }
	drawn := strings.Repeat(b.mark, at(b.to)-at(b.from))
	if drawn == "" {
		drawn = "|"
	}
	if b.mark == "#" && floor > 0 && len(drawn) > 2 {
		drawn = "#/" + drawn[2:]
	}
	return strings.Repeat(" ", at(b.from)) + drawn
}

// decimals is how many places show a level with four digits.
func (s scale) decimals(level float64) int {
	if level == 0 {
		return 0
	}
	return min(max(0, 3-int(math.Floor(math.Log10(s.factor*level)))), 6)
}
