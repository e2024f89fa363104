package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"napisim/cmd/napisim/exit"
	"napisim/cmd/napisim/vary"
	"napisim/reports/result"
	"napisim/scenarios"
	"napisim/scenarios/faults"
	"napisim/scenarios/spec"
)

// defaultRuns is how many seeds a comparison has unless something else is asked for:
// enough for a difference of a few per cent, and for the half minute that one waits.
const defaultRuns = 10

// presetPath is where a scenario chooses its kernel.
const presetPath = "kernel.preset"

// A variant is a scenario with the label that tells it from the others.
type variant struct {
	label    string
	scenario *spec.Scenario
}

// compareVariants runs the variants of a scenario and compares them.
func (a *app) compareVariants(c *comparing, args []string) error {
	if len(args) > 1 {
		return usage(c.cmd, "compare takes one SCENARIO, not also %q", args[1])
	}
	if err := c.knownMetrics(); err != nil {
		return err
	}
	c.parsed(c.cmd, args[0])
	points, err := c.points()
	if err != nil {
		return err
	}
	variants, err := a.loadVariants(c, points)
	if err != nil {
		return err
	}
	dir, err := openDirectory(c.out)
	if err != nil {
		return err
	}
	runs, ended := a.execute(jobs(variants), c.parallel)
	if ended != nil && !isInterruption(ended) {
		dir.abandon()
		return ended
	}
	s := variants[0].scenario
	o := outcome{title: fmt.Sprintf("%s  %s  base %s", s.Name, seeds(s.Seed, s.Runs), variants[0].label)}
	var files []file
	for _, v := range variants {
		of := slices.DeleteFunc(slices.Clone(runs), func(r result.Run) bool { return r.Variant != v.label })
		if len(of) == 0 {
			dir.abandon()
			return ended // there is not one run of each variant
		}
		o.variants = append(o.variants, result.Variant{Label: v.label, Runs: of})
		o.origins = append(o.origins, origin{v.label, v.scenario.Name, v.scenario.Digest()})
		data, err := result.Marshal(scenarios.NewDocument(v.scenario, of, version()))
		if err != nil {
			return err
		}
		files = append(files, file{fileName(v.label, files), data})
	}
	return errors.Join(ended, a.finish(c, o, dir, files))
}

// finish compares, writes files and shows the comparison.
func (a *app) finish(c *comparing, o outcome, dir *directory, files []file) error {
	table, err := compareTo(o, c.rules)
	if table == nil {
		return usage(c.cmd, "%v", err)
	}
	written, ferr := table.files()
	if ferr == nil {
		ferr = dir.write(append(files, written...)...)
	}
	return errors.Join(ferr, err, a.show(table, c.format), c.drawFigure(table))
}

// points returns the variants that --vary asks for.
func (c *comparing) points() ([]vary.Point, error) {
	var axes []vary.Axis
	if len(c.kernels) > 0 {
		axis, err := vary.Parse(presetPath + "=" + strings.Join(c.kernels, ","))
		if err != nil {
			return nil, usage(c.cmd, "--kernel: %v", err)
		}
		axes = append(axes, axis)
	}
	for _, text := range c.vary {
		axis, err := vary.Parse(text)
		if err != nil {
			return nil, usage(c.cmd, "--vary: %v", err)
		}
		axes = append(axes, axis)
	}
	points, err := vary.Product(axes)
	if err != nil {
		return nil, usage(c.cmd, "--vary: %v", err)
	}
	return points, nil
}

// loadVariants resolves the scenario of each variant. Faults that several have are told
// once.
func (a *app) loadVariants(c *comparing, points []vary.Point) ([]variant, error) {
	var variants []variant
	var found faults.List
	notes := map[string]bool{}
	for _, p := range points {
		var more []setting
		for _, set := range p.Sets {
			flag := "--vary " + set
			if kernel, ok := strings.CutPrefix(set, presetPath+"="); ok && len(c.kernels) > 0 {
				flag = "--kernel " + kernel
			}
			more = append(more, setting{set, flag})
		}
		s, err := a.load(&c.request, more...)
		if list, ok := errors.AsType[faults.List](err); ok {
			found = append(found, list...)
			continue
		}
		if err != nil {
			return nil, err
		}
		if !c.counted && s.Runs == 1 {
			s.Runs = defaultRuns
		}
		a.noteOverrides(c.settings(more...), s, notes)
		variants = append(variants, variant{p.Label, s})
	}
	return variants, found.Err()
}

// jobs returns the runs of all variants, seed by seed: when the user interrupts, most
// of what is finished has its partners.
func jobs(variants []variant) []scenarios.Job {
	var all []scenarios.Job
	for n := range variants[0].scenario.Runs {
		for _, v := range variants {
			all = append(all, scenarios.Job{Scenario: v.scenario, Variant: v.label, Seed: v.scenario.Seed + uint64(n)})
		}
	}
	return all
}

var notFileName = regexp.MustCompile(`[^A-Za-z0-9._=-]+`)

// fileName returns the name under which the result of a variant is stored, other than
// those of the files before it.
func fileName(label string, before []file) string {
	stem := notFileName.ReplaceAllString(label, "-")
	name := stem + ".json"
	taken := func(f file) bool { return f.name == name }
	for n := 2; name == comparisonFile || slices.ContainsFunc(before, taken); n++ {
		name = fmt.Sprintf("%s-%d.json", stem, n)
	}
	return name
}

// knownMetrics refuses a rule that cannot be met before minutes are spent on runs.
func (c *comparing) knownMetrics() error {
	var names []string
	for _, d := range result.Definitions() {
		names = append(names, d.Name)
	}
	for _, rule := range c.rules {
		d, ok := result.Lookup(rule.Metric)
		switch {
		case rule.Metric == "any":
		case !ok:
			return usage(c.cmd, "--fail-on: there is no metric %q%s", rule.Metric, suggestion(faults.Nearest(rule.Metric, names), ""))
		case d.Better == result.Neither && !rule.Either:
			return exit.With(exit.Usage, fmt.Errorf("--fail-on: neither direction of %s is worse; write %q", rule.Metric, rule.Metric+" changed"))
		}
	}
	return nil
}
