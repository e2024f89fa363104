package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"napisim/cmd/napisim/exit"
	"napisim/reports/result"
	"napisim/scenarios"
)

// maxParallel bounds -j; more is a slip.
const maxParallel = 4096

// parallelFlag adds -j to a command.
func parallelFlag(cmd *cobra.Command) *number {
	n := &number{value: uint64(max(1, runtime.GOMAXPROCS(0))), min: 1, max: maxParallel}
	cmd.Flags().VarP(n, "parallel", "j", "the number of runs at a time; the result does not depend on it (default: the number of CPUs)")
	cmd.Flags().Lookup("parallel").DefValue = "" // differs from machine to machine
	return n
}

// execute runs jobs and shows how far they are. If the user interrupts, it returns the
// runs that were finished, each with a warning, and an error of that kind.
func (a *app) execute(jobs []scenarios.Job, parallel *number) ([]result.Run, error) {
	m := newMeter(len(jobs))
	batch := scenarios.Batch{Parallel: int(parallel.value), Observe: func(i int) scenarios.Options {
		return scenarios.Options{Progress: a.observe(m, i, jobs[i].Scenario.Duration)}
	}}
	stop := a.watch(m)
	runs, err := batch.RunAll(jobs)
	stop()
	switch {
	case errors.Is(err, scenarios.ErrInterrupted):
		for i := range runs {
			runs[i].Warnings = append(slices.Clone(runs[i].Warnings),
				fmt.Sprintf("interrupted: the result is of %d of %d runs", len(runs), len(jobs)))
		}
		return runs, interrupted(len(runs), len(jobs))
	case err != nil:
		return nil, err
	}
	return runs, nil
}

// isInterruption reports whether an error leaves finished runs to be shown.
func isInterruption(err error) bool { return exit.Of(err) == exit.Interrupted }
