package conform

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/match"
	"napisim/scenarios/recording/observe"
)

const runs = "../recording/testdata/runs"

func load(t *testing.T, id string) *recording.Recording {
	t.Helper()
	r, err := recording.Load(filepath.Join(runs, id))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Recordings without a NIC, and of a sender in user space: every interrupt, raise, pass
// and poll is that of the recording.
func TestVirtualDevicesMatch(t *testing.T) {
	for id, items := range map[string]int{
		"k61-backlog-burst64":            30,
		"k61-backlog-burst1200":          144,
		"k61-backlog-burst300-budget100": 45,
		"k61-veth-napi-burst200":         48,
		"k61-veth-udp":                   3000,
		"k61-veth-tcp":                   126,
		"k61-tap-udp":                    0,
		"k612-backlog-burst64":           30,
		"k612-backlog-burst300-w16":      162,
		"k612-veth-napi-burst200":        48,
		"k612-e1000e-udp5k":              9990,
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			m := Compare(load(t, id))
			if m.Match.Match != match.Full || m.Equal != items || m.Simulated != items {
				t.Errorf("%s, %d of %d items equal, want all %d: %s %+v", m.Match.Match, m.Equal, m.Compared, items, m.Reason, m.FirstDivergence)
			}
		})
	}
}

// simulated returns what the machine of a recording does after a change.
func simulated(t *testing.T, id string, change func(*recording.Recording)) *observe.Observation {
	t.Helper()
	r := load(t, id)
	recorded := observe.Of(r)
	change(r)
	o, _, err := simulate(r, recorded)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// keys returns the items of some kinds without their times and who ran them.
func keys(o *observe.Observation, kinds ...string) []string {
	var all []string
	for _, i := range o.Items {
		if slices.Contains(kinds, i.Kind) {
			all = append(all, i.Key())
		}
	}
	return all
}

// Fact 3: netdev_max_backlog keeps one packet more than it says, and every full poll is
// followed by another one.
func TestFact03Backlog(t *testing.T) {
	for limit, polls := range map[int][]int{
		0: {1}, 63: {64, 0}, 64: {64, 1}, 199: {64, 64, 64, 8},
		299: {64, 64, 64, 64, 44}, 1000: {64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 41},
	} {
		o := simulated(t, "k61-backlog-burst1200", func(r *recording.Recording) {
			r.Sysctls["net.core.netdev_max_backlog"] = fmt.Sprint(limit)
		})
		want := []string{}
		for range 3 { // slots
			for _, work := range polls {
				want = append(want, observe.Item{Kind: observe.Poll, Dev: "(no_device)", Work: work, Budget: 64, Context: "s"}.Key())
			}
		}
		if got := keys(o, observe.Poll); !slices.Equal(got, want) {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
		if got := len(keys(o, observe.Raise)); got != len(want) {
			t.Errorf("limit %d: %d raises for %d polls", limit, got, len(want))
		}
	}
}

// Fact 9: with RPS to the CPU of the interrupt the NAPI of the device feeds the backlog.
// What is scheduled during a pass comes first in the next, so both are polled in each, the
// backlog first; only v6.1 raises for it, in the first pass.
func TestFact09RPSToTheSameCPU(t *testing.T) {
	for id, raises := range map[string]int{"k61-e1000e-burst300": 1, "k612-e1000e-burst300": 0} {
		o := simulated(t, id, func(r *recording.Recording) { r.Devices[1].RPS = []uint64{1} })
		// The last burst: all frames are in the ring at one instant.
		last := 0
		for i, item := range o.Items {
			if item.Kind == observe.IRQ && item.Dev == "nb" && item.Context == "h" && i+30 < len(o.Items) {
				last = i
			}
		}
		want := []string{
			"|", "nb 64", "|", "(no_device) 64", "nb 64", "|", "(no_device) 64", "nb 64", "|", "(no_device) 64", "nb 64",
			"|", "(no_device) 64", "nb 44",
		}
		var got []string
		extra := 0
		for _, item := range o.Items[last:] {
			switch {
			case len(got) == len(want):
			case item.Kind == observe.Pass:
				got = append(got, "|")
			case item.Kind == observe.Poll && item.Dev != "na":
				got = append(got, fmt.Sprint(item.Dev, " ", item.Work))
			case item.Kind == observe.Raise && item.Context == "s" && len(got) > 0 && got[len(got)-1] == "|":
				extra++
			}
		}
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
		if extra != raises {
			t.Errorf("%s: %d raises before the poll that made them, want %d", id, extra, raises)
		}
	}
}

// Facts 15 and 16: what a task sends is polled at its local_bh_enable, one by one: by the
// NAPI of the receiving end where the sender has TSO off, by that of a tap device with
// IFF_NAPI.
func TestFact15And16OneByOne(t *testing.T) {
	vethNAPI := func(r *recording.Recording) {
		r.Devices[0].Features[tso], r.Devices[1].Features[groFeature] = false, true
	}
	vethTSO := func(r *recording.Recording) { r.Devices[1].Features[groFeature] = true }
	for _, c := range []struct {
		id     string
		change func(*recording.Recording)
		dev    string
		polls  int
	}{
		{"k61-veth-udp", vethNAPI, "vb", 1000},
		{"k61-veth-udp", vethTSO, "(no_device)", 1000},
		{"k61-tap-udp", func(r *recording.Recording) { r.Sender.Fields["napi"] = "1" }, "tap0", 600},
	} {
		o := simulated(t, c.id, c.change)
		var want []string
		for range c.polls {
			want = append(
				want,
				observe.Item{Kind: observe.Raise, Context: "p"}.Key(),
				observe.Item{Kind: observe.Pass}.Key(),
				observe.Item{Kind: observe.Poll, Dev: c.dev, Work: 1, Budget: 64, Context: "s"}.Key(),
			)
		}
		if got := keys(o, observe.Raise, observe.Pass, observe.Poll); !slices.Equal(got, want) {
			t.Errorf("%s: %d items, want %d of raise, pass and poll of 1: %q", c.id, len(got), len(want), got[:min(12, len(got))])
		}
	}
}
