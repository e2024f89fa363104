package conform

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/cost"
	"napisim/scenarios/recording/input"
	"napisim/scenarios/recording/match"
	"napisim/scenarios/recording/observe"
	"napisim/sim/trace"
)

// A Result is the comparison of one recording.
type Result struct {
	match.Match
	// Kernel is the preset that was simulated, Costs the recordings that its costs come from.
	Kernel string   `json:"kernel"`
	Costs  []string `json:"costs,omitempty"`
	// Reason says why the recording was not simulated, "" if it was.
	Reason string `json:"reason,omitempty"`
	// Known says why the recording is not matched in full, where that is known.
	Known string `json:"known,omitempty"`
}

//go:embed differences.yaml
var differencesYAML []byte

// known returns why the recording of a name is not matched in full, "" if that is not known.
func known(id string) (string, error) {
	var all []struct {
		IDs    []string `yaml:"ids"` // patterns of path.Match
		Reason string   `yaml:"reason"`
	}
	if err := yaml.Unmarshal(differencesYAML, &all); err != nil {
		return "", fmt.Errorf("differences.yaml: %w", err)
	}
	for _, d := range all {
		for _, pattern := range d.IDs {
			if ok, err := path.Match(pattern, id); err != nil {
				return "", fmt.Errorf("differences.yaml: %s: %w", pattern, err)
			} else if ok {
				return strings.TrimSpace(d.Reason), nil
			}
		}
	}
	return "", nil
}

// Options are what is written beside the results; empty writes nothing.
type Options struct {
	// Inputs is the directory for what went into each simulation, in ID.input.yaml.
	Inputs string
	// Costs is the directory for what each step cost on the recorded machine, with the lines
	// of the trace that say so, in ID.costs.json. They are what costs.yaml is made of.
	Costs string
	// Traces is the directory for what each simulation would have been recorded as, in
	// ID.trace.txt. Its clock starts with the simulation and has microseconds.
	Traces string
}

// File compares the recording at a path. The error says why the recording cannot be
// read; one that can be read and not simulated is a Result with a Reason.
func File(path string, o Options) (Result, error) {
	r, err := recording.Load(path)
	if err != nil {
		return Result{}, err
	}
	if o.Inputs != "" {
		if err := input.Of(r).Write(filepath.Join(o.Inputs, r.ID+".input.yaml")); err != nil {
			return Result{}, err
		}
	}
	if o.Costs != "" {
		if err := writeCosts(filepath.Join(o.Costs, r.ID+".costs.json"), r); err != nil {
			return Result{}, err
		}
	}
	out, log := compare(r)
	if out.Match.Match != match.Full {
		if out.Known, err = known(r.ID); err != nil {
			return out, err
		}
	}
	if o.Traces != "" && log != nil {
		var text bytes.Buffer
		if err := trace.WriteText(&text, log.Events()); err != nil {
			return out, err
		}
		if err := os.WriteFile(filepath.Join(o.Traces, r.ID+".trace.txt"), text.Bytes(), 0o644); err != nil { //nolint:gosec // a report
			return out, err
		}
	}
	return out, nil
}

// writeCosts writes what the steps of a recording cost there.
func writeCosts(name string, r *recording.Recording) error {
	text, err := json.MarshalIndent(cost.Of(r, input.Of(r)), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644) //nolint:gosec // a report
}

// Compare simulates what a recording shows and compares the two.
func Compare(r *recording.Recording) Result {
	out, _ := compare(r)
	return out
}

// compare is Compare that returns the trace of the simulation as well, nil if there was none.
func compare(r *recording.Recording) (Result, *trace.Log) {
	recorded := observe.Of(r)
	out := Result{Kernel: r.Kernel.Preset}
	out.ID, out.Kind, out.Match.Match = r.ID, r.Kind(), match.None
	out.Compared, out.Recorded = len(recorded.Items), len(recorded.Items)
	if len(recorded.Items) == 0 && r.EventNames["netif_receive_skb"] == 0 {
		out.Reason = "nothing to compare: the trace has no interrupt of a network device, no pass and no poll, and no packet is received"
		return out, nil
	}
	simulated, log, err := simulate(r, recorded)
	if err != nil {
		out.Reason = err.Error()
		return out, nil
	}
	out.Match = match.Compare(r.ID, r.Kind(), recorded, simulated)
	if out.Compared == 0 && delivers(r, recorded, simulated) {
		out.Match.Match = match.Full // what is received in the writer's own context has no pass
	}
	if p, err := pricesOf(r); err == nil {
		for _, name := range p.from {
			if !slices.Contains(out.Costs, name) {
				out.Costs = append(out.Costs, name)
			}
		}
	}
	return out, log
}

// delivers reports whether as many packets reached the stack as were recorded. A trimmed
// recording has only their number.
func delivers(r *recording.Recording, recorded, simulated *observe.Observation) bool {
	if len(recorded.Stats.Delivered) > 0 {
		return maps.EqualFunc(recorded.Stats.Delivered, simulated.Stats.Delivered, maps.Equal)
	}
	return observe.Sum(simulated.Stats.Delivered[r.RxDevice()]) == r.EventNames["netif_receive_skb"]
}

// A Summary counts results.
type Summary struct {
	Recordings int `json:"recordings"`
	Full       int `json:"full"`
	Partial    int `json:"partial"`
	None       int `json:"none"`
	// Bursts and BurstsFull count the recordings of bursts, in which every step is
	// determined, Numbers and NumbersWithin those that are compared by numbers.
	Bursts        int `json:"bursts"`
	BurstsFull    int `json:"bursts_full"`
	Numbers       int `json:"numbers"`
	NumbersWithin int `json:"numbers_within"`
}

// Summarize counts.
func Summarize(all []Result) Summary {
	s := Summary{Recordings: len(all)}
	for i := range all {
		r := &all[i]
		full := r.Match.Match == match.Full
		switch {
		case full:
			s.Full++
		case r.Match.Match == match.Partial:
			s.Partial++
		default:
			s.None++
		}
		if r.Kind == recording.KindBurst {
			s.Bursts++
			if full {
				s.BurstsFull++
			}
		}
		if len(r.Quantities) > 0 {
			s.Numbers++
			if r.Within {
				s.NumbersWithin++
			}
		}
	}
	return s
}

// String says it in a line.
func (s Summary) String() string {
	noun := "recordings"
	if s.Recordings == 1 {
		noun = "recording"
	}
	text := fmt.Sprintf("%d %s: %d full, %d partial, %d none", s.Recordings, noun, s.Full, s.Partial, s.None)
	if s.Bursts > 0 {
		text += fmt.Sprintf("; of %d of bursts %d full", s.Bursts, s.BurstsFull)
	}
	if s.Numbers > 0 {
		text += fmt.Sprintf("; of %d compared by numbers %d within %d %%", s.Numbers, s.NumbersWithin, int(100*match.Tolerance))
	}
	return text
}
