package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
)

// Marshal returns the JSON form of d, the same bytes for equal documents. A
// value that is not a finite number is left out and its run gains a warning;
// empty lists are written as lists, never as null. The document itself stays
// as it is. An invalid document is an error: see [Document.Validate].
func Marshal(d *Document) ([]byte, error) {
	clean := d.normalized()
	if err := clean.Validate(); err != nil {
		return nil, fmt.Errorf("cannot write an invalid result:\n%w", err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	// The resolved scenario is for people to read; \u003c in its comments is not.
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(clean); err != nil {
		return nil, fmt.Errorf("writing a result as JSON: %w", err)
	}
	return out.Bytes(), nil
}

// Write writes the JSON form of d, as Marshal gives it.
func Write(w io.Writer, d *Document) error {
	data, err := Marshal(d)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// normalized returns a copy of d in the one form that is written: schema set,
// no nil collections, no undefined numbers.
func (d *Document) normalized() *Document {
	clean := *d
	clean.Schema = Schema
	clean.Runs = make([]Run, len(d.Runs))
	for i, run := range d.Runs {
		clean.Runs[i] = run.normalized()
	}
	return &clean
}

func (r Run) normalized() Run {
	r.Warnings = append([]string{}, r.Warnings...)
	// drop notes why an entry is left out; its results read well as a condition.
	drop := func(what string, values ...float64) bool {
		for _, v := range values {
			if !finite(v) {
				r.Warnings = append(r.Warnings, fmt.Sprintf("%s is undefined (%v) and was left out", what, v))
				return true
			}
		}
		return false
	}

	metrics := make(map[string]Metric, len(r.Metrics))
	for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
		if m := r.Metrics[name]; !drop("metric "+name, m.Value) {
			m.Value = positiveZero(m.Value)
			metrics[name] = m
		}
	}
	histograms := make(map[string]Histogram, len(r.Histograms))
	for _, name := range slices.Sorted(maps.Keys(r.Histograms)) {
		h := r.Histograms[name]
		if !drop("histogram "+name, h.Scale, h.Mean, h.Max, h.P50, h.P90, h.P99, h.P999) {
			h.Scale = h.step()
			histograms[name] = h
		}
	}
	cores := make([]Core, len(r.Cores))
	for i, core := range r.Cores {
		shares := make(map[string]float64, len(core.Shares))
		for _, context := range slices.Sorted(maps.Keys(core.Shares)) {
			share := core.Shares[context]
			if !drop(fmt.Sprintf("share of %s on cpu %d", context, core.CPU), share) {
				shares[context] = positiveZero(share)
			}
		}
		cores[i] = Core{CPU: core.CPU, Shares: shares}
	}
	provenance := make([]Provenance, 0, len(r.Provenance))
	for _, p := range r.Provenance {
		if !drop(fmt.Sprintf("provenance of %s costs", p.Kind), p.Share, p.Seconds) {
			p.Stages = normalizedStages(p.Stages, drop)
			provenance = append(provenance, p)
		}
	}
	published := make([]Published, 0, len(r.Published))
	for _, p := range r.Published {
		if !drop(fmt.Sprintf("published %s of %s", p.Metric, p.Source), p.Value) {
			published = append(published, p)
		}
	}
	r.Metrics, r.Histograms, r.Cores = metrics, histograms, cores
	r.Provenance, r.Published = provenance, published
	r.Losses = append([]Loss{}, r.Losses...)
	return r
}

func normalizedStages(stages []StageCost, drop func(string, ...float64) bool) []StageCost {
	clean := make([]StageCost, 0, len(stages))
	for _, s := range stages {
		if !drop("cost of stage "+s.Stage, s.Seconds) {
			s.Rows = append([]string{}, s.Rows...)
			clean = append(clean, s)
		}
	}
	return clean
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// positiveZero turns -0 into 0: they are equal, so they must not give
// different bytes.
func positiveZero(v float64) float64 { return v + 0 }
