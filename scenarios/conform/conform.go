package conform

import (
	"bytes"
	"fmt"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/ftrace"
	"napisim/scenarios/recording/observe"
	"napisim/sim"
	"napisim/sim/trace"
)

// after is how long after the recording's last event the simulation goes on: its clock
// may be late.
const after = 5_000_000

// simulate runs the machine of a recording and returns what happened. What is recorded of
// the sender's beginning is its first interrupt, or the first raise where devices have
// none, so a first run tells how long before that the sender has to begin.
func simulate(r *recording.Recording, recorded *observe.Observation) (*observe.Observation, *trace.Log, error) {
	o, log, err := simulateShifted(r, 0)
	if err != nil {
		return nil, nil, err
	}
	late, ok := lateness(recorded, o)
	if !ok || late == 0 {
		return o, log, nil
	}
	return simulateShifted(r, -late)
}

// lateness returns how long after the recorded one the first interrupt comes; without
// interrupts, the first item.
func lateness(recorded, simulated *observe.Observation) (late int64, ok bool) {
	if len(recorded.Items) == 0 {
		return 0, false
	}
	kind := recorded.Items[0].Kind
	if len(recorded.Stats.DeviceIRQs) > 0 {
		kind = observe.IRQ
	}
	first := func(o *observe.Observation) int64 {
		for _, i := range o.Items {
			if i.Kind == kind {
				return i.At
			}
		}
		return -1
	}
	a, b := first(recorded), first(simulated)
	return b - a, a >= 0 && b >= 0
}

func simulateShifted(r *recording.Recording, shift int64) (*observe.Observation, *trace.Log, error) {
	b, err := build(r, shift)
	if err != nil {
		return nil, nil, err
	}
	defer b.close()
	if err := b.run(b.at(b.in.End + after)); err != nil {
		return nil, nil, err
	}
	o, err := observed(b.log, b.start, r.DeviceOf)
	return o, b.log, err
}

// end ends a simulation.
type end struct{ *bench }

// Fire implements sim.Handler.
func (e end) Fire(uint64) { e.eng.Stop() }

// run simulates until an instant. A fault of the model ends it with an error.
func (b *bench) run(until sim.Time) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the simulation broke: %v", r)
		}
	}()
	b.eng.Schedule(until, phaseMarks, end{b}, 0)
	b.eng.Run()
	return nil
}

// Both returns the two observations of a recording.
func Both(r *recording.Recording) (recorded, simulated *observe.Observation, err error) {
	recorded = observe.Of(r)
	simulated, _, err = simulate(r, recorded)
	return recorded, simulated, err
}

// observed reads the simulation's own trace by the rules for recordings. Instants are
// moved by start, so that they can be held beside those of the recording.
func observed(log *trace.Log, start int64, device func(string) (string, string)) (*observe.Observation, error) {
	events := log.Events()
	var text bytes.Buffer
	if err := trace.WriteText(&text, events); err != nil {
		return nil, err
	}
	read, err := ftrace.ReadAll(&text, "simulation")
	if err != nil {
		return nil, err
	}
	if len(read) != len(events) {
		return nil, fmt.Errorf("%d events written, %d read", len(events), len(read))
	}
	for i := range read { // the text has microseconds only
		read[i].At = start + int64(events[i].At/sim.Nanosecond)
	}
	return observe.Events(read, device), nil
}
