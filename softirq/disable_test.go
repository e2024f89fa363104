package softirq

import (
	"testing"

	"napisim/model/cpu"
	"napisim/sim"
)

// This file tests napi_disable and napi_enable.

// napi_disable waits for the owner, in steps, and from then on nobody can schedule the
// NAPI, until napi_enable. A full poll completes when it sees that it is disabled.
func TestDisableWaitsForTheOwner(t *testing.T) {
	for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
		s := defaultSetup()
		s.mode = mode
		s.kernel.Ksoftirqd = "inline"
		r := newRig(s)
		d := r.nic("eth0", nil, 0)
		d.noMask, d.xdp, d.saturated = true, true, true
		d.arrive(10*sim.Microsecond, 1)
		d.arrive(2*sim.Millisecond, 1) // interrupts a disabled NAPI
		d.arrive(4*sim.Millisecond, 1) // interrupts an enabled one
		var disabled, enabled sim.Time
		var took int64
		r.task("ifdown", cpu.TaskConfig{}, func(task *cpu.Task) {
			c := task.Core()
			d.napi.Disable(task)
			disabled, took = c.Now(), d.taken
			d.saturated = false
			task.SleepUntil(3 * sim.Millisecond)
			same(t, "frames taken while disabled", d.taken, took)
			d.napi.Enable(c)
			enabled = c.Now()
		})
		r.run(t, 10*sim.Millisecond)
		if disabled == 0 || disabled > 2*sim.Millisecond || enabled < 3*sim.Millisecond {
			t.Errorf("disabled at %v, enabled at %v", disabled, enabled)
		}
		same(t, "frames taken after all", d.taken, max(took+2, 3))
		same(t, "state", d.napi.state, 0)
	}
}

// A full poll of a NAPI that is to be disabled completes instead of going to the repoll list
// (section 2.4): a ring that is never empty does not hold napi_disable up.
func TestDisableEndsFullPolls(t *testing.T) {
	for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
		s := defaultSetup()
		s.mode = mode
		s.machine.Cores = 2
		r := newRig(s)
		d := r.nic("eth0", nil, 0)
		d.xdp = true
		d.arrive(10*sim.Microsecond, 1)
		r.at(10*sim.Microsecond, 0, func() { d.saturated = true })
		var disabled sim.Time
		r.m.NewTask(r.m.Cores[1], "ifdown", cpu.TaskConfig{}, func(task *cpu.Task) {
			task.SleepUntil(sim.Millisecond)
			d.napi.Disable(task)
			disabled = task.Core().Now()
			task.Sleep()
		}).WakeFromDevice()
		r.run(t, 3*sim.Millisecond)
		// A poll takes 12.8 us and little more, a step of the wait 200 us.
		if disabled < sim.Millisecond || disabled > 1300*sim.Microsecond {
			t.Errorf("disabled at %v", disabled)
		}
	}
}

// While napi_disable waits, the timer of deferred interrupts schedules nothing: here it
// expires at 33.0 us, between the completion and the next look of napi_disable, which then
// cancels the timer. A NAPI with a thread is the thread's again when it is enabled.
func TestDisableAndTimer(t *testing.T) {
	s := defaultSetup()
	s.machine.Cores = 2
	r := newRig(s)
	d := r.nic("eth0", nil, 0)
	d.napi.groFlushTimeout, d.napi.deferHardIRQs = 20*sim.Microsecond, 3
	d.arrive(10*sim.Microsecond, 1) // polled until 13.0 us
	r.m.NewTask(r.m.Cores[1], "ifdown", cpu.TaskConfig{}, func(task *cpu.Task) {
		task.SleepUntil(11200 * sim.Nanosecond) // the NAPI is owned
		d.napi.Disable(task)
		same(t, "timer armed while disabled", d.napi.timer.Armed(), false)
		d.napi.Enable(task.Core())
		d.napi.startTimer(50 * sim.Microsecond)
		d.napi.Disable(task)
		same(t, "timer armed while disabled again", d.napi.timer.Armed(), false)
	}).WakeFromDevice()
	r.run(t, sim.Millisecond)
	same(t, "polls", runLengths(d.polls), "1")
	same(t, "polls by the timer", d.napi.Stats().Watchdog, 0)
	same(t, "state", d.napi.state, stateSched|stateNPSvc)
}

func TestDisableThreaded(t *testing.T) {
	s := defaultSetup()
	r := newRig(s)
	d := r.nic("eth0", nil, 0)
	if err := d.napi.SetThreaded(r.sds[0], Threaded); err != nil {
		t.Fatal(err)
	}
	d.napi.state |= statePreferBusyPoll
	d.arrive(100*sim.Microsecond, 1)
	r.task("ifdown", cpu.TaskConfig{}, func(task *cpu.Task) {
		d.napi.Disable(task)
		same(t, "state while disabled", d.napi.state, stateSched|stateNPSvc)
		d.napi.Enable(task.Core())
		same(t, "state afterwards", d.napi.state, stateThreaded)
	})
	r.run(t, sim.Millisecond)
	same(t, "raises of NET_RX", r.sds[0].Stats().Softirqs[NetRX], 0)
	same(t, "polls", runLengths(d.polls), "1")
}

// The timer forgets that an application would rather poll (v5.11): it has not come. The poll of
// the timer takes 64 frames and goes on with the others at once.
func TestTimerForgetsThePreference(t *testing.T) {
	s := defaultSetup()
	r := newRig(s)
	d := r.nic("eth0", nil, 0)
	d.napi.groFlushTimeout, d.napi.deferHardIRQs = 50*sim.Microsecond, 1
	d.arrive(10*sim.Microsecond, 1)
	d.arrive(30*sim.Microsecond, 70)
	r.at(20*sim.Microsecond, phaseDevices, func() { d.napi.state |= statePreferBusyPoll })
	var left int64
	r.at(110*sim.Microsecond, phaseObservers, func() { left = 71 - d.taken })
	r.run(t, sim.Millisecond)
	same(t, "polls", runLengths(d.polls), "1 64 6 0")
	same(t, "frames left 47 us after the timer", left, 0)
}
