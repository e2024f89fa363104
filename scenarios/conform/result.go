package conform

import (
	"fmt"
	"path/filepath"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/input"
	"napisim/scenarios/recording/match"
	"napisim/scenarios/recording/observe"
)

// A Result is the comparison of one recording.
type Result struct {
	match.Match
	// Kernel is the preset that was simulated, Costs the recordings that its costs come from.
	Kernel string   `json:"kernel"`
	Costs  []string `json:"costs,omitempty"`
	// Reason says why the recording was not simulated, "" if it was.
	Reason string `json:"reason,omitempty"`
}

// File compares the recording at a path. With a directory for inputs it writes there what
// went into the simulation, in ID.input.yaml. The error says why the recording cannot be
// read; one that can be read and not simulated is a Result with a Reason.
func File(path, inputs string) (Result, error) {
	r, err := recording.Load(path)
	if err != nil {
		return Result{}, err
	}
	if inputs != "" {
		if err := input.Of(r).Write(filepath.Join(inputs, r.ID+".input.yaml")); err != nil {
			return Result{}, err
		}
	}
	return Compare(r), nil
}

// Compare simulates what a recording shows and compares the two.
func Compare(r *recording.Recording) Result {
	recorded := observe.Of(r)
	out := Result{Kernel: r.Kernel.Preset}
	out.ID, out.Kind, out.Match.Match = r.ID, r.Kind(), match.None
	out.Compared, out.Recorded = len(recorded.Items), len(recorded.Items)
	if len(recorded.Items) == 0 {
		out.Reason = "nothing to compare: the trace has no interrupt of a network device, no pass and no poll"
		return out
	}
	simulated, err := simulate(r, recorded)
	if err != nil {
		out.Reason = err.Error()
		return out
	}
	out.Match = match.Compare(r.ID, r.Kind(), recorded, simulated)
	if p, err := pricesOf(r); err == nil {
		out.Costs = p.from
	}
	return out
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
	return fmt.Sprintf("%d recordings: %d full, %d partial, %d none; of %d of bursts %d full; of %d compared by numbers %d within %d %%",
		s.Recordings, s.Full, s.Partial, s.None, s.Bursts, s.BurstsFull, s.Numbers, s.NumbersWithin, int(100*match.Tolerance))
}
