package observe

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/ftrace"
)

// TestSequence reads a burst of 65 with an interrupt of the sender's device within.
func TestSequence(t *testing.T) {
	const text = ` pg-5 [000] D.h1. 10: irq_handler_entry: irq=29 name=nb-rx-0
 pg-5 [000] D.h1. 11: softirq_raise: vec=3 [action=NET_RX]
 pg-5 [000] D.h1. 12: irq_handler_exit: irq=29 ret=handled
 pg-5 [000] ..s1. 20: softirq_entry: vec=3 [action=NET_RX]
 pg-5 [000] d.H1. 21: irq_handler_entry: irq=7 name=disk
 pg-5 [000] d.H1. 23: irq_handler_exit: irq=7 ret=handled
 pg-5 [000] ..s1. 30: napi_poll: napi poll on napi struct 1 for device nb work 64 budget 64
 pg-5 [000] d.s1. 31: softirq_raise: vec=3 [action=NET_RX]
 pg-5 [000] ..s1. 32: softirq_exit: vec=3 [action=NET_RX]
 ksoftirqd/0-14 [000] ..s.. 40: softirq_entry: vec=3 [action=NET_RX]
 ksoftirqd/0-14 [000] ..s.. 50: napi_poll: napi poll on napi struct 1 for device nb work 1 budget 64
 nt-9 [000] b..1. 60: napi_poll: napi poll on napi struct 1 for device nb work 0 budget 8
`
	events, err := ftrace.ReadAll(strings.NewReader(text), "t")
	if err != nil {
		t.Fatal(err)
	}
	o := Events(events, func(name string) (string, string) {
		if dev, queue, ok := strings.Cut(name, "-"); ok {
			return dev, queue[:2]
		}
		return "", ""
	})
	want := []Item{
		{At: 10, Kind: IRQ, Dev: "nb", Queue: "rx", Context: "h"},
		{At: 11, Kind: Raise, Context: "h"},
		{At: 20, Kind: Pass, Who: Inline, Work: 64, End: 32},
		{At: 30, Kind: Poll, Dev: "nb", Work: 64, Budget: 64, Context: "s", Who: Inline, Napi: "1"},
		{At: 31, Kind: Raise, Context: "s"},
		{At: 40, Kind: Pass, Who: Ksoftirqd, Work: 1},
		{At: 50, Kind: Poll, Dev: "nb", Work: 1, Budget: 64, Context: "s", Who: Ksoftirqd, Napi: "1"},
		{At: 60, Kind: Poll, Dev: "nb", Budget: 8, Context: "p", Who: Task, Napi: "1"},
	}
	if d := cmp.Diff(want, o.Items); d != "" {
		t.Error(d)
	}
	if s := o.Stats; s.IRQsInPasses != 1 || s.PassTime[0] != 12-2 || s.MaxWorkPerPass != 64 || s.Frames("nb") != 65 {
		t.Errorf("%+v", s)
	}
}

// sharedRuns finds recordings that are too many to keep with the code.
func sharedRuns(t *testing.T) []string {
	t.Helper()
	for up := "../../../.."; len(up) < 30; up += "/.." {
		if runs, _ := filepath.Glob(filepath.Join(up, "shared/traces/runs/*/analysis.json")); len(runs) > 0 {
			return runs
		}
	}
	t.Skip("no shared recordings")
	return nil
}

// analysis is what another program counted in a recording.
type analysis struct {
	IRQs, Polls, Kfree, Kprobes map[string]int
	Raises, Entries             map[string]int
	WorkHist                    map[string]map[string]int `json:"work_hist"`
	PollsByCtx                  map[string]map[string]int `json:"polls_by_ctx"`
	GRO                         map[string]map[string]int
	Received                    map[string]int `json:"netif_receive_skb"`
	NetifRX                     map[string]int `json:"netif_rx"`
	Xmit                        map[string]int `json:"net_dev_xmit"`
	Passes, Switches            int
	PollsPerPass                map[string]int   `json:"polls_per_pass"`
	MaxWork                     int              `json:"max_work_per_pass"`
	InRX                        int              `json:"hardirqs_during_net_rx"`
	Wakeups                     int              `json:"ksoftirqd_wakeups"`
	SwitchIn                    int              `json:"ksoftirqd_switch_in"`
	ThreadIn                    int              `json:"napi_thread_switch_in"`
	IRQMean                     map[string]int64 `json:"irq_mean_ns"`
}

// TestCountsOfAllRuns: the counts are those of another program, for every recording.
func TestCountsOfAllRuns(t *testing.T) {
	for _, file := range sharedRuns(t) {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			r, err := recording.Load(filepath.Dir(file))
			if err != nil {
				t.Fatal(err)
			}
			var want analysis
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, counted(&Of(r).Stats), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}

// counted puts our counts into the other program's words.
func counted(s *Stats) analysis {
	a := analysis{
		IRQs: s.IRQs, Kfree: s.Freed, NetifRX: s.NetifRX, Xmit: s.Xmit, GRO: s.GRO, MaxWork: s.MaxWorkPerPass,
		InRX: s.IRQsInPasses, Wakeups: s.KsoftirqdWakeups, SwitchIn: s.KsoftirqdIn, ThreadIn: s.ThreadIn, Switches: s.Switches,
		Polls: map[string]int{}, Kprobes: map[string]int{}, Raises: map[string]int{}, Entries: map[string]int{}, PollsPerPass: map[string]int{},
		WorkHist: map[string]map[string]int{}, PollsByCtx: map[string]map[string]int{}, Received: map[string]int{}, IRQMean: map[string]int64{},
		Passes: Sum(s.PollsPerPass),
	}
	for key, n := range s.Raises {
		name, context, _ := strings.Cut(key, "/")
		if strings.HasPrefix(name, "NET_") {
			a.Raises[name+"/"+map[string]string{"h": "hardirq", "H": "hardirq-in-softirq", "s": "softirq", "p": "process"}[context]] += n
		}
	}
	for key, n := range s.Entries {
		name, by, _ := strings.Cut(key, "/")
		if by != Ksoftirqd {
			by = Inline
		}
		if strings.HasPrefix(name, "NET_") {
			a.Entries[name+"/"+by] += n
		}
	}
	for dev, h := range s.Work {
		a.Polls[dev] = Sum(h)
		for w, n := range h {
			bump(a.WorkHist, dev, strconv.Itoa(w))
			a.WorkHist[dev][strconv.Itoa(w)] = n
		}
	}
	for dev, h := range s.PollsBy {
		a.PollsByCtx[dev] = map[string]int{}
		for by, n := range h {
			name := map[string]string{Ksoftirqd: "ksoftirqd", Thread: "napi-thread"}[by]
			if name == "" {
				name = "inline"
			}
			a.PollsByCtx[dev][name] += n
		}
	}
	for dev, h := range s.Delivered {
		a.Received[dev] = Sum(h)
	}
	for n, c := range s.PollsPerPass {
		a.PollsPerPass[strconv.Itoa(n)] = c
	}
	for name, n := range s.Other {
		for _, p := range []string{"napi_", "net_rx", "busy", "process_b"} {
			if strings.HasPrefix(name, p) {
				a.Kprobes[name] = n
			}
		}
	}
	for name, all := range s.IRQTime {
		sum := int64(0)
		for _, d := range all {
			sum += d
		}
		n := int64(len(all))
		mean := sum / n
		if r := 2 * (sum % n); r > n || r == n && mean%2 == 1 { // round half to even
			mean++
		}
		a.IRQMean[name] = mean
	}
	return a
}
