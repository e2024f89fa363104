package softirq

import (
	"fmt"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
	"napisim/sim/trace"
)

// This file tests single rules of the kernel, each against numbers worked out here.
// Tests are named after the vector (S), the pitfall, the regularity or correction (R, C)
// that they hold, or after the kernel's function.

// The softirq loop of a saturated NAPI, 640 us of frames a pass, with a hog so that the
// tick goes on. It begins at 11.0 us; passes of 641.5 us and 1.4 us for each tick end
// at about 653, 1295, 1938 and 2580 us. At HZ=1000 the limit of 2 ms is 2 ticks: the loop
// stops after the pass in which the second one falls.
func TestS2PassesFollowTheTicks(t *testing.T) {
	for _, c := range []struct{ tick, passes int }{{100, 2}, {290, 2}, {300, 3}, {500, 3}, {930, 3}, {950, 4}, {999, 4}} {
		p := play(t, fmt.Sprintf(`
			kernel napi_schedule=always_raise ksoftirqd=inline
			machine hz=1000 tick=%dus
			cost rx_descriptor=10us
			nic eth0 xdp
			task hog 1s
			at 10us saturate eth0
			run 2700us`, c.tick))
		before, _ := p.cut("sched_wakeup: ksoftirqd/0")
		same(t, fmt.Sprintf("passes with ticks at %d us", c.tick), count(before, "softirq_entry: NET_RX"), c.passes)
		same(t, "time_squeeze", p.stats.TimeSqueeze, 0)
	}
}

// S2 at HZ=250: the limit is one tick, 0 to 4 ms after the start. Passes of 411.1 us
// from 11.0 us on: the tick falls into the pass with that number. The recorded loops
// without a reader had 2, 4, 5 and 9 passes.
func TestC9PassesAtHZ250(t *testing.T) {
	for passes := 1; passes <= 9; passes++ {
		tick := 11000 + 411100*(passes-1) + 200000
		p := play(t, fmt.Sprintf(`
			kernel napi_schedule=always_raise ksoftirqd=inline
			machine hz=250 tick=%dns
			cost rx_descriptor=6400ns
			nic eth0 xdp
			task hog 1s
			at 10us saturate eth0
			run 4100us`, tick))
		before, _ := p.cut("sched_wakeup: ksoftirqd/0")
		same(t, fmt.Sprintf("passes with the tick at %d ns", tick), count(before, "softirq_entry: NET_RX"), passes)
	}
}

// Over an idle CPU the tick is stopped and jiffies stand still: the loop of S2 is not
// ended by time, but by its tenth pass, after 6.4 ms.
func TestC3JiffiesStandStillOverIdle(t *testing.T) {
	p := play(t, `
		kernel napi_schedule=always_raise ksoftirqd=inline
		machine hz=1000 tick=500us
		cost rx_descriptor=10us
		nic eth0 xdp
		at 10us saturate eth0
		run 6500us`)
	before, _ := p.cut("sched_wakeup: ksoftirqd/0")
	same(t, "passes", count(before, "softirq_entry: NET_RX"), 10)
}

// napi_schedule_prep, the table of old and new bits (section 1.2): since v4.11 an attempt while
// the NAPI is owned is noted. S6: up to v4.10 it is lost. See TestPitfall02LostWakeup for what
// follows.
func TestS6LostOrMissed(t *testing.T) {
	for _, c := range []struct {
		old, lost, missed napiState
		ok                bool
	}{
		{0, stateSched, stateSched, true},
		{stateSched, stateSched, stateSched | stateMissed, false},
		{stateDisable, stateDisable, stateDisable, false},
		{stateDisable | stateSched, stateDisable | stateSched, stateDisable | stateSched, false},
		// MISSED alone cannot be, and does no harm; the old form does not know it.
		{stateMissed, stateSched | stateMissed, stateSched | stateMissed, true},
		{stateSched | stateMissed, stateSched | stateMissed, stateSched | stateMissed, false},
	} {
		for _, prep := range []struct {
			name string
			f    func(*NAPI) bool
			want napiState
		}{{"lost", prepLosing, c.lost}, {"missed", prepMissing, c.missed}} {
			n := NewNAPI(NAPIConfig{Name: "eth0"})
			n.state = c.old
			if ok := prep.f(n); ok != c.ok || n.state != prep.want {
				t.Errorf("%s, from %04b: %v, %04b, want %v, %04b", prep.name, c.old, ok, n.state, c.ok, prep.want)
			}
		}
	}
}

// Pitfall 3: the interrupt at an unmask nests in the softirq and starts none of its own.
// Pitfall 4: what follows differs: the old form goes back to the softirq loop, the
// new one stays in net_rx_action, with the same frames and interrupts.
func TestPitfall03And04NestedInterruptAtUnmask(t *testing.T) {
	var interrupts [2]int64
	for i, form := range []string{"always_raise", "skip_in_net_rx_action"} {
		p := play(t, `
			kernel ksoftirqd=defer_while_running napi_schedule=`+form+`
			nic eth0 xdp
			at 10us endless eth0 3 29
			run 2ms`)
		interrupts[i] = p.r.devs[0].interrupts
		depth := 0
		for _, e := range p.events {
			switch e.Point {
			case trace.SoftirqEntry:
				depth++
				if depth > 1 || e.Flags.Context != trace.Softirq {
					t.Fatalf("%s: softirq nested in another or in an interrupt at %v", form, e.At)
				}
			case trace.SoftirqExit:
				depth--
			}
		}
		// 30 rounds: 3 loops of 10 passes, or 1 of 1 pass.
		same(t, form+": invocations", p.stats.Invocations, []int64{3, 1}[i])
		same(t, form+": passes", p.stats.Softirqs[NetRX], []int64{30, 1}[i])
		same(t, form+": ksoftirqd wakeups", p.stats.KsoftirqdWakeups, []int64{1, 0}[i])
		same(t, form+": time_squeeze", p.stats.TimeSqueeze, 0)
	}
	same(t, "interrupts of the two forms", interrupts, [2]int64{30, 30})
}

// Pitfall 5: the budget is looked at only after a poll, and does not shorten one. A
// burst of 300 is polls of 64 64 64 64 44 in five passes, of which those are
// squeezed whose work reaches the budget: none of 100, the four of 64, all of 32 (as
// recorded), all of 1.
func TestPitfall05BudgetDoesNotShortenAPoll(t *testing.T) {
	for _, c := range []struct{ budget, squeezed int64 }{{300, 0}, {100, 0}, {65, 0}, {64, 4}, {45, 4}, {44, 5}, {32, 5}, {1, 5}} {
		p := play(t, fmt.Sprintf("kernel budget=%d\nnic eth0 xdp\nat 10us frames eth0 300\nrun 2ms", c.budget))
		same(t, "polls", runLengths(p.r.devs[0].polls), "64x4 44")
		same(t, "passes", p.stats.Softirqs[NetRX], 5)
		same(t, fmt.Sprintf("time_squeeze with budget %d", c.budget), p.stats.TimeSqueeze, c.squeezed)
	}
}

// Pitfall 5: the deadline has the tick's granularity. Four saturated NAPIs at HZ=100,
// polls of 5.12 ms (64 x 80 us), the first from 13 us on. 256 frames are below the
// budget, so only the second tick ends a pass, found after the poll into which it
// falls: 10 ms after the first one, which may come at any time in the first 10 ms. So
// a limit of "20 ms" is 10 to 20 ms, and 2 to 4 polls.
func TestPitfall05DeadlineInJiffies(t *testing.T) {
	for _, c := range []struct{ tick, polls int }{{100, 2}, {1000, 3}, {5300, 3}, {5500, 4}, {9900, 4}} {
		p := play(t, fmt.Sprintf(`
			kernel napi_schedule=always_raise
			machine hz=100 tick=%dus
			cost rx_descriptor=80us
			nic eth0 xdp
			nic eth1 xdp
			nic eth2 xdp
			nic eth3 xdp
			task hog 1s
			at 10us saturate eth0
			at 10us saturate eth1
			at 10us saturate eth2
			at 10us saturate eth3
			run 21ms`, c.tick))
		pass, _ := p.cut("softirq_exit: NET_RX")
		same(t, fmt.Sprintf("polls with ticks at %d us", c.tick), count(pass, "napi_poll"), c.polls)
		if p.stats.TimeSqueeze == 0 {
			t.Errorf("no time_squeeze with ticks at %d us", c.tick)
		}
	}
}

// The limit of net_rx_action is netdev_budget_usecs rounded up to jiffies, or two
// jiffies where the kernel chooses.
func TestTimeLimitOfNetRXAction(t *testing.T) {
	for _, c := range []struct {
		hz      int
		usecs   sim.Time
		jiffies int64
	}{
		{1000, 2000, 2},
		{250, 2000, 1},
		{100, 2000, 1},
		{250, 8000, 2},
		{250, 8001, 3},
		{1000, 0, 2},
		{250, 0, 2},
		{100, 0, 2},
	} {
		s := defaultSetup()
		s.machine.HZ = c.hz
		s.kernel.NetdevBudgetUsecs = c.usecs * sim.Microsecond
		r := newRig(s)
		same(t, fmt.Sprintf("%d us at HZ=%d", c.usecs, c.hz), r.sds[0].jiffiesLimit(), c.jiffies)
		r.eng.Close()
	}
}

// Pitfall 6: time_squeeze counts budget and deadline only. S1 hands over to
// ksoftirqd again and again and never squeezes.
func TestPitfall06HandOversAreNoSqueeze(t *testing.T) {
	p := play(t, `
		kernel napi_schedule=always_raise ksoftirqd=inline
		machine hz=1000
		nic eth0 xdp
		at 10us saturate eth0
		run 20ms`)
	same(t, "time_squeeze", p.stats.TimeSqueeze, 0)
	same(t, "ksoftirqd wakeups", p.stats.KsoftirqdWakeups, 1)
	if p.stats.Invocations < 20 {
		t.Errorf("%d invocations", p.stats.Invocations)
	}
}

// Pitfall 7, up to v6.3: what was scheduled meanwhile comes before what asks to be
// polled again, and no NAPI is polled twice in one pass.
func TestPitfall07NewBeforeRepoll(t *testing.T) {
	p := play(t, `
		kernel napi_schedule=always_raise
		cost rx_descriptor=100ns
		nic eth0 xdp
		nic eth1 xdp
		at 10us saturate eth0
		at 15us endless eth1 3 3
		run 70us`)
	// eth1 is scheduled during eth0's first poll and again at each of its unmasks.
	var order []string
	for _, e := range p.events {
		switch e.Point {
		case trace.NAPIPoll:
			order = append(order, e.S)
		case trace.SoftirqEntry:
			order = append(order, "pass")
		}
	}
	same(t, "order", order[:12], []string{"pass", "eth0", "pass", "eth1", "eth0", "pass", "eth1", "eth0", "pass", "eth1", "eth0", "pass"})
}

// Section 2.3: since v6.4 in_net_rx_action stays set between two passes while work is left, so
// that an interrupt in between raises nothing. The experiment that clears it raises once more:
// the interrupt comes where the loop has just taken the pending bits, and its NAPI is on the list
// that is taken next, so that its bit makes a pass without polls. eth1 interrupts between the
// passes of eth0: the first ends at 25.3 us, the next begins 0.3 us later.
func TestFlagBetweenPasses(t *testing.T) {
	for form, raises := range map[string]int{"skip_in_net_rx_action": 0, "clear_flag_always": 1} {
		p := play(t, "kernel napi_schedule="+form+`
			nic eth0 xdp
			nic eth1 xdp
			at 10us frames eth0 70
			at 25.35us frames eth1 1
			run 1ms`)
		first, second := p.cut("softirq_exit: NET_RX")
		between, _ := split(second, "softirq_entry: NET_RX")
		same(t, form+": interrupts between the passes", count(between, "irq_handler_entry: 25 eth1"), 1)
		same(t, form+": raises in them", count(between, "H softirq_raise"), raises)
		same(t, form+": passes", p.stats.Softirqs[NetRX], 2+int64(raises))
		same(t, form+": polls", p.stats.Polls, 3)
		same(t, form+": raises of the first pass", count(first, "s softirq_raise"), 1)
	}
}

// Pitfall 10: a vector raised by itself, or by a vector of the same pass, waits for the
// next pass, after the higher vectors of this one.
func TestPitfall10RaisedInAPassWaitsForTheNext(t *testing.T) {
	s := defaultSetup()
	r := newRig(s)
	sd, c := r.sds[0], r.m.Cores[0]
	var ran []Vector
	self, netRX := 2, false
	open := func(v Vector, f func()) {
		sd.OpenSoftirq(v, func() {
			c.Work(sim.Microsecond)
			ran = append(ran, v)
			f()
		})
	}
	open(HI, func() {})
	open(NetTX, func() {
		if self--; self > 0 {
			sd.RaiseSoftirq(NetTX)
		}
	})
	open(NetRX, func() { netRX = true })
	open(Tasklet, func() {})
	c.NewTimer(func(*cpu.Core) { ran = append(ran, Timer); sd.RaiseSoftirq(NetRX); sd.RaiseSoftirq(HI) }).Mod(3 * sim.Millisecond)
	line := c.NewLine(14, "disk", func(*cpu.Core) { sd.RaiseSoftirq(Tasklet); sd.RaiseSoftirq(NetTX) })
	// The timer's tick (jiffies begin at 1 ms and 5 ms) and the interrupt are pending together.
	r.at(5*sim.Millisecond, phaseDevices, line.Raise)
	r.run(t, 10*sim.Millisecond)
	// The tick is taken first, and its exit has the snapshot before the disk interrupts.
	same(t, "order", ran, []Vector{Timer, HI, NetTX, NetRX, Tasklet, NetTX})
	if !netRX {
		t.Error("NET_RX has not run")
	}
}

// Pitfall 15: the work of a poll is frames taken from the ring, also those that XDP
// drops; no skb enters the stack for them.
func TestPitfall15WorkCountsFrames(t *testing.T) {
	p := play(t, "nic eth0 xdp\nnic eth1\nat 10us frames eth0 10\nat 100us frames eth1 7\nrun 1ms")
	same(t, "work", p.stats.Work.Sum(), 17)
	same(t, "most work of a poll", p.stats.Work.Max(), 10)
	same(t, "processed", p.stats.Processed, 7)
	same(t, "dropped by XDP", p.r.devs[0].dropped, 10)
}

// Pitfall 25: interrupts, NAPI and ksoftirqd of a queue stay on one CPU. When the
// affinity moves while CPU 0 owns the NAPI, the interrupt on CPU 1 sets MISSED and CPU 0
// polls once more; the interrupt after the completion schedules it on CPU 1.
func TestPitfall25PollFollowsTheInterrupt(t *testing.T) {
	for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
		s := defaultSetup()
		s.mode, s.machine.Cores = mode, 2
		s.kernel.NAPISchedule = "always_raise"
		s.machine.Costs[model.StageRXDescriptor] = sim.Microsecond
		r := newRig(s)
		d := r.nic("eth0", nil, 0)
		d.noMask = true
		d.arrive(10*sim.Microsecond, 20)  // polled from 12 us to 32 us
		d.arrive(20*sim.Microsecond, 1)   // interrupts CPU 1
		d.arrive(100*sim.Microsecond, 70) // on CPU 1, in two polls
		r.at(15*sim.Microsecond, phaseDevices, func() { d.core = 1 })
		r.run(t, sim.Millisecond)

		var polls []string
		for _, e := range s.log.Events() {
			if e.Point == trace.NAPIPoll {
				polls = append(polls, fmt.Sprintf("cpu%d:%d", e.CPU, e.B))
			}
		}
		same(t, "polls", polls, []string{"cpu0:21", "cpu0:0", "cpu1:64", "cpu1:6"})
		same(t, "MISSED", d.napi.Stats().Missed, 1)
		same(t, "owner", d.napi.ListOwner(), -1)
		same(t, "polls of CPU 0 and 1", []int64{r.sds[0].Stats().Polls, r.sds[1].Stats().Polls}, []int64{2, 2})
	}
}

// raise_softirq wakes ksoftirqd only where nobody else would run the vector soon:
// from a task with softirqs on. The forms of ____napi_schedule up to v6.13 never do:
// NET_RX stays pending until the next interrupt's exit. That of v6.14 does.
func TestPitfall16WhoRunsARaise(t *testing.T) {
	napi := func(r *rig) { r.sds[0].NAPISchedule(r.devs[0].napi) }
	raise := func(r *rig) { r.sds[0].RaiseSoftirq(NetRX) }
	for _, c := range []struct {
		name    string
		form    string
		raise   func(*rig)
		bh      bool
		wakeups int64
		ranAt   sim.Time // in us
	}{
		{"raise_softirq from a task", "always_raise", raise, false, 1, 1000}, // the disk's interrupt leaves it to ksoftirqd
		{"raise_softirq from a BH-off section", "always_raise", raise, true, 0, 10},
		{"napi_schedule from a task up to v6.3", "always_raise", napi, false, 0, 500},
		{"napi_schedule from a task up to v6.13", "skip_in_net_rx_action", napi, false, 0, 500},
		{"napi_schedule from a task from v6.14 on", "skip_and_wake", napi, false, 1, 1000},
		{"napi_schedule from a BH-off section", "skip_and_wake", napi, true, 0, 10},
	} {
		s := defaultSetup()
		s.machine.TickPhase = 3 * sim.Millisecond
		s.kernel.NAPISchedule = c.form
		r := newRig(s)
		r.nic("eth0", nil, 0)
		disk := r.m.Cores[0].NewLine(14, "disk", func(*cpu.Core) {})
		core := r.m.Cores[0]
		var start, ran sim.Time
		sd := r.sds[0]
		sd.OpenSoftirq(NetRX, func() {
			core.Look()
			ran = core.Now()
			sd.b.napiSchedule.NetRXAction(sd)
		})
		r.task("task", cpu.TaskConfig{}, func(*cpu.Task) {
			core.Look()
			start = core.Now()
			if c.bh {
				core.BHDisable()
			}
			c.raise(r)
			work(core, 10*sim.Microsecond)
			if c.bh {
				core.BHEnable()
			}
			work(core, 990*sim.Microsecond)
		})
		r.at(500*sim.Microsecond, phaseDevices, disk.Raise)
		r.run(t, 2*sim.Millisecond)
		same(t, c.name+": ksoftirqd wakeups", sd.Stats().KsoftirqdWakeups, c.wakeups)
		at := c.ranAt * sim.Microsecond
		if c.ranAt != 500 {
			at += start
		}
		if ran < at || ran > at+10*sim.Microsecond {
			t.Errorf("%s: NET_RX ran at %v, want %v", c.name, ran, at)
		}
	}
}

// C1: a hardirq in a BH-off section only raises. The local_bh_enable that ends the
// section runs the softirq, in the task, unless ksoftirqd is runnable and the version
// lets it have the softirqs.
func TestC1InterruptInABHOffSection(t *testing.T) {
	for _, c := range []struct {
		rule  string
		awake bool
		ran   sim.Time // in us
	}{{"inline", false, 50}, {"inline", true, 50}, {"defer_while_running", false, 50}, {"defer_while_running", true, 100}} {
		s := defaultSetup()
		s.kernel.Ksoftirqd = c.rule
		r := newRig(s)
		d := r.nic("eth0", nil, 0)
		d.arrive(20*sim.Microsecond, 1)
		core := r.m.Cores[0]
		r.task("task", cpu.TaskConfig{FIFO: 1}, func(*cpu.Task) {
			core.BHDisable()
			work(core, 50*sim.Microsecond)
			core.BHEnable()
			work(core, 50*sim.Microsecond)
		})
		if c.awake {
			r.sds[0].Ksoftirqd().WakeFromDevice()
		}
		r.run(t, sim.Millisecond)
		var raised, entered trace.Event
		for _, e := range s.log.Events() {
			switch e.Point {
			case trace.SoftirqRaise:
				raised = e
			case trace.SoftirqEntry:
				entered = e
			}
		}
		if f := raised.Flags; f.Context != trace.Hardirq || !f.BHOff {
			t.Errorf("raised with flags %+v", f)
		}
		if at := c.ran * sim.Microsecond; entered.At < at || entered.At > at+10*sim.Microsecond {
			t.Errorf("%s, ksoftirqd awake %v: NET_RX at %v, want about %v", c.rule, c.awake, entered.At, at)
		}
	}
}
