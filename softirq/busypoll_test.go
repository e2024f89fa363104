package softirq

import (
	"runtime"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/sim"
	"napisim/sim/trace"
)

// This file tests busy polling beside the scripts busy_* and pitfall19_*.

// Fact 17 of the recordings: busy polls are napi_poll events with budget 8 (softirq polls
// have 64) from the reader's task with softirqs disabled, almost all without work. On one
// CPU an interrupt meanwhile finds the NAPI owned and raises nothing.
func TestFact17BusyPollsAreOfATask(t *testing.T) {
	p := play(t, `
		nic eth0
		task busyreader 1us 50
		at 100us frames eth0 3
		at 200us frames eth0 3
		at 300us frames eth0 1
		run 1ms`)
	var busy, empty, frames int
	for i := range p.events {
		e := &p.events[i]
		if e.Point != trace.NAPIPoll {
			continue
		}
		task := e.Flags.Context == trace.Task && e.Flags.BHOff
		if want := e.C == BusyPollBudget; task != want {
			t.Errorf("at %v a poll with budget %d in context %+v", e.At, e.C, e.Flags)
		}
		if task {
			busy++
			frames += int(e.B)
			if e.B == 0 {
				empty++
			}
		}
	}
	if busy < 100 || empty < busy-5 {
		t.Errorf("%d of %d busy polls are empty", empty, busy)
	}
	same(t, "BusyPollRxPackets", p.stats.BusyPollRxPackets, int64(frames))
	same(t, "busy polls", p.stats.BusyPolls, int64(busy))
}

// Fact 17, the length of loops: with busy_read 50 and turns of 2998 ns, 283 of 285 recorded loops
// that found nothing and were not interrupted had 18 polls before the last one; the loop
// ends at its time limit (664 of 665). Busy polls are traced with softirqs and preemption off (b..1.).
func TestFact17LoopsEndAtTheirLimit(t *testing.T) {
	p := play(t, `
		cost napi_poll=2700ns ring_look=100ns busy_poll_turn=198ns
		nic eth0
		task busyreader 1us 50
		run 200us`)
	same(t, "polls", p.stats.BusyPolls, 18+1)
	for i := range p.events {
		if e := &p.events[i]; e.Point == trace.NAPIPoll && (!e.Flags.BHOff || e.Flags.PreemptDepth != 1) {
			t.Errorf("flags %+v", e.Flags)
		}
	}
}

// onOtherCore puts a busy reader on core 1 of a machine whose interrupts go to core 0.
func onOtherCore(mode sim.Mode, usecs int64, w host.BusyWait) (*rig, *device) {
	s := defaultSetup()
	s.mode = mode
	s.machine.Cores = 2
	r := newRig(s)
	d := r.nic("eth0", nil, 0)
	r.readCost = 100 * sim.Nanosecond
	r.reader = r.m.NewTask(r.m.Cores[1], "reader", cpu.TaskConfig{}, r.busyRead(usecs, w))
	r.reader.WakeFromDevice()
	return r, d
}

// Section 2.4 b of the kernel facts: a softirq poll that uses its weight ends the softirq's turn if
// the application prefers to poll (v5.11), and the next busy poll takes the NAPI. Without
// that wish the softirq keeps a NAPI whose ring never runs empty.
func TestPreferEndsTheSoftirqsTurn(t *testing.T) {
	for _, prefer := range []bool{false, true} {
		var first Stats
		for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
			r, d := onOtherCore(mode, 100, host.BusyWait{Prefer: prefer})
			d.napi.groFlushTimeout, d.napi.deferHardIRQs = sim.Millisecond, 100
			d.arrive(200*sim.Microsecond, 1)
			r.at(200*sim.Microsecond, 0, func() { d.saturated = true })
			r.run(t, 3*sim.Millisecond)
			soft, busy := r.sds[0].Stats(), r.sds[1].Stats()
			if mode == sim.Lazy {
				first = *busy
			}
			same(t, "busy polls as in the lazy run", busy.BusyPolls, first.BusyPolls)
			switch {
			case prefer && (soft.Polls > 5 || busy.BusyPollRxPackets < 1000):
				t.Errorf("preferring: %d softirq polls, %d frames by busy polls", soft.Polls, busy.BusyPollRxPackets)
			case !prefer && (soft.Polls < 100 || busy.BusyPollRxPackets > 0):
				t.Errorf("not preferring: %d softirq polls, %d frames by busy polls", soft.Polls, busy.BusyPollRxPackets)
			}
		}
	}
}

// The length of a loop in the kernel's microseconds of 1024 ns: a loop from unit s on ends at
// the first look in unit s + usecs + 1 or later. The loop starts at 2.4 us, in unit 2, and has turns of
// 0.4 us.
func TestBusyLoopLength(t *testing.T) {
	for usecs, polls := range map[string]int64{
		"0":  1 + 1,  // one turn, and the last poll
		"1":  5 + 1,  // until unit 4, 4.096 us: 2.4 + 5 x 0.4 = 4.4
		"10": 28 + 1, // until unit 13, 13.312 us: 2.4 + 28 x 0.4 = 13.6
		"50": 130 + 1,
	} {
		p := play(t, `
			nic eth0
			task busyreader 1us `+usecs+`
			run 1ms`)
		same(t, usecs+": polls", p.stats.BusyPolls, polls)
	}
}

// A NAPI that is polled for transmit completions only cannot be polled busily, and an
// unknown id ends the loop before it has begun.
func TestNoBusyPoll(t *testing.T) {
	r := newRig(defaultSetup())
	tx := NewNAPI(NAPIConfig{Name: "eth0", ID: 7, TXOnly: true})
	r.busy.Add(tx)
	r.task("reader", cpu.TaskConfig{}, func(task *cpu.Task) {
		for _, id := range []int{0, 7, 8} {
			r.busy.BusyLoop(task.Core(), id, &host.BusyWait{End: func(*cpu.Core, int64) bool { t.Error("a turn"); return true }})
			r.busy.SuspendIRQs(task.Core(), id)
			r.busy.ResumeIRQs(task.Core(), id)
		}
	})
	r.run(t, sim.Millisecond)
	defer func() {
		if recover() == nil {
			t.Error("an id is given twice")
		}
	}()
	n := NewNAPI(NAPIConfig{Name: "eth0", ID: 9})
	r.busy.Add(n)
	r.busy.Add(n)
}

// Busy polls allocate nothing.
func TestBusyPollsAllocateNothing(t *testing.T) {
	s := defaultSetup()
	s.log = nil
	r := newRig(s)
	r.stack.counting = true
	d := r.nic("eth0", nil, 0)
	d.polls = make([]int, 0, 1<<16)
	d.arrive(0, 1)
	r.at(0, 0, func() { d.saturated = true })
	const polls = 4000
	var before, after runtime.MemStats
	n := 0
	r.task("reader", cpu.TaskConfig{}, func(task *cpu.Task) {
		r.busy.BusyLoop(task.Core(), d.napi.ID, &host.BusyWait{End: func(*cpu.Core, int64) bool {
			switch n++; n {
			case warmUp:
				runtime.ReadMemStats(&before)
			case warmUp + polls:
				runtime.ReadMemStats(&after)
				d.saturated = false
				return true
			}
			return false
		}})
	})
	r.run(t, 20*sim.Millisecond)
	if n < warmUp+polls {
		t.Fatalf("only %d turns", n)
	}
	if m := after.Mallocs - before.Mallocs; m > polls/100 {
		t.Errorf("%d allocations in %d polls", m, polls)
	}
}

// Pitfall 20: the timer is pinned, and runs on the core that armed it even if another one arms
// it again meanwhile. Core 1 wakes at 50 us and arms it for 100 us later; from that instant on
// the interrupt takes 0.2 us and the timer 0.4 us until the NAPI's function runs. Core 0 wakes
// 100.3 us after core 1, and arms it again in between. Each expiry schedules the NAPI on its own core.
func TestPitfall20TimerArmedAgainElsewhere(t *testing.T) {
	for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
		s := defaultSetup()
		s.mode = mode
		s.machine.Cores = 2
		s.machine.Costs[model.StageHRTimer] = 400 * sim.Nanosecond
		r := newRig(s)
		d := r.nic("eth0", nil, 0)
		d.napi.irqSuspendTimeout = 100 * sim.Microsecond
		for i, at := range []sim.Time{150300 * sim.Nanosecond, 50 * sim.Microsecond} {
			task := r.m.NewTask(r.m.Cores[i], "task", cpu.TaskConfig{}, func(task *cpu.Task) {
				work(task.Core(), at-10*sim.Microsecond)
				task.SleepUntil(at)
				r.busy.SuspendIRQs(task.Core(), d.napi.ID)
			})
			task.WakeFromDevice()
		}
		r.run(t, sim.Millisecond)
		same(t, "NET_RX on core 0", r.sds[0].Stats().Softirqs[NetRX], 1)
		same(t, "NET_RX on core 1", r.sds[1].Stats().Softirqs[NetRX], 1)
		same(t, "expiries that scheduled", d.napi.Stats().Watchdog, 2)
	}
}
