package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"napisim/cmd/napisim/exit"
	"napisim/scenarios/faults"
	"napisim/scenarios/kerneldiff"
	"napisim/scenarios/spec"

	"napisim/reports/bisect"
)

// A contest is what a bisection is about: two kernels and in what they differ under a
// scenario. Whatever else the scenario or the command line chooses holds in both.
type contest struct {
	good, bad *spec.Preset
	players   []kerneldiff.Difference
	notes     []string
	seeds     int
	first     uint64 // the seed
	budget    int    // of combinations
}

// contest loads the kernels and the scenario with each of them, and finds the players.
func (a *app) contest(b *bisecting) (*contest, error) {
	c := &contest{}
	var found []kerneldiff.Difference
	var err error
	if c.good, c.bad, found, err = a.differences(b.cmd, b.good, b.bad); err != nil {
		return nil, err
	}
	with := func(flag, kernel string) (*spec.Scenario, error) {
		return a.load(&b.request, setting{presetPath + "=" + kernel, flag})
	}
	good, err := with("--good", b.good)
	if err != nil {
		return nil, err
	}
	bad, err := with("--bad", b.bad)
	if err != nil {
		return nil, err
	}
	if c.seeds = good.Runs; !b.counted && c.seeds == 1 {
		c.seeds = defaultRuns
	}
	c.first = good.Seed
	chosen := map[string]bool{}
	for _, set := range b.sets {
		path, _, _ := strings.Cut(set, "=")
		chosen[path] = true
	}
	for _, d := range found {
		c.enter(d, chosen, good, bad)
	}
	c.noteChoices(chosen, good)
	if len(c.players) == 0 {
		reason := fmt.Sprintf("%s and %s differ in nothing that the model knows", c.good.Name, c.bad.Name)
		if len(found) > 0 {
			reason = fmt.Sprintf("%s and %s differ in nothing that is left open:\n%s", c.good.Name, c.bad.Name, strings.Join(c.notes, "\n"))
		}
		return nil, exit.With(exit.NoChange, errors.New(reason))
	}
	c.budget, err = b.budget(len(c.players), c.seeds)
	return c, err
}

// enter makes a difference a player, unless the command line or, for a setting, the
// scenario fixes it.
func (c *contest) enter(d kerneldiff.Difference, chosen map[string]bool, good, bad *spec.Scenario) {
	key, setting := strings.CutPrefix(d.Path, kerneldiff.SysctlPath)
	own := good.Kernel.Behaviours[d.Name]
	if setting {
		own = kerneldiff.Setting(good.Sysctl, key)
	}
	switch {
	case chosen[d.Path]:
		c.note("%s holds in both kernels, as the command line says", d.Assign(own))
		return
	case setting && own == kerneldiff.Setting(bad.Sysctl, key):
		c.note("%s holds in both kernels, as the scenario says", d.Assign(own))
		return
	case setting:
		d.From, d.To = own, kerneldiff.Setting(bad.Sysctl, key)
	case own != d.From || bad.Kernel.Behaviours[d.Name] != d.To:
		c.note("the scenario says %s; here each kernel has its own, since they differ in it (--set %s holds it)", d.Assign(own), d.Assign(own))
	}
	c.players = append(c.players, d)
}

// noteChoices tells of choices of the scenario that are those of neither kernel.
func (c *contest) noteChoices(chosen map[string]bool, good *spec.Scenario) {
	for _, name := range slices.Sorted(maps.Keys(c.good.Behaviours)) {
		own, theirs := good.Kernel.Behaviours[name], c.good.Behaviours[name]
		path := kerneldiff.BehavioursPath + name
		if own == theirs || theirs != c.bad.Behaviours[name] {
			continue
		}
		who := "the scenario"
		if chosen[path] {
			who = "the command line"
		}
		c.note("%s=%s holds in both kernels, as %s says; by themselves they have %s", path, own, who, theirs)
	}
}

func (c *contest) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// choices returns the assignments that make a combination.
func (c *contest) choices(s bisect.Set) []string {
	var all []string
	for i, d := range c.players {
		value := d.From
		if s.Has(i) {
			value = d.To
		}
		all = append(all, d.Assign(value))
	}
	return all
}

// build resolves the scenario with a combination of the two kernels. A fault is one of
// the combination.
func (a *app) build(b *bisecting, c *contest, s bisect.Set) (*spec.Scenario, error) {
	more := []setting{{presetPath + "=" + b.good, "--good"}}
	for _, choice := range c.choices(s) {
		more = append(more, setting{choice, choice})
	}
	return a.load(&b.request, more...)
}

// isRefusal reports whether a scenario refuses a combination, as against one that cannot
// be read.
func isRefusal(err error) bool {
	_, ok := errors.AsType[faults.List](err)
	return ok
}
