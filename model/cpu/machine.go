package cpu

import (
	"fmt"

	"napisim/model"
	"napisim/model/cpu/fair"
	"napisim/sim"
	"napisim/sim/trace"
)

// Preemption is the kernel's preemption model.
type Preemption uint8

// The preemption models, as chosen by CONFIG_PREEMPT_*.
const (
	PreemptNone Preemption = iota
	PreemptVoluntary
	PreemptFull
	// PreemptLazy is PREEMPT_LAZY, from v6.13: as full, but what the fair class decides
	// waits for the return to user mode or the next tick.
	PreemptLazy
)

// String returns the name that scenarios use.
func (p Preemption) String() string {
	return [...]string{"none", "voluntary", "full", "lazy"}[p]
}

// ParsePreemption returns the model of that name.
func ParsePreemption(name string) (Preemption, error) {
	for p := PreemptNone; p <= PreemptLazy; p++ {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("unknown preemption model %q", name)
}

// MaxCores is the largest number of cores of one Machine.
const MaxCores = 64

// Config describes a machine.
type Config struct {
	// Cores is the number of cores, 1 to MaxCores.
	Cores int
	// HZ is the tick rate: 100, 250, 300 or 1000.
	HZ int
	// Preempt is the preemption model.
	Preempt Preemption
	// ThreadIRQs lets interrupt handlers run in threads (the boot option threadirqs).
	// The local timer and inter-processor interrupts stay hard.
	ThreadIRQs bool
	// PreemptRT is CONFIG_PREEMPT_RT: interrupt handlers run in threads, tasks can be
	// preempted in BH-off sections and softirqs. It needs Preempt full or lazy.
	PreemptRT bool
	// Scheduler is the fair class; the zero value is CFS.
	Scheduler fair.Params
	// IRQTimeAccounting excludes hard and soft interrupt time from the runtime of
	// the interrupted task (CONFIG_IRQ_TIME_ACCOUNTING).
	IRQTimeAccounting bool
	// Costs is the price list of every core.
	Costs model.Costs
	// TraceCost is what recording one event costs the core that passes the point. 0
	// observes without disturbing; anything else is for lazy runs only, see Core.Emit.
	TraceCost sim.Time
	// IPILatency is how long an inter-processor interrupt travels.
	IPILatency sim.Time
	// TickPhase shifts the tick of core 0; core n is shifted by n/Cores of a tick more, as
	// Linux does with skew_tick. It must be below one tick.
	TickPhase sim.Time
}

// Validate returns every fault of the configuration.
func (c *Config) Validate() []error {
	var faults []error
	if c.Cores < 1 || c.Cores > MaxCores {
		faults = append(faults, fmt.Errorf("cpus: %d is not between 1 and %d", c.Cores, MaxCores))
	}
	switch c.HZ {
	case 100, 250, 300, 1000:
		if tick := sim.Second / sim.Time(c.HZ); c.TickPhase < 0 || c.TickPhase >= tick {
			faults = append(faults, fmt.Errorf("tick_phase: %v is not between 0 and a tick of %v", c.TickPhase, tick))
		}
	default:
		faults = append(faults, fmt.Errorf("hz: %d is not one of 100, 250, 300, 1000", c.HZ))
	}
	if c.Preempt > PreemptLazy {
		faults = append(faults, fmt.Errorf("preempt: there is no model %d", c.Preempt))
	}
	if c.PreemptRT && c.Preempt < PreemptFull {
		faults = append(faults, fmt.Errorf("preempt: %v is not possible with PREEMPT_RT", c.Preempt))
	}
	faults = append(faults, c.Scheduler.Validate()...)
	for s, d := range c.Costs {
		if d < 0 {
			faults = append(faults, fmt.Errorf("costs.%v: %v is negative", model.Stage(s), d))
		}
	}
	if c.TraceCost < 0 {
		faults = append(faults, fmt.Errorf("trace_cost: %v is negative", c.TraceCost))
	}
	if c.IPILatency < 0 {
		faults = append(faults, fmt.Errorf("ipi_latency: %v is negative", c.IPILatency))
	}
	return faults
}

// Machine is a set of cores with one clock of jiffies.
type Machine struct {
	// Cores are the cores, by number.
	Cores []*Core
	// Trace records trace points; nil records nothing.
	Trace *trace.Log
	// Fingerprint is mixed from every interrupt, softirq, poll and task switch.
	Fingerprint trace.Fingerprint

	eng         *sim.Engine
	cfg         Config
	tick        sim.Time
	jiffies     int64
	nextPID     int
	nextHRTimer int
}

// NewMachine builds the cores, each with its idle task. cfg must be valid.
func NewMachine(eng *sim.Engine, cfg Config) *Machine {
	m := &Machine{eng: eng, cfg: cfg, tick: sim.Second / sim.Time(cfg.HZ), nextPID: 10}
	for id := range cfg.Cores {
		c := &Core{ID: id, m: m, eng: eng, costs: cfg.Costs, fair: fair.New(cfg.Scheduler, cfg.Cores, m.tick)}
		c.setEager(eng.Mode() == sim.Eager)
		c.started = eng.Now()
		c.clock = c.started
		c.tickOffset = (cfg.TickPhase + m.tick*sim.Time(id)/sim.Time(cfg.Cores)) % m.tick
		c.resched = c.NewLine(-1, "rescheduling", (*Core).handleResched)
		c.timer = c.NewLine(-1, "local_timer", (*Core).handleTimer)
		c.idle = m.newTask(c, fmt.Sprintf("swapper/%d", id), TaskConfig{}, func(*Task) { c.idleLoop() })
		c.idle.PID = 0
		c.idle.state = stateRunning
		c.cur = c.idle
		c.ctx = Idle
		m.Cores = append(m.Cores, c)
		eng.Ready(c.idle.proc)
	}
	return m
}

// Engine returns the engine that the machine runs on.
func (m *Machine) Engine() *sim.Engine { return m.eng }

// HZ returns the tick rate.
func (m *Machine) HZ() int { return m.cfg.HZ }

// TickPeriod returns the length of a jiffy.
func (m *Machine) TickPeriod() sim.Time { return m.tick }

// Jiffies returns the tick counter. It moves only when a core takes its tick, or
// an interrupt ends an idle period without ticks; a reader must have looked.
func (m *Machine) Jiffies() int64 { return m.jiffies }

// JiffiesOf converts a duration to jiffies, rounding up like usecs_to_jiffies.
func (m *Machine) JiffiesOf(d sim.Time) int64 { return int64((d + m.tick - 1) / m.tick) }

// updateJiffies is tick_do_update_jiffies64: it catches up with the clock. Only
// the ticks of core 0's phase count, as its CPU is the timekeeper.
func (m *Machine) updateJiffies() { m.jiffies = m.Cores[0].ticksUntil(m.eng.Now()) }

// jiffyStart returns the instant at which a jiffy begins by the clock.
func (m *Machine) jiffyStart(jiffy int64) sim.Time {
	return m.Cores[0].tickOffset + sim.Time(jiffy-1)*m.tick
}

// jiffyAtOrAfter returns the first jiffy that does not begin before t.
func (m *Machine) jiffyAtOrAfter(t sim.Time) int64 {
	since := max(t-m.Cores[0].tickOffset, 0)
	return m.JiffiesOf(since) + 1
}
