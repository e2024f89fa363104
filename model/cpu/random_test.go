package cpu

import (
	"slices"
	"testing"

	"napisim/model"
	"napisim/model/cpu/fair"
	"napisim/sim"
	"napisim/sim/trace"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// grid is what random durations are multiples of. It is coarse, so that much happens
// at the same instant.
const grid = 250 * sim.Nanosecond

func drawTime(max int) *rapid.Generator[sim.Time] {
	return rapid.Map(rapid.IntRange(0, max), func(n int) sim.Time { return sim.Time(n) * grid })
}

// drawLong draws anything between nothing and many ticks.
func drawLong(t *rapid.T, label string) sim.Time {
	unit := rapid.SampledFrom([]sim.Time{1, 4, 40, 400, 4000}).Draw(t, label+" unit")
	return unit * drawTime(20).Draw(t, label)
}

// drawOps draws a program. level is how atomic the code is: 0 may return to user
// mode, from 1 on it may not, from 2 on it must not touch the softirq count.
func drawOps(depth, level, least int) *rapid.Generator[[]op] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) op {
		last := opMightResched
		if depth > 0 {
			last = [...]opKind{opNap, opBH, opPreempt}[level]
		}
		o := op{kind: rapid.SampledFrom(weighted(last)).Draw(t, "op")}
		switch o.kind {
		case opIRQ:
			o.body = drawOps(depth-1, 2, 0).Draw(t, "irqoff")
		case opPreempt:
			o.body = drawOps(depth-1, max(level, 1), 0).Draw(t, "preemptoff")
		case opBH:
			o.body = drawOps(depth-1, 1, 0).Draw(t, "bhoff")
		case opWork, opDevice, opHRTimer, opNap:
			o.d = drawTime(40).Draw(t, "d")
		case opUser, opTimer:
			o.d = drawLong(t, "d")
		}
		o.n = rapid.IntRange(0, 60).Draw(t, "n")
		return o
	}), least, least+6)
}

// weighted lists the kinds up to last; what makes work stands there more often.
func weighted(last opKind) []opKind {
	kinds := []opKind{opPush, opPush, opPush, opPush, opSoftirq, opDevice, opSpend, last}
	for k := range last + 1 {
		kinds = append(kinds, k)
	}
	return kinds
}

func drawConfig(t *rapid.T) Config {
	cfg := Config{
		Cores:   rapid.IntRange(1, 3).Draw(t, "cores"),
		HZ:      rapid.SampledFrom([]int{100, 250, 300, 1000}).Draw(t, "hz"),
		Preempt: Preemption(rapid.IntRange(0, 2).Draw(t, "preempt")),
		Scheduler: fair.Params{
			Policy:       fair.Policy(rapid.IntRange(0, 1).Draw(t, "policy")),
			DelayDequeue: rapid.Bool().Draw(t, "delay dequeue"),
		},
		IRQTimeAccounting: rapid.Bool().Draw(t, "irqtime"),
		IPILatency:        drawTime(8).Draw(t, "ipi"),
		TickPhase:         drawTime(3999).Draw(t, "tickphase"),
	}
	switch rapid.IntRange(0, 3).Draw(t, "threaded") {
	case 0:
		cfg.ThreadIRQs = true
	case 1:
		cfg.PreemptRT = true
		cfg.Preempt = max(cfg.Preempt, PreemptFull)
	}
	costs := rapid.SliceOfN(drawTime(12), int(model.NumStages), int(model.NumStages)).Draw(t, "costs")
	if rapid.IntRange(0, 4).Draw(t, "free") > 0 {
		copy(cfg.Costs[:], costs)
	}
	if cfg.TickPhase *= 4; cfg.TickPhase >= sim.Second/sim.Time(cfg.HZ) {
		cfg.TickPhase = 0
	}
	return cfg
}

func drawWorld(t *rapid.T) *worldSpec {
	spec := &worldSpec{
		Config:  drawConfig(t),
		Defer:   rapid.Bool().Draw(t, "defer"),
		Budget:  rapid.IntRange(300, 2000).Draw(t, "budget"),
		Softirq: drawOps(1, 1, 1).Draw(t, "softirq"),
		Audits:  rapid.SliceOfN(drawTime(40_000), 0, 20).Draw(t, "audits"),
		Cuts:    rapid.SliceOfNDistinct(drawTime(2000), 0, 6, rapid.ID[sim.Time]).Draw(t, "cuts"),
	}
	core := rapid.IntRange(0, spec.Config.Cores-1)
	for range rapid.IntRange(3, 8).Draw(t, "tasks") {
		spec.Tasks = append(spec.Tasks, taskSpec{
			Core: core.Draw(t, "core"),
			Config: TaskConfig{
				Nice: rapid.SampledFrom([]int{0, 0, 0, -20, 5, 19}).Draw(t, "nice"),
				FIFO: rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "fifo"),
			},
			Program: drawOps(3, 0, 2).Draw(t, "program"),
			OneShot: rapid.IntRange(0, 3).Draw(t, "oneshot") == 3,
			Yield:   rapid.Bool().Draw(t, "yield"),
			Items:   rapid.IntRange(0, 20).Draw(t, "items"),
		})
	}
	for range rapid.IntRange(1, 5).Draw(t, "lines") {
		spec.Lines = append(spec.Lines, lineSpec{core.Draw(t, "core"), drawOps(1, 2, 1).Draw(t, "handler")})
	}
	for range rapid.IntRange(0, 3).Draw(t, "timers") {
		spec.Timers = append(spec.Timers, lineSpec{core.Draw(t, "core"), drawOps(1, 1, 1).Draw(t, "expiry")})
	}
	for range rapid.IntRange(0, 3).Draw(t, "hrtimers") {
		spec.HR = append(spec.HR, lineSpec{core.Draw(t, "core"), drawOps(1, 2, 1).Draw(t, "hr expiry")})
	}
	line := rapid.IntRange(0, len(spec.Lines)-1)
	for range rapid.IntRange(0, 3).Draw(t, "devices") {
		spec.Devices = append(spec.Devices, deviceSpec{
			First: drawTime(400).Draw(t, "first"), Gap: drawTime(100).Draw(t, "gap"),
			Count: rapid.IntRange(1, 50).Draw(t, "count"),
			Line:  line.Draw(t, "line"), Also: line.Draw(t, "also"),
		})
	}
	return spec
}

// outcome is all that a run shows, for comparison between modes.
type outcome struct {
	Fingerprint uint64
	Jiffies     int64
	Seen        int
	Account     [][NumContexts]sim.Time
	Sampled     [][NumContexts]int64
	Stats       []Stats
	TaskStats   []TaskStats
	Runtime     []sim.Time
	VRuntime    []sim.Time
	Lines       []int64
	Events      []trace.Event
	Cuts        []cut
}

// A cut is what can be read in the middle of a run.
type cut struct {
	Account      [][NumContexts]sim.Time
	Spent        [][model.NumStages]int64
	Worked       []sim.Time
	Boxes        []int
	Seen, Budget int
	Jiffies      int64
	Fingerprint  uint64
}

// cut reads the numbers in two steps, as a run does at the end of its warm-up.
func (w *world) cut(o *outcome) {
	for _, c := range w.m.Cores {
		c.Align()
	}
	w.m.eng.Schedule(w.m.eng.Now(), 255, device(func() {
		cut := cut{
			Boxes: slices.Clone(w.boxes), Seen: w.seen, Budget: w.budget,
			Jiffies: w.m.Jiffies(), Fingerprint: w.m.Fingerprint.Sum(),
		}
		for _, c := range w.m.Cores {
			c.Settle()
			cut.Account = append(cut.Account, c.Account())
			cut.Spent = append(cut.Spent, c.Spent())
			cut.Worked = append(cut.Worked, c.Worked())
		}
		o.Cuts = append(o.Cuts, cut)
	}), 0)
}

// limit is when a world that does not come to rest is stopped.
const limit = 100 * sim.Second

// play runs a world until nothing is left to do.
func (w *world) play(t *rapid.T) *outcome {
	for i, when := range w.spec.Audits {
		w.m.eng.Schedule(when, sim.Phase(i%2*255), device(func() { w.audit(t) }), 0)
	}
	w.m.eng.Schedule(limit, 255, device(func() {
		if w.m.eng.Horizon() != sim.Never {
			t.Errorf("the world does not come to rest")
		}
		w.m.eng.Stop()
	}), 0)
	o := &outcome{}
	for i, when := range w.spec.Cuts {
		w.m.eng.Schedule(when, sim.Phase(i%2*255), device(func() { w.cut(o) }), 0)
	}
	defer w.m.eng.Close()
	w.m.eng.Run()
	w.audit(t)
	w.atRest(t)
	o.Fingerprint, o.Jiffies, o.Seen = w.m.Fingerprint.Sum(), w.m.Jiffies(), w.seen
	o.Events = w.m.Trace.Events()
	for _, c := range w.m.Cores {
		o.Account = append(o.Account, c.Account())
		o.Sampled = append(o.Sampled, c.Sampled())
		o.Stats = append(o.Stats, c.Stats())
	}
	for _, task := range w.tasks {
		o.TaskStats = append(o.TaskStats, task.Stats())
		o.Runtime = append(o.Runtime, task.Runtime())
		o.VRuntime = append(o.VRuntime, task.ent.VRuntime())
	}
	for _, l := range w.lines {
		o.Lines = append(o.Lines, l.Count)
	}
	return o
}

// audit checks, in the middle of everything, the books of each core and what its
// scheduler has to keep.
func (w *world) audit(t *rapid.T) {
	checkBooks(t, w.m)
	for _, c := range w.m.Cores {
		if fault := c.fair.Check(func(e *fair.Entity) bool { return !e.Owner.(*Task).Runnable() }); fault != "" {
			t.Errorf("cpu%d: %s", c.ID, fault)
		}
		n := c.fair.Waiting()
		if c.parked == idling && !c.kicked && (n > 0 || c.fair.Curr() != nil || len(c.rt) > 0 || c.pending != 0) {
			t.Errorf("cpu%d: idle with %d fair and %d FIFO tasks, interrupts %b", c.ID, n, len(c.rt), c.pending)
		}
	}
}

// atRest checks that a world that has come to rest has forgotten nothing.
func (w *world) atRest(t *rapid.T) {
	for i, n := range w.boxes {
		if n != 0 || w.tasks[i].Runnable() {
			t.Errorf("task %d: %d items are left, runnable %v: a wakeup was lost", i, n, w.tasks[i].Runnable())
		}
		if open := w.tasks[i].charges; len(open) > 0 {
			t.Errorf("task %d: %d charges are left", i, len(open))
		}
	}
	for _, c := range w.m.Cores {
		if w.soft[c.ID].pending != 0 || c.pending != 0 || c.debt != 0 || c.owing != 0 || len(c.wakeList) > 0 {
			t.Errorf("cpu%d: softirqs %b, interrupts %b, debt %v, owing %v, %d wakeups are left",
				c.ID, w.soft[c.ID].pending, c.pending, c.debt, c.owing, len(c.wakeList))
		}
	}
	for _, c := range w.m.Cores {
		if c.base != 0 || c.paid != c.n || c.shelved != 0 {
			t.Errorf("cpu%d: charges of nobody: %d, %d, worth %v", c.ID, c.base, c.n-c.paid, c.shelved)
		}
	}
	for i, timer := range w.timers {
		if timer.Armed() {
			t.Errorf("timer %d is still armed", i)
		}
	}
	for i, timer := range w.hr {
		if timer.Armed() {
			t.Errorf("hrtimer %d is still armed", i)
		}
	}
}

func TestModesAgreeOnRandomPrograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawWorld(t)
		want := newWorld(spec, sim.NewEngine(sim.Lazy)).play(t)
		compare := func(name string, eng *sim.Engine) {
			if diff := cmp.Diff(want, newWorld(spec, eng).play(t)); diff != "" {
				t.Fatalf("-lazy +%s:\n%s", name, diff)
			}
		}
		for _, m := range modes[1:] {
			compare(m.name, sim.NewEngine(m.mode))
		}
		// What happens at one instant in one phase may come in any order, and that
		// somebody reads the books changes nothing.
		compare("shuffled", sim.NewEngineShuffled(sim.Lazy, rapid.Uint64().Draw(t, "order")))
		spec.Audits = nil
		compare("unaudited", sim.NewEngine(sim.Lazy))
	})
}
