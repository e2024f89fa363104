package softirq

import (
	"fmt"
	"strings"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq/gro"
)

// This file goes on with what recordings of Linux 6.1.192 and 6.12.117 have shown: facts (see
// facts_test.go) and regularities (R), by their number.

// inContext returns the instants in microseconds at which NET_RX begins in a task.
func (p *played) inContext(comm string) (all []sim.Time) {
	for i := range p.events {
		if e := &p.events[i]; e.Point == trace.SoftirqEntry && Vector(e.A) == NetRX && e.Comm == comm {
			all = append(all, e.At/sim.Microsecond)
		}
	}
	return all
}

// Fact 6: the first frame wakes the reader, over idle that sets need_resched, and ksoftirqd
// does all of the burst but the first pass. Where nobody reads no pass is left to it: five
// passes are fewer than ten, and over idle no tick comes.
func TestFact06NeedReschedIsTheWayIntoKsoftirqd(t *testing.T) {
	for _, k := range factKernels {
		for _, c := range []struct {
			task              string
			inline, ksoftirqd int
		}{{"task reader 1us", 1, 4}, {"", 5, 0}} {
			p := play(t, fmt.Sprintf("%s\nnic eth0\n%s\nat 100us frames eth0 300\nrun 2ms", k.line, c.task))
			same(t, "polls", runLengths(p.r.devs[0].polls), "64x4 44")
			same(t, fmt.Sprintf("%s, %q: passes inline", k.name, c.task), len(p.inContext("swapper/0")), c.inline)
			same(t, fmt.Sprintf("%s, %q: passes in ksoftirqd", k.name, c.task), len(p.inContext("ksoftirqd/0")), c.ksoftirqd)
		}
	}
}

// Fact 7: NET_RX raised by a hardirq in a task while ksoftirqd is runnable waits for
// ksoftirqd on 6.1, here until the FIFO task has gone, and runs at irq exit on 6.12. With
// ksoftirqd asleep it runs at irq exit on both.
func TestFact07KsoftirqdHasPriorityBefore612(t *testing.T) {
	for i, k := range factKernels {
		for _, awake := range []bool{false, true} {
			wake := ""
			if awake {
				wake = "at 100us wake ksoftirqd\n"
			}
			p := play(t, k.line+"\nnic eth0 xdp\ntask hog 1ms fifo=1\n"+wake+"at 200us frames eth0 3\nrun 3ms")
			inline, later := p.inContext("hog"), p.inContext("ksoftirqd/0")
			if awake && i == 0 {
				inline, later = later, inline
				if len(inline) == 1 && inline[0] < 1000 {
					t.Errorf("%s: ksoftirqd runs at %d us, beside a FIFO task", k.name, inline[0])
				}
			} else if len(inline) == 1 && inline[0] != 201 {
				t.Errorf("%s: NET_RX at %d us, the interrupt ends at 201", k.name, inline[0])
			}
			same(t, fmt.Sprintf("%s, awake %v: passes where they belong and elsewhere", k.name, awake), []int{len(inline), len(later)}, []int{1, 0})
		}
	}
}

// Fact 11: results NORMAL go up in batches of gro_normal_batch, the rest at the end of the
// poll: in napi_complete_done, or after a full poll. With GRO off the result is NORMAL, too,
// and the batches are the same.
func TestFact11NormalBatch(t *testing.T) {
	for _, k := range factKernels {
		for _, c := range []struct {
			batch, frames int
			gro, want     string
		}{
			{1, 3, "gro", "e 1 e 1 e 1 |"},
			{2, 5, "gro", "ee 1 1 ee 1 1 e 1 |"},
			{8, 10, "gro", strings.Repeat("e", 8) + strings.Repeat(" 1", 8) + " ee 1 1 |"},
			{8, 10, "", strings.Repeat("e", 8) + strings.Repeat(" 1", 8) + " ee 1 1 |"},
			{64, 65, "gro", strings.Repeat("e", 64) + strings.Repeat(" 1", 64) + " | e 1 |"},
			// Section 2.4: a full poll is told before what it has left in the list goes up.
			{100, 65, "gro", strings.Repeat("e", 64) + " |" + strings.Repeat(" 1", 64) + " e 1 |"},
		} {
			p := play(t, fmt.Sprintf("%s\nkernel batch=%d\ntrace 0us 1ms frames\nnic eth0 %s\nat 10us frames eth0 %d\nrun 1ms", k.line, c.batch, c.gro, c.frames))
			same(t, fmt.Sprintf("%s, batch %d, %q", k.name, c.batch, c.gro), order(p), c.want)
			for i := range p.events {
				if e := &p.events[i]; e.Point == trace.NAPIGROReceiveExit && gro.Result(e.A) != gro.Normal {
					t.Errorf("%s: result %v", k.name, gro.Result(e.A))
				}
			}
		}
	}
}

// Fact 12: of a bulk flow each superframe has one HELD, the others are merged; NORMAL are pure
// ACKs and the segment with which its flow is flushed: the rest of 376 bytes behind 45 full
// segments. 8 segments and more go up inside the napi_gro_receive that ends them, what is
// held at the end of the poll goes up there.
func TestFact12GROOfABulkFlow(t *testing.T) {
	for _, k := range factKernels {
		for _, c := range []struct {
			what, frames, order string
			held, merged        int
			normal              int
		}{
			{"PSH after 16", "15 1448,1 1448 psh,3 1448", strings.Repeat("e", 16) + " 16 eee 3 |", 2, 17, 0},
			{"a write of 64 KiB", "45 1448,1 376 psh", strings.Repeat("e", 46) + " 45 1 |", 1, 44, 1},
			{"a pure ACK behind 3", "3 1448,1 0", "eeee 3 1 |", 1, 2, 1},
		} {
			var b strings.Builder
			fmt.Fprintf(&b, "%s\ntrace 0us 1ms frames\nnic eth0 gro\n", k.line)
			for f := range strings.SplitSeq(c.frames, ",") {
				fmt.Fprintf(&b, "at 10us tcp eth0 1 %s\n", f)
			}
			p := play(t, b.String()+"run 1ms")
			results := map[gro.Result]int{}
			for i := range p.events {
				if e := &p.events[i]; e.Point == trace.NAPIGROReceiveExit {
					results[gro.Result(e.A)]++
				}
			}
			got := []int{results[gro.Held], results[gro.Merged] + results[gro.MergedFree], results[gro.Normal]}
			same(t, k.name+", "+c.what+": held, merged, normal", got, []int{c.held, c.merged, c.normal})
			same(t, k.name+", "+c.what, order(p), c.order)
		}
	}
}

// Regularity 2: the interrupt that follows an unmask is told before the napi_poll line of the
// poll that completed, in every form of net_rx_action.
func TestR2InterruptBeforePollLine(t *testing.T) {
	for _, form := range NAPIScheduleNames() {
		p := play(t, "kernel napi_schedule="+form+"\nnic eth0 xdp\nat 10us endless eth0 3 9\nrun 1ms")
		same(t, form+": polls", runLengths(p.r.devs[0].polls), "3x10")
		interruptBeforePollLine(t, p)
	}
}

// Regularity 7: the tick has a fixed phase modulo 4 ms. It raises TIMER before it sets
// need_resched. (RCU callbacks, which it raises next, are none of this model's; the replay of
// a recording has those of the recording.)
func TestR7TickBeforeNeedResched(t *testing.T) {
	s := defaultSetup()
	s.machine.TickPhase = 1300 * sim.Microsecond
	r := newRig(s)
	var timer *cpu.Timer // due at each tick
	timer = r.m.Cores[0].NewTimer(func(c *cpu.Core) { timer.Mod(c.Now()) })
	timer.Mod(0)
	r.task("a", cpu.TaskConfig{}, hog(sim.Second))
	r.task("b", cpu.TaskConfig{}, hog(sim.Second))
	r.run(t, 60*sim.Millisecond)
	raises, asked := 0, 0
	for _, e := range s.log.Events() {
		if e.Point != trace.SoftirqRaise || Vector(e.A) != Timer {
			continue
		}
		raises++
		if e.Flags.NeedResched {
			asked++
		}
		if rest := (e.At - 1300*sim.Microsecond) % (4 * sim.Millisecond); rest > 2*sim.Microsecond {
			t.Errorf("a tick at %v", e.At)
		}
	}
	if raises < 10 || asked > 0 {
		t.Errorf("%d raises of TIMER, %d of them with need_resched", raises, asked)
	}
}

// Regularity 10: sched_wakeup is told of a task that sleeps only. Packets that arrive while
// the reader runs or waits for the CPU add no line: of 1 + 8 packets in 100 us of reading the
// first wakes it.
func TestR10WakeupsOfSleepersOnly(t *testing.T) {
	var b strings.Builder
	b.WriteString("nic eth0\ntask reader 100us\nat 100us frames eth0 1\n")
	for i := range 8 {
		fmt.Fprintf(&b, "at %dus frames eth0 1\n", 110+10*i)
	}
	b.WriteString("at 2ms frames eth0 1\nrun 4ms")
	p := play(t, b.String())
	same(t, "packets", p.r.stack.delivered, 10)
	_, after := p.cut("irq_handler_entry: 24 eth0") // before it the reader is started
	same(t, "wakeups", count(after, "sched_wakeup: reader"), 2)
	same(t, "cost of the stack", p.r.m.Cores[0].Spent()[model.StageUDPReceive], 10)
}
