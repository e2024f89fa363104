package scenarios

import (
	"errors"
	"fmt"

	"napisim/scenarios/spec"
	"napisim/sim"

	"napisim/reports/result"
)

// ErrInterrupted is returned for a run that was ended by its Progress function.
var ErrInterrupted = errors.New("interrupted")

// A ModelError is a broken invariant: a bug of the model, not of the scenario.
type ModelError struct {
	// Seed is the seed of the run, which with the scenario reproduces it.
	Seed uint64
	Err  error
}

// Error says what is broken and how to see it again.
func (e *ModelError) Error() string {
	return fmt.Sprintf("broken invariant of the model, please report it with the scenario and seed %d: %v", e.Seed, e.Err)
}

// Unwrap returns what is broken.
func (e *ModelError) Unwrap() error { return e.Err }

// Run builds the scenario for one seed, runs it, checks its books and returns its
// result. The scenario must be resolved.
func Run(s *spec.Scenario, seed uint64, o Options) (result.Run, error) {
	sys, err := Build(s, seed, o)
	if err != nil {
		return result.Run{}, err
	}
	defer sys.Close()
	if err := sys.Run(o); err != nil {
		return result.Run{}, err
	}
	return sys.Result()
}

// progressEvery bounds the simulated time between two calls of Progress, so that a
// long run can be interrupted within a second or so.
const progressEvery = 10 * sim.Millisecond

// mark is an event of the run itself: the end of the warm-up, of the run, or a
// moment to tell how far it has come.
type mark struct {
	sys      *System
	every    sim.Time
	progress func(sim.Time) bool
	stopped  bool
}

// The cut and the end come in two steps: cores of an eager run are first brought to
// where those of a lazy run are, so that both read the same numbers.
const (
	markAlignCut = iota
	markAlignEnd
	markCut
	markEnd
	markProgress
)

// Fire implements sim.Handler.
func (m *mark) Fire(arg uint64) {
	eng := m.sys.eng
	switch arg {
	case markAlignCut, markAlignEnd:
		for _, c := range m.sys.machine.Cores {
			c.Align()
		}
		eng.Schedule(eng.Now(), phaseMarks, m, arg+markCut)
	case markCut:
		m.sys.cut()
	case markEnd:
		m.sys.settle()
		eng.Stop()
	case markProgress:
		if !m.progress(eng.Now()) {
			m.stopped = true
			eng.Stop()
			return
		}
		eng.Schedule(eng.Now()+m.every, phaseMarks, m, markProgress)
	}
}

// Run runs the system to the end of the scenario and checks its books.
func (sys *System) Run(o Options) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = sys.broken(r)
		}
	}()
	end := sim.Time(sys.scenario.Duration)
	m := &mark{sys: sys, progress: o.Progress, every: min(max(end/100, 1), progressEvery)}
	if warmup := sim.Time(sys.scenario.Warmup); warmup > 0 {
		sys.eng.Schedule(warmup, phaseMarks, m, markAlignCut)
	}
	sys.eng.Schedule(end, phaseMarks, m, markAlignEnd)
	if o.Progress != nil {
		sys.eng.Schedule(m.every, phaseMarks, m, markProgress)
	}
	sys.eng.Run()
	if m.stopped {
		return ErrInterrupted
	}
	if err := sys.Check(); err != nil {
		return &ModelError{Seed: sys.seed, Err: err}
	}
	return nil
}

// broken turns a panic of the model into an error. What is no Fault comes from
// outside a coroutine and has its place and time from the engine.
func (sys *System) broken(r any) error {
	fault, ok := r.(*sim.Fault)
	if !ok {
		fault = &sim.Fault{Component: "engine", At: sys.eng.Now(), Value: r}
	}
	return &ModelError{Seed: sys.seed, Err: fault}
}
