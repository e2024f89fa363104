package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"napisim/reports/result"
	"napisim/reports/result/quantity"
)

// topStages is how many stages of each kind are named.
const topStages = 3

// A basis is one kind of cost over all runs of a variant: its share of the busy
// time, and the seconds that its stages divide among them.
type basis struct {
	share   float64
	seconds float64
	stages  []result.StageCost
}

// shareOf returns the part of the busy time that some of the seconds stand for.
func (b basis) shareOf(seconds float64) string {
	if b.seconds == 0 {
		return "-"
	}
	return quantity.Percent(b.share * seconds / b.seconds)
}

// provenance writes what the prediction rests on: which share of the busy CPU
// time was charged at costs that were measured, published, fitted or assumed, and
// the stages that weigh most in each.
func (p *page) provenance(v result.Variant) {
	bases := basesOf(v)
	if len(bases) == 0 {
		return
	}
	p.heading("provenance of costs", "share of busy CPU time")
	t := Table{Columns: []Column{
		{Name: "costs"}, {Name: "share", Right: true}, {Name: "stage"}, {Name: "share", Right: true}, {Name: "source", Wrap: true},
	}}
	for _, kind := range result.Kinds() {
		b, ok := bases[kind]
		if !ok {
			continue
		}
		label, share := string(kind), quantity.Percent(b.share)
		if len(b.stages) == 0 {
			t.Rows = append(t.Rows, []string{label, share, "", "", ""})
		}
		for _, stage := range b.stages[:min(topStages, len(b.stages))] {
			t.Rows = append(t.Rows, []string{
				label, share, stage.Stage, b.shareOf(stage.Seconds), origin(kind, stage),
			})
			label, share = "", ""
		}
		if more := len(b.stages) - topStages; more > 0 {
			rest := 0.0
			for _, stage := range b.stages[topStages:] {
				rest += stage.Seconds
			}
			t.Rows = append(t.Rows, []string{"", "", fmt.Sprintf("%d more", more), b.shareOf(rest), ""})
		}
	}
	p.table(t)
}

// origin says where a cost comes from, and for a fitted one what it was fitted on:
// predictions of those rows prove nothing.
func origin(kind result.Kind, stage result.StageCost) string {
	if kind != result.KindFitted {
		return stage.Source
	}
	rows := "rows not stated"
	if len(stage.Rows) > 0 {
		rows = "fitted on " + strings.Join(stage.Rows, ", ")
	}
	if stage.Source == "" {
		return rows
	}
	return stage.Source + "; " + rows
}

// basesOf adds up the runs by kind and stage, the heaviest stage first.
func basesOf(v result.Variant) map[result.Kind]basis {
	bases := map[result.Kind]basis{}
	for _, run := range v.Runs {
		for _, p := range run.Provenance {
			b := bases[p.Kind]
			b.share += p.Share / float64(len(v.Runs))
			b.seconds += p.Seconds
			for _, stage := range p.Stages {
				i := slices.IndexFunc(b.stages, func(s result.StageCost) bool { return s.Stage == stage.Stage })
				if i < 0 {
					b.stages = append(b.stages, stage)
					continue
				}
				b.stages[i].Seconds += stage.Seconds
			}
			bases[p.Kind] = b
		}
	}
	for _, b := range bases {
		slices.SortStableFunc(b.stages, func(a, b result.StageCost) int {
			return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), strings.Compare(a.Stage, b.Stage))
		})
	}
	return bases
}
