package recording_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/match"
	"napisim/scenarios/recording/observe"
)

// TestFact08InNetRXAction: on 6.1 an interrupt during a pass raises NET_RX; on 6.12 it
// does not while polls are to come, and a NAPI may be polled twice in a pass.
func TestFact08InNetRXAction(t *testing.T) {
	raised, twice := map[bool]int{}, map[bool]int{}
	all(t, func(_ *testing.T, r run) {
		for _, p := range r.passes() {
			seen := map[string]bool{}
			for _, i := range p.polls {
				if seen[i.Napi] {
					twice[r.v61()]++
				}
				seen[i.Napi] = true
			}
			for _, i := range p.raises {
				// Within 1.5 us of the entry the flag is not set yet.
				if i.Context == "H" && i.At > p.At+1500 && len(p.polls) > 0 && i.At < p.polls[len(p.polls)-1].At {
					raised[r.v61()]++
				}
			}
		}
	})
	// On 6.12 an interrupt after the last completion may come before that poll's line.
	if raised[true] < 50 || raised[false]*50 > raised[true] || twice[true] != 0 || twice[false] < 20 {
		t.Errorf("raises during polls: 6.1 %d, 6.12 %d; polled twice: 6.1 %d, 6.12 %d", raised[true], raised[false], twice[true], twice[false])
	}
}

// TestFact09ScheduledBeforeRepolled: a NAPI scheduled during a pass is polled before one
// that has to be polled again.
func TestFact09ScheduledBeforeRepolled(t *testing.T) {
	right := 0
	all(t, func(t *testing.T, r run) {
		ps := r.passes()
		for k := 1; k < len(ps); k++ {
			before, p := ps[k-1], ps[k]
			repoll := map[string]bool{}
			for _, i := range before.polls {
				if i.Work >= i.Budget {
					repoll[i.Napi] = true
				}
			}
			again := false
			for _, i := range p.polls {
				if repoll[i.Napi] {
					again = true
				} else if again && !slices.ContainsFunc(before.polls, func(j observe.Item) bool { return j.Napi == i.Napi }) && irqBetween(r, before.At, before.End, i.Dev) {
					t.Errorf("%v was scheduled in the pass before and came after the repolled one", i)
				} else if !again && len(repoll) > 0 {
					right++
				}
			}
		}
	})
	if right == 0 {
		t.Error("no pass shows the order")
	}
}

// irqBetween reports whether a device interrupted in a span of time.
func irqBetween(r run, from, to int64, dev string) bool {
	return slices.ContainsFunc(r.Items, func(i observe.Item) bool {
		return i.Kind == observe.IRQ && i.Dev == dev && i.At > from && i.At < to
	})
}

// TestFact10Missed: napi_schedule_prep refuses a scheduled NAPI, and the completion of
// the running poll refuses too.
func TestFact10Missed(t *testing.T) {
	for _, id := range []string{"k61-e1000e-burst65-kp", "k612-e1000e-burst65-kp"} {
		refused := map[string]int{}
		r := load(t, id)
		for i := range r.Events {
			if ret, ok := r.Events[i].Field("ret"); ok && (ret == "0" || ret == "0x0") {
				refused[r.Events[i].Name]++
			}
		}
		if p, c := refused["napi_schedule_prep_ret"], refused["napi_complete_done_ret"]; p == 0 || p != c || r.v61() && p != 2 {
			t.Errorf("%s: prep refused %d times, completion %d", id, p, c)
		}
	}
}

// TestFact11NormalBatch: results NORMAL are handed up in batches of gro_normal_batch,
// also with GRO off.
func TestFact11NormalBatch(t *testing.T) {
	for id, want := range map[string]int{
		"k61-e1000e-burst64-gnb1": 1, "k612-e1000e-burst64-gnb1": 1, "k61-e1000e-burst64-grooff": 8, "k61-e1000e-burst65-kp": 8, "k612-e1000e-burst8": 8,
	} {
		r := load(t, id)
		batches := map[int]int{}
		n := 0
		for i := range r.Events {
			switch r.Events[i].Name {
			case "netif_receive_skb":
				n++
			case "napi_gro_receive_entry", "napi_gro_receive_exit", "napi_poll":
				if n > 0 {
					batches[n]++
				}
				n = 0
			}
		}
		delete(batches, r.Rate.Burst%want) // the rest of a burst, at the end of its poll
		if len(batches) != 1 || batches[want] == 0 {
			t.Errorf("%s: batches %v, want %d", id, batches, want)
		}
		if g := r.Stats.GRO["nb"]; len(g) != 1 || g["NORMAL"] != r.Offered {
			t.Errorf("%s: %v", id, g)
		}
	}
}

// TestFact12GROOfABulkFlow: one HELD per aggregate, the rest merged, NORMAL for what
// has no payload or ends its flow.
func TestFact12GROOfABulkFlow(t *testing.T) {
	for id, want := range map[string]map[string]int{
		"k612-e1000-tcp-gro-nomit": {"HELD": 24, "MERGED": 29, "MERGED_FREE": 669, "NORMAL": 17},
		"k61-veth-tcp-notso-gro":   {"HELD": 43, "MERGED": 25, "MERGED_FREE": 668, "NORMAL": 4},
		"k61-virtio-tcp-gro":       {"HELD": 43, "MERGED": 24, "MERGED_FREE": 668, "NORMAL": 5},
	} {
		r := load(t, id)
		s := &r.Stats
		dev := r.RxDevice()
		got := s.GRO[dev]
		for k, n := range want {
			if got[k] != n {
				t.Errorf("%s: %v, want %v", id, got, want)
				break
			}
		}
		aggregates, segments := observe.Sum(s.Aggregates[dev]), 0
		for size, n := range s.Aggregates[dev] {
			segments += size * n
		}
		if aggregates != want["HELD"] || segments != want["HELD"]+want["MERGED"]+want["MERGED_FREE"] {
			t.Errorf("%s: %d aggregates of %d segments", id, aggregates, segments)
		}
		if n := observe.Sum(s.Delivered[dev]); n != want["HELD"]+want["NORMAL"] {
			t.Errorf("%s: %d packets handed up", id, n)
		}
	}
}

// TestFact13Deferral: with gro_flush_timeout the timer's hardirq raises NET_RX, and few
// interrupts of the device remain for 1000 frames.
func TestFact13Deferral(t *testing.T) {
	for id, most := range map[string]int{"k61-e1000e-defer-20000-2": 6, "k612-e1000-defer-20000-2": 6, "k612-e1000e-defer-20000-2": 27} {
		r := load(t, id)
		dev := r.Devices[len(r.Devices)-1]
		if dev.GROFlushTimeout != 20000 || dev.DeferHardIRQs != 2 {
			t.Errorf("%s: %+v", id, dev)
		}
		fired, raised, open := 0, 0, false
		for i := range r.Events {
			e := &r.Events[i]
			f, _ := e.Field("function")
			switch {
			case e.Name == "hrtimer_expire_entry":
				open = f == "napi_watchdog"
				if open {
					fired++
				}
			case e.Name == "softirq_raise" && open && e.Vec() == 3:
				raised++
			case e.Name == "hrtimer_expire_exit":
				open = false
			}
		}
		irqs := r.Stats.DeviceIRQs["nb rx"] + r.Stats.DeviceIRQs["nb"]
		if irqs > most || fired < 100 || raised == 0 || r.Stats.Work["nb"][0] < 50 {
			t.Errorf("%s: %d interrupts, timer fired %d times and raised %d, %d polls without work", id, irqs, fired, raised, r.Stats.Work["nb"][0])
		}
	}
}

// TestFact14Threaded: the interrupt of a threaded NAPI raises nothing; its thread polls
// without passes.
func TestFact14Threaded(t *testing.T) {
	r := load(t, "k612-e1000e-burst300-threaded")
	s := &r.Stats
	if len(s.PollsBy["nb"]) != 1 || s.PollsBy["nb"][observe.Thread] != 18 || s.Entries["NET_RX/inline"]+s.Entries["NET_RX/ksoftirqd"] != 0 {
		t.Errorf("%v %v", s.PollsBy, s.Entries)
	}
	for name, n := range s.Raises {
		if strings.HasPrefix(name, "NET_RX") {
			t.Errorf("%d raises %s", n, name)
		}
	}
	r = load(t, "k61-e1000-burst300-threaded") // the sender's NAPI is not threaded
	if s := &r.Stats; s.PollsBy["nb"][observe.Thread] != 16 || s.PollsBy["na"][observe.Thread] != 0 {
		t.Errorf("%v", s.PollsBy)
	}
}

// TestFact15Veth: with TSO at the sender the backlog is used and each packet of a task
// is polled at local_bh_enable; without TSO veth's own NAPI is used.
func TestFact15Veth(t *testing.T) {
	r := load(t, "k61-veth-udp")
	if n := r.Stats.Raises["NET_RX/p"]; n != 1000 || r.Stats.Work["(no_device)"][1] != 1000 {
		t.Errorf("%d raises from tasks, work %v", n, r.Stats.Work)
	}
	for _, id := range []string{"k61-veth-tcp", "k612-veth-tcp"} {
		r := load(t, id)
		if !r.Devices[0].Features["tcp-segmentation-offload"] || r.Stats.Work["vb"] != nil || slices.Max(r.works("(no_device)")) > 2 {
			t.Errorf("%s: %v", id, r.Stats.Work)
		}
	}
	r = load(t, "k61-veth-tcp-notso-gro")
	if r.Devices[0].Features["tcp-segmentation-offload"] || r.Stats.Frames("vb") != 740 { // the backlog has the answers of the receiver
		t.Errorf("%v", r.Stats.Work)
	}
}

// TestFact16Tap: a write to a tap without IFF_NAPI is received by the writer, without a
// softirq and without a poll.
func TestFact16Tap(t *testing.T) {
	r := load(t, "k61-tap-udp")
	if len(r.Items) != 0 || observe.Sum(r.Stats.Delivered["tap0"]) != 600 {
		t.Errorf("%d items, %v", len(r.Items), r.Stats.Delivered)
	}
}

// TestFact17BusyPolling: busy polls have a budget of 8 and run in the reader, almost all
// without work; frames are found by softirq polls.
func TestFact17BusyPolling(t *testing.T) {
	r := load(t, "k612-e1000e-tcprr1-busy50")
	s := &r.Stats
	soft, busy := 0, 0
	for _, i := range r.Items {
		switch {
		case i.Kind != observe.Poll || i.Dev != "nb":
		case i.Budget == 8 && i.Who == observe.Task:
			busy += i.Work
		default:
			soft += i.Work
		}
	}
	if s.Budgets["nb"][8] == 0 || s.Budgets["nb"][64] == 0 || busy != 0 || soft != 205 {
		t.Errorf("budgets %v, frames by busy polls %d, by softirqs %d", s.Budgets["nb"], busy, soft)
	}
}

// TestFact19RT: the interrupt only wakes its thread, which raises NET_RX in task context
// and serves it itself.
func TestFact19RT(t *testing.T) {
	r := load(t, "k612rt-e1000e-burst65")
	s := &r.Stats
	if s.Raises["NET_RX/h"]+s.Raises["NET_RX/H"] != 0 || s.Raises["NET_RX/p"] != 20 || s.Entries["NET_RX/irqthread"] != 30 || !r.Kernel.RT {
		t.Errorf("%v %v", s.Raises, s.Entries)
	}
}

// TestTrimmedIsTheSame: a trimmed recording has the sequence of the whole one, if that
// is at hand.
func TestTrimmedIsTheSame(t *testing.T) {
	for up := "../../.."; len(up) < 30; up += "/.." {
		dir := filepath.Join(up, "shared/traces/runs")
		if whole, _ := filepath.Glob(filepath.Join(dir, "*")); len(whole) == 0 {
			continue
		}
		all(t, func(t *testing.T, r run) {
			whole, err := recording.Load(filepath.Join(dir, r.ID))
			if err != nil {
				t.Fatal(err)
			}
			if m := match.Compare(r.ID, r.Kind(), observe.Of(whole), r.Observation); m.Equal != m.Compared || m.Split.Equal != m.Split.Compared || whole.Kind() != r.Kind() {
				t.Errorf("%s %s: %+v", whole.Kind(), r.Kind(), m)
			}
			if n, have := len(whole.Events), len(r.Events); have > n || r.EventNames["netif_receive_skb"] != whole.EventNames["netif_receive_skb"] {
				t.Errorf("%d events of %d", have, n)
			}
		})
		return
	}
	t.Skip("no shared recordings")
}
