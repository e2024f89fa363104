package softirq

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"napisim/sim"
	"napisim/sim/trace"
)

// This file says of each script of testdata, in numbers, what makes it right, so that a
// narrative rewritten by mistake cannot pass. Names begin with the id of the vector, of
// the pitfall (p) or of the regularity of recorded kernels (r).

// vectors holds an assertion for every script.
var vectors = map[string]func(*testing.T, *played){
	"s1_ten_passes_then_ksoftirqd": func(t *testing.T, p *played) {
		before, after := p.cut("sched_wakeup: ksoftirqd/0")
		same(t, "passes", count(before, "softirq_entry: NET_RX"), 10)
		same(t, "polls of 64", count(before, "napi_poll: eth0 work 64"), 640/64)
		same(t, "raises that are still pending", count(before, "softirq_raise: NET_RX")-10, 1)
		same(t, "time_squeeze", p.stats.TimeSqueeze, 0)
		same(t, "wakeups of ksoftirqd", p.stats.KsoftirqdWakeups, 1)
		inOrder(t, after, "swapper/0 R ==> ksoftirqd/0", "softirq_entry: NET_RX", "napi_poll")
	},
	"s2_two_ticks_end_the_loop": func(t *testing.T, p *played) {
		before, _ := p.cut("sched_wakeup: ksoftirqd/0")
		same(t, "passes", count(before, "softirq_entry: NET_RX"), 3)
		same(t, "time_squeeze", p.stats.TimeSqueeze, 0)
	},
	"s3_budget_and_order_of_lists": func(t *testing.T, p *played) {
		same(t, "time_squeeze", p.stats.TimeSqueeze, 3)
		var order []string
		for _, l := range p.tell() {
			if _, poll, ok := strings.Cut(l, "napi_poll: eth"); ok {
				order = append(order, poll[:1])
			}
		}
		same(t, "order of polls", strings.Join(order, ""), "01234"+"50123"+"45012")
	},
	"s4_exactly_the_weight_hz250": func(t *testing.T, p *played) {
		same(t, "polls", runLengths(p.r.devs[0].polls), "64 0")
		inOrder(t, p.tell(), "segments 45", "napi_poll: eth0 work 64", "segments 19", "softirq_exit", "softirq_entry", "work 0")
	},
	"s4_exactly_the_weight_hz1000": func(t *testing.T, p *played) {
		same(t, "polls", runLengths(p.r.devs[0].polls), "64 0")
		inOrder(t, p.tell(), "segments 45", "napi_poll: eth0 work 64", "softirq_exit", "softirq_entry", "segments 19", "work 0")
	},
	"s5_missed_always_raise": func(t *testing.T, p *played) { missed(t, p, 2, 2) },
	"s6_lost_and_fired_again": func(t *testing.T, p *played) {
		d := p.r.devs[0]
		same(t, "MISSED", d.napi.Stats().Missed, 0)
		same(t, "polls", runLengths(d.polls), "1x2")
		same(t, "interrupts: the first, the lost one, that after the unmask", d.interrupts, 3)
		same(t, "unmasks", d.unmasks, 2)
		inOrder(t, p.tell(), "h irq_handler_entry", "h softirq_raise", "H irq_handler_entry", "unmasked", "H irq_handler_entry",
			"H softirq_raise", "napi_poll: eth0 work 1", "softirq_exit", "napi_poll: eth0 work 1", "softirq_exit")
	},
	"s7_deferred_interrupts": func(t *testing.T, p *played) {
		d := p.r.devs[0]
		same(t, "polls", runLengths(d.polls), "5 0x2")
		same(t, "interrupts", d.interrupts, 1)
		same(t, "raises", times(p, trace.SoftirqRaise), []sim.Time{10800, 34900, 57000})
		same(t, "unmasked", times(p, note), []sim.Time{59300})
		s := d.napi.Stats()
		same(t, "completions, deferrals, polls by the timer", []int64{s.Completed, s.Deferred, s.Watchdog}, []int64{1, 2, 2})
	},
	"s5_missed_skip_in_net_rx_action":  func(t *testing.T, p *played) { missed(t, p, 1, 1) },
	"s8_rounds_skip_in_net_rx_action":  func(t *testing.T, p *played) { restarting(t, p) },
	"s8_rounds_clear_flag_always":      func(t *testing.T, p *played) { restarting(t, p) },
	"r1_pending_together_always_raise": func(t *testing.T, p *played) { together(t, p) },
	"r1_pending_together_skip":         func(t *testing.T, p *played) { together(t, p) },
	"s8_rounds_always_raise": func(t *testing.T, p *played) {
		before, _ := p.cut("sched_wakeup: ksoftirqd/0")
		same(t, "rounds of the first loop", count(before, "napi_poll: eth0 work 3"), 10)
		same(t, "passes of the first loop", count(before, "softirq_entry: NET_RX"), 10)
		same(t, "nested interrupts that raise", count(before, "H softirq_raise: NET_RX"), 10)
		same(t, "passes", p.stats.Softirqs[NetRX], 121)
		same(t, "invocations", p.stats.Invocations, 13)
		same(t, "time_squeeze", p.stats.TimeSqueeze, 0)
		interruptBeforePollLine(t, p)
	},
	"s9_repoll_ends_the_rounds": func(t *testing.T, p *played) {
		same(t, "nested interrupts that raise", count(p.tell()[7:], "H softirq_raise"), 0)
		passes := strings.Split(strings.Join(p.tell(), "\n"), "softirq_entry: NET_RX")
		for _, pass := range passes[1 : len(passes)-1] {
			lines := strings.Split(pass, "\n")
			inOrder(t, lines, "eth0 work 3", "eth1 work 64", "s softirq_raise: NET_RX", "softirq_exit")
			same(t, "polls of a pass", count(lines, "napi_poll"), 2)
		}
		same(t, "time_squeeze", p.stats.TimeSqueeze, 0)
	},
	"s10_ksoftirqd_runnable_defers": func(t *testing.T, p *played) {
		same(t, "polls by", pollTimes(p), []sim.Time{302900, 1014200})
		inOrder(t, p.tell(), "softirq_raise: NET_RX", "softirq_raise: TASKLET", "softirq_entry: NET_RX", "softirq_entry: TASKLET",
			"softirq_raise: NET_RX", "==> ksoftirqd/0", "softirq_entry: NET_RX")
	},
	"s10_ksoftirqd_runnable_inline": func(t *testing.T, p *played) {
		same(t, "polls by", pollTimes(p), []sim.Time{203500, 403500})
		_, after := p.cut("==> ksoftirqd/0")
		same(t, "softirqs in ksoftirqd", count(after, "softirq_entry"), 0)
	},
	"pitfall01_order_of_completion": func(t *testing.T, p *played) {
		inOrder(t, p.tell(), "UDP segments 1", "TCP segments 3", "Ns sched_wakeup: reader", "eth0 unmasked", "H irq_handler_entry: 24",
			"H softirq_raise: NET_RX", "napi_poll: eth0 work 4", "softirq_exit", "sched_wakeup: ksoftirqd/0", "==> reader", "==> ksoftirqd/0")
		interruptBeforePollLine(t, p)
	},
	"pitfall09_pending_bits_survive": func(t *testing.T, p *played) {
		_, after := p.cut("25 eth1")
		inline, ksoftirqd := split(after, "==> ksoftirqd/0")
		same(t, "rounds run by the exit of eth1's interrupt", count(inline, "napi_poll: eth0 work 3"), 5)
		same(t, "softirqs in ksoftirqd", count(ksoftirqd, "softirq_entry"), 0)
		same(t, "invocations", p.stats.Invocations, 2)
	},
	"pitfall24_need_resched_does_not_cut_a_pass": func(t *testing.T, p *played) {
		inline, ksoftirqd := p.cut("sched_wakeup: ksoftirqd/0")
		inOrder(t, inline, "Ns sched_wakeup: reader", "eth0 work 64", "eth1 work 64", "NH softirq_raise: TASKLET", "eth2 work 64", "eth3 work 64", "softirq_exit")
		same(t, "passes before ksoftirqd", count(inline, "softirq_entry"), 1)
		inOrder(t, ksoftirqd, "softirq_entry: NET_RX", "eth0 work 6", "eth3 work 6", "softirq_entry: TASKLET")
	},
	"r1_pending_together_with_reader": func(t *testing.T, p *played) {
		inline, ksoftirqd := p.cut("sched_wakeup: ksoftirqd/0")
		same(t, "passes before ksoftirqd", count(inline, "softirq_entry"), 1)
		same(t, "passes in ksoftirqd", count(ksoftirqd, "softirq_entry"), 1)
		same(t, "polls in ksoftirqd", count(ksoftirqd, "napi_poll"), 0)
	},
	"r5_idle_receiver": func(t *testing.T, p *played) {
		same(t, "polls", runLengths(p.r.devs[0].polls), "64x4 44")
		inline, ksoftirqd := p.cut("sched_wakeup: ksoftirqd/0")
		same(t, "passes inline", count(inline, "softirq_entry"), 1)
		same(t, "passes in ksoftirqd", count(ksoftirqd, "softirq_entry"), 4)
	},
	"r6_one_pass_with_need_resched": func(t *testing.T, p *played) {
		_, after := p.cut("h irq_handler_entry: 25 eth1")
		first, after := split(after, "h irq_handler_entry: 14 disk")
		second, _ := split(after, "khog X ==> reader")
		same(t, "passes after eth1's interrupt", count(first, "softirq_entry: NET_RX"), 1)
		same(t, "passes after the disk's", count(second, "softirq_entry: NET_RX"), 1)
		inOrder(t, second, "Ns softirq_entry: NET_RX", "NH softirq_raise: NET_RX", "softirq_exit: NET_RX", "Ns softirq_entry: RCU")
	},
	"g8_v5.9_list_counts_skbs": func(t *testing.T, p *played) {
		inOrder(t, p.tell(), "netif_receive_skb: UDP", "TCP segments 45", "napi_gro_receive_entry", "UDP segments 1")
		same(t, "skbs", runLengths(p.r.stack.segs), "1x7 45 1")
		same(t, "lists", p.r.stack.lists, 2)
	},
	"g8_v5.9_superframe_waits": func(t *testing.T, p *played) {
		same(t, "skbs", runLengths(p.r.stack.segs), "1x2 45 1")
		same(t, "lists", p.r.stack.lists, 1)
	},
	"g8_v5.11_superframe_flushes": func(t *testing.T, p *played) {
		inOrder(t, p.tell(), "UDP segments 1", "TCP segments 45", "napi_gro_receive_entry", "UDP segments 1")
		same(t, "skbs", runLengths(p.r.stack.segs), "1x2 45 1")
		same(t, "lists", p.r.stack.lists, 2)
	},
	"g9_v5.4.0_superframe_overtakes": func(t *testing.T, p *played) {
		same(t, "skbs", runLengths(p.r.stack.segs), "2 1")
		same(t, "lists", p.r.stack.lists, 1)
		inOrder(t, p.tell(), "napi_gro_frags_entry", "napi_gro_frags_entry", "napi_gro_frags_entry", "TCP segments 2", "TCP segments 1", "eth0 unmasked")
	},
	"g9_v5.3_one_by_one": func(t *testing.T, p *played) {
		same(t, "skbs", runLengths(p.r.stack.segs), "1 2")
		same(t, "lists", p.r.stack.lists, 0)
		inOrder(t, p.tell(), "napi_gro_frags_entry", "TCP segments 1", "napi_gro_frags_entry", "napi_gro_frags_entry", "TCP segments 2")
	},
	"g9_v5.5_order_kept": func(t *testing.T, p *played) {
		same(t, "skbs", runLengths(p.r.stack.segs), "1 2")
		same(t, "lists", p.r.stack.lists, 1)
	},
	"g9_v5.4.18_gro_frags": func(t *testing.T, p *played) {
		same(t, "skbs", runLengths(p.r.stack.segs), "1 2")
		same(t, "lists", p.r.stack.lists, 1)
	},
	"g9_v5.4.18_gro_receive": func(t *testing.T, p *played) {
		// The packet, the ACK that overtakes, the superframe.
		same(t, "skbs", runLengths(p.r.stack.segs), "1x2 2")
		same(t, "lists", p.r.stack.lists, 1)
	},
	"pitfall19_masked_while_owned": func(t *testing.T, p *played) {
		inOrder(t, p.lines(), "napi_poll: eth0 work 0 budget 8 x19", "irq_handler_entry: 24 eth0", "napi_poll: eth0 work 2 budget 8",
			"eth0 unmasked", "napi_poll: eth0 work 0 budget 8", "reader reads 2", "napi_poll: eth0 work 0 budget 8 x54", "eth0 unmasked", "reader sleeps")
		same(t, "MISSED", p.r.devs[0].napi.Stats().Missed, 1)
		same(t, "softirqs: for the frame at 200 us only", p.stats.Softirqs[NetRX], 1)
		same(t, "BusyPollRxPackets", p.stats.BusyPollRxPackets, 2)
	},
	"pitfall19_last_poll_uses_its_budget": func(t *testing.T, p *played) {
		inOrder(t, p.lines(), "napi_poll: eth0 work 8 budget 8 x2", "softirq_raise: NET_RX", "softirq_entry: NET_RX", "eth0 unmasked",
			"napi_poll: eth0 work 14 budget 64", "reader reads 30")
		same(t, "BusyPollRxPackets", p.stats.BusyPollRxPackets, 16)
	},
	"busy_v4.8_ownership_for_each_poll": func(t *testing.T, p *played) {
		inOrder(t, p.lines(), "11.700 ... eth0 unmasked", "irq_handler_entry", "softirq_raise: NET_RX", "napi_poll: eth0 work 0 budget 8",
			"napi_poll: eth0 work 1 budget 64", "reader reads 1", "28.100 ... reader sleeps")
		same(t, "unmasks: each of 14 busy polls and the softirq's", p.r.devs[0].unmasks, 15)
	},
	"busy_v5.11_prefer_with_deferral": func(t *testing.T, p *played) {
		inOrder(t, p.lines(), "12.600 d.. hrtimer_start x2", "reader reads 3", "33.600 d.h hrtimer_expire_entry", "reader sleeps",
			"hrtimer_expire_entry", "napi_poll: eth0 work 0 budget 64", "hrtimer_expire_entry", "eth0 unmasked")
		same(t, "interrupts", p.r.devs[0].interrupts, 1)
		same(t, "unmasks", p.r.devs[0].unmasks, 1)
	},
	"busy_v6.13_three_loops": func(t *testing.T, p *played) {
		inOrder(t, p.lines(), "13.400 d.. hrtimer_start", "reader reads 3", "28.700 ... napi_poll: eth0 work 0 budget 8 x52",
			"softirq_raise: NET_RX", "reader sleeps", "71.900 d.h hrtimer_expire_entry", "eth0 unmasked",
			"80.200 d.h irq_handler_entry", "napi_poll: eth0 work 2 budget 64", "hrtimer_start", "reader reads 2")
	},
	"busy_rfc_2019_list_waits": func(t *testing.T, p *played) {
		inOrder(t, p.lines(), "12.050 ... napi_poll: eth0 work 3 budget 8", "napi_poll: eth0 work 0 budget 8 x29", "25.650 ... reader reads 3")
	},
	"busy_v5.4_list_goes_up": func(t *testing.T, p *played) {
		inOrder(t, p.lines(), "12.050 ... napi_poll: eth0 work 3 budget 8", "14.050 ... reader reads 3")
	},
	"pitfall19_superframe_held": func(t *testing.T, p *played) {
		inOrder(t, p.lines(), "12.150 ... napi_poll: eth0 work 3 budget 8", "napi_poll: eth0 work 0 budget 8 x29", "25.450 ... reader reads 1")
		same(t, "skbs", runLengths(p.r.stack.segs), "3")
	},
	"pitfall19_psh_goes_up": func(t *testing.T, p *played) {
		inOrder(t, p.lines(), "12.050 ... napi_poll: eth0 work 3 budget 8", "14.050 ... reader reads 3")
	},
	"busy_resched_gives_the_napi_back": func(t *testing.T, p *played) {
		inOrder(t, p.lines(), "==> reader", "budget 8", "eth0 unmasked", "reader R+ ==> hog", "irq_handler_entry", "napi_poll: eth0 work 1 budget 64", "==> reader", "reader reads 1")
	},
}

func TestVectors(t *testing.T) {
	var files []string
	for _, path := range must(filepath.Glob("testdata/*.txtar")) {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		files = append(files, name)
		t.Run(name, func(t *testing.T) {
			assert := vectors[name]
			if assert == nil {
				t.Fatal("nothing is asserted about this script")
			}
			assert(t, playFile(t, name))
		})
	}
	for name := range vectors {
		if !slices.Contains(files, name) {
			t.Errorf("no script %s", name)
		}
	}
}

// missed: S5 in passes of NET_RX with so many raises.
func missed(t *testing.T, p *played, passes, raises int) {
	t.Helper()
	d := p.r.devs[0]
	same(t, "MISSED", d.napi.Stats().Missed, 1)
	same(t, "polls", runLengths(d.polls), "1x2")
	same(t, "unmasks", d.unmasks, 1)
	same(t, "passes", count(p.tell(), "softirq_entry: NET_RX"), passes)
	same(t, "raises", count(p.tell(), "softirq_raise: NET_RX"), raises)
	inOrder(t, p.tell(), "H irq_handler_entry", "work 1", "unmasked", "work 1", "softirq_exit")
}

// restarting: S8 since v6.4.
func restarting(t *testing.T, p *played) {
	t.Helper()
	first, second := p.cut("softirq_exit: NET_RX")
	same(t, "rounds of the first pass", count(first, "napi_poll: eth0 work 3"), 300/3)
	same(t, "rounds of the second pass", count(second, "napi_poll: eth0 work 3"), 21)
	same(t, "raises of the first pass", count(first, "softirq_raise"), 2) // the first interrupt and the exit
	same(t, "raises by nested interrupts", count(p.tell(), "H softirq_raise"), 0)
	same(t, "time_squeeze", p.stats.TimeSqueeze, 1)
	same(t, "invocations", p.stats.Invocations, 1)
	same(t, "restarts", p.stats.Restarts, 1)
	interruptBeforePollLine(t, p)
}

// together: regularity 19.2 item 1.
func together(t *testing.T, p *played) {
	t.Helper()
	inOrder(t, p.tell(), "h irq_handler_entry: 24", "H irq_handler_entry: 25", "H softirq_raise", "softirq_entry: NET_RX", "eth0 work 3", "eth1 work 5")
	_, second := p.cut("softirq_exit: NET_RX")
	same(t, "further passes", count(second, "softirq_entry: NET_RX"), 1)
	same(t, "their polls", count(second, "napi_poll"), 0)
}

// interruptBeforePollLine: regularity 19.2 item 2. The interrupt that follows an
// unmask is told before the napi_poll line of the poll that completed, which comes
// later by the rest of the interrupt: 0.5 + 0.1 + 0.2 us after its entry.
func interruptBeforePollLine(t *testing.T, p *played) {
	t.Helper()
	nested := 0
	for i := range p.events {
		if e := &p.events[i]; e.Point == note {
			rest := p.events[i:]
			poll := slices.IndexFunc(rest, func(e trace.Event) bool { return e.Point == trace.NAPIPoll })
			irq := slices.IndexFunc(rest, func(e trace.Event) bool { return e.Point == trace.IRQHandlerEntry })
			if irq < 0 || rest[irq].Flags.Context != trace.HardirqInSoftirq {
				continue
			}
			nested++
			if irq > poll {
				t.Fatalf("the napi_poll line at %v comes before the interrupt at %v", rest[poll].At, rest[irq].At)
			}
			same(t, "from the interrupt's entry to the napi_poll line", rest[poll].At-rest[irq].At, 800*sim.Nanosecond)
		}
	}
	if nested == 0 {
		t.Error("no interrupt follows an unmask")
	}
}

// pollTimes returns the instants of the napi_poll lines, in nanoseconds.
func pollTimes(p *played) []sim.Time { return times(p, trace.NAPIPoll) }

// times returns the instants of the events of a point, in nanoseconds.
func times(p *played, point trace.Point) (all []sim.Time) {
	for i := range p.events {
		if p.events[i].Point == point {
			all = append(all, p.events[i].At/sim.Nanosecond)
		}
	}
	return all
}

// tell returns all events of a run as lines.
func (p *played) tell() []string {
	lines := make([]string, len(p.events))
	for i := range p.events {
		lines[i] = flagText(p.events[i].Flags) + " " + eventText(&p.events[i])
	}
	return lines
}

// cut splits a run at the first line with a text, which belongs to neither part.
func (p *played) cut(text string) (before, after []string) { return split(p.tell(), text) }

func split(lines []string, text string) (before, after []string) {
	i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, text) })
	if i < 0 {
		return lines, nil
	}
	return lines[:i], lines[i+1:]
}

func count(lines []string, text string) (n int) {
	for _, l := range lines {
		if strings.Contains(l, text) {
			n++
		}
	}
	return n
}

// lines returns the lines of the narrative, with times and numbers of equal ones.
func (p *played) lines() []string { return strings.Split(p.narrative(), "\n") }

// inOrder requires lines with these texts, in this order, others between them.
func inOrder(t *testing.T, lines []string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		before, after := split(lines, text)
		if len(before) == len(lines) {
			t.Fatalf("no %q where it is expected among\n%s", text, strings.Join(lines, "\n"))
		}
		lines = after
	}
}
