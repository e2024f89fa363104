package scenarios

import (
	"errors"
	"fmt"
	"sync"

	"napisim/reports/result"
	"napisim/scenarios/spec"
)

// A Job is one run of a batch: a variant of the scenario with a seed.
type Job struct {
	Scenario *spec.Scenario
	Variant  string
	Seed     uint64
}

// Jobs returns one job for each seed of each variant, variants outside. All
// variants get the same seeds, and so meet the same traffic.
func Jobs(variants []*spec.Scenario, labels []string, runs int) []Job {
	var jobs []Job
	for i, s := range variants {
		for n := range runs {
			jobs = append(jobs, Job{Scenario: s, Variant: labels[i], Seed: s.Seed + uint64(n)})
		}
	}
	return jobs
}

// Batch is how a list of jobs is executed.
type Batch struct {
	// Parallel is the number of runs at a time; each has one goroutine.
	Parallel int
	// Observe returns the options of job i, such as its progress function; nil
	// means the zero Options.
	Observe func(i int) Options
}

// RunAll runs every job and returns the results in the order of the jobs, whatever
// the order in which they ended. After the first failure no further job starts. If
// runs were interrupted the finished ones are returned beside ErrInterrupted.
func (b Batch) RunAll(jobs []Job) ([]result.Run, error) {
	var (
		mu     sync.Mutex
		wg     sync.WaitGroup
		next   int
		runs   = make([]*result.Run, len(jobs))
		faults = make([]error, len(jobs))
		failed bool
	)
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		if failed || next == len(jobs) {
			return -1
		}
		next++
		return next - 1
	}
	for range max(1, min(b.Parallel, len(jobs))) {
		wg.Go(func() {
			for i := take(); i >= 0; i = take() {
				run, err := b.run(i, jobs[i])
				mu.Lock()
				if err != nil {
					faults[i], failed = err, true
				} else {
					runs[i] = &run
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	var finished []result.Run
	for _, r := range runs {
		if r != nil {
			finished = append(finished, *r)
		}
	}
	return finished, firstFault(faults)
}

func (b Batch) run(i int, j Job) (result.Run, error) {
	var o Options
	if b.Observe != nil {
		o = b.Observe(i)
	}
	run, err := contained(j, o)
	run.Variant = j.Variant
	return run, err
}

// contained turns a panic outside of the run itself, while it is put together or
// read out, into an error: in this goroutine nobody else could.
func contained(j Job, o Options) (run result.Run, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &ModelError{Seed: j.Seed, Err: fmt.Errorf("%v", r)}
		}
	}()
	return Run(j.Scenario, j.Seed, o)
}

// firstFault prefers a real fault to an interruption.
func firstFault(faults []error) error {
	var interrupted error
	for _, err := range faults {
		switch {
		case err == nil:
		case errors.Is(err, ErrInterrupted):
			interrupted = err
		default:
			return err
		}
	}
	return interrupted
}
