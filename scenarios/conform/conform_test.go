package conform

import (
	"os"
	"testing"

	"napisim/scenarios/recording/match"
)

// partial are the trimmed recordings that are not reproduced in full, with the items that
// are equal at least, and whether their numbers are within the tolerance. It may become more
// and fewer. differences.yaml says why.
var partial = map[string]struct {
	equal  int
	within bool
}{
	"k61-e1000-cost":            {1045, true},
	"k61-e1000-udp50k-itr":      {2440, true},
	"k61-e1000e-defer-20000-2":  {730, true},
	"k61-e1000e-satburst64-hog": {1100, true},
	"k61-e1000e-tcp-gro":        {460, false},
	"k61-e1000e-tcprr1-itr":     {2060, false},
	"k61-veth-tcp-notso-gro":    {150, false},
	"k61-virtio-tcp-gro":        {520, true},
	"k612-e1000-defer-20000-2":  {720, true},
	"k612-e1000-tcp-gro-nomit":  {440, true},
	"k612-e1000e-cost":          {1580, true},
	"k612-e1000e-defer-20000-2": {560, true},
	"k612-e1000e-tcp-gro":       {300, false},
	"k612-e1000e-tcprr1-busy50": {7200, false},
	"k612-e1000e-udp50k-itr":    {1500, true},
	"k612-veth-tcp":             {120, true},
}

// TestRecordings simulates every recording kept with the code: all of its interrupts,
// raises, passes and polls are equal, or its difference is a known one.
func TestRecordings(t *testing.T) {
	entries, err := os.ReadDir(runs)
	if err != nil || len(entries) < 60 {
		t.Fatalf("%d recordings, %v", len(entries), err)
	}
	for _, e := range entries {
		id := e.Name()
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			got := Compare(load(t, id))
			if got.Reason != "" {
				t.Fatal(got.Reason)
			}
			p, ok := partial[id]
			switch {
			case !ok && got.Match.Match != match.Full:
				t.Errorf("%s, %d of %d items: %+v", got.Match.Match, got.Equal, got.Compared, got.FirstDivergence)
			case ok && (got.Equal < p.equal || p.within && !got.Within):
				t.Errorf("%s, %d of %d items, within tolerance %v; want %d, %v", got.Match.Match, got.Equal, got.Compared, got.Within, p.equal, p.within)
			}
			why, err := known(id)
			if err != nil || ok && why == "" {
				t.Errorf("no reason for the difference, %v", err)
			}
		})
	}
}

// TestSummary counts by hand: two recordings of bursts, one of numbers.
func TestSummary(t *testing.T) {
	all := make([]Result, 3)
	all[0].Kind, all[0].Match.Match = "burst", match.Full
	all[1].Kind, all[1].Match.Match = "burst", match.Partial
	all[2].Kind, all[2].Match.Match, all[2].Within = "saturation", match.None, true
	all[2].Quantities = make([]match.Quantity, 1)
	want := Summary{Recordings: 3, Full: 1, Partial: 1, None: 1, Bursts: 2, BurstsFull: 1, Numbers: 1, NumbersWithin: 1}
	if got := Summarize(all); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
