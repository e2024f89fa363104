package cpu

import (
	"math/bits"

	"napisim/model"
	"napisim/sim"
	"napisim/sim/trace"
)

// Line is an interrupt line into one core, with its handler. Lines that are
// pending together are taken in the order in which they were made.
type Line struct {
	// IRQ is the Linux interrupt number; -1 for the local timer and IPIs, which x86
	// does not trace as interrupts.
	IRQ int
	// Name is the action's name in /proc/interrupts.
	Name string
	// Count is the number of times the handler has run.
	Count int64

	core    *Core
	bit     uint64
	handler func(*Core)

	thread    *Task // where handlers run in threads
	threadDue bool
}

// NewLine adds an interrupt line. The handler runs in hardirq context with interrupts
// off; where handlers are threaded, in a thread with BH and interrupts off. A core has at most 64 lines.
func (c *Core) NewLine(irq int, name string, handler func(*Core)) *Line {
	if len(c.lines) == 64 {
		panic("cpu: more than 64 interrupt lines on one core")
	}
	l := &Line{IRQ: irq, Name: name, core: c, bit: 1 << len(c.lines), handler: handler}
	c.lines = append(c.lines, l)
	if irq >= 0 && c.ForcedThreaded() {
		l.thread = l.newThread()
	}
	return l
}

// Core returns the core that the line leads to.
func (l *Line) Core() *Core { return l.core }

// Raise makes the line pending on its core; see Core.Raise.
func (l *Line) Raise() { l.core.Raise(l) }

// SendIPI is smp_call_function_single_async to the core that l leads to: code on core c
// raises l there, as an interrupt between processors.
func (c *Core) SendIPI(l *Line) {
	c.Look()
	off := c.irqsOff
	c.irqsOff = true // the interrupt leaves when its cost is paid
	c.Spend(model.StageIPI)
	c.Look()
	c.eng.Schedule(c.eng.Now()+c.m.cfg.IPILatency, l.core.phase(phaseInterrupts), l, 0)
	c.IRQRestore(off)
}

// Fire raises a line that SendIPI has sent; the engine calls it.
func (l *Line) Fire(uint64) { l.Raise() }

// Raise makes l pending at the present instant, and interrupts the core if interrupts
// are on. It is called in the engine's context, or by code on a core that has looked.
//
// The core goes on through the queue and not at once: all that devices do at this
// instant comes first, lines that become pending together are taken in their order,
// and no other core can run past this one meanwhile.
func (c *Core) Raise(l *Line) {
	c.pending |= l.bit
	if c.irqsOff || c.kicked {
		return // seen when interrupts are enabled, or on the way already
	}
	if c.parked == paying {
		c.eng.Cancel(c.resume)
	}
	c.kick()
}

// kick lets the core go on at this instant.
func (c *Core) kick() {
	c.kicked = true
	c.resume = c.eng.Schedule(c.eng.Now(), c.phase(phaseCores), c, argResume)
}

// IRQDisable is local_irq_disable. Interrupts due before it are taken first.
func (c *Core) IRQDisable() {
	c.Look()
	c.irqsOff = true
}

// IRQEnable is local_irq_enable: what became pending meanwhile is taken now.
func (c *Core) IRQEnable() {
	c.Look()
	c.irqsOff = false
	if c.pending != 0 {
		c.deliver()
	}
}

// IRQSave is local_irq_save: it returns the state that IRQRestore needs.
func (c *Core) IRQSave() (off bool) {
	if c.irqsOff {
		return true
	}
	c.IRQDisable()
	return false
}

// IRQRestore is local_irq_restore.
func (c *Core) IRQRestore(off bool) {
	if !off {
		c.IRQEnable()
	}
}

// IRQsDisabled reports whether interrupts are off.
func (c *Core) IRQsDisabled() bool { return c.irqsOff }

// InHardirq reports whether a hard interrupt handler is running.
func (c *Core) InHardirq() bool { return c.hardirqs > 0 }

// ServingSoftirq reports whether a softirq is running.
func (c *Core) ServingSoftirq() bool { return c.serving }

// InKsoftirqd reports whether softirqs are served by ksoftirqd at present.
func (c *Core) InKsoftirqd() bool { return c.ctx == Ksoftirqd }

// InInterrupt is in_interrupt(): hardirq, softirq or a BH-off section.
func (c *Core) InInterrupt() bool { return c.hardirqs > 0 || c.serving || c.bhOff > 0 }

// deliver takes every pending interrupt, nested on the present context, and then
// does what the return from an interrupt does: preempt the interrupted code if it
// may be preempted, and start again with what became pending in the switches.
func (c *Core) deliver() {
	spending, outer := c.spending, c.nest() // of the interrupted code, not of what runs now
	c.spending = false
	for {
		for c.pending != 0 {
			l := c.lines[bits.TrailingZeros64(c.pending)]
			c.pending &^= l.bit
			c.handle(l)
		}
		if !c.preemptsAtIRQReturn() {
			break
		}
		c.switchTask(c.ctx != User)
	}
	c.unnest(outer)
	c.spending = spending
}

// handle is irq_enter, the handler and irq_exit with its softirqs: one interrupt.
func (c *Core) handle(l *Line) {
	prev := c.ctx
	entered := c.eng.Now()
	if c.hardirqs == 0 {
		c.outer = prev
	}
	if c.tickStopped && !c.InInterrupt() {
		c.m.updateJiffies() // tick_irq_enter; an interrupt in a softirq does not
	}
	c.hardirqs++
	c.irqsOff = true
	c.ctx = Hardirq
	c.stats.Interrupts++
	l.Count++
	c.Spend(model.StageHardirqEntry)
	c.Look()
	c.traceIRQ(trace.IRQHandlerEntry, l)
	if l.thread != nil {
		l.wakeThread()
	} else {
		l.handler(c)
	}
	c.Look()
	c.traceIRQ(trace.IRQHandlerExit, l)
	c.Spend(model.StageHardirqExit)
	c.Look()
	c.hardirqs--
	if c.hardirqs == 0 && (!c.serving || prev == Ksoftirqd) {
		c.irqTime += c.eng.Now() - entered // otherwise part of the softirq's
	}
	if c.soft != nil && !c.InInterrupt() && c.soft.Pending() {
		c.soft.InvokeSoftirq()
		c.Look()
	}
	c.ctx = prev
	c.irqsOff = false
}

// preemptsAtIRQReturn: user code is always preempted if a switch is due, kernel code
// only where it is preemptible and outside atomic sections, and not for one that is
// put off. The idle loop looks for itself.
func (c *Core) preemptsAtIRQReturn() bool {
	if c.atomic() || c.cur == c.idle {
		return false
	}
	if c.ctx == User {
		return c.switchDue()
	}
	return c.needResched && c.m.cfg.Preempt >= PreemptFull
}

// switchDue reports whether a task switch is due, at once or lazily.
func (c *Core) switchDue() bool { return c.needResched || c.reschedLazy }

// BHDisable is local_bh_disable. On PREEMPT_RT it waits while another task of the core
// has BH off.
func (c *Core) BHDisable() {
	c.Look()
	if c.m.cfg.PreemptRT && c.hardirqs == 0 {
		c.lockBH()
	}
	c.bhOff++
}

// BHEnable is local_bh_enable: the last one runs pending softirqs in the caller's
// context and then lets a woken task preempt.
func (c *Core) BHEnable() {
	c.Look()
	if c.bhOff == 0 {
		panic("cpu: local_bh_enable without local_bh_disable")
	}
	c.bhOff--
	if c.soft != nil && !c.InInterrupt() && c.soft.Pending() {
		c.soft.DoSoftirq()
		c.Look()
	}
	if c.m.cfg.PreemptRT && !c.InInterrupt() {
		c.unlockBH()
	}
	c.PreemptCheck()
}

// BeginSoftirq marks the core as serving softirqs, charged to x; it returns the
// context and instant that EndSoftirq needs. The softirq layer calls it around its loop.
func (c *Core) BeginSoftirq(x Context) (prev Context, entered sim.Time) {
	c.Look()
	if c.serving {
		panic("cpu: softirqs do not nest")
	}
	c.serving = true
	prev = c.ctx
	c.ctx = x
	return prev, c.eng.Now()
}

// EndSoftirq ends what BeginSoftirq began.
func (c *Core) EndSoftirq(prev Context, entered sim.Time) {
	c.Look()
	c.serving = false
	// What ksoftirqd runs is its own runtime; on PREEMPT_RT all softirqs are a task's,
	// and may have been preempted in between.
	if c.ctx != Ksoftirqd && !c.m.cfg.PreemptRT {
		c.irqTime += c.eng.Now() - entered
	}
	c.ctx = prev
}

// PreemptDisable is preempt_disable. An interrupt due before it may still preempt.
func (c *Core) PreemptDisable() {
	c.Look()
	c.preemptOff++
}

// PreemptEnable is preempt_enable: the last one lets a woken task preempt.
func (c *Core) PreemptEnable() {
	c.Look()
	if c.preemptOff == 0 {
		panic("cpu: preempt_enable without preempt_disable")
	}
	c.preemptOff--
	c.PreemptCheck()
}

// PreemptCheck is the preemption point of preempt_enable and local_bh_enable: it
// does something only where kernel code is preemptible.
func (c *Core) PreemptCheck() {
	if c.m.cfg.Preempt < PreemptFull {
		return
	}
	c.CondResched()
}

// CondResched is cond_resched: it gives the core away if a switch is due. Under full
// and lazy preemption there is rarely one left, as it happens where it becomes due,
// and one that is put off does not count.
func (c *Core) CondResched() {
	c.Look()
	if c.needResched && c.preemptible() {
		c.schedule(true)
	}
}

// MightResched is might_sleep, a preemption point of the voluntary model only.
func (c *Core) MightResched() {
	if c.m.cfg.Preempt == PreemptVoluntary {
		c.CondResched()
	}
}

func (c *Core) preemptible() bool {
	return !c.atomic() && !c.irqsOff && c.cur != c.idle
}

// atomic reports whether the core is in code that must not be preempted, interrupts
// being off not counted. On PREEMPT_RT that does not include softirqs and BH-off sections.
func (c *Core) atomic() bool {
	if c.hardirqs > 0 || c.preemptOff > 0 {
		return true
	}
	return !c.m.cfg.PreemptRT && (c.serving || c.bhOff > 0)
}
