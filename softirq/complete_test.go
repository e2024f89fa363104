package softirq

import (
	"fmt"
	"testing"

	"napisim/model/cpu"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq/gro"
)

// This file tests completion: MISSED, held packets, deferred interrupts and their timer.

// Pitfall 2: an interrupt while SCHED is set does nothing but MISSED. Where it does not
// even that (up to v4.10), only a device that interrupts again for what is in its ring
// prevents a stall. The second frame interrupts while the first poll completes, as in S5.
func TestPitfall02LostWakeup(t *testing.T) {
	for _, c := range []struct {
		prep, device string
		taken        int64
	}{{"lost", "", 2}, {"lost", "edge", 1}, {"missed", "", 2}, {"missed", "edge", 2}} {
		p := play(t, fmt.Sprintf(`
			kernel napi_schedule_prep=%s napi_complete=always_unmask
			nic eth0 nomask %s
			at 10us frames eth0 1
			at 12.6us frames eth0 1
			run 100ms`, c.prep, c.device))
		same(t, c.prep+" "+c.device+": frames taken", p.r.devs[0].taken, c.taken)
	}
}

// Pitfall 13: with a gro_flush_timeout superframes stay across completions. Two segments
// are held from about 12 us on, other packets arrive each 100 us until 1.91 ms. Up to
// v4.20 each completion arms the timer anew, so that it fires 3 ms after the last, at
// 4.91 ms; from v5.0 on the completion after the tick at 500 us flushes what is old. The
// timer armed before that, at 410 us, fires nevertheless at 3.41 ms: up to v5.7 it does
// nothing, as GRO holds nothing.
func TestPitfall13HeldAcrossCompletions(t *testing.T) {
	for _, c := range []struct {
		form     string
		up       sim.Time // in us
		watchdog int64
	}{{"always_unmask", 4910, 1}, {"hold", 4910, 1}, {"flush_old", 510, 0}, {"defer_hard_irqs", 510, 1}} {
		scenario := "kernel napi_complete=" + c.form + `
			machine hz=1000 tick=500us
			nic eth0 gro flush=3ms
			task hog 1s
			at 10us tcp eth0 1 2 1448`
		for at := 110; at < 2000; at += 100 {
			scenario += fmt.Sprintf("\nat %dus frames eth0 1", at)
		}
		p := play(t, scenario+"\nrun 8ms")
		var up sim.Time
		for i := range p.events {
			if e := &p.events[i]; e.Point == trace.NetifReceiveSKB && e.C == 2 {
				up = e.At
			}
		}
		if at := c.up * sim.Microsecond; up < at || up > at+15*sim.Microsecond {
			t.Errorf("%s: the superframe goes up at %v, want %v", c.form, up, at)
		}
		same(t, c.form+": polls by the timer", p.r.devs[0].napi.Stats().Watchdog, c.watchdog)
	}
}

// Without a gro_flush_timeout every completion flushes all, in all versions, and
// napi_defer_hard_irqs alone has no effect.
func TestNoTimeoutNoTimer(t *testing.T) {
	for _, form := range NAPICompleteNames() {
		p := play(t, "kernel napi_complete="+form+`
			nic eth0 gro defer=3
			at 10us tcp eth0 1 2 1448
			run 1ms`)
		same(t, form+": skbs", runLengths(p.r.stack.segs), "2")
		same(t, form+": unmasks", p.r.devs[0].unmasks, 1)
		same(t, form+": polls", runLengths(p.r.devs[0].polls), "2")
	}
}

// Fact 13 and section 2.5: after a poll with work come napi_defer_hard_irqs empty polls of
// the timer before the interrupt is back (N=0: none, and the interrupt at once).
func TestDeferralsFollowAPollWithWork(t *testing.T) {
	for n, want := range []string{"5", "5 0", "5 0x2", "5 0x3"} {
		p := play(t, fmt.Sprintf("nic eth0 flush=20us defer=%d\nat 10us frames eth0 5\nrun 1ms", n))
		same(t, fmt.Sprintf("polls with napi_defer_hard_irqs %d", n), runLengths(p.r.devs[0].polls), want)
		same(t, "interrupts", p.r.devs[0].interrupts, 1)
		same(t, "unmasks", p.r.devs[0].unmasks, 1)
	}
}

// The timer polls a busy queue without interrupts: 100 frames, one each 10 us, with a
// timer of 20 us are one interrupt.
func TestTimerPollsABusyQueue(t *testing.T) {
	scenario := "nic eth0 flush=20us defer=2\n"
	for i := range 100 {
		scenario += fmt.Sprintf("at %dus frames eth0 1\n", 10+10*i)
	}
	p := play(t, scenario+"run 3ms")
	same(t, "interrupts", p.r.devs[0].interrupts, 1)
	same(t, "unmasks", p.r.devs[0].unmasks, 1)
	same(t, "taken", p.r.devs[0].taken, 100)
}

// Pitfall 20: where MISSED schedules the NAPI again, the timer is not armed. As S5 up to
// v6.3, whose second poll gives up at 16.5 us: the timer fires 20 us after that, not 20 us
// after the first completion, and again 22.1 us later (see S7).
func TestPitfall20NoTimerWithMissed(t *testing.T) {
	p := play(t, `
		nic eth0 nomask flush=20us defer=2
		at 10us frames eth0 1
		at 12.6us frames eth0 1
		run 1ms`)
	same(t, "MISSED", p.r.devs[0].napi.Stats().Missed, 1)
	same(t, "raises", times(p, trace.SoftirqRaise), []sim.Time{10800, 14000, 36800, 58900})
}

// Pitfall 20: a timer that expires while SCHED is set does nothing, and sets no MISSED. It
// is armed at 13.0 us for 33.0 us. An interrupt at 30 us schedules the NAPI; its poll takes
// 30 frames from 32.0 us on, 0.5 us longer by the timer, and arms the timer at 45.1 us.
func TestPitfall20TimerWhileOwned(t *testing.T) {
	p := play(t, `
		nic eth0 nomask flush=20us defer=1
		at 10us frames eth0 1
		at 30us frames eth0 30
		run 1ms`)
	s := p.r.devs[0].napi.Stats()
	same(t, "MISSED", s.Missed, 0)
	same(t, "polls by the timer", s.Watchdog, 1)
	same(t, "expired timers", p.sd.core.Stats().HRTimers, 2)
	same(t, "raises", times(p, trace.SoftirqRaise), []sim.Time{10800, 30800, 65400})
}

// Pitfall 20: the timer stays on the core that polled, also when the interrupt has moved.
func TestPitfall20TimerIsPinned(t *testing.T) {
	s := defaultSetup()
	s.machine.Cores = 2
	r := newRig(s)
	d := r.nic("eth0", nil, 0)
	d.core = 1
	d.napi.groFlushTimeout, d.napi.deferHardIRQs = 50*sim.Microsecond, 1
	d.arrive(10*sim.Microsecond, 1)
	r.at(20*sim.Microsecond, phaseDevices, func() { d.core = 0 })
	d.arrive(200*sim.Microsecond, 1)
	r.run(t, sim.Millisecond)
	var cpus []int32
	for _, e := range s.log.Events() {
		if e.Point == trace.NAPIPoll {
			cpus = append(cpus, e.CPU)
		}
	}
	same(t, "CPUs of polls: interrupt and timer of each frame", cpus, []int32{1, 1, 0, 0})
}

// Section 2.4b: a full poll of a NAPI that an application prefers to poll ends with a
// completion. With a deferral timer the NAPI is idle then, its vector masked, until the
// timer, which forgets the preference; without, it is scheduled again at once.
func TestPreferBusyPollEndsAFullPoll(t *testing.T) {
	for _, c := range []struct {
		option   string
		pause    sim.Time // between the first two polls
		watchdog int64
	}{{"", 0, 0}, {"flush=50us defer=1", 50 * sim.Microsecond, 1}} {
		for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
			pl := &player{setup: defaultSetup(), to: sim.Never}
			pl.setup.mode = mode
			for _, w := range [][]string{{"nic", "eth0", "xdp"}, {"at", "10us", "frames", "eth0", "128"}} {
				pl.command(w)
			}
			d := pl.r.devs[0]
			if c.option != "" {
				pl.option(d, "flush=50us")
				pl.option(d, "defer=1")
			}
			d.napi.state |= statePreferBusyPoll
			pl.r.run(t, sim.Millisecond)
			same(t, "polls", runLengths(d.polls), "64x2 0")
			same(t, "polls by the timer", d.napi.Stats().Watchdog, c.watchdog)
			p := &played{events: pl.setup.log.Events()}
			polls := pollTimes(p)
			// The second poll takes 12.8 us, and the way to it less than 5 us.
			if pause := (polls[1]-polls[0])*sim.Nanosecond - 12800*sim.Nanosecond; pause < c.pause || pause > c.pause+5*sim.Microsecond {
				t.Errorf("%q: the second poll begins %v after the first, want %v", c.option, pause, c.pause)
			}
			same(t, "state at the end", d.napi.state, 0)
		}
	}
}

// Completion does nothing while netpoll or a busy-polling task owns the NAPI; up to v4.9
// the driver enables its interrupt nevertheless.
func TestCompletionByOthersThanTheOwner(t *testing.T) {
	for _, form := range NAPICompleteNames() {
		for _, bit := range []napiState{stateNPSvc, stateInBusyPoll} {
			if form == "always_unmask" && bit == stateInBusyPoll {
				continue // not there yet
			}
			s := defaultSetup()
			s.kernel.NAPIComplete = form
			gc := gro.DefaultConfig()
			r := once(t, s, &gc, func(_ *rig, n *NAPI, _ int) int {
				n.state |= bit
				if got := n.CompleteDone(0); got != (form == "always_unmask") {
					t.Errorf("%s, state %b: completed %v", form, bit, got)
				}
				same(t, "state", n.state, stateSched|bit)
				n.state &^= bit
				n.CompleteDone(0)
				return 0
			})
			same(t, "polls", r.sds[0].Stats().Polls, 1)
		}
	}
}

// Pitfall 19: while a busy-poll loop owns the NAPI completion is a no-op: the interrupt stays
// masked, GRO keeps what it holds, and neither timer nor MISSED change that. When the loop has
// cleared MISSED and IN_BUSY_POLL, the next completion does it all.
func TestPitfall19CompletionWhileBusyPolled(t *testing.T) {
	for _, form := range NAPICompleteNames()[1:] { // IN_BUSY_POLL came with v4.10
		for _, flush := range []sim.Time{0, 20 * sim.Microsecond} {
			s := defaultSetup()
			s.kernel.NAPIComplete = form
			r := newRig(s)
			gc := gro.DefaultConfig()
			d := r.nic("eth0", &gc, 0)
			d.napi.groFlushTimeout = flush
			d.tcp(10*sim.Microsecond, 1, 3, 1448, 0)
			r.at(sim.Microsecond, phaseDevices, func() { d.napi.state |= stateInBusyPoll })
			r.at(500*sim.Microsecond, phaseObservers, func() {
				what := fmt.Sprintf("%s, timeout %v: ", form, flush)
				same(t, what+"masked", d.masked, true)
				same(t, what+"unmasks", d.unmasks, 0)
				same(t, what+"polls", runLengths(d.polls), "3")
				same(t, what+"held by GRO", d.napi.GRO().Held(), 1)
				same(t, what+"skbs", len(r.stack.segs), 0)
				same(t, what+"timer armed", d.napi.timer != nil, false)
				same(t, what+"owned", d.napi.state, stateSched|stateInBusyPoll)
				d.napi.state &^= stateMissed | stateInBusyPoll
			})
			core := r.m.Cores[0]
			r.task("reader", cpu.TaskConfig{Sleeper: true}, func(task *cpu.Task) {
				task.SleepUntil(600 * sim.Microsecond)
				core.BHDisable()
				d.poll(8) // the last poll of busy_poll_stop
				core.BHEnable()
			})
			r.run(t, sim.Millisecond)
			same(t, form+": unmasks in the end", d.unmasks, 1)
			same(t, form+": skbs in the end", runLengths(r.stack.segs), "3")
		}
	}
}

// Netpoll polls with budget 0: a driver reclaims what it has sent, receives nothing and
// completes nothing. The NAPI stays what it was.
func TestNetpollPollsWithBudget0(t *testing.T) {
	s := defaultSetup()
	r := newRig(s)
	var budgets []int
	var n *NAPI
	n = NewNAPI(NAPIConfig{Name: "eth0", ID: 1, Poll: func(budget int) int {
		budgets = append(budgets, budget)
		r.sds[0].PollNetpoll(n) // it is polled, on this core or another
		if n.CompleteDone(0) != (budget > 0) {
			t.Errorf("completed with budget %d", budget)
		}
		return 0
	}})
	r.task("netconsole", cpu.TaskConfig{}, func(*cpu.Task) {
		r.sds[0].PollNetpoll(n)
		same(t, "state after netpoll", n.state, 0)
		r.sds[0].core.BHDisable()
		r.sds[0].NAPISchedule(n)
		r.sds[0].core.BHEnable()
	})
	r.run(t, sim.Millisecond)
	same(t, "budgets", budgets, []int{0, 64})
}
