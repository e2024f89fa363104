package softirq

import (
	"fmt"

	"napisim/model/cpu"
	"napisim/sim"
)

// noThread: ____napi_schedule up to v5.11 knows no threads.
func noThread(*Softnet, *NAPI) bool { return false }

// wakeThreadIfRunning: ____napi_schedule from v5.12 to v6.9 marks the NAPI as its
// thread's own only if the thread is awake; one that sleeps knows from being woken.
func wakeThreadIfRunning(sd *Softnet, n *NAPI) bool {
	if !n.threaded() {
		return false
	}
	if n.thread.Runnable() {
		n.state |= stateSchedThreaded
	}
	sd.core.Wake(n.thread)
	return true
}

// wakeThread: ____napi_schedule in v6.12 and later marks the NAPI in any case.
func wakeThread(sd *Softnet, n *NAPI) bool {
	if !n.threaded() {
		return false
	}
	n.state |= stateSchedThreaded
	sd.core.Wake(n.thread)
	return true
}

// threaded reports whether the NAPI is polled by a thread.
func (n *NAPI) threaded() bool { return n.state&stateThreaded != 0 && n.thread != nil }

// Threading says who polls a NAPI (/sys/class/net/IF/threaded; since v6.17 a value of
// each NAPI).
type Threading uint8

// The ways to poll.
const (
	// Unthreaded leaves it to the NET_RX softirq.
	Unthreaded Threading = iota
	// Threaded gives it to a thread of its own (v5.12).
	Threaded
	// ThreadedBusyPoll lets that thread poll without a pause (v6.18).
	ThreadedBusyPoll
)

// threadLag is how far a thread of the kernel is behind when it first sleeps: it runs little,
// and others have run meanwhile. How far does not matter; in recordings of v6.12 the first
// wakeup of ksoftirqd and of each NAPI thread preempts, which without a lag it would not.
const threadLag = 50 * sim.Microsecond

// SetThreaded is napi_set_threaded (v5.12): it makes the NAPI's thread, on the core of sd, and
// lets it poll from the next schedule on. The thread is an ordinary task; Linux lets it
// run anywhere, here it stays on its core. It belongs to the construction of a run. The
// error says that the kernel version cannot do it.
func (n *NAPI) SetThreaded(sd *Softnet, how Threading) error {
	b := &sd.b.napiThreaded
	if how > b.Most {
		return fmt.Errorf("threaded: the kernel cannot do it (napi_threaded is %s)", b.Name)
	}
	if how != Unthreaded && n.thread == nil {
		c := sd.core
		n.threadSD = sd
		n.thread = c.Machine().NewTask(c, fmt.Sprintf("napi/%s-%d", n.Name, n.ID), cpu.TaskConfig{Sleeper: true, Lag: threadLag}, n.threadedPoll)
	}
	n.threading = how
	n.state &^= stateThreaded | stateThreadedBusyPoll
	if how >= Threaded {
		n.state |= stateThreaded
	}
	if how == ThreadedBusyPoll {
		n.state |= stateThreadedBusyPoll
	}
	return nil
}

// Thread returns the NAPI's thread, nil when it has none.
func (n *NAPI) Thread() *cpu.Task { return n.thread }

// threadedPoll is napi_threaded_poll (v5.12), the body of the thread: it waits for the NAPI and
// polls it. Its first wakeup is one for the NAPI.
func (n *NAPI) threadedPoll(t *cpu.Task) {
	for woken := true; ; woken = false {
		n.threadWait(t, woken)
		busy := n.state&stateThreadedBusyPoll != 0 && n.state&stateDisable == 0
		if busy {
			n.state |= stateInBusyPoll
		} else {
			n.state &^= stateInBusyPoll
		}
		n.threadedPollLoop(busy)
	}
}

// threadWait is napi_thread_wait: it sleeps until the NAPI is the thread's. Up to v6.9
// being woken is proof of that, later only SCHED_THREADED is.
func (n *NAPI) threadWait(t *cpu.Task, woken bool) {
	c := t.Core()
	for {
		c.Look()
		if n.state&stateSchedThreaded != 0 || woken && n.threadSD.b.napiThreaded.WokenOwns {
			return
		}
		t.Sleep()
		woken = true
	}
}

// threadedPollLoop is napi_threaded_poll_loop (v5.12, at first within napi_threaded_poll):
// polls with softirqs off, without budget or time limit, one test for a due task switch after
// each, until the NAPI wants no more. What softirqs became pending meanwhile run in the thread
// where each poll ends.
func (n *NAPI) threadedPollLoop(busy bool) {
	sd := n.threadSD
	c := sd.core
	for again := true; again; {
		c.BHDisable()
		n.sd = sd
		sd.inNAPIThreadedPoll = true
		_, again = sd.pollOnce(n)
		sd.inNAPIThreadedPoll = false
		if sd.b.napiSchedule.Threads { // since v6.4
			sd.sendRPSIPIs()
			sd.heads.FlushDeferred(c)
		}
		if busy {
			n.groFlushNormal(c.Machine().HZ() >= 1000)
		}
		c.BHEnable()
		if again || busy {
			c.CondResched()
		}
	}
}

// Disable is napi_disable by task t: it waits until nobody owns the NAPI, and owns it
// then, so that it cannot be scheduled. Its timer is cancelled. The wait is that of v6.3
// and later, of which the kernel leaves open how long a step is.
func (n *NAPI) Disable(t *cpu.Task) {
	const step = 200 * sim.Microsecond // usleep_range(20, 200)
	c := t.Core()
	c.Look()
	n.state |= stateDisable
	for n.state&(stateSched|stateNPSvc) != 0 {
		t.SleepUntil(c.Now() + step)
		c.Look()
	}
	n.state |= stateSched | stateNPSvc
	n.state &^= stateThreaded | statePreferBusyPoll
	if n.timer != nil {
		n.timer.Cancel()
	}
	n.state &^= stateDisable
}

// Enable is napi_enable (all versions) by code on core c: a NAPI that Disable has taken can be
// scheduled again.
func (n *NAPI) Enable(c *cpu.Core) {
	c.Look()
	if n.state&stateSched == 0 {
		panic("softirq: " + n.Name + " is enabled already")
	}
	n.state &^= stateSched | stateNPSvc
	if n.threading != Unthreaded {
		n.state |= stateThreaded
	}
}

// PollNetpoll is poll_one_napi of netpoll (all versions), on this core: a poll with budget 0,
// in which a driver may reclaim transmitted frames and must not receive. Completion does
// nothing meanwhile. It leaves a NAPI alone that is being polled.
func (sd *Softnet) PollNetpoll(n *NAPI) {
	sd.core.Look()
	if n.polling || n.state&stateNPSvc != 0 {
		return
	}
	owner := n.sd
	n.state |= stateNPSvc
	n.sd, n.polling = sd, true
	if work := n.poll(0); work > 0 {
		panic(fmt.Sprintf("softirq: %s handled %d frames with budget 0", n.Name, work))
	}
	sd.tracePoll(n, 0, 0)
	n.state &^= stateNPSvc
	n.sd, n.polling = owner, false
}
