package conform

import (
	"bytes"
	"fmt"

	"napisim/scenarios/recording/ftrace"
	"napisim/scenarios/recording/observe"
	"napisim/sim"
	"napisim/sim/trace"
)

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
