package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"napisim/model/unit"
	"napisim/scenarios"
	"napisim/scenarios/faults"
	"napisim/scenarios/spec"
	"napisim/sim"
	"napisim/sim/trace"
)

// Bounds of the number of events that a trace keeps.
const (
	defaultEvents = 100_000
	maxEvents     = 20_000_000
)

// A window is the part of a run to be traced.
type window struct {
	from, to instant
	points   []string
	limit    number
}

func (a *app) traceCommand() *cobra.Command {
	var r request
	w := window{limit: number{value: defaultEvents, min: 1, max: maxEvents}}
	cmd := &cobra.Command{
		Use:   "trace SCENARIO",
		Short: "Print what happens in a window of a run as ftrace does",
		Long: "Print what happens in a window of a run, in the format of the kernel's trace file and\n" +
			"with the names of its tracepoints. The run ends with the window.",
		Example: "  napisim trace quickstart --from 20ms --to 20.5ms\n" +
			"  napisim trace quickstart --to 5ms --points irq_handler_entry,napi_poll",
		Args:              arguments(1, 1, "a SCENARIO: a name of the library, a file, or - for standard input"),
		ValidArgsFunction: a.completeScenario,
	}
	r.flags(a, cmd)
	cmd.Flags().Var(&w.from, "from", "the start of the window")
	cmd.Flags().Var(&w.to, "to", "the end of the window (default: the end of the run)")
	cmd.Flags().StringSliceVar(&w.points, "points", nil, "the `NAMES` of the tracepoints to show, separated by commas (default: all, see napisim list points)")
	cmd.Flags().Var(&w.limit, "limit", "the number of events to keep; those after them are counted")
	cmd.Flags().Lookup("to").DefValue = ""
	complete(cmd, "points", completePoints)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r.parsed(cmd, args[0])
		if err := r.oneKernel(cmd); err != nil {
			return err
		}
		points, err := w.parsePoints(cmd)
		if err != nil {
			return err
		}
		s, err := a.resolve(r.name, r.settings())
		if err != nil {
			return err
		}
		if err := w.fit(cmd, s); err != nil {
			return err
		}
		if _, err := estimate(r.name, s); err != nil { // of what is left of the run
			return err
		}
		a.noteOverrides(r.settings(), s, map[string]bool{})
		return a.trace(s, &w, points)
	}
	return cmd
}

// parsePoints returns the points that were asked for; none stands for all.
func (w *window) parsePoints(cmd *cobra.Command) ([]trace.Point, error) {
	var points []trace.Point
	for _, name := range w.points {
		name = strings.TrimSpace(name)
		p, err := trace.ParsePoint(name)
		if err == nil && !slices.Contains(scenarios.TracePoints(), p) {
			err = fmt.Errorf("nothing in the model passes the tracepoint %s yet", name)
		}
		if err != nil {
			return nil, usage(cmd, "%v%s", err, suggestion(faults.Nearest(name, pointNames()), ""))
		}
		points = append(points, p)
	}
	return points, nil
}

// fit checks the window against the scenario, and cuts the run off at its end: a model
// does not know how long it will run.
func (w *window) fit(cmd *cobra.Command, s *spec.Scenario) error {
	if !cmd.Flags().Changed("to") {
		w.to = instant(s.Duration)
	}
	from, to := unit.Duration(w.from), unit.Duration(w.to)
	switch {
	case from >= s.Duration:
		return usage(cmd, "--from %v: the run ends at %v", from, s.Duration)
	case from >= to:
		return usage(cmd, "the window is empty: --from %v is not before --to %v", from, to)
	}
	s.Duration = min(s.Duration, to)
	s.Warmup = min(s.Warmup, s.Duration) // what is cut off is not traced anyway
	return nil
}

// trace runs the scenario and prints the window. After an interruption it prints what
// there is.
func (a *app) trace(s *spec.Scenario, w *window, points []trace.Point) error {
	log := trace.NewLog(sim.Time(w.from), sim.Time(w.to), int(w.limit.value))
	if len(points) > 0 {
		log.Select(points...)
	}
	m := newMeter(1)
	options := scenarios.Options{Trace: log, Progress: a.observe(m, 0, s.Duration)}
	sys, err := scenarios.Build(s, s.Seed, options)
	if err != nil {
		return err
	}
	defer sys.Close()
	stop := a.watch(m)
	err = sys.Run(options)
	stop()
	if err != nil && !errors.Is(err, scenarios.ErrInterrupted) {
		return err
	}
	events := log.Events()
	if len(events) == 0 {
		a.say("note: there is no such event between %v and %v", unit.Duration(w.from), unit.Duration(w.to))
	}
	var lost int64
	for _, e := range events {
		if e.Point == trace.Lost {
			lost += e.A
		}
	}
	if lost > 0 {
		a.say("note: %d more events did not fit; a smaller window, --points or a larger --limit shows them", lost)
	}
	if werr := trace.WriteText(&a.out, events); werr != nil {
		return werr
	}
	if err != nil {
		return fmt.Errorf("%w: the trace ends early", err)
	}
	return nil
}
