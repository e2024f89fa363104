package cpu

import (
	"fmt"

	"napisim/model"
	"napisim/model/cpu/fair"
	"napisim/sim"
)

type taskState uint8

const (
	stateNew     taskState = iota
	stateRunning           // running or runnable: TASK_RUNNING
	stateSleeping
	stateBlocked // waits for the BH lock of PREEMPT_RT; no wakeup but the lock's counts
	stateWaking  // a remote wakeup is on its way
	stateDead
)

// TaskConfig describes a task. The zero value is SCHED_NORMAL at nice 0.
type TaskConfig struct {
	// Nice is the nice value, -20 to 19.
	Nice int
	// FIFO is the SCHED_FIFO priority, 1 to 99; 0 means SCHED_NORMAL.
	FIFO int
	// Sleeper says that the task was started before the run and has slept since, as
	// kernel threads do that were made at boot: its first wakeup is one from sleep.
	Sleeper bool
	// Lag is how far a Sleeper was behind the average when it fell asleep, which EEVDF
	// remembers; CFS does not look at it.
	Lag sim.Time
}

// Validate returns every fault of the configuration.
func (c TaskConfig) Validate() []error {
	var faults []error
	if c.Nice < -20 || c.Nice > 19 {
		faults = append(faults, fmt.Errorf("nice: %d is not between -20 and 19", c.Nice))
	}
	if c.Lag < 0 || c.Lag > sim.Second {
		faults = append(faults, fmt.Errorf("lag: %v is not between 0 and 1s", c.Lag))
	}
	if c.FIFO < 0 || c.FIFO > 99 {
		faults = append(faults, fmt.Errorf("fifo: %d is not between 0 and 99", c.FIFO))
	}
	return faults
}

// Task is a thread: a coroutine on one core under its scheduler.
type Task struct {
	// Name is comm, PID the process id.
	Name string
	PID  int

	core  *Core
	proc  *sim.Proc
	cfg   TaskConfig
	state taskState
	begun bool
	ent   fair.Entity
	since sim.Time // when its runtime was last brought up to date, by the clock of updateClock
	stats TaskStats

	lent    int // SCHED_FIFO priority of a task that waits for the BH lock it holds
	bhOff   int // of a preempted task, as in Core
	serving bool

	sleeper *HRTimer // of SleepUntil; made when first needed
	charges []charge // of what it was preempted in, not paid for yet
}

// TaskStats are the counters of one task.
type TaskStats struct {
	// Wakeups counts wakeups from sleep.
	Wakeups int64
	// Switches counts how often the task was switched to.
	Switches int64
	// Preempted counts how often it was switched away while runnable.
	Preempted int64
}

// NewTask makes a task on core c that runs body; it does nothing until woken. When
// body returns the task is dead.
func (m *Machine) NewTask(c *Core, name string, cfg TaskConfig, body func(*Task)) *Task {
	return m.newTask(c, name, cfg, func(t *Task) {
		c.begin()
		body(t)
		t.exit()
	})
}

func (m *Machine) newTask(c *Core, name string, cfg TaskConfig, body func(*Task)) *Task {
	t := &Task{Name: name, PID: m.nextPID, core: c, cfg: cfg}
	m.nextPID++
	t.ent = fair.NewEntity(t, cfg.Nice)
	t.ent.SetLag(cfg.Lag)
	t.proc = m.eng.NewProc(name, func(*sim.Proc) { body(t) })
	return t
}

// Core returns the core that the task runs on.
func (t *Task) Core() *Core { return t.core }

// Stats returns the task's counters.
func (t *Task) Stats() TaskStats { return t.stats }

// Runtime returns the time that the scheduler has charged to the task.
func (t *Task) Runtime() sim.Time { return t.ent.Ran }

// Runnable is the test of ksoftirqd_running: it reports whether the task is running or waits
// for a core.
func (t *Task) Runnable() bool { return t.state == stateRunning }

// Sleep gives the core away until the task is woken. The caller has looked and found
// nothing to do. It must not have spent anything since: in that time somebody could
// have made work and found the task awake, and the wakeup would be lost. Wakeups can
// be spurious, so Sleep is called in a loop around the condition.
func (t *Task) Sleep() {
	c := t.core
	if c.debt != 0 && c.m.cfg.TraceCost == 0 { // a traced event is no look at the world
		panic("cpu: task " + t.Name + " sleeps on what it saw before it spent time")
	}
	t.state = stateSleeping
	c.schedule(false)
}

// SleepUntil is an hrtimer sleeper (do_nanosleep): the task gives the core away until
// a timer interrupt at exactly that instant wakes it. It goes on sleeping when woken
// by somebody else. An instant that is not in the future returns at once.
func (t *Task) SleepUntil(at sim.Time) {
	t.core.Look()
	for !t.SleepTimeout(at) {
	}
}

// SleepTimeout is schedule_hrtimeout: Sleep with a limit. It returns when the task is
// woken, and reports whether the instant was reached. As with Sleep, the caller has
// looked, found nothing to do and spent nothing since.
func (t *Task) SleepTimeout(at sim.Time) (expired bool) {
	c := t.core
	if c.debt == 0 && at <= c.eng.Now() {
		return true
	}
	if t.sleeper == nil {
		t.sleeper = c.NewHRTimer(func(c *Core) { c.Wake(t) })
		t.sleeper.hard = t.cfg.FIFO > 0
	}
	t.sleeper.Start(at)
	t.Sleep()
	c.Look()
	expired = !t.sleeper.Armed()
	t.sleeper.Cancel()
	return expired
}

// ToUser is the return to user mode: a due switch happens first.
func (t *Task) ToUser() {
	c := t.core
	c.Look()
	c.mustNotBeAtomic("return to user mode")
	for c.switchDue() {
		c.schedule(false)
	}
	c.ctx = User
}

// ToKernel enters the kernel, as a system call does.
func (t *Task) ToKernel() { t.core.Enter(System) }

// exit is do_exit: the core goes to the next task and the coroutine ends.
func (t *Task) exit() {
	c := t.core
	c.Look()
	c.mustNotBeAtomic("exit")
	t.state = stateDead
	c.switchTask(false)
}

// Wake is try_to_wake_up by code that runs on core c. On its own core the task is
// queued at once; on another it is handed over with a rescheduling interrupt.
// Waking a task that does not sleep does nothing.
func (c *Core) Wake(t *Task) {
	c.Look()
	switch {
	case !t.asleep():
		return
	case t.core == c:
		c.activate(t)
	case t.queueWakeup():
		// The interrupt leaves when its cost is paid; nothing on this core delays it.
		off := c.irqsOff
		c.irqsOff = true
		c.Spend(model.StageIPI)
		c.Look()
		t.core.sendReschedule()
		c.IRQRestore(off)
	}
	c.PreemptCheck()
}

// WakeFromDevice wakes t from the engine's context: a timer outside the cores, or
// the start of the run.
func (t *Task) WakeFromDevice() {
	if t.asleep() && t.queueWakeup() {
		t.core.sendReschedule()
	}
}

// asleep reports whether a wakeup would change something.
func (t *Task) asleep() bool { return t.state == stateSleeping || t.state == stateNew }

// queueWakeup is ttwu_queue_wakelist: it leaves the wakeup to the task's own core,
// and reports whether an interrupt has to be sent for it. One that is on its way
// takes all.
func (t *Task) queueWakeup() bool {
	c := t.core
	t.state = stateWaking
	c.wakeList = append(c.wakeList, t)
	send := !c.rescheduled
	c.rescheduled = true
	return send
}

func (c *Core) sendReschedule() {
	c.eng.Schedule(c.eng.Now()+c.m.cfg.IPILatency, c.phase(phaseInterrupts), c, argIPI)
}

// handleResched is the rescheduling interrupt: it queues what other cores woke.
func (c *Core) handleResched() {
	c.Look()
	c.stats.IPIs++
	c.rescheduled = false
	for i, t := range c.wakeList {
		c.wakeList[i] = nil
		c.activate(t)
	}
	c.wakeList = c.wakeList[:0]
}

// prio returns the kernel's priority number: 120 plus nice, or 99 minus FIFO.
func (t *Task) prio() int {
	if t.fifo() > 0 {
		return 99 - t.fifo()
	}
	return 120 + t.cfg.Nice
}
