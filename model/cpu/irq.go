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
}

// NewLine adds an interrupt line. The handler runs in hardirq context with
// interrupts off. A core has at most 64 lines.
func (c *Core) NewLine(irq int, name string, handler func(*Core)) *Line {
	if len(c.lines) == 64 {
		panic("cpu: more than 64 interrupt lines on one core")
	}
	l := &Line{IRQ: irq, Name: name, core: c, bit: 1 << len(c.lines), handler: handler}
	c.lines = append(c.lines, l)
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
		if !c.needResched || !c.preemptibleAtIRQReturn() {
			break
		}
		c.switchTask(c.ctx != User)
	}
	c.unnest(outer)
	c.spending = spending
}

// handle runs one interrupt: entry, handler, irq_exit with its softirqs.
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
	l.handler(c)
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

// preemptibleAtIRQReturn: user code always is, kernel code only under full
// preemption and outside atomic sections. The idle loop looks for itself.
func (c *Core) preemptibleAtIRQReturn() bool {
	if c.InInterrupt() || c.preemptOff > 0 || c.cur == c.idle {
		return false
	}
	return c.ctx == User || c.m.cfg.Preempt == PreemptFull
}

// BHDisable is local_bh_disable.
func (c *Core) BHDisable() {
	c.Look()
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
	if c.ctx != Ksoftirqd { // whose softirqs are its own runtime
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
// does something only under full preemption.
func (c *Core) PreemptCheck() {
	if c.m.cfg.Preempt != PreemptFull {
		return
	}
	c.CondResched()
}

// CondResched is cond_resched: it gives the core away if a switch is due. Under
// full preemption there is rarely one left, as it happens where it becomes due.
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
	return !c.InInterrupt() && !c.irqsOff && c.preemptOff == 0 && c.cur != c.idle
}
