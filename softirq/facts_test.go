package softirq

import (
	"fmt"
	"strings"
	"testing"

	"napisim/sim/trace"
)

// This file tests what recordings of Linux 6.1.192 and 6.12.117 have shown, by the number
// of the fact.

// factKernels are the two recorded kernels as lines of a script.
var factKernels = []struct{ name, line string }{
	{"v6.1", "kernel napi_schedule=always_raise ksoftirqd=defer_unless_parked napi_threaded=if_running"},
	{"v6.12", "kernel napi_schedule=skip_in_net_rx_action ksoftirqd=inline napi_threaded=always"},
}

// Facts 1 and 2: a pass of net_rx_action polls a NAPI that uses its weight once. It raises
// NET_RX from softirq context just before softirq_exit, and the next pass goes on. A poll
// that takes exactly 64 is followed by one of 0.
func TestFact01And02BurstsToPolls(t *testing.T) {
	for _, k := range factKernels {
		for _, c := range []struct {
			burst  int
			polls  string
			passes int
		}{
			{1, "1", 1},
			{8, "8", 1},
			{64, "64 0", 2},
			{65, "64 1", 2},
			{300, "64x4 44", 5},
			{301, "64x4 45", 5},
			{1000, "64x15 40", 16},
		} {
			p := play(t, fmt.Sprintf("%s\nnic eth0 xdp\nat 10us frames eth0 %d\nrun 3ms", k.line, c.burst))
			same(t, fmt.Sprintf("%s: polls of a burst of %d", k.name, c.burst), runLengths(p.r.devs[0].polls), c.polls)
			same(t, "passes", count(p.tell(), "softirq_entry: NET_RX"), c.passes)
			same(t, "interrupts", p.r.devs[0].interrupts, 1)
			passes := strings.Split(strings.Join(p.tell(), "\n"), "softirq_entry: NET_RX\n")
			for i, pass := range passes[1:c.passes] {
				lines := strings.Split(pass, "\n")
				same(t, fmt.Sprintf("polls of pass %d", i), count(lines, "napi_poll"), 1)
				inOrder(t, lines, "napi_poll: eth0 work 64", "s softirq_raise: NET_RX", "softirq_exit: NET_RX")
			}
		}
	}
}

// Fact 2: without moderation 2000 frames at 50000/s are 2000 interrupts and polls of 1.
func TestFact02LowRate(t *testing.T) {
	for _, k := range factKernels {
		var b strings.Builder
		for i := range 2000 {
			fmt.Fprintf(&b, "at %dus frames eth0 1\n", 20*(i+1))
		}
		p := play(t, k.line+"\nnic eth0 xdp\n"+b.String()+"run 50ms")
		same(t, k.name+": interrupts", p.r.devs[0].interrupts, 2000)
		same(t, k.name+": polls", runLengths(p.r.devs[0].polls), "1x2000")
	}
}

// Fact 4: the budget does not shorten a poll; time_squeeze counts the passes whose work
// reaches it. A budget of 0 and of 1 is accepted.
func TestFact04BudgetAndSqueezes(t *testing.T) {
	for _, k := range factKernels {
		for _, c := range []struct{ budget, squeezed int64 }{{300, 0}, {100, 0}, {65, 0}, {64, 4}, {32, 5}, {1, 5}, {0, 5}} {
			p := play(t, fmt.Sprintf("%s\nkernel budget=%d\nnic eth0 xdp\nat 10us frames eth0 300\nrun 2ms", k.line, c.budget))
			same(t, "polls", runLengths(p.r.devs[0].polls), "64x4 44")
			same(t, fmt.Sprintf("%s: time_squeeze with budget %d", k.name, c.budget), p.stats.TimeSqueeze, c.squeezed)
		}
	}
}

// Fact 5: the softirq loop ends after ten passes, or after the pass in which need_resched
// was set or the jiffy turned; then ksoftirqd is woken.
func TestFact05EndOfTheLoop(t *testing.T) {
	for _, k := range factKernels {
		for _, c := range []struct {
			what, more string
			passes     int
		}{
			// Passes of 64 x 6.4 us and 1.5 us, from 11 us on: over idle only the tenth ends them.
			{"ten passes", "", 10},
			// A hog keeps the tick on: it turns in the third pass, at 1 ms.
			{"a jiffy", "task hog 1s\nmachine tick=1ms", 3},
			// The reader sleeps; the first packet wakes it over idle.
			{"need_resched", "task reader 1us", 1},
		} {
			nic := "nic eth0 xdp"
			if c.what == "need_resched" {
				nic = "nic eth0"
			}
			machine, task := "", c.more
			if before, after, ok := strings.Cut(c.more, "\n"); ok {
				task, machine = before, after
			}
			p := play(t, strings.Join([]string{k.line, machine, "cost rx_descriptor=6.4us", nic, task, "at 10us saturate eth0", "run 5ms"}, "\n"))
			before, after := p.cut("sched_wakeup: ksoftirqd/0")
			same(t, fmt.Sprintf("%s: passes until %s", k.name, c.what), count(before, "softirq_entry: NET_RX"), c.passes)
			if !strings.Contains(before[len(before)-1], "softirq_exit: NET_RX") {
				t.Errorf("%s: ksoftirqd is woken after %q", k.name, before[len(before)-1])
			}
			inOrder(t, after, "==> ksoftirqd/0", "softirq_entry: NET_RX")
		}
	}
}

// Fact 8: on 6.1 an interrupt during the polls of a pass raises NET_RX and costs one more
// pass. On 6.12 it does not raise, and its NAPI is polled in the same pass.
func TestFact08InterruptDuringAPass(t *testing.T) {
	for i, k := range factKernels {
		p := play(t, k.line+`
			cost rx_descriptor=1us
			nic eth0 xdp
			nic eth1 xdp
			at 10us frames eth0 30
			at 20us frames eth1 5
			run 1ms`)
		same(t, k.name+": raises by the interrupt", count(p.tell(), "H softirq_raise: NET_RX"), []int{1, 0}[i])
		same(t, k.name+": passes", count(p.tell(), "softirq_entry: NET_RX"), []int{2, 1}[i])
		inOrder(t, p.tell(), "eth0 work 30", "eth1 work 5")
		if _, second := p.cut("softirq_exit: NET_RX"); count(second, "eth1 work 5") != []int{1, 0}[i] {
			t.Errorf("%s: the second pass is %q", k.name, second)
		}
	}
}

// Fact 9: NAPIs scheduled during a pass come first in the next, those to be polled again
// go to the tail.
func TestFact09OrderAfterAPass(t *testing.T) {
	for _, k := range factKernels {
		p := play(t, k.line+`
			cost rx_descriptor=100ns
			nic eth0 xdp
			nic eth1 xdp
			at 10us frames eth0 300
			at 15us endless eth1 3 3
			run 1ms`)
		var order []string
		for _, e := range p.events {
			switch e.Point {
			case trace.NAPIPoll:
				order = append(order, e.S)
			case trace.SoftirqEntry:
				order = append(order, "|")
			}
		}
		same(t, k.name, strings.Join(order, " "), "| eth0 | eth1 eth0 | eth1 eth0 | eth1 eth0 | eth1 eth0")
	}
}

// Fact 10: an interrupt for a NAPI that is being polled sets MISSED, and completion
// schedules it again. On 6.1 that shows as a raise from softirq context before the napi_poll
// line of a poll below the weight; on 6.12 there is none.
func TestFact10Missed(t *testing.T) {
	for i, k := range factKernels {
		p := play(t, k.line+"\nnic eth0 nomask xdp\nat 10us frames eth0 1\nat 12.6us frames eth0 1\nrun 1ms")
		before, _ := p.cut("napi_poll: eth0 work 1")
		same(t, k.name+": MISSED", p.r.devs[0].napi.Stats().Missed, 1)
		same(t, k.name+": raises in the poll", count(before, "s softirq_raise: NET_RX"), []int{1, 0}[i])
		same(t, k.name+": passes", count(p.tell(), "softirq_entry: NET_RX"), []int{2, 1}[i])
	}
}

// Fact 13: bursts of 4 each 50 us, 1000 frames. With gro_flush_timeout 20 us and
// napi_defer_hard_irqs 2 they cost 2 to 6 interrupts and polls of 4 to 12 frames, with 200
// us and 10 they cost 2, and polls of 20 to 48: here a frame costs 6 us, so that the time
// of a round is t = 200 us + t x 0.08 x 6 us = 385 us, which is 31 frames.
func TestFact13DeferredInterrupts(t *testing.T) {
	for _, k := range factKernels {
		for _, c := range []struct {
			options     string
			most        int64 // interrupts
			least, more int   // frames of a poll with work: least on average, most of one
		}{{"flush=20us defer=2", 6, 4, 12}, {"flush=200us defer=10", 2, 20, 48}} {
			var b strings.Builder
			for i := range 250 {
				fmt.Fprintf(&b, "at %dus frames eth0 4\n", 10+50*i)
			}
			p := play(t, k.line+"\ncost rx_descriptor=6us\nnic eth0 xdp "+c.options+"\n"+b.String()+"run 30ms")
			d := p.r.devs[0]
			if d.interrupts < 1 || d.interrupts > c.most {
				t.Errorf("%s, %s: %d interrupts", k.name, c.options, d.interrupts)
			}
			working := 0
			for _, n := range d.polls {
				if n > c.more {
					t.Errorf("%s, %s: a poll of %d frames", k.name, c.options, n)
				}
				if n > 0 {
					working++
				}
			}
			if mean := 1000 / working; mean < c.least {
				t.Errorf("%s, %s: polls with work take %d frames on average", k.name, c.options, mean)
			}
			same(t, "taken", d.taken, 1000)
			same(t, "masked at the end", d.masked, false)
		}
	}
}

// C8: the first flag tells of explicit sections with softirqs off, not of softirqs that
// run; a hardirq while the softirq loop is active is H, also before the first
// softirq_entry; one that interrupts a section of a task is h.
func TestC8Flags(t *testing.T) {
	p := play(t, `
		nic eth0 xdp
		nic eth1 xdp
		at 10us frames eth0 3
		at 10.1us frames eth1 3
		run 1ms`)
	before, after := p.cut("softirq_entry: NET_RX")
	same(t, "hardirqs before the first softirq_entry", count(before, "h irq_handler_entry"), 1)
	same(t, "hardirqs in the loop, before its first entry", count(before, "H irq_handler_entry"), 1)
	if len(after) == 0 {
		t.Error("no softirq")
	}
	for _, e := range p.events {
		if e.Flags.BHOff {
			t.Errorf("%v at %v has softirqs off", e.Point, e.At)
		}
		if e.Point == trace.SoftirqEntry && e.Flags.IRQsOff {
			t.Errorf("softirq_entry at %v with interrupts off", e.At)
		}
		if e.Point == trace.SoftirqRaise && !e.Flags.IRQsOff {
			t.Errorf("softirq_raise at %v with interrupts on", e.At)
		}
	}
}
