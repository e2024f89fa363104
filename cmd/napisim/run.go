package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"napisim/reports/result"
	"napisim/reports/text"
	"napisim/scenarios"
	"napisim/scenarios/spec"
)

func (a *app) runCommand() *cobra.Command {
	var r request
	var out string
	var dry bool
	cmd := &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Run a scenario and show what it measured",
		Long: "Run a scenario and show what it measured.\n\n" +
			"SCENARIO is a name of the library (napisim list scenarios), a file, or - for standard\n" +
			"input. With several runs, which differ in their seed, numbers are means with their\n" +
			"95 % interval. The same scenario and seed give the same result to the last byte.",
		Example: "  napisim run quickstart\n" +
			"  napisim run quickstart --kernel v6.5 --runs 5 --out out\n" +
			"  napisim run quickstart --set nics.eth0.rings.rx=128 -o json",
		Args:              arguments(1, 1, "a SCENARIO: a name of the library, a file, or - for standard input"),
		ValidArgsFunction: a.completeScenario,
	}
	r.flags(a, cmd)
	r.runsFlag(cmd, "the number of runs, with seeds that follow each other (default: that of the scenario)")
	parallel := parallelFlag(cmd)
	format := outputFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&out, "out", "", "also write result.json and result.txt into `DIR`")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only print the scenario with all defaults, and an estimate of what it takes")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r.parsed(cmd, args[0])
		if err := r.oneKernel(cmd); err != nil {
			return err
		}
		if dry {
			return a.dryRun(&r, format, parallel)
		}
		s, err := a.load(&r)
		if err != nil {
			return err
		}
		a.noteOverrides(r.settings(), s, map[string]bool{})
		return a.runScenario(s, format, parallel, out)
	}
	return cmd
}

// runScenario runs every seed of a scenario and shows the result.
func (a *app) runScenario(s *spec.Scenario, format *choice, parallel *number, out string) error {
	dir, err := openDirectory(out)
	if err != nil {
		return err
	}
	runs, ended := a.execute(scenarios.Jobs([]*spec.Scenario{s}, []string{""}, s.Runs), parallel)
	if len(runs) == 0 || ended != nil && !isInterruption(ended) {
		dir.abandon()
		return ended
	}
	doc := scenarios.NewDocument(s, runs, version())
	data, err := result.Marshal(doc)
	if err != nil {
		return err
	}
	var plain bytes.Buffer
	if err := text.Render(&plain, doc, text.Options{Width: plainWidth}); err != nil {
		return err
	}
	if err := dir.write(file{"result.txt", plain.Bytes()}, file{"result.json", data}); err != nil {
		return err
	}
	if format.value == "json" {
		a.out.Write(data)
		return ended
	}
	if err := text.Render(&a.out, doc, a.style()); err != nil {
		return err
	}
	return ended
}

// A plan is what a dry run says as JSON.
type plan struct {
	Scenario result.Scenario `json:"scenario"`
	Runs     int             `json:"runs"`
	// Seconds is how long the runs take, about; Frames and Ticks are those of one run.
	Seconds float64 `json:"seconds"`
	Frames  float64 `json:"frames"`
	Ticks   float64 `json:"ticks"`
}

// dryRun prints a scenario as it would be run. It says so even of one that is too large
// to be run, because that is when a user wants to know the numbers.
func (a *app) dryRun(r *request, format *choice, parallel *number) error {
	s, err := a.resolve(r.name, r.settings())
	if err != nil {
		return err
	}
	a.noteOverrides(r.settings(), s, map[string]bool{})
	e, tooLarge := estimate(r.name, s)
	p := plan{
		Scenario: result.Scenario{Name: s.Name, Digest: s.Digest(), Resolved: string(s.Resolved())},
		Runs:     s.Runs, Seconds: e.Seconds * rounds(s.Runs, parallel), Frames: e.Frames, Ticks: e.Ticks,
	}
	if format.value == "json" {
		encoder := json.NewEncoder(&a.out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(p); err != nil {
			return err
		}
		return tooLarge
	}
	fmt.Fprintf(&a.out, "# %s, %s: at most %s frames and %s timer ticks each, %s together\n%s",
		count(s.Runs, "run"), seeds(s.Seed, s.Runs), amount(p.Frames), amount(p.Ticks), wait(p.Seconds), p.Scenario.Resolved)
	return tooLarge
}

// rounds is how many times as long as one run so many runs take.
func rounds(runs int, parallel *number) float64 {
	n := int(parallel.value)
	return float64((runs + n - 1) / n)
}
