package softirq

import (
	"fmt"

	"napisim/model/cpu"
	"napisim/sim/trace"
)

// This file is ktimers/N, the thread to which kernels with forced interrupt threads
// leave the timer softirqs that a hard interrupt raises: they would otherwise wait for
// ksoftirqd, which is not urgent, or wake it and thereby keep it running. Mainline has
// it from v6.13 or little before, kernels with the RT patches earlier: it is in the
// recordings of 6.12 RT (correction C6).

// newTimerThread makes ktimers/N, SCHED_FIFO 1; there is none, nil, unless the kernel has it.
func newTimerThread(sd *Softnet) *cpu.Task {
	c := sd.core
	if !sd.cfg.TimerThread || !c.ForcedThreaded() {
		return nil
	}
	return c.Machine().NewTask(c, fmt.Sprintf("ktimers/%d", c.ID), cpu.TaskConfig{FIFO: 1, Sleeper: true}, sd.runTimerThread)
}

// raiseTimerSoftirq is raise_ktimers_thread (v6.13, with the RT patches v6.12) where there is
// such a thread: the vector is noted apart from the others, so that no other context runs it.
func (sd *Softnet) raiseTimerSoftirq(v Vector) {
	if sd.timerThread == nil {
		sd.raiseSoftirqIRQOff(v)
		return
	}
	sd.tracePoint(trace.SoftirqRaise, int64(v))
	sd.timersPending |= v.bit()
	sd.core.Wake(sd.timerThread)
}

// runTimerThread is smpboot_thread_fn around run_ktimerd (v6.13, with the RT patches v6.12).
func (sd *Softnet) runTimerThread(t *cpu.Task) {
	c := sd.core
	c.Enter(cpu.Ksoftirqd)
	for {
		c.Look()
		if sd.timersPending == 0 {
			t.Sleep()
			continue
		}
		c.KsoftirqdRunBegin()
		sd.pending |= sd.timersPending
		sd.timersPending = 0
		sd.handleSoftirqs(cpu.Ksoftirqd)
		c.KsoftirqdRunEnd()
	}
}
