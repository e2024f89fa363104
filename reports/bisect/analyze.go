package bisect

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"napisim/reports/result"
)

// Margin is the share of the change below which a difference does not matter: one whose
// whole interval lies within is cleared.
const Margin = 0.1

// MinChange is the change, as a fraction of the good mean, below which two kernels do
// not differ, whatever the tests say.
const MinChange = 0.01

// A Verdict is what a player amounts to.
type Verdict string

// The verdicts.
const (
	// Cause is for a share of the change that is surely above 0, and above Margin.
	Cause Verdict = "cause"
	// Against is for the same on the other side: without it the change were larger.
	Against Verdict = "against"
	// Cleared is for a share that is surely within Margin.
	Cleared Verdict = "cleared"
	// Unclear is for all others: more runs may tell.
	Unclear Verdict = "unclear"
)

// An Effect is what one player does to the metric.
type Effect struct {
	// Value is its Shapley value, Share the same as a fraction of the change.
	Value, Share result.Summary
	// First is what it does alone to the good kernel, Last what it does when all others
	// are there; nil if that was not run.
	First, Last *result.Summary
	Verdict     Verdict
}

// A Pair is two players whose joint effect is not the sum of their effects.
type Pair struct {
	A, B int
	// OnBad says where that was seen: on top of the good kernel, or in the bad one.
	OnBad bool
	// Joint is what both do together, Sum what they do one by one; Excess is the
	// difference. In the bad kernel they are taken out instead of put in.
	Joint, Sum, Excess result.Summary
}

// An Analysis divides a change among the players of a game.
type Analysis struct {
	Good, Bad, Change result.Summary
	// Orders is over how many orders the values are means.
	Orders  float64
	Effects []Effect
	Pairs   []Pair
}

// Differs reports whether the ends of the game differ: the interval of the change
// excludes 0, and it is not too small to matter to anybody.
func Differs(g Game) bool {
	change := result.Summarize(g.step(0, g.Full()))
	good := result.Summarize(g.Values[0]).Mean
	return change.Mean != 0 && sure(change) && math.Abs(change.Mean) >= MinChange*math.Abs(good)
}

// sure reports whether an interval excludes 0. One seed knows no interval.
func sure(s result.Summary) bool { return !(math.Abs(s.Mean) <= s.Half) }

// Analyze divides the change among the players: over all orders through known
// combinations, or over those of a sample if there is one. Without any order the effects
// have no value but those of the single steps.
func Analyze(g Game, sample [][]int) Analysis {
	change := g.step(0, g.Full())
	a := Analysis{
		Good: result.Summarize(g.Values[0]), Bad: result.Summarize(g.Values[g.Full()]),
		Change: result.Summarize(change), Effects: make([]Effect, g.Players),
	}
	var values, byOrder [][]float64
	if len(sample) > 0 {
		values, byOrder = g.Sampled(sample)
		a.Orders = float64(len(sample))
	} else {
		values, a.Orders = g.Shapley()
	}
	for i := range a.Effects {
		e := &a.Effects[i]
		e.First = summary(g.step(0, Set(0).With(i)))
		e.Last = summary(g.step(g.Full().Without(i), g.Full()))
		e.Value, e.Share, e.Verdict = undefined(), undefined(), Unclear
		if values == nil {
			continue
		}
		drawn := 0.0
		if byOrder != nil {
			drawn = samplingHalf(byOrder[i])
		}
		e.Value = result.Summarize(values[i])
		e.Share = share(values[i], change)
		e.Value.Half = math.Hypot(e.Value.Half, drawn)
		e.Share.Half = math.Hypot(e.Share.Half, drawn/math.Abs(a.Change.Mean))
		e.Verdict = verdict(e.Share)
	}
	a.Pairs = g.pairs(math.Abs(a.Change.Mean))
	return a
}

// Undivided returns the analysis without the values, where too little was run to divide
// the change.
func (a Analysis) Undivided() Analysis {
	a.Orders, a.Effects = 0, slices.Clone(a.Effects)
	for i := range a.Effects {
		e := &a.Effects[i]
		e.Value, e.Share, e.Verdict = undefined(), undefined(), Unclear
	}
	return a
}

func undefined() result.Summary { return result.Summarize(nil) }

func summary(values []float64) *result.Summary {
	if values == nil {
		return nil
	}
	s := result.Summarize(values)
	return &s
}

// share returns a value as a fraction of the change: the ratio of the means, with the
// interval of a ratio estimator. A seed in which all changes are larger says little
// about the share, so it is the residuals that count.
func share(value, change []float64) result.Summary {
	whole := result.Summarize(change).Mean
	s := result.Summary{N: len(value), Mean: result.Summarize(value).Mean / whole}
	residuals := make([]float64, len(value))
	for i := range residuals {
		residuals[i] = value[i] - s.Mean*change[i]
	}
	s.Half = result.Summarize(residuals).Half / math.Abs(whole)
	return s
}

// samplingHalf is the half width that the choice of orders adds. An order and its
// reverse belong together and count as one.
func samplingHalf(byOrder []float64) float64 {
	var pairs []float64
	for i := 0; i+1 < len(byOrder); i += 2 {
		pairs = append(pairs, (byOrder[i]+byOrder[i+1])/2)
	}
	return result.Summarize(pairs).Half
}

func verdict(share result.Summary) Verdict {
	half := share.Half
	if math.IsNaN(half) {
		if half = 0; share.N != 1 {
			return Unclear // too few orders were drawn
		}
	}
	switch {
	case math.Abs(share.Mean)+half <= Margin:
		return Cleared
	case share.Mean-half > 0 && share.Mean > Margin:
		return Cause
	case share.Mean+half < 0 && share.Mean < -Margin:
		return Against
	}
	return Unclear
}

// pairs returns the pairs whose joint effect is surely not the sum of their effects, by
// more than Margin of the change; one for each pair, that on the good kernel if it shows
// there. Intervals are widened for the number of pairs that are looked at (Bonferroni).
func (g Game) pairs(change float64) []Pair {
	all, tests := g.Full(), g.Players*max(g.Players-1, 0)
	var found []Pair
	for a := range g.Players {
		for b := a + 1; b < g.Players; b++ {
			both := Set(0).With(a).With(b)
			for _, corner := range []Set{0, all &^ both} {
				p := Pair{A: a, B: b, OnBad: corner != 0}
				one, other, joint := g.step(corner, corner.With(a)), g.step(corner, corner.With(b)), g.step(corner, corner|both)
				if p.OnBad {
					one, other, joint = g.step(all, all.Without(a)), g.step(all, all.Without(b)), g.step(all, all&^both)
				}
				if one == nil || other == nil || joint == nil {
					continue
				}
				sum := make([]float64, len(one))
				for i := range sum {
					sum[i] = one[i] + other[i]
				}
				excess := difference(sum, joint)
				p.Joint, p.Sum, p.Excess = result.Summarize(joint), result.Summarize(sum), result.Summarize(excess)
				if math.Abs(p.Excess.Mean) > Margin*change && !(math.Abs(p.Excess.Mean) <= halfOver(excess, tests)) {
					found = append(found, p)
					break
				}
			}
		}
	}
	return found
}

// halfOver returns the half width of an interval that holds over a number of tests, NaN
// for less than two values.
func halfOver(values []float64, tests int) float64 {
	n := float64(len(values))
	if n < 2 {
		return math.NaN()
	}
	deviation := stat.StdDev(values, nil)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(1 - (1-result.Confidence)/2/float64(max(tests, 1)))
	return t * stat.StdErr(deviation, n)
}
