package cpu

import "fmt"

// This file is forced interrupt threads (the boot option threadirqs) and what
// PREEMPT_RT adds: a lock for BH-off sections, in which tasks can be preempted.

// irqThreadPriority is the SCHED_FIFO priority of interrupt threads.
const irqThreadPriority = 50

// ForcedThreaded reports whether interrupt handlers run in threads (force_irqthreads).
// Then softirqs do not run where a hard interrupt ends: invoke_softirq wakes ksoftirqd.
func (c *Core) ForcedThreaded() bool { return c.m.cfg.ThreadIRQs || c.m.cfg.PreemptRT }

// PreemptRT reports whether the kernel is PREEMPT_RT.
func (c *Core) PreemptRT() bool { return c.m.cfg.PreemptRT }

// BHLocked is the contrary of should_wake_ksoftirqd: it reports whether a BH-off section is
// active on the core, in the task that runs or, on PREEMPT_RT, in one that was preempted in
// it. Its end runs what is pending, so ksoftirqd need not be woken.
func (c *Core) BHLocked() bool { return c.bhOff > 0 || c.serving || c.bhOwner != nil }

// newThread makes the thread of a line, irq/NN-name.
func (l *Line) newThread() *Task {
	c := l.core
	return c.m.NewTask(c, fmt.Sprintf("irq/%d-%s", l.IRQ, l.Name), TaskConfig{FIFO: irqThreadPriority, Sleeper: true}, l.runThread)
}

// wakeThread is what is left of the hard interrupt (irq_default_primary_handler and
// __irq_wake_thread).
func (l *Line) wakeThread() {
	l.threadDue = true
	l.core.Wake(l.thread)
}

// runThread is irq_thread with irq_forced_thread_fn: the handler runs with BH and
// interrupts off, and where BH are enabled again what it has raised runs. Before v5.12
// or little later, and on PREEMPT_RT, interrupts are on in the handler; it is so short
// that only their instant by less than its length depends on that.
func (l *Line) runThread(t *Task) {
	c := l.core
	for {
		c.Look()
		if !l.threadDue {
			t.Sleep()
			continue
		}
		l.threadDue = false
		c.BHDisable()
		c.IRQDisable()
		l.handler(c)
		c.IRQEnable()
		c.BHEnable()
	}
}

// KsoftirqdRunBegin is ksoftirqd_run_begin, what a thread does before it runs
// softirqs: interrupts are off, and on PREEMPT_RT it owns the BH lock. What is pending
// may have changed when it returns.
func (c *Core) KsoftirqdRunBegin() {
	if c.m.cfg.PreemptRT {
		c.Look()
		c.lockBH()
	}
	c.IRQDisable()
}

// KsoftirqdRunEnd is ksoftirqd_run_end. It does not run what is pending.
func (c *Core) KsoftirqdRunEnd() {
	if !c.m.cfg.PreemptRT {
		c.IRQEnable()
		return
	}
	c.Look()
	c.unlockBH()
	c.IRQEnable()
	c.PreemptCheck()
}

// lockBH is local_lock(&softirq_ctrl.lock) of PREEMPT_RT: one task of a core at a time
// has BH off. Who waits for it sleeps, and lends the owner its priority meanwhile.
func (c *Core) lockBH() {
	t := c.cur
	if c.bhOwner == t {
		return
	}
	for c.bhOwner != nil || !c.maySteal(t) {
		if c.bhOwner != nil {
			c.boost(c.bhOwner, t.fifo())
		}
		c.bhWaiters = append(c.bhWaiters, t)
		t.state = stateBlocked
		c.schedule(false)
		c.Look()
	}
	c.bhOwner, c.bhHeir = t, nil
}

// maySteal is rt_mutex_steal: a free lock belongs to the waiter that was woken for it,
// unless t has a higher priority. Among ordinary tasks who comes first gets it; tasks
// with real-time priorities may not overtake their like.
func (c *Core) maySteal(t *Task) bool {
	h := c.bhHeir
	return h == nil || h == t || t.fifo() > h.fifo() || t.fifo() == 0 && h.fifo() == 0
}

// unlockBH gives the lock back and wakes the waiter with the highest priority, of
// several the first.
func (c *Core) unlockBH() {
	t := c.bhOwner
	c.bhOwner = nil
	c.unboost(t)
	if len(c.bhWaiters) == 0 {
		return
	}
	top := 0
	for i, w := range c.bhWaiters {
		if w.fifo() > c.bhWaiters[top].fifo() {
			top = i
		}
	}
	w := c.bhWaiters[top]
	c.bhWaiters = append(c.bhWaiters[:top], c.bhWaiters[top+1:]...)
	c.bhHeir = w
	c.activate(w)
}

// fifo returns the task's SCHED_FIFO priority, that of a waiter it holds up included.
func (t *Task) fifo() int { return max(t.cfg.FIFO, t.lent) }

// boost is rt_mutex_setprio of a task that was preempted: it gets a waiter's priority.
func (c *Core) boost(t *Task, priority int) {
	if priority <= t.fifo() {
		return
	}
	if t.fifo() > 0 {
		c.dequeueRT(t)
	} else {
		c.fair.Leave(&t.ent)
	}
	t.lent = priority
	c.enqueueRT(t)
}

// unboost takes back what the running task was lent.
func (c *Core) unboost(t *Task) {
	if t.lent == 0 {
		return
	}
	c.updateCurr()
	c.dequeueRT(t)
	t.lent = 0
	if t.cfg.FIFO > 0 {
		c.enqueueRT(t)
	} else {
		c.fair.Join(&t.ent)
	}
	if len(c.rt) > 0 && c.rt[0].fifo() > t.fifo() {
		c.needResched = true
	}
}
