// Package verdict turns the analysis of a bisection into what people and programs read:
// who moved the metric, by how much, how sure that is, and what was run to know it.
package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"napisim/reports/bisect"
	"napisim/reports/result"
	"napisim/reports/result/quantity"
)

// Schema names the JSON form of a Report.
const Schema = "napisim.bisect/1"

// A Report is the outcome of a bisection. It is plain data; pointers are nil where a
// number does not exist, and null in JSON.
type Report struct {
	Schema   string        `json:"schema"`
	Tool     result.Tool   `json:"tool"`
	Scenario string        `json:"scenario"`
	Metric   string        `json:"metric"`
	Unit     string        `json:"unit"`
	Better   result.Better `json:"better"`
	// Good and Bad are the two kernels, Change what the metric does from the one to the
	// other.
	Good   End    `json:"good"`
	Bad    End    `json:"bad"`
	Change Number `json:"change"`
	// Differs says whether there is a change to explain at all.
	Differs bool   `json:"differs"`
	Seed    uint64 `json:"seed"` // the first; the others follow it
	Seeds   int    `json:"seeds"`

	Method bisect.Method `json:"method"`
	// Combinations counts those that were run, Possible all there are. LeftOut are those
	// that cannot be built.
	Combinations int       `json:"combinations"`
	Possible     float64   `json:"possible"`
	LeftOut      []LeftOut `json:"left_out"`
	Runs         int       `json:"runs"`
	// Orders is the number of orders from good to bad that the values are means over.
	Orders float64 `json:"orders"`

	Players      []Player      `json:"players"`
	Interactions []Interaction `json:"interactions"`
	// Waterfall leads from the good mean to the bad one in steps of the values, the
	// largest first.
	Waterfall []Step `json:"waterfall"`
	// Notes say what of the scenario or the command line was held on both sides.
	Notes    []string `json:"notes"`
	Warnings []string `json:"warnings"`
	// Verdict says it in sentences.
	Verdict []string `json:"verdict"`
	// Partial says that the user interrupted.
	Partial bool `json:"partial"`
}

// An End is one of the two kernels and the metric there.
type End struct {
	Kernel string `json:"kernel"`
	Linux  string `json:"linux"`
	Digest string `json:"digest"` // of the scenario
	Number
}

// A Number is a mean over seeds with its 95 % interval.
type Number struct {
	Mean *float64 `json:"mean"`
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// LeftOut is a combination that a scenario refuses.
type LeftOut struct {
	Choices []string `json:"choices"`
	Reason  string   `json:"reason"`
}

// A Player is one difference of the kernels, or several that were moved together.
type Player struct {
	Name      string   `json:"name"`
	Path      string   `json:"path"`
	Members   []string `json:"members"` // of several
	Good      string   `json:"good"`
	Bad       string   `json:"bad"`
	Functions []string `json:"functions"`
	Commit    string   `json:"commit"`
	Effect    string   `json:"effect"`
	// First is what it does alone to the good kernel, Last what it does to the bad one
	// without it.
	First   Number         `json:"first"`
	Last    Number         `json:"last"`
	Value   Number         `json:"value"`
	Share   Number         `json:"share"`
	Verdict bisect.Verdict `json:"verdict"`
}

// An Interaction is two players whose effects do not add up.
type Interaction struct {
	A string `json:"a"`
	B string `json:"b"`
	// On names the kernel to which they were added, or from which they were taken.
	On     string `json:"on"`
	Taken  bool   `json:"taken"`
	Joint  Number `json:"joint"`
	Sum    Number `json:"sum"`
	Excess Number `json:"excess"`
}

// A Step of the waterfall leads from one level to the next.
type Step struct {
	Name string  `json:"name"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

func number(s result.Summary) Number {
	n := Number{Mean: defined(s.Mean)}
	if n.Mean != nil {
		n.Low, n.High = defined(s.Mean-s.Half), defined(s.Mean+s.Half)
	}
	return n
}

func optional(s *result.Summary) Number {
	if s == nil {
		return Number{}
	}
	return number(*s)
}

func defined(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// half returns the half width of the interval, NaN if there is none.
func (n Number) half() float64 {
	if n.Mean == nil || n.High == nil {
		return math.NaN()
	}
	return *n.High - *n.Mean
}

// Fill puts an analysis into a report that knows the names already: r.Players are those
// of the analysis, in its order. They are sorted by the size of their value.
func (r *Report) Fill(a bisect.Analysis) {
	r.Good.Number, r.Bad.Number, r.Change = number(a.Good), number(a.Bad), number(a.Change)
	r.Orders = a.Orders
	for _, p := range a.Pairs {
		on := r.Good.Kernel
		if p.OnBad {
			on = r.Bad.Kernel
		}
		r.Interactions = append(r.Interactions, Interaction{
			A: r.Players[p.A].Name, B: r.Players[p.B].Name, On: on, Taken: p.OnBad,
			Joint: number(p.Joint), Sum: number(p.Sum), Excess: number(p.Excess),
		})
	}
	for i, e := range a.Effects {
		p := &r.Players[i]
		p.First, p.Last, p.Value, p.Share = optional(e.First), optional(e.Last), number(e.Value), number(e.Share)
		p.Verdict = e.Verdict
	}
	slices.SortStableFunc(r.Players, func(a, b Player) int {
		switch x, y := size(a.Value), size(b.Value); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	if a.Orders > 0 && r.Differs {
		level := *r.Good.Mean
		for _, p := range r.Players {
			next := level + *p.Value.Mean
			r.Waterfall = append(r.Waterfall, Step{p.Name, level, next})
			level = next
		}
	}
	r.judge()
}

func size(n Number) float64 {
	if n.Mean == nil {
		return -1
	}
	return math.Abs(*n.Mean)
}

// judge writes the sentences of the verdict.
func (r *Report) judge() {
	if !r.Differs {
		r.Verdict = append(r.Verdict, fmt.Sprintf("No difference in %s between %s and %s that is above %.0f %% and above what the seeds vary: there is nothing to explain.",
			r.Metric, r.Good.Kernel, r.Bad.Kernel, 100*bisect.MinChange))
		return
	}
	if r.Orders == 0 && r.Partial {
		r.Verdict = append(r.Verdict, "Not every combination was run with one seed, so nothing is divided among the differences.")
		return
	}
	if r.Orders == 0 {
		r.Verdict = append(r.Verdict, "The combinations that could be run do not lead from the one kernel to the other: nothing can be divided among the differences.")
		return
	}
	scale := r.scale()
	places := scale.decimals(math.Abs(*r.Change.Mean))
	total := strings.TrimSpace(scale.fixed(*r.Change.Mean, places) + " " + scale.unit)
	for _, p := range r.Players {
		s := "s"
		if len(p.Members) > 0 {
			s = ""
		}
		switch p.Verdict {
		case bisect.Cause:
			r.Verdict = append(r.Verdict, sentence(fmt.Sprintf("%s account%s for %s of the change in %s, %s of %s.",
				p.described(), s, p.share(), r.Metric, scale.fixed(*p.Value.Mean, places), total)))
		case bisect.Against:
			r.Verdict = append(r.Verdict, sentence(fmt.Sprintf("%s work%s against it, by %s: without that the change were larger.",
				p.described(), s, strings.TrimSpace(scale.fixed(*p.Value.Mean, places)+" "+scale.unit))))
		}
	}
	unclear := func(p Player) bool { return p.Verdict == bisect.Unclear }
	switch {
	case len(r.Verdict) > 0:
	case slices.ContainsFunc(r.Players, unclear):
		r.Verdict = append(r.Verdict, "No difference stands out.")
	default:
		r.Verdict = append(r.Verdict, fmt.Sprintf("No difference accounts for more than %.0f %% of the change: it is the sum of small ones.", 100*bisect.Margin))
	}
	r.sort("is cleared", "are cleared", func(p Player) bool { return p.Verdict == bisect.Cleared && !p.still() })
	r.sort("is cleared: no run moved with it", "are cleared: no run moved with them",
		func(p Player) bool { return p.Verdict == bisect.Cleared && p.still() })
	r.sort("is unclear: more runs may tell", "are unclear: more runs may tell", unclear)
}

// sentence starts with a capital letter where that is no letter of a name.
func sentence(text string) string {
	if rest, ok := strings.CutPrefix(text, "the "); ok {
		return "The " + rest
	}
	return text
}

// Together ends the name of a player that is several differences.
const Together = " together"

// still reports whether the player moved the metric in no run at all.
func (p Player) still() bool { return *p.Value.Mean == 0 && !(p.Value.half() > 0) }

// sort adds a sentence about all players of a kind.
func (r *Report) sort(one, many string, kind func(Player) bool) {
	var names []string
	for _, p := range r.Players {
		if kind(p) {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	says := many
	if len(names) == 1 && !strings.HasSuffix(names[0], Together) {
		says = one
	}
	r.Verdict = append(r.Verdict, sentence(enumerate(names)+" "+says+"."))
}

// enumerate writes "a, b and c".
func enumerate(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// described names a player with its functions and commits, or its members.
func (p Player) described() string {
	parts := []string{}
	if len(p.Functions) > 0 {
		parts = append(parts, strings.Join(p.Functions, ", "))
	}
	if p.Commit != "" {
		parts = append(parts, p.Commit)
	}
	if len(p.Members) > 0 {
		parts = append(parts, strings.Join(p.Members, ", "))
	}
	if len(parts) == 0 {
		return p.Name
	}
	return p.Name + " (" + strings.Join(parts, "; ") + ")"
}

// share writes the share with its interval: "98 % ± 3 %".
func (p Player) share() string {
	if p.Share.Mean == nil {
		return "-"
	}
	mean := fmt.Sprintf("%.0f %%", 100**p.Share.Mean)
	if half := p.Share.half(); half > 0 {
		mean += " ± " + percentDigits(100*half) + " %"
	}
	return strings.Replace(mean, "-0 %", "0 %", 1)
}

func percentDigits(v float64) string {
	if v < 1 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// A scale writes all values of a report with the same unit.
type scale struct {
	factor float64
	unit   string
}

var prefixes = map[string]float64{
	"": 1, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
}

// scale suits the change, or the metric itself where there is none.
func (r *Report) scale() scale {
	factor, shown := result.Shown(r.Metric, r.Unit)
	reference := r.Change.Mean
	if reference == nil || *reference == 0 {
		reference = r.Good.Mean
	}
	if reference == nil {
		return scale{factor, shown}
	}
	_, unit := quantity.Split(factor**reference, shown)
	prefix := strings.TrimSpace(strings.TrimSuffix(unit, strings.TrimPrefix(shown, "1")))
	if by, ok := prefixes[prefix]; ok {
		return scale{factor / by, unit}
	}
	return scale{factor, shown}
}

// plain writes a value; its half width, if there is one, decides about the digits.
func (s scale) plain(v *float64, half float64) string {
	if v == nil {
		return "-"
	}
	text, _ := quantity.Interval(s.factor**v, s.factor*half, "%")
	return text
}

// with writes a mean with its sign and unit.
func (s scale) with(n Number) string {
	return strings.TrimSpace(s.signed(n.Mean, math.NaN()) + " " + s.unit)
}

// fixed writes a value with its sign and so many places.
func (s scale) fixed(v float64, places int) string {
	text := fmt.Sprintf("%+.*f", places, s.factor*v)
	if strings.Trim(text, "+-0.") == "" {
		return strings.TrimLeft(text, "+-")
	}
	return text
}

// signed is plain with a plus sign where the value rises.
func (s scale) signed(v *float64, half float64) string {
	text := s.plain(v, half)
	if v != nil && *v > 0 {
		return "+" + text
	}
	return text
}
