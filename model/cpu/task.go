package cpu

import (
	"napisim/model"
	"napisim/sim"
)

type taskState uint8

const (
	stateNew     taskState = iota
	stateRunning           // running or runnable: TASK_RUNNING
	stateSleeping
	stateWaking // a remote wakeup is on its way
	stateDead
)

// TaskConfig describes a task. The zero value is SCHED_NORMAL at nice 0.
type TaskConfig struct {
	// Nice is the nice value, -20 to 19.
	Nice int
	// FIFO is the SCHED_FIFO priority, 1 to 99; 0 means SCHED_NORMAL.
	FIFO int
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
	ent   entity
	begun bool
	stats TaskStats
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
		c.finishSwitch(System, false)
		body(t)
		t.exit()
	})
}

func (m *Machine) newTask(c *Core, name string, cfg TaskConfig, body func(*Task)) *Task {
	t := &Task{Name: name, PID: m.nextPID, core: c, cfg: cfg}
	m.nextPID++
	t.ent.weight = niceWeight(cfg.Nice)
	t.proc = m.eng.NewProc(name, func(*sim.Proc) { body(t) })
	return t
}

// Core returns the core that the task runs on.
func (t *Task) Core() *Core { return t.core }

// Stats returns the task's counters.
func (t *Task) Stats() TaskStats { return t.stats }

// Runtime returns the time that the scheduler has charged to the task.
func (t *Task) Runtime() sim.Time { return t.ent.sumExec }

// Runnable reports whether the task is running or waits for a core: the test that
// ksoftirqd_running makes.
func (t *Task) Runnable() bool { return t.state == stateRunning }

// Sleep gives the core away until the task is woken. The caller has looked and found nothing to do, and must
// not look in between: a wakeup could get lost. Wakeups can be spurious, so it is
// called in a loop around the condition.
func (t *Task) Sleep() {
	t.state = stateSleeping
	t.core.schedule()
}

// ToUser is the return to user mode: a due switch happens first.
func (t *Task) ToUser() {
	c := t.core
	c.Look()
	for c.needResched {
		c.schedule()
	}
	c.ctx = User
}

// ToKernel enters the kernel, as a system call does.
func (t *Task) ToKernel() { t.core.Enter(System) }

func (t *Task) exit() {
	t.core.Look()
	t.state = stateDead
	t.core.schedule()
}

// Wake is try_to_wake_up by code that runs on core c. On its own core the task is
// queued at once; on another it is handed over with a rescheduling interrupt.
// Waking a task that does not sleep does nothing.
func (c *Core) Wake(t *Task) {
	c.Look()
	if t.state != stateSleeping && t.state != stateNew {
		return
	}
	if t.core == c {
		c.activate(t)
		return
	}
	c.Spend(model.StageIPI)
	c.Look()
	if t.state == stateSleeping || t.state == stateNew {
		t.wakeRemote()
	}
}

// WakeFromDevice wakes t from the engine's context: a timer outside the cores, or
// the start of the run.
func (t *Task) WakeFromDevice() {
	if t.state == stateSleeping || t.state == stateNew {
		t.wakeRemote()
	}
}

func (t *Task) wakeRemote() {
	c := t.core
	t.state = stateWaking
	c.wakeList = append(c.wakeList, t)
	if !c.rescheduled {
		c.rescheduled = true
		c.eng.Schedule(c.eng.Now()+c.m.cfg.IPILatency, c.phase, c, argIPI)
	}
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

// activate queues t on this core and lets it preempt what runs if it may.
func (c *Core) activate(t *Task) {
	fresh := !t.begun
	t.begun = true
	t.state = stateRunning
	t.stats.Wakeups++
	c.traceWakeup(t)
	if t.cfg.FIFO > 0 {
		c.enqueueRT(t)
		if c.cur.cfg.FIFO < t.cfg.FIFO {
			c.needResched = true
		}
		return
	}
	c.updateCurr()
	c.fair.enqueue(&t.ent, fresh)
	t.ent.task = t
	switch {
	case c.cur == c.idle:
		c.needResched = true
	case c.cur.cfg.FIFO > 0 || c.needResched:
	case c.fair.preempts(&t.ent):
		c.needResched = true
	}
}

// prio returns the kernel's priority number: 120 plus nice, or 99 minus FIFO.
func (t *Task) prio() int {
	if t.cfg.FIFO > 0 {
		return 99 - t.cfg.FIFO
	}
	return 120 + t.cfg.Nice
}
