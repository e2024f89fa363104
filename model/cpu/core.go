package cpu

import (
	"fmt"

	"napisim/model"
	"napisim/model/cpu/fair"
	"napisim/sim"
)

// Context is what a core's time is charged to.
type Context uint8

// The contexts. Softirqs that run in ksoftirqd are charged to Ksoftirqd, so that
// Softirq is only what interrupts and tasks have to run in passing.
const (
	Idle Context = iota
	User
	System
	Hardirq
	Softirq
	Ksoftirqd

	NumContexts
)

// String returns the context's name in results.
func (x Context) String() string {
	return [...]string{"idle", "user", "system", "hardirq", "softirq", "ksoftirqd"}[x]
}

// Softirqs is what a core needs of the softirq layer: kernel/softirq.c seen from
// interrupt exit, from local_bh_enable and from the timer tick.
type Softirqs interface {
	// Pending reports whether any vector is pending (local_softirq_pending).
	Pending() bool
	// InvokeSoftirq is called at the end of irq_exit when vectors are pending, with
	// interrupts off; it returns with interrupts off.
	InvokeSoftirq()
	// DoSoftirq is called when the last local_bh_enable finds vectors pending.
	DoSoftirq()
	// RaiseTimer raises the TIMER vector from the tick, with interrupts off.
	RaiseTimer()
}

// parking says why a core's coroutine is parked.
type parking uint8

const (
	notParked parking = iota
	paying            // waits for the end of a debt
	idling            // waits for an interrupt
)

// The sim.Phases of core 0; those of core n are n higher. Devices have lower ones:
// what they do at an instant is visible to a core that looks at it. What interrupts
// a core comes before what lets it go on, so that an interrupt that falls due as a
// debt ends is taken first, no matter in which order the two were scheduled: that
// order is not the same in a lazy and in an eager run.
const (
	phaseInterrupts sim.Phase = 128
	phaseCores      sim.Phase = 192
)

// looksWithoutProgress is how many looks may find the clock unmoved before the
// core calls it a loop that does not end.
const looksWithoutProgress = 1_000_000

// Core is one processor. Its methods are called by code that runs on it, with the
// exceptions noted.
type Core struct {
	// ID is the CPU number.
	ID int

	m        *Machine
	eng      *sim.Engine
	eager    bool
	spending bool // parked in a Spend of an eager run, not in a look
	aligning bool // on the way to the next look, see Align
	costs    model.Costs
	soft     Softirqs

	// The debt and the wait for its end.
	debt      sim.Time
	owing     sim.Time // debts that wait in the queue or in preempted tasks
	parked    parking
	kicked    bool     // the core goes on at this instant, because of an interrupt
	since     sim.Time // start of the time not yet charged
	resume    sim.EventID
	idleLooks int
	lastLook  sim.Time

	// The state that Linux keeps in preempt_count and the flags register.
	ctx        Context
	outer      Context // what the outermost hard interrupt interrupted
	irqsOff    bool
	hardirqs   int
	serving    bool
	bhOff      int
	preemptOff int

	bhOwner   *Task // PREEMPT_RT: who has BH off on this core
	bhWaiters []*Task
	bhHeir    *Task // the waiter that was woken to take the lock

	lines   []*Line
	pending uint64
	resched *Line
	timer   *Line

	cur, idle   *Task
	needResched bool
	reschedLazy bool // a switch is due, but need not be at once
	fair        fair.Queue
	rt          []*Task
	wakeList    []*Task
	rescheduled bool // a rescheduling interrupt is on its way

	clock, clockTask sim.Time // of the runqueue, see updateClock
	irqTime, irqSeen sim.Time

	tickOffset   sim.Time
	tickEvent    sim.EventID
	tickStopped  bool
	stoppedAt    sim.Time
	tickDue      bool // the timer interrupt on its way is a tick, not only one of an HRTimer
	timers       timerList
	hrtimers     []*HRTimer     // armed
	softDue      []*SoftHRTimer // expired, for the HRTIMER softirq
	raiseHRTimer func()

	softHRTimers HRTimerSoftirqs // PREEMPT_RT

	ledger
	shelved sim.Time // the price of what preempted tasks have in their ledgers

	account [NumContexts]sim.Time
	sampled [NumContexts]int64
	started sim.Time
	stats   Stats
}

// Stats are the counters of one core.
type Stats struct {
	// ContextSwitches counts task switches, as nr_switches of the runqueue.
	ContextSwitches int64
	// Interrupts counts hard interrupts taken, ticks and IPIs included.
	Interrupts int64
	// Ticks counts timer interrupts, those that only expire HRTimers not included.
	Ticks int64
	// HRTimers counts expired high-resolution timers.
	HRTimers int64
	// IdlePending counts how often the core went idle with softirqs pending ("NOHZ
	// tick-stop error").
	IdlePending int64
	// IPIs counts rescheduling interrupts taken.
	IPIs int64
}

// Machine returns the machine that the core belongs to.
func (c *Core) Machine() *Machine { return c.m }

// Now returns the current instant; the caller must have looked.
func (c *Core) Now() sim.Time { return c.eng.Now() }

// SetSoftirqs installs the softirq layer of this core. It is called once, by the
// builder, before the run.
func (c *Core) SetSoftirqs(s Softirqs) {
	c.soft = s
	if hr, has := s.(HRTimerSoftirqs); has && c.m.cfg.PreemptRT {
		c.softHRTimers = hr
	}
}

// Softirqs returns the softirq layer of this core.
func (c *Core) Softirqs() Softirqs { return c.soft }

// Spend adds the cost of one occurrence of s to the core's debt.
func (c *Core) Spend(s model.Stage) {
	c.debt += c.costs[s]
	c.log[uint(c.n)%logSize] = newCharge(s, 1)
	if c.n++; c.n >= c.limit {
		c.attend()
	}
}

// SpendN adds the cost of n occurrences, or of n bytes for a stage per byte.
func (c *Core) SpendN(s model.Stage, n int) {
	c.debt += c.costs[s] * sim.Time(n)
	c.log[uint(c.n)%logSize] = newCharge(s, int64(n))
	if c.n++; c.n >= c.limit {
		c.attend()
	}
}

// Work adds time that the scenario states itself, such as a CPU hog's.
func (c *Core) Work(d sim.Time) {
	c.debt += d
	c.log[uint(c.n)%logSize] = newCharge(stageWork, int64(d))
	if c.n++; c.n >= c.limit {
		c.attend()
	}
}

// attend does what a charge rarely needs: room in the log, or payment at once.
func (c *Core) attend() {
	if c.n == len(c.log) {
		c.tidy()
	}
	if c.eager {
		c.spending = true
		c.pay()
		c.spending = false
	}
}

// setEager lets charges be paid at once.
func (c *Core) setEager(on bool) {
	c.eager = on
	c.limit = len(c.log)
	if on {
		c.limit = 0
	}
}

// Look pays the debt: simulated time moves on, whatever other actors do until then
// is done, and interrupts that fall due are taken. When it returns the clock is
// right and shared state may be read and written.
func (c *Core) Look() {
	if d := c.debt; d != 0 && c.eng.AdvanceWithin(d) {
		c.account[c.ctx] += d
		c.debt = 0
	} else {
		c.pay()
	}
	c.paid = c.n
}

// pay is Look without its end.
func (c *Core) pay() {
	if c.eng.AdvanceWithin(c.debt) {
		if c.debt == 0 {
			c.looked()
			return
		}
		c.account[c.ctx] += c.debt
		c.debt = 0
		return
	}
	c.payInQueue()
}

// Align brings a core of an eager run to where it would be in a lazy one: it runs
// on, without paying, to its next look. Counters can then be read, and agree with
// those of a lazy run. It is called in the engine's context; the core has got there
// when the events of this instant that are scheduled now fire.
func (c *Core) Align() {
	if c.parked != paying || !c.spending {
		return
	}
	c.eng.Cancel(c.resume)
	c.aligning = true
	c.setEager(false)
	c.kick()
}

// looked notices loops that look at the world for ever without spending time.
func (c *Core) looked() {
	if now := c.eng.Now(); now != c.lastLook {
		c.lastLook, c.idleLooks = now, 0
	}
	if c.idleLooks++; c.idleLooks > looksWithoutProgress {
		panic(fmt.Sprintf("cpu%d: task %s looks again and again without spending time", c.ID, c.cur.Name))
	}
}

// payInQueue pays a debt that reaches the horizon: its end becomes an event and the
// core parks until it fires or an interrupt arrives.
func (c *Core) payInQueue() {
	if c.debt == 0 {
		c.looked()
	}
	if c.aligning { // the first look after Align
		c.aligning = false
		c.setEager(true)
	}
	remain := c.debt
	c.debt = 0
	c.owing += remain
	for {
		due := c.eng.Now() + remain
		if !c.kicked {
			c.resume = c.eng.Schedule(due, c.phase(phaseCores), c, argResume)
		}
		c.park(paying)
		remain = due - c.eng.Now()
		if c.aligning {
			c.owing -= remain
			c.debt = remain
			if c.pending != 0 && !c.irqsOff {
				c.kick() // for the look to come
			}
			return
		}
		if c.pending == 0 || c.irqsOff {
			if remain != 0 {
				panic(fmt.Sprintf("cpu%d: resumed %v early and not interrupted", c.ID, remain))
			}
			return
		}
		c.deliver()
		if c.eng.AdvanceWithin(remain) {
			c.account[c.ctx] += remain
			c.owing -= remain
			return
		}
	}
}

// park gives control back until Fire lets the core go on, and charges the time that
// has passed.
func (c *Core) park(why parking) {
	c.since = c.eng.Now()
	c.parked = why
	c.cur.proc.Park()
	c.settle(why)
}

// phase returns the core's own of a range of phases.
func (c *Core) phase(of sim.Phase) sim.Phase { return of + sim.Phase(c.ID) }

// The arguments of the core's events.
const (
	argResume = iota
	argTick
	argIPI
	argTimer
)

// Fire handles the core's own events; the engine calls it.
func (c *Core) Fire(arg uint64) {
	switch arg {
	case argResume:
		c.kicked = false
		c.parked = notParked
		c.eng.Ready(c.cur.proc)
	case argTick:
		c.tickEvent = c.eng.Schedule(c.eng.Now()+c.m.tick, c.phase(phaseInterrupts), c, argTick)
		c.tickDue = true
		c.Raise(c.timer)
	case argIPI:
		c.Raise(c.resched)
	case argTimer:
		c.timers.event = 0
		c.tickDue = true
		c.Raise(c.timer)
	}
}

// Settle charges the time since the core parked to its context, so that the books
// are right at the current instant. It is called in the engine's context, where
// every core is parked: at the end of the warm-up and of the run.
func (c *Core) Settle() {
	if c.parked != notParked {
		c.settle(c.parked)
	}
}

func (c *Core) settle(why parking) {
	elapsed := c.eng.Now() - c.since
	c.since = c.eng.Now()
	c.account[c.ctx] += elapsed
	if why == paying {
		c.owing -= elapsed
	}
}

// Enter pays the debt and charges what follows to x; it returns the context that
// Leave must be given back.
func (c *Core) Enter(x Context) (prev Context) {
	c.Look()
	prev = c.ctx
	c.ctx = x
	return prev
}

// Leave pays the debt of the present context and goes back to prev.
func (c *Core) Leave(prev Context) {
	c.Look()
	c.ctx = prev
}

// NeedResched reports whether a task switch is due (TIF_NEED_RESCHED; one that lazy
// preemption puts off does not count); the caller must have looked.
func (c *Core) NeedResched() bool { return c.needResched }

// Current returns the task whose context the core is in.
func (c *Core) Current() *Task { return c.cur }

// Account returns the time charged to each context since the start.
func (c *Core) Account() [NumContexts]sim.Time { return c.account }

// Sampled returns how many ticks found the core in each context: what top shows
// where CPU time is accounted by ticks. Ticks that an idle core did not take count
// as idle. Softirqs count as such in ksoftirqd too.
func (c *Core) Sampled() [NumContexts]int64 {
	all := c.sampled
	all[Idle] += c.skippedTicks()
	return all
}

// Spent returns how often (or for how many bytes) each stage was charged, up to the
// last look of each context.
func (c *Core) Spent() [model.NumStages]int64 {
	all := c.total()
	return [model.NumStages]int64(all[:model.NumStages])
}

// Worked returns the time charged through Work, up to the last look of each context.
func (c *Core) Worked() sim.Time { return sim.Time(c.total()[stageWork]) }

// Costs returns the core's price list.
func (c *Core) Costs() model.Costs { return c.costs }

// Stats returns the core's counters.
func (c *Core) Stats() Stats { return c.stats }

// Check holds the books against each other after Settle: the contexts add up to
// the time that has passed, and what was spent equals what was charged as busy
// plus what is still owed.
func (c *Core) Check() error {
	var all sim.Time
	for _, d := range c.account {
		all += d
	}
	if now := c.eng.Now() - c.started; all != now {
		return fmt.Errorf("cpu%d: contexts add up to %v of %v", c.ID, all, now)
	}
	spent := sim.Time(c.counts[stageWork]) + price(&c.costs, c.log[:c.n]) + c.shelved
	for s, d := range c.costs {
		spent += d * sim.Time(c.counts[s])
	}
	if busy := all - c.account[Idle]; spent != busy+c.debt+c.owing {
		return fmt.Errorf("cpu%d: spent %v, but charged %v and owes %v", c.ID, spent, busy, c.debt+c.owing)
	}
	return nil
}
