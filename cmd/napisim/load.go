package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"napisim/cmd/napisim/exit"
	"napisim/model/unit"
	"napisim/scenarios"
	"napisim/scenarios/faults"
	"napisim/scenarios/spec"
)

// standardInput is the name that stands for it on the command line; stdinName is what
// errors and labels call it.
const (
	standardInput = "-"
	stdinName     = "stdin"
)

// Bounds of the number of runs, those of the field runs of a scenario.
const (
	minRuns = 1
	maxRuns = 10000
)

// A request is what the command line says about the scenario to load.
type request struct {
	name   string
	sets   []string
	kernel string
	seed   number
	runs   number

	seeded, counted bool // whether seed and runs were given
}

// A setting is an assignment, and the flag that it comes from if that is not --set.
type setting struct{ assignment, flag string }

// flags adds the flags that a command has which loads a scenario to run it.
func (r *request) flags(a *app, cmd *cobra.Command) {
	r.setFlags(a, cmd)
	cmd.Flags().StringVar(&r.kernel, "kernel", "", "the kernel preset, short for --set kernel.preset=`NAME`")
	complete(cmd, "kernel", a.completeKernel)
}

// setFlags adds those that do not choose the kernel.
func (r *request) setFlags(a *app, cmd *cobra.Command) {
	r.seed = number{value: 1, max: 1<<64 - 1}
	cmd.Flags().StringArrayVar(&r.sets, "set", nil, "`PATH=VALUE` to set in the scenario, such as nics.eth0.rings.rx=256 (repeatable)")
	cmd.Flags().Var(&r.seed, "seed", "the seed of the first run (default: that of the scenario)")
	cmd.Flags().Lookup("seed").DefValue = ""
	complete(cmd, "set", a.completeSet)
}

// runsFlag adds the number of runs.
func (r *request) runsFlag(cmd *cobra.Command, help string) {
	r.runs = number{value: minRuns, min: minRuns, max: maxRuns}
	cmd.Flags().Var(&r.runs, "runs", help)
	cmd.Flags().Lookup("runs").DefValue = "" // the scenario has a say
}

// oneKernel refuses a list of kernels, which only compare can take.
func (r *request) oneKernel(cmd *cobra.Command) error {
	if strings.Contains(r.kernel, ",") {
		return usage(cmd, "--kernel: %s takes one kernel; \"napisim compare %s --kernel %s\" compares several", cmd.Name(), r.name, r.kernel)
	}
	return nil
}

// parsed takes what only the parsed command knows.
func (r *request) parsed(cmd *cobra.Command, name string) {
	r.name = name
	r.seeded, r.counted = cmd.Flags().Changed("seed"), cmd.Flags().Changed("runs")
}

// settings returns the assignments in the order in which they apply. Those of --set come
// first, so that their numbers are those that the user counts.
func (r *request) settings(more ...setting) []setting {
	var all []setting
	for _, s := range r.sets {
		all = append(all, setting{assignment: s})
	}
	if r.kernel != "" {
		all = append(all, setting{presetPath + "=" + r.kernel, "--kernel"})
	}
	if r.seeded {
		all = append(all, setting{"seed=" + r.seed.String(), "--seed"})
	}
	if r.counted {
		all = append(all, setting{"runs=" + r.runs.String(), "--runs"})
	}
	return append(all, more...)
}

// load resolves the scenario of a request and makes sure that a run of it can end.
func (a *app) load(r *request, more ...setting) (*spec.Scenario, error) {
	s, err := a.resolve(r.name, r.settings(more...))
	if err != nil {
		return nil, err
	}
	_, err = estimate(r.name, s)
	return s, err
}

// resolve reads a scenario and applies settings to it.
func (a *app) resolve(name string, settings []setting) (*spec.Scenario, error) {
	assignments := make([]string, len(settings))
	for i, s := range settings {
		assignments[i] = s.assignment
	}
	s, err := a.read(name, assignments)
	list, ok := errors.AsType[faults.List](err)
	if !ok {
		return s, err
	}
	// A fault is to name the flag that the user wrote.
	list = slices.Clone(list)
	for i := range list {
		if n := list[i].Set; n > 0 && settings[n-1].flag != "" {
			list[i].Position = faults.Position{File: settings[n-1].flag}
		}
	}
	return nil, list
}

// maxScenario bounds what is read from standard input.
const maxScenario = 1 << 20

// read resolves a scenario from the library, a file or standard input.
func (a *app) read(name string, assignments []string) (*spec.Scenario, error) {
	if name != standardInput {
		return a.loader.Resolve(name, assignments)
	}
	if a.piped == nil {
		text, err := io.ReadAll(io.LimitReader(a.stdin, maxScenario+1))
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", stdinName, err)
		case len(text) > maxScenario:
			return nil, fmt.Errorf("%s: is larger than %v", stdinName, unit.Bytes(maxScenario))
		}
		a.piped = append([]byte{}, text...) // not nil, so that it counts as read
	}
	return a.loader.ResolveText(stdinName, a.piped, assignments)
}

// estimate returns what a run takes. That it would never end is a fault of the scenario.
func estimate(name string, s *spec.Scenario) (scenarios.Estimate, error) {
	e, err := scenarios.EstimateRun(s)
	if err != nil {
		if name == standardInput {
			name = stdinName
		}
		err = faults.List{{Position: faults.Position{File: name}, Text: err.Error()}}
	}
	return e, err
}

// noteOverrides says which choices of the scenario stand against a preset that the
// command line asks for: who wants another kernel should know what is not of that kernel.
// What the command line itself chooses is known. Notes that were given are not repeated.
func (a *app) noteOverrides(settings []setting, s *spec.Scenario, given map[string]bool) {
	chosen := map[string]bool{}
	asked := false
	for _, set := range settings {
		path, _, _ := strings.Cut(set.assignment, "=")
		chosen[path] = true
		asked = asked || path == "kernel" || path == "kernel.preset"
	}
	preset, err := a.loader.Preset(s.Kernel.Preset)
	if !asked || err != nil {
		return // a preset that only the scenario's file can name was good enough to resolve
	}
	for _, name := range slices.Sorted(maps.Keys(preset.Behaviours)) {
		path, own := "kernel.behaviours."+name, s.Kernel.Behaviours[name]
		note := fmt.Sprintf("note: %s has %s=%s, but the scenario says %s, which stays", s.Kernel.Preset, path, preset.Behaviours[name], own)
		if own != preset.Behaviours[name] && !chosen[path] && !given[note] {
			given[note] = true
			a.say("%s", note)
		}
	}
}

// seeds names the seeds of some runs, for a title.
func seeds(first uint64, n int) string {
	if n == 1 {
		return "seed " + strconv.FormatUint(first, 10)
	}
	return fmt.Sprintf("seeds %d..%d", first, first+uint64(n)-1)
}

// interrupted is the error for work that the user ended.
func interrupted(finished, all int) error {
	if finished == 0 {
		return exit.With(exit.Interrupted, errors.New("interrupted before a run was finished"))
	}
	return exit.With(exit.Interrupted, fmt.Errorf("interrupted: the result is of %d of %d runs", finished, all))
}
