package compare

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"napisim/reports/result"
)

// DefaultThreshold is how large a change has to be for a rule that does not say: a
// difference of a tenth of a per cent may be significant and matters to nobody.
const DefaultThreshold = 0.01

// anyMetric stands for every metric that has a better direction.
const anyMetric = "any"

// A Rule says which difference from the base makes a gate fail: Metric worse by more
// than Threshold, a fraction of the base's mean. With Either, a change in any
// direction counts; metrics without a better direction need that.
type Rule struct {
	Metric    string
	Either    bool
	Threshold float64
}

// ParseRule reads a rule: a metric or "any", then "worse" or "changed", then a
// threshold in per cent, which may be missing.
//
//	goodput worse 2%
//	any worse
//	interrupts changed 10%
func ParseRule(text string) (Rule, error) {
	fail := func(format string, args ...any) (Rule, error) {
		return Rule{}, fmt.Errorf("rule %q: %s (for example \"goodput worse 2%%\")", text, fmt.Sprintf(format, args...))
	}
	words := strings.Fields(text)
	if len(words) < 2 || len(words) > 3 {
		return fail("expected METRIC worse|changed [N%%]")
	}
	rule := Rule{Metric: words[0], Threshold: DefaultThreshold}
	switch words[1] {
	case "worse":
	case "changed":
		rule.Either = true
	default:
		return fail("expected worse or changed, found %q", words[1])
	}
	if len(words) == 3 {
		number, isPercent := strings.CutSuffix(words[2], "%")
		if !isPercent {
			return fail("threshold %q needs a %% sign", words[2])
		}
		value, err := strconv.ParseFloat(number, 64)
		if err != nil || !(value >= 0) || math.IsInf(value, 0) {
			return fail("threshold %q is not a percentage", words[2])
		}
		rule.Threshold = value / 100
	}
	return rule, nil
}

// String writes the rule as ParseRule reads it.
func (r Rule) String() string {
	how := "worse"
	if r.Either {
		how = "changed"
	}
	return fmt.Sprintf("%s %s %s%%", r.Metric, how, strconv.FormatFloat(100*r.Threshold, 'g', 12, 64))
}

// A Gate is what a set of rules says about a comparison.
type Gate struct {
	// Regression tells a script whether to fail.
	Regression bool      `json:"regression"`
	Findings   []Finding `json:"findings"`
	// Warnings name rules that could not have failed, whatever happened.
	Warnings []string `json:"warnings"`
}

// A Finding is a cell that breaks a rule.
type Finding struct {
	Rule   string   `json:"rule"`
	Metric string   `json:"metric"`
	Label  string   `json:"label"`
	Delta  *float64 `json:"delta"`
	// P is corrected for the number of cells that the rules ask about.
	P float64 `json:"p"`
}

// String says what was found in one line.
func (f Finding) String() string {
	change := "moved away from 0"
	if f.Delta != nil {
		change = "changed by " + percent(*f.Delta, math.NaN())
	}
	return fmt.Sprintf("%s of %s %s (p=%.2g), against the rule %q", f.Metric, f.Label, change, f.P, f.Rule)
}

// Evaluate applies rules to a comparison. A cell breaks a rule if its difference is
// significant and its mean lies beyond the threshold; from a base of 0 any change
// is beyond every threshold.
//
// The rules name beforehand which metrics matter. Holm's correction is therefore
// over what they ask about, not over every metric that a run happens to have: a gate
// on goodput must not get weaker because a driver counts more pages. So a gate can
// find a regression where the table, which looks at everything, shows none.
//
// A rule for a metric that the comparison does not have is an error, because a gate
// that checks nothing must not pass.
func Evaluate(c *Comparison, rules []Rule) (Gate, error) {
	gate := Gate{Findings: []Finding{}, Warnings: []string{}}
	var asked []question
	var errs []error
	for _, rule := range rules {
		questions, err := c.ask(rule)
		errs = append(errs, err)
		for _, q := range questions {
			switch {
			case q.cell.P == nil:
				gate.Warnings = append(gate.Warnings, fmt.Sprintf(
					"the rule %q cannot fail: %s of %s has too few runs for a test", rule, q.row.Metric, q.cell.Label))
			case !q.cell.Identical:
				asked = append(asked, q)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Gate{}, err
	}
	for i, p := range correct(asked) {
		if q := asked[i]; p < c.Alpha && q.breaks() {
			gate.Findings = append(gate.Findings, Finding{
				Rule: q.rule.String(), Metric: q.row.Metric, Label: q.cell.Label, Delta: q.cell.Delta, P: p,
			})
		}
	}
	gate.Regression = len(gate.Findings) > 0
	return gate, nil
}

// A question is one cell that one rule asks about.
type question struct {
	rule Rule
	row  Row
	cell Cell
}

// ask returns the cells that a rule is about.
func (c *Comparison) ask(rule Rule) ([]question, error) {
	var questions []question
	var names []string
	for _, row := range c.Rows {
		names = append(names, row.Metric)
		directed := rule.Either || row.Better != result.Neither
		switch {
		case rule.Metric != anyMetric && rule.Metric != row.Metric:
			continue
		case !directed && rule.Metric != anyMetric:
			return nil, fmt.Errorf("rule %q: neither direction of %s is worse; ask for changed", rule, row.Metric)
		case !directed:
			continue
		}
		for _, cell := range row.Variants[1:] {
			questions = append(questions, question{rule, row, cell})
		}
	}
	if len(questions) == 0 {
		return nil, fmt.Errorf("rule %q: the comparison has no such metric, but %s", rule, strings.Join(names, ", "))
	}
	return questions, nil
}

// correct returns Holm's p-values of questions. A cell that two rules ask about is
// one hypothesis and counts once.
func correct(questions []question) []float64 {
	type cell struct{ metric, label string }
	index := map[cell]int{}
	var ps []float64
	for _, q := range questions {
		id := cell{q.row.Metric, q.cell.Label}
		if _, seen := index[id]; !seen {
			index[id] = len(ps)
			ps = append(ps, *q.cell.P)
		}
	}
	adjusted := holm(ps)
	corrected := make([]float64, len(questions))
	for i, q := range questions {
		corrected[i] = adjusted[index[cell{q.row.Metric, q.cell.Label}]]
	}
	return corrected
}

// breaks reports whether the cell's mean lies beyond the threshold in the direction
// of the rule.
func (q question) breaks() bool {
	difference := q.cell.Mean - q.row.Variants[0].Mean
	if !q.rule.Either && verdict(difference, q.row.Better) != Worsened {
		return false
	}
	return q.cell.Delta == nil || math.Abs(*q.cell.Delta) > q.rule.Threshold
}
