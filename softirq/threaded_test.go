package softirq

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/skbuff"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq/gro"
)

// This file tests NAPI threads.

// Pitfall 23: a NAPI thread has no budget, and the local_bh_enable after each poll runs
// other softirqs in the thread: RCU, raised by an interrupt in the middle of a poll, waits
// for the end of that poll and not for that of the burst.
func TestPitfall23ThreadRunsOtherSoftirqs(t *testing.T) {
	for _, k := range factKernels {
		p := play(t, k.line+`
			kernel budget=1
			cost rx_descriptor=1us
			nic eth0 xdp threaded
			at 10us frames eth0 300
			at 100us raise RCU
			run 2ms`)
		same(t, k.name+": polls", runLengths(p.r.devs[0].polls), "64x4 44")
		same(t, k.name+": time_squeeze", p.stats.TimeSqueeze, 0)
		same(t, k.name+": wakeups of ksoftirqd", p.stats.KsoftirqdWakeups, 0)
		// The first poll is from 14 us to 78 us, the second to about 143 us.
		inOrder(t, p.tell(), "work 64", "softirq_raise: RCU", "work 64", "softirq_entry: RCU", "work 64")
		for i := range p.events {
			if e := &p.events[i]; e.Point == trace.SoftirqEntry {
				same(t, "the task in which RCU runs", e.Comm, p.r.devs[0].napi.Thread().Name)
			}
		}
	}
}

// A thread on another core than the interrupt: all polls are there, and the frames that
// arrive while it polls cost no interrupt.
func TestThreadOnAnotherCore(t *testing.T) {
	for _, form := range []string{"if_running", "always", "busy_poll"} {
		for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
			s := defaultSetup()
			s.mode, s.machine.Cores, s.kernel.NAPIThreaded = mode, 2, form
			r := newRig(s)
			d := r.nic("eth0", nil, 0)
			if err := d.napi.SetThreaded(r.sds[1], Threaded); err != nil {
				t.Fatal(err)
			}
			d.arrive(10*sim.Microsecond, 100)
			d.arrive(200*sim.Microsecond, 7)
			r.run(t, sim.Millisecond)
			var polls []string
			for _, e := range s.log.Events() {
				if e.Point == trace.NAPIPoll {
					polls = append(polls, e.Comm)
					same(t, "CPU of a poll", e.CPU, 1)
				}
			}
			same(t, "polls", runLengths(d.polls), "64 36 7")
			same(t, "tasks that poll", slices.Compact(polls), []string{"napi/eth0-8193"})
			same(t, "interrupts", d.interrupts, 2)
			same(t, "state", d.napi.state, stateThreaded)
			same(t, "raises of NET_RX", r.sds[0].Stats().Softirqs[NetRX]+r.sds[1].Stats().Softirqs[NetRX], 0)
		}
	}
}

// Each turn of net_rx_action frees the skbs that other cores have left here (since v5.19), and
// so does a NAPI thread behind each poll (section 1.5), but only since v6.4: before, they wait
// for the next net_rx_action.
func TestThreadFreesDeferredSKBs(t *testing.T) {
	for _, c := range []struct {
		form    string
		how     Threading
		waiting int
	}{
		{"always_raise", Unthreaded, 0},
		{"skip_and_wake", Unthreaded, 0},
		{"always_raise", Threaded, 3},
		{"skip_in_net_rx_action", Threaded, 0},
		{"skip_and_wake", Threaded, 0},
	} {
		form, waiting := c.form, c.waiting
		s := defaultSetup()
		s.machine.Cores, s.kernel.NAPISchedule = 2, form
		r := newRig(s)
		heads := skbuff.New(skbuff.DefaultConfig(), r.m, &r.skbs)
		for _, sd := range r.sds {
			sd.SetHeads(heads)
		}
		d := r.nic("eth0", nil, 0)
		if err := d.napi.SetThreaded(r.sds[0], c.how); err != nil {
			t.Fatal(err)
		}
		r.m.NewTask(r.m.Cores[1], "reader", cpu.TaskConfig{}, func(*cpu.Task) {
			for range 3 { // allocated on core 0
				var list model.SKBList
				list.PushBack(r.skbs.Get())
				heads.FreeDeferred(r.m.Cores[1], &r.skbs, &list)
			}
		}).WakeFromDevice()
		d.arrive(100*sim.Microsecond, 1)
		r.run(t, sim.Millisecond)
		st := heads.On(r.m.Cores[0]).Stats()
		same(t, fmt.Sprintf("%s, %d: left and freed", form, c.how), []int64{st.Deferred, st.Drained}, []int64{3, 3 - int64(waiting)})
		same(t, fmt.Sprintf("%s, %d: live skbs", form, c.how), r.skbs.Live(), waiting)
	}
}

// A thread that is woken without a schedule polls nothing.
func TestSpuriousWakeupOfAThread(t *testing.T) {
	for _, form := range []string{"if_running", "always"} {
		s := defaultSetup()
		s.kernel.NAPIThreaded = form
		r := newRig(s)
		d := r.nic("eth0", nil, 0)
		if err := d.napi.SetThreaded(r.sds[0], Threaded); err != nil {
			t.Fatal(err)
		}
		r.at(10*sim.Microsecond, phaseDevices, d.napi.Thread().WakeFromDevice)
		d.arrive(500*sim.Microsecond, 1)
		r.run(t, sim.Millisecond)
		same(t, form+": polls", runLengths(d.polls), "1")
	}
}

// What a kernel cannot do is an error: threads come with v5.12, busy ones with v6.18.
func TestSetThreadedByVersion(t *testing.T) {
	for _, c := range []struct {
		form string
		most Threading
	}{{"none", Unthreaded}, {"if_running", Threaded}, {"always", Threaded}, {"busy_poll", ThreadedBusyPoll}} {
		for _, how := range []Threading{Unthreaded, Threaded, ThreadedBusyPoll} {
			s := defaultSetup()
			s.kernel.NAPIThreaded = c.form
			r := newRig(s)
			d := r.nic("eth0", nil, 0)
			err := d.napi.SetThreaded(r.sds[0], how)
			if (err == nil) != (how <= c.most) {
				t.Errorf("%s, %d: %v", c.form, how, err)
			}
			if (d.napi.Thread() != nil) != (err == nil && how != Unthreaded) {
				t.Errorf("%s, %d: thread %v", c.form, how, d.napi.Thread())
			}
			r.eng.Close()
		}
	}
}

// Section 1.5, v6.18: a busy-polling thread never lets the interrupt be enabled, polls
// again and again, gives the core away only to others that want it, and flushes GRO after
// each poll.
func TestBusyPollingThread(t *testing.T) {
	for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
		s := defaultSetup()
		s.mode, s.kernel.NAPIThreaded = mode, "busy_poll"
		s.machine.TickPhase = 500 * sim.Microsecond
		r := newRig(s)
		gc := gro.DefaultConfig()
		d := r.nic("eth0", &gc, 0)
		if err := d.napi.SetThreaded(r.sds[0], ThreadedBusyPoll); err != nil {
			t.Fatal(err)
		}
		d.arrive(10*sim.Microsecond, 1)
		d.tcp(100*sim.Microsecond, 1, 2, 1448, 0)
		d.arrive(200*sim.Microsecond, 100)
		task := r.task("hog", cpu.TaskConfig{}, hog(20*sim.Millisecond))
		var up sim.Time // of the two segments: their poll is empty but for them
		r.stack.seen = func(c *cpu.Core, s *model.SKB) {
			if s.Segs == 2 {
				up = c.Now()
			}
		}
		r.run(t, 30*sim.Millisecond)
		if up == 0 || up > 110*sim.Microsecond {
			t.Errorf("GRO is flushed at %v", up)
		}
		same(t, "interrupts", d.interrupts, 1)
		same(t, "unmasks", d.unmasks, 0)
		same(t, "taken", d.taken, 103)
		same(t, "state", d.napi.state, stateSched|stateInBusyPoll|stateThreaded|stateThreadedBusyPoll|stateSchedThreaded)
		same(t, "raises of NET_RX", r.sds[0].Stats().Softirqs[NetRX], 0)
		if !slices.Contains(r.stack.segs, 2) || d.napi.holding() {
			t.Errorf("GRO is not flushed: %s", runLengths(r.stack.segs))
		}
		if len(d.polls) < 5000 { // an empty poll takes about 0.8 us
			t.Errorf("%d polls", len(d.polls))
		}
		if n := task.Stats().Switches; n < 3 {
			t.Errorf("the hog ran %d times", n)
		}
	}
}

// Fact 14 and pitfall 23: the interrupt wakes the NAPI's thread and raises nothing; the
// thread polls without a limit, with softirqs off (flag b), tests for a due task switch
// after each poll, and shares the core with a hog by the rules of the scheduler.
func TestFact14ThreadedNAPI(t *testing.T) {
	for _, k := range factKernels {
		p := play(t, k.line+`
			machine tick=500us
			cost rx_descriptor=6us
			nic eth0 xdp threaded
			task hog 1s
			at 10us frames eth0 2000
			run 60ms`)
		same(t, k.name+": raises of NET_RX", count(p.tell(), "softirq_raise: NET_RX"), 0)
		same(t, k.name+": polls", runLengths(p.r.devs[0].polls), "64x31 16")
		same(t, k.name+": interrupts", p.r.devs[0].interrupts, 1)
		frames, yields := 0, 0
		for i := range p.events {
			e := &p.events[i]
			switch e.Point {
			case trace.NAPIPoll:
				frames = 0
				if !e.Flags.BHOff || e.Flags.Context != trace.Task || e.Comm != "napi/eth0-8193" {
					t.Fatalf("%s: polled in %s with flags %+v", k.name, e.Comm, e.Flags)
				}
			case trace.NetifReceiveSKB:
				frames++
			case trace.SchedSwitch:
				if strings.HasPrefix(e.Comm, "napi/") && e.T[0] == 'R' {
					yields++
					if frames != 0 || e.Flags.BHOff {
						t.Errorf("%s: preempted in a poll at %v", k.name, e.At)
					}
				}
			}
		}
		if yields < 2 {
			t.Errorf("%s: the thread gave the core away %d times", k.name, yields)
		}
	}
}
