package recording_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/ftrace"
	"napisim/scenarios/recording/observe"
)

// This file shows in the recordings kept here what traces of real kernels have in
// common: the facts that a simulation must reproduce. The numbers are those published
// with the recordings. Fact 18 (RPS between CPUs) needs two CPUs, which no recording
// here has; fact 20 (costs) is with the package that fits them.

// A run is a recording with what was observed in it.
type run struct {
	*recording.Recording
	*observe.Observation
}

// load returns a recording that is kept here.
func load(t *testing.T, id string) run {
	t.Helper()
	r, err := recording.Load(filepath.Join("testdata/runs", id))
	if err != nil {
		t.Fatal(err)
	}
	return run{r, observe.Of(r)}
}

// all calls f for each recording kept here.
func all(t *testing.T, f func(t *testing.T, r run)) {
	t.Helper()
	dirs, err := os.ReadDir("testdata/runs")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		t.Run(d.Name(), func(t *testing.T) { f(t, load(t, d.Name())) })
	}
}

// v61 reports whether the kernel is one without in_net_rx_action.
func (r run) v61() bool { return r.Kernel.Preset == "v6.1" }

// A pass is one execution of net_rx_action.
type pass struct {
	observe.Item
	polls  []observe.Item
	raises []observe.Item // of NET_RX within
}

// passes groups the items of one-CPU recordings.
func (r run) passes() []pass {
	var out []pass
	for _, i := range r.Items {
		n := len(out) - 1
		inside := n >= 0 && (i.At <= out[n].End || out[n].End == 0)
		switch {
		case i.Kind == observe.Pass:
			out = append(out, pass{Item: i})
		case inside && i.Kind == observe.Poll && i.Context == "s":
			out[n].polls = append(out[n].polls, i)
		case inside && i.Kind == observe.Raise:
			out[n].raises = append(out[n].raises, i)
		}
	}
	return out
}

// full reports whether a pass has a full poll.
func (p pass) full() bool {
	return slices.ContainsFunc(p.polls, func(i observe.Item) bool { return i.Work >= i.Budget })
}

// works returns the work of the polls of the receiving device or backlog, in order.
func (r run) works(dev string) []int {
	var out []int
	for _, i := range r.Items {
		if i.Kind == observe.Poll && i.Dev == dev {
			out = append(out, i.Work)
		}
	}
	return out
}

// hist returns a histogram as text: 0x1 64x2.
func hist(h map[int]int) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(h)) {
		out = append(out, fmt.Sprintf("%dx%d", k, h[k]))
	}
	return strings.Join(out, " ")
}

// TestTableOfRuns holds counts against the published table: interrupts of the receiver,
// NET_RX raises by context, passes inline and in ksoftirqd, and polls by work.
func TestTableOfRuns(t *testing.T) {
	for _, c := range []struct {
		id, dev      string
		irqs         int
		raises, runs string
		work         string
		squeeze, drp int64
		in           int // switches to ksoftirqd
	}{
		{"k61-backlog-burst1200", "(no_device)", 0, "0/0/48/0", "3/45", "41x3 64x45", 0, 597, 9},
		{"k61-backlog-burst300-budget100", "(no_device)", 0, "0/0/15/0", "3/12", "44x3 64x12", 0, 0, 8},
		{"k612-backlog-burst300-w16", "(no_device)", 0, "0/0/54/0", "21/33", "12x3 16x50 64x1", 0, 0, 7},
		{"k61-backlog-burst64", "(no_device)", 0, "0/0/10/0", "5/5", "0x5 64x5", 0, 0, 8},
		{"k61-e1000-burst1", "nb", 200, "399/1/0/0", "200/1", "1x200", 0, 0, 5},
		{"k61-e1000-burst1000-nosink-kp", "nb", 4, "6/2/45/0", "15/34", "0x1 40x3 64x45", 0, 0, 23},
		{"k61-e1000-burst300", "nb", 6, "10/2/20/0", "13/13", "0x1 44x5 64x20", 0, 0, 14},
		{"k612-e1000-burst300", "nb", 6, "10/0/20/0", "21/4", "0x1 44x5 64x20", 0, 0, 7},
		{"k61-e1000-burst64", "nb", 11, "19/3/10/0", "18/4", "0x11 64x10", 0, 0, 8},
		{"k61-e1000-burst65", "nb", 11, "20/2/10/0", "17/5", "0x1 1x10 64x10", 0, 0, 8},
		{"k612-e1000-burst8", "nb", 25, "49/1/0/0", "25/1", "8x25", 0, 0, 4},
		{"k61-e1000e-burst1000", "nb", 6, "3/3/45/0", "13/38", "0x3 40x3 64x45", 0, 0, 20},
		{"k612-e1000e-burst1000", "nb", 6, "3/0/45/0", "33/15", "0x3 40x3 64x45", 0, 0, 9},
		{"k61-e1000e-burst300-budget32", "nb", 6, "3/3/15/0", "11/7", "0x3 44x3 64x12", 15, 0, 10},
		{"k612-e1000e-burst300-devweight16", "nb", 6, "3/0/12/0", "11/4", "0x3 44x3 64x12", 0, 0, 8},
		{"k61-veth-udp", "(no_device)", 0, "0/0/0/1000", "1000/0", "1x1000", 0, 0, 4},
		{"k61-veth-napi-burst200", "vb", 0, "0/0/16/0", "4/12", "8x4 64x12", 0, 0, 7},
		{"k612-virtio-burst64", "nb", 10, "20/0/10/0", "15/5", "0x10 64x10", 0, 0, 11},
		{"k612rt-e1000e-burst1000", "nb", 6, "0/0/45/6", "48/3", "0x3 40x3 64x45", 0, 0, 5},
	} {
		r := load(t, c.id)
		s := &r.Stats
		irqs := 0
		for key, n := range s.DeviceIRQs {
			if dev, queue, _ := strings.Cut(key, " "); dev == r.RxDevice() && queue != "tx" {
				irqs += n
			}
		}
		raises := fmt.Sprintf("%d/%d/%d/%d", s.Raises["NET_RX/h"], s.Raises["NET_RX/H"], s.Raises["NET_RX/s"], s.Raises["NET_RX/p"])
		runs := fmt.Sprintf("%d/%d", s.Entries["NET_RX/inline"]+s.Entries["NET_RX/irqthread"], s.Entries["NET_RX/ksoftirqd"])
		work := hist(s.Work[c.dev])
		if irqs != c.irqs || raises != c.raises || runs != c.runs || work != c.work || s.KsoftirqdIn != c.in {
			t.Errorf("%s: %d interrupts, raises %s, runs %s, work %s, ksoftirqd %d; want %+v", c.id, irqs, raises, runs, work, s.KsoftirqdIn, c)
		}
		if n := r.Softnet[0]; n.TimeSqueeze != c.squeeze || n.Dropped != c.drp {
			t.Errorf("%s: %+v", c.id, n)
		}
	}
}

// TestFact01FullNAPIOncePerPass: a NAPI that was full is not polled again in its pass;
// NET_RX is raised from softirq context before the pass ends.
func TestFact01FullNAPIOncePerPass(t *testing.T) {
	all(t, func(t *testing.T, r run) {
		for _, p := range r.passes() {
			full := map[string]bool{}
			for _, i := range p.polls {
				if full[i.Napi] {
					t.Errorf("polled again after a full poll: %v", i)
				}
				full[i.Napi] = full[i.Napi] || i.Work >= i.Budget
			}
			if p.full() && p.End > 0 && (len(p.raises) == 0 || p.raises[len(p.raises)-1].Context != "s") {
				t.Errorf("no raise after a full poll: %v", p.Item)
			}
		}
	})
}

// TestFact02BurstsToPolls: 64 frames are a full poll and one without work, 65 are 64 and 1.
func TestFact02BurstsToPolls(t *testing.T) {
	for id, want := range map[string][]int{
		"k61-e1000-burst1":               {1},
		"k612-e1000-burst8":              {8},
		"k61-e1000-burst64":              {64, 0},
		"k612-e1000-burst64":             {64, 0},
		"k61-e1000-burst300-nomit":       {64, 64, 64, 64, 44},
		"k612-e1000-burst300-nosink-kp":  {64, 64, 64, 64, 44},
		"k61-e1000-burst1000-nosink-kp":  append(slices.Repeat([]int{64}, 15), 40),
		"k612-e1000-burst1000-nosink-kp": append(slices.Repeat([]int{64}, 15), 40),
		"k61-backlog-burst64":            {64, 0},
	} {
		r := load(t, id)
		dev := r.RxDevice()
		if r.Topology == "veth" {
			dev = "(no_device)"
		}
		got := r.works(dev)
		if n := len(want); !slices.Equal(got[:n], want) || !slices.Equal(got[len(got)-n:], want) {
			t.Errorf("%s: %v ... %v, want %v", id, got[:n], got[len(got)-n:], want)
		}
	}
}

// TestFact03Backlog: one raise per burst and one per full poll; the limit keeps one frame
// more than it says; dev_weight acts from the second poll on.
func TestFact03Backlog(t *testing.T) {
	for _, id := range []string{"k61-backlog-burst1200", "k61-backlog-burst300-budget100", "k612-backlog-burst300-w16", "k61-backlog-burst64", "k612-backlog-burst64"} {
		r := load(t, id)
		full := 0
		for _, i := range r.Items {
			if i.Kind == observe.Poll && i.Work >= i.Budget {
				full++
			}
		}
		bursts := r.Offered / r.Rate.Burst
		if got := r.Stats.Raises["NET_RX/s"]; got != bursts+full {
			t.Errorf("%s: %d raises, want %d bursts and %d full polls", id, got, bursts, full)
		}
	}
	r := load(t, "k61-backlog-burst1200")
	limit := r.Sysctl("net.core.netdev_max_backlog", 0)
	if kept := r.Offered - int(r.Softnet[0].Dropped); kept != 3*int(limit+1) {
		t.Errorf("3 bursts kept %d with a limit of %d", kept, limit)
	}
	if w := load(t, "k612-backlog-burst300-w16").works("(no_device)"); w[0] != 64 || w[1] != 16 {
		t.Error(w[:3])
	}
}

// TestFact04SqueezeCountsPassesOverBudget: time_squeeze counts passes whose work reaches
// netdev_budget; the budget does not shorten a poll.
func TestFact04SqueezeCountsPassesOverBudget(t *testing.T) {
	all(t, func(t *testing.T, r run) {
		budget, want := r.Sysctl("net.core.netdev_budget", 300), int64(0)
		for _, p := range r.passes() {
			if int64(p.Work) >= budget {
				want++
			}
		}
		if got := r.Softnet[0].TimeSqueeze; got != want {
			t.Errorf("%d squeezes, %d passes with work from %d", got, want, budget)
		}
	})
	if n := load(t, "k61-e1000e-burst300-budget32").Stats.Work["nb"][64]; n != 12 {
		t.Errorf("%d polls of 64 with a budget of 32, want 12", n)
	}
}

// invocations returns how many NET_RX passes each run of the softirq loop had.
func invocations(r run, ksoftirqd bool) []int {
	var out []int
	var last, irq, entered int64
	comm := ""
	for i := range r.Events {
		e := &r.Events[i]
		switch e.Name {
		case "irq_handler_entry":
			entered = e.At
		case "irq_handler_exit":
			irq += e.At - entered + 1500
		case "softirq_entry":
			gap := int64(1500)
			if strings.HasPrefix(e.Comm, "ksoftirqd") {
				gap = 700
			}
			if last == 0 || e.At-last > gap+irq || e.Comm != comm {
				out = append(out, 0)
			}
			comm, irq = e.Comm, 0
			if strings.HasPrefix(comm, "ksoftirqd") == ksoftirqd && e.Vec() == 3 {
				out[len(out)-1]++
			}
		case "softirq_exit":
			last = e.At
		}
	}
	return out
}

// TestFact05RestartLimit: the loop runs at most 10 times; without a reader to wake it
// goes on until the jiffy turns: 9 passes of 64 frames.
func TestFact05RestartLimit(t *testing.T) {
	all(t, func(t *testing.T, r run) {
		for _, who := range []bool{false, true} {
			if n := slices.Max(append(invocations(r, who), 0)); n > 10 {
				t.Errorf("%d passes in one invocation", n)
			}
		}
	})
	if n := slices.Max(invocations(load(t, "k61-e1000-burst1000-nosink-kp"), false)); n != 9 {
		t.Errorf("%d passes until the tick, want 9", n)
	}
}

// TestFact06NeedReschedIsTheWayIntoKsoftirqd: where the loop stops with NET_RX pending,
// the passes end with the wish to reschedule far more often than for another reason.
func TestFact06NeedReschedIsTheWayIntoKsoftirqd(t *testing.T) {
	asked, other := 0, 0
	all(t, func(_ *testing.T, r run) {
		pending := false
		var exit *ftrace.Event
		for i := range r.Events {
			e := &r.Events[i]
			switch {
			case e.Name == "softirq_raise" && e.Vec() == 3:
				pending = true
			case e.Name == "softirq_entry" && e.Vec() == 3:
				pending = false
			case e.Name == "softirq_exit":
				exit = e
			}
			w, ok := e.Wakeup()
			if !ok || !strings.HasPrefix(w.Comm, "ksoftirqd") || !pending || exit == nil || e.At-exit.At > 4000 {
				continue
			}
			if exit.Flags.NeedResched {
				asked++
			} else {
				other++
			}
		}
	})
	if asked < 20*other || asked == 0 {
		t.Errorf("%d by need_resched, %d otherwise", asked, other)
	}
}

// TestFact07KsoftirqdHasPriorityBefore612: NET_RX raised by a hardirq in a task while
// ksoftirqd is runnable waits for it on 6.1 and runs at irq exit on 6.12.
func TestFact07KsoftirqdHasPriorityBefore612(t *testing.T) {
	waited, ran := map[bool]int{}, map[bool]int{}
	all(t, func(_ *testing.T, r run) {
		if r.Kernel.RT || r.EventNames["sched_wakeup"] == 0 {
			return
		}
		runnable, pending, who := false, false, ""
		for i := range r.Events {
			e := &r.Events[i]
			switch e.Name {
			case "softirq_raise":
				pending = e.Vec() == 3 && e.Flags.Context == 'h' && e.Flags.IRQsOff && !e.Flags.BHOff && runnable && !strings.HasPrefix(e.Comm, "ksoftirqd") || pending && e.Vec() != 3
				who = e.Comm
			case "softirq_entry":
				if pending && e.Comm == who {
					ran[r.v61()]++
				} else if pending {
					waited[r.v61()]++
				}
				pending = false
			case "sched_wakeup":
				if w, _ := e.Wakeup(); strings.HasPrefix(w.Comm, "ksoftirqd") {
					runnable = true
				}
			case "sched_switch":
				if pending {
					waited[r.v61()]++
				}
				pending = false
				s, _ := e.Switch()
				if strings.HasPrefix(s.PrevComm, "ksoftirqd") {
					runnable = s.PrevState != "S"
				}
				if strings.HasPrefix(s.NextComm, "ksoftirqd") {
					runnable = true
				}
			}
		}
	})
	if waited[true] == 0 || ran[true] != 0 || ran[false] == 0 || waited[false] != 0 {
		t.Errorf("6.1: %d waited, %d ran; 6.12: %d waited, %d ran", waited[true], ran[true], waited[false], ran[false])
	}
}
