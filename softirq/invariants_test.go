package softirq

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/cpu/fair"
	"napisim/model/host"
	"napisim/sim"
	"napisim/softirq/gro"
)

// This file runs random machines, kernels and traffic, and checks what has to hold in
// all of them.

// quiet is the instant by which everything random has happened: the machines drawn
// below need a fifth of it.
const quiet = 500 * sim.Millisecond

// trial is a random machine with its traffic.
type trial struct {
	setup   setup
	nics    []nicTrial
	tasks   []taskTrial
	reader  sim.Time // cost per packet; 0: no reader
	busy    *busyTrial
	raises  []raiseTrial
	watches []sim.Time
}

// busyTrial says how the reader polls before it sleeps.
type busyTrial struct {
	usecs    int64
	wait     host.BusyWait
	suspends bool
}

type nicTrial struct {
	gro, frags, noMask, xdp bool
	threaded                bool
	flushTimeout            sim.Time
	deferIRQs               int
	suspend                 sim.Time
	weight                  int
	bursts                  []burst
	moves                   []sim.Time
}

type burst struct {
	at      sim.Time
	n       int
	flow    model.FlowID // 0: UDP
	payload int32
	flags   model.TCPFlags
}

type taskTrial struct {
	kernel bool
	cfg    cpu.TaskConfig
	total  sim.Time
}

type raiseTrial struct {
	at sim.Time
	v  Vector
}

func between(low, high sim.Time) *rapid.Generator[sim.Time] {
	return rapid.Map(rapid.Int64Range(int64(low), int64(high)), func(v int64) sim.Time { return sim.Time(v) })
}

func drawTrial(t *rapid.T) (tr trial) {
	s := defaultSetup()
	s.log = nil
	s.machine = cpu.Config{
		Cores:             rapid.IntRange(1, 2).Draw(t, "cores"),
		HZ:                rapid.SampledFrom([]int{100, 250, 1000}).Draw(t, "hz"),
		Preempt:           rapid.SampledFrom([]cpu.Preemption{cpu.PreemptNone, cpu.PreemptVoluntary, cpu.PreemptFull, cpu.PreemptLazy}).Draw(t, "preempt"),
		IRQTimeAccounting: rapid.Bool().Draw(t, "irq time"),
		TickPhase:         between(0, sim.Millisecond-1).Draw(t, "tick"),
		IPILatency:        between(0, 2*sim.Microsecond).Draw(t, "ipi"),
		Costs:             testCosts(),
	}
	switch rapid.IntRange(0, 5).Draw(t, "threaded") {
	case 0:
		s.machine.ThreadIRQs = true
	case 1:
		s.machine.PreemptRT, s.machine.Preempt = true, cpu.PreemptFull
	}
	s.machine.Scheduler.Policy = fair.Policy(rapid.IntRange(0, 1).Draw(t, "policy"))
	s.machine.Scheduler.DelayDequeue = rapid.Bool().Draw(t, "delay dequeue")
	for i, c := range s.machine.Costs {
		if stage := model.Stage(i); c > 0 || stage == model.StageRefill {
			s.machine.Costs[i] = between(sim.Nanosecond, max(3*c, sim.Microsecond)).Draw(t, stage.String())
		}
	}
	s.kernel = Config{
		NAPISchedule:      rapid.SampledFrom(NAPIScheduleNames()).Draw(t, "napi_schedule"),
		NAPISchedulePrep:  rapid.SampledFrom(NAPISchedulePrepNames()).Draw(t, "napi_schedule_prep"),
		NAPIComplete:      rapid.SampledFrom(NAPICompleteNames()).Draw(t, "napi_complete"),
		NAPIThreaded:      rapid.SampledFrom(NAPIThreadedNames()).Draw(t, "napi_threaded"),
		BusyPoll:          rapid.SampledFrom(BusyPollNames()).Draw(t, "busy_poll"),
		Ksoftirqd:         rapid.SampledFrom(KsoftirqdNames()).Draw(t, "ksoftirqd"),
		GRONormal:         rapid.SampledFrom(GRONormalNames()).Draw(t, "gro_normal"),
		NetdevBudget:      rapid.IntRange(0, 400).Draw(t, "budget"),
		NetdevBudgetUsecs: between(0, 10*sim.Millisecond).Draw(t, "usecs"),
		GRONormalBatch:    rapid.IntRange(1, 16).Draw(t, "batch"),
		TimerThread:       rapid.Bool().Draw(t, "ktimers"),

		NetifRx: "universal", NetdevMaxBacklog: 1000, DevWeight: 64, DevWeightRXBias: 1,
	}
	tr.setup = s
	for i := range rapid.IntRange(1, 3).Draw(t, "nics") {
		tr.nics = append(tr.nics, drawNIC(t, fmt.Sprintf("eth%d", i)))
	}
	for range rapid.IntRange(0, 2).Draw(t, "tasks") {
		tr.tasks = append(tr.tasks, taskTrial{
			kernel: rapid.Bool().Draw(t, "in the kernel"),
			cfg:    cpu.TaskConfig{Nice: rapid.IntRange(-5, 5).Draw(t, "nice"), FIFO: rapid.SampledFrom([]int{0, 0, 0, 50}).Draw(t, "fifo")},
			total:  between(0, 10*sim.Millisecond).Draw(t, "total"),
		})
	}
	if rapid.Bool().Draw(t, "reads") {
		tr.reader = between(1, 2*sim.Microsecond).Draw(t, "reader")
		if rapid.Bool().Draw(t, "busily") {
			tr.busy = &busyTrial{usecs: rapid.Int64Range(0, 100).Draw(t, "busy usecs"), suspends: rapid.Bool().Draw(t, "suspends")}
			tr.busy.wait.Prefer = rapid.Bool().Draw(t, "prefer")
			tr.busy.wait.Budget = rapid.SampledFrom([]int{0, 1, 64}).Draw(t, "busy budget")
		}
	}
	for range rapid.IntRange(0, 5).Draw(t, "raises") {
		tr.raises = append(tr.raises, raiseTrial{
			between(0, 8*sim.Millisecond).Draw(t, "raise at"),
			rapid.SampledFrom([]Vector{HI, NetTX, Tasklet, RCU}).Draw(t, "vector"),
		})
	}
	for range 12 {
		tr.watches = append(tr.watches, between(0, 12*sim.Millisecond).Draw(t, "watch"))
	}
	return tr
}

func drawNIC(t *rapid.T, name string) nicTrial {
	n := nicTrial{
		gro:    rapid.Bool().Draw(t, name+" gro"),
		frags:  rapid.Bool().Draw(t, name+" frags"),
		noMask: rapid.Bool().Draw(t, name+" nomask"),
		xdp:    rapid.IntRange(0, 4).Draw(t, name+" xdp") == 0,
		weight: rapid.SampledFrom([]int{64, 64, 16, 1}).Draw(t, name+" weight"),

		threaded:  rapid.IntRange(0, 3).Draw(t, name+" threaded") == 0,
		deferIRQs: rapid.IntRange(0, 3).Draw(t, name+" defer"),
	}
	if rapid.Bool().Draw(t, name+" timer") {
		n.flushTimeout = between(sim.Microsecond, 300*sim.Microsecond).Draw(t, name+" gro_flush_timeout")
		n.suspend = between(0, 600*sim.Microsecond).Draw(t, name+" irq_suspend_timeout")
	}
	at := sim.Time(0)
	for range rapid.IntRange(1, 12).Draw(t, name+" bursts") {
		at += between(0, rapid.SampledFrom([]sim.Time{5 * sim.Microsecond, 100 * sim.Microsecond, sim.Millisecond}).Draw(t, "gap")).Draw(t, "wait")
		b := burst{at: at, n: rapid.IntRange(1, 80).Draw(t, "n"), flow: model.FlowID(rapid.IntRange(0, 3).Draw(t, "flow")), payload: 1448}
		if rapid.IntRange(0, 3).Draw(t, "short") == 0 {
			b.payload = int32(rapid.IntRange(0, 1448).Draw(t, "payload"))
		}
		b.flags = rapid.SampledFrom([]model.TCPFlags{0, 0, model.PSH, model.URG}).Draw(t, "flags")
		n.bursts = append(n.bursts, b)
	}
	for range rapid.IntRange(0, 2).Draw(t, name+" moves") {
		n.moves = append(n.moves, between(0, 5*sim.Millisecond).Draw(t, "move"))
	}
	return n
}

// build makes the machine of a trial. watch is called at the trial's instants.
func (tr *trial) build(mode sim.Mode, watch func(*rig)) *rig {
	s := tr.setup
	s.mode = mode
	r := newRig(s)
	for i := range tr.nics {
		n := &tr.nics[i]
		var gc *gro.Config
		if n.gro {
			c := gro.DefaultConfig()
			gc = &c
		}
		d := r.nic(fmt.Sprintf("eth%d", i), gc, n.weight)
		d.frags, d.noMask, d.xdp = n.frags, n.noMask, n.xdp
		d.napi.groFlushTimeout, d.napi.deferHardIRQs = n.flushTimeout, n.deferIRQs
		d.napi.irqSuspendTimeout = n.suspend
		if n.threaded && s.kernel.NAPIThreaded != "none" {
			if err := d.napi.SetThreaded(r.sds[i%len(r.sds)], Threaded); err != nil {
				panic(err)
			}
		}
		for _, b := range n.bursts {
			if b.flow == 0 {
				d.arrive(b.at, b.n)
			} else {
				d.tcp(b.at, b.flow, b.n, b.payload, b.flags)
			}
		}
		for _, at := range n.moves {
			r.at(at, d.phase, func() { d.core = (d.core + 1) % len(r.m.Cores) })
		}
	}
	for _, task := range tr.tasks {
		body := hog(task.total)
		if task.kernel {
			body = kernelHog(task.total)
		}
		r.task("task", task.cfg, body)
	}
	if tr.reader > 0 {
		r.readCost = tr.reader
		body := r.read
		if b := tr.busy; b != nil {
			r.suspends = b.suspends
			body = r.busyRead(b.usecs, b.wait)
		}
		r.reader = r.task("reader", cpu.TaskConfig{}, body)
	}
	for _, raise := range tr.raises {
		sd := r.sds[0]
		line := sd.Core().NewLine(14, "disk", func(*cpu.Core) { sd.RaiseSoftirq(raise.v) })
		sd.OpenSoftirq(raise.v, func() { sd.Core().Work(sim.Microsecond) })
		r.at(raise.at, phaseDevices, line.Raise)
	}
	for _, at := range tr.watches {
		r.at(at, phaseObservers, func() { watch(r) })
	}
	return r
}

func TestInvariantsOfRandomMachines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawTrial(t)
		var first []string
		for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
			var seen []string
			r := tr.build(mode, func(r *rig) {
				r.consistent(t)
				seen = append(seen, r.books())
			})
			r.run(t, quiet)
			r.consistent(t)
			r.drained(t)
			seen = append(seen, r.books(), fmt.Sprintf("%x", r.m.Fingerprint.Sum()))
			if first == nil {
				first = seen
			}
			for i := range first {
				if first[i] != seen[i] {
					t.Fatalf("mode %d: at watch %d\n%s\nthe lazy run had\n%s", mode, i, seen[i], first[i])
				}
			}
		}
	})
}

// consistent checks the state of every NAPI and list at any instant of the engine.
func (r *rig) consistent(t *rapid.T) {
	for _, sd := range r.sds {
		var last *NAPI
		for n := sd.pollList.head; n != nil; n = n.next {
			if !n.queued || n.state&stateSched == 0 || n.sd != sd || n.ListOwner() != sd.core.ID {
				t.Fatalf("%s is on the poll list of cpu%d with state %04b, queued %v, owner %d", n.Name, sd.core.ID, n.state, n.queued, n.ListOwner())
			}
			last = n
		}
		if last != sd.pollList.tail {
			t.Fatalf("the tail of cpu%d's poll list is not its last element", sd.core.ID)
		}
		pending := sd.pending&NetRX.bit() != 0
		if last != nil && !pending && !sd.core.ServingSoftirq() && !sd.core.IRQsDisabled() {
			t.Fatalf("cpu%d has NAPIs to poll, and nobody will", sd.core.ID)
		}
		if s := sd.Stats(); s.Restarts > 9*s.Invocations {
			t.Fatalf("%d restarts of %d invocations", s.Restarts, s.Invocations)
		}
	}
	for _, d := range r.devs {
		n := d.napi
		owned := n.state&stateSched != 0
		switch {
		case n.thread != nil: // which may be waking
		case owned && r.busyReads && !n.queued: // by a task
		case owned && !n.queued && !n.Core().ServingSoftirq() && !n.Core().IRQsDisabled():
			t.Fatalf("%s is owned by nobody", n.Name)
		case !owned && (n.queued || d.polling && n.state&stateMissed != 0):
			t.Fatalf("%s is queued %v without an owner, state %04b", n.Name, n.queued, n.state)
		case n.rxCount > 0 && n.rxList.Len() == 0:
			t.Fatalf("%s counts %d on a list of %d", n.Name, n.rxCount, n.rxList.Len())
		}
	}
}

// books lists all counters, as of an instant.
func (r *rig) books() string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %v: delivered %d, lists %d\n", r.eng.Now(), r.stack.delivered, r.stack.lists)
	for _, sd := range r.sds {
		fmt.Fprintf(&b, "cpu%d: %+v\n", sd.core.ID, *sd.Stats())
	}
	for _, d := range r.devs {
		fmt.Fprintf(&b, "%s: taken %d dropped %d interrupts %d unmasks %d polls %d %+v\n",
			d.name, d.taken, d.dropped, d.interrupts, d.unmasks, len(d.polls), d.napi.Stats())
		if d.napi.GRO() != nil {
			fmt.Fprintf(&b, "%+v\n", *d.napi.GRO().Stats())
		}
	}
	return b.String()
}

// drained checks a machine on which all has been quiet for long: no NAPI is lost, and
// every frame is accounted for.
func (r *rig) drained(t *rapid.T) {
	var taken, dropped, work int64
	for _, d := range r.devs {
		n := d.napi
		if int(d.taken) != len(d.frames) || d.masked {
			t.Errorf("%s: %d of %d frames are taken, masked %v", d.name, d.taken, len(d.frames), d.masked)
		}
		if n.state&^stateThreaded != 0 || n.queued || n.rxList.Len() != 0 || n.ListOwner() != -1 {
			t.Errorf("%s: state %04b, queued %v, %d skbs listed, owner %d", d.name, n.state, n.queued, n.rxList.Len(), n.ListOwner())
		}
		if g := n.GRO(); g != nil && g.Held() != 0 {
			t.Errorf("%s: GRO holds %d skbs", d.name, g.Held())
		}
		for _, w := range d.polls {
			if w > max(n.weight, 64) {
				t.Errorf("%s: a poll of %d with weight %d", d.name, w, n.weight)
			}
		}
		taken += d.taken
		dropped += d.dropped
	}
	var processed int64
	for _, sd := range r.sds {
		if sd.Pending() || !sd.pollList.empty() || sd.inNetRXAction || sd.ksoftirqd.Runnable() {
			t.Errorf("cpu%d: pending %x, poll list empty %v, in net_rx_action %v, ksoftirqd runnable %v",
				sd.core.ID, sd.pending, sd.pollList.empty(), sd.inNetRXAction, sd.ksoftirqd.Runnable())
		}
		work += int64(sd.Stats().Work.Sum()) + sd.Stats().BusyPollRxPackets
		processed += sd.Stats().Processed
	}
	if work != taken || r.stack.delivered+dropped != taken || r.skbs.Live() != 0 || processed != int64(len(r.stack.segs)) {
		t.Errorf("taken %d, work of polls %d, dropped %d, delivered %d, live skbs %d, processed %d of %d skbs",
			taken, work, dropped, r.stack.delivered, r.skbs.Live(), processed, len(r.stack.segs))
	}
	if r.waiting != 0 {
		t.Errorf("%d packets are not read", r.waiting)
	}
}
