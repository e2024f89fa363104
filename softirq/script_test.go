package softirq

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/model/unit"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq/gro"
)

// This file plays the scripts of testdata. Each is a txtar archive: its comment says
// what follows from which rules; "scenario" is a machine and what happens to it;
// "narrative" is what the kernel does, and "counters" what it counts. Lines of a
// scenario are:
//
//	kernel KEY=VALUE ...       behaviours by name, budget, usecs, batch
//	machine KEY=VALUE ...      hz, tick (the phase), preempt
//	cost STAGE=TIME ...        instead of testCosts
//	trace FROM TO [frames]     the part of the run that is told; frames: each skb too
//	nic NAME [gro] [frags] [nomask] [edge] [xdp] [threaded] [flush=TIME] [defer=N] [suspend=TIME]
//	                           edge: unmasking does not interrupt for what is in the ring;
//	                           xdp drops all frames; table=NAME for the GRO table of a version
//	task hog|khog TIME [fifo=N]     user or kernel code that runs so long
//	task reader TIME [fifo=N]       reads packets, each in so long
//	task busyreader TIME USECS [prefer] [budget=N]  polls the first nic that long before it sleeps
//	task suspender TIME USECS       as a preferring busyreader in epoll with irq_suspend_timeout
//	at TIME frames NIC N
//	at TIME tcp NIC FLOW N BYTES [psh] [urg]
//	at TIME saturate NIC            the ring is never empty again
//	at TIME endless NIC N TIMES     N frames now, and TIMES N more at each unmask
//	at TIME wake ksoftirqd
//	at TIME raise VECTOR            an interrupt raises the softirq
//	run TIME

var update = flag.Bool("update", false, "rewrite the narratives and counters in testdata")

// played is a scenario after its run.
type played struct {
	r      *rig
	sd     *Softnet
	stats  Stats
	events []trace.Event // of the whole run
	told   func(*trace.Event) bool
}

// playFile plays a script in all modes of the engine, which must agree, and compares
// it with what the archive expects.
func playFile(t *testing.T, name string) *played {
	t.Helper()
	path := filepath.Join("testdata", name+".txtar")
	text := string(must(os.ReadFile(path)))
	head, _, ok := strings.Cut(text, narrativeMark)
	_, scenario, found := strings.Cut(head, scenarioMark)
	if !found || !ok && !*update {
		t.Fatalf("%s has no scenario or no narrative", path)
	}
	p := play(t, scenario)
	got := head + narrativeMark + p.narrative() + countersMark + p.counters()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(strings.Split(text, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs (-update rewrites it):\n%s", path, diff)
	}
	return p
}

// The marks between the files of an archive.
const (
	scenarioMark  = "-- scenario --\n"
	narrativeMark = "-- narrative --\n"
	countersMark  = "-- counters --\n"
)

// play plays a scenario in all modes; they must agree on every event and counter.
func play(t *testing.T, scenario string) *played {
	t.Helper()
	var first *played
	for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
		p := playMode(t, scenario, mode)
		if first == nil {
			first = p
			continue
		}
		if got, want := p.r.m.Fingerprint.Sum(), first.r.m.Fingerprint.Sum(); got != want {
			t.Errorf("mode %d: fingerprint %x, the lazy run has %x", mode, got, want)
		}
		if diff := cmp.Diff(first.narrative()+first.counters(), p.narrative()+p.counters()); diff != "" {
			t.Errorf("mode %d differs from the lazy run:\n%s", mode, diff)
		}
	}
	return first
}

// player builds a rig from a scenario.
type player struct {
	setup    setup
	r        *rig
	from, to sim.Time
	frames   bool
	disk     *cpu.Line // raises softirqs
	raise    Vector
	until    sim.Time
}

func playMode(t *testing.T, scenario string, mode sim.Mode) *played {
	t.Helper()
	pl := &player{setup: defaultSetup(), to: sim.Never}
	pl.setup.mode = mode
	for i, line := range strings.Split(strings.TrimSpace(scenario), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Fatalf("line %d: %s: %v", i+1, line, r)
				}
			}()
			pl.command(words)
		}()
	}
	pl.build()
	pl.r.run(t, pl.until)
	return &played{
		r: pl.r, sd: pl.r.sds[0], stats: *pl.r.sds[0].Stats(), events: pl.setup.log.Events(),
		told: func(e *trace.Event) bool {
			switch e.Point {
			case trace.IRQHandlerExit:
				return false
			case trace.NAPIGROReceiveExit, trace.NAPIGROFragsExit:
				return false // says what the delivery shows
			case trace.NetifReceiveSKB, trace.NAPIGROReceiveEntry, trace.NAPIGROFragsEntry:
				return pl.frames && e.At < pl.to
			}
			return e.At >= pl.from && e.At < pl.to
		},
	}
}

// build makes the rig when the first line needs it.
func (pl *player) build() *rig {
	if pl.r == nil {
		pl.r = newRig(pl.setup)
		sd := pl.r.sds[0]
		pl.disk = sd.Core().NewLine(14, "disk", func(c *cpu.Core) { sd.RaiseSoftirq(pl.raise) })
		for _, v := range []Vector{HI, NetTX, Tasklet, RCU} {
			sd.OpenSoftirq(v, func() { sd.Core().Work(sim.Microsecond) })
		}
	}
	return pl.r
}

// command obeys one line; it panics where the line makes no sense.
func (pl *player) command(w []string) {
	switch w[0] {
	case "kernel", "machine", "cost":
		for _, pair := range w[1:] {
			key, value, _ := strings.Cut(pair, "=")
			pl.set(w[0], key, value)
		}
	case "trace":
		pl.from, pl.to, pl.frames = duration(w[1]), duration(w[2]), slices.Contains(w, "frames")
	case "nic":
		var gc *gro.Config
		if slices.Contains(w, "gro") {
			c := gro.DefaultConfig()
			for _, word := range w {
				if table, ok := strings.CutPrefix(word, "table="); ok {
					c = must(gro.ForVersion(table, "none"))
				}
			}
			gc = &c
		}
		d := pl.build().nic(w[1], gc, 0)
		for _, word := range w[2:] {
			pl.option(d, word)
		}
	case "task":
		pl.task(w)
	case "at":
		pl.at(duration(w[1]), w[2:])
	case "run":
		pl.until = duration(w[1])
	default:
		panic("unknown command")
	}
}

// option sets an option of a nic.
func (pl *player) option(d *device, word string) {
	switch key, value, _ := strings.Cut(word, "="); key {
	case "gro", "table": // read before the nic is made
	case "frags":
		d.frags = true
	case "nomask":
		d.noMask = true
	case "edge":
		d.edge = true
	case "xdp":
		d.xdp = true
	case "threaded":
		if err := d.napi.SetThreaded(pl.r.sds[0], Threaded); err != nil {
			panic(err)
		}
	case "flush":
		d.napi.groFlushTimeout = duration(value)
	case "suspend":
		d.napi.irqSuspendTimeout = duration(value)
	case "defer":
		d.napi.deferHardIRQs = must(strconv.Atoi(value))
	default:
		panic("unknown option " + word)
	}
}

func (pl *player) set(group, key, value string) {
	k, m := &pl.setup.kernel, &pl.setup.machine
	switch group + " " + key {
	case "kernel napi_schedule":
		k.NAPISchedule = value
	case "kernel napi_schedule_prep":
		k.NAPISchedulePrep = value
	case "kernel napi_complete":
		k.NAPIComplete = value
	case "kernel napi_threaded":
		k.NAPIThreaded = value
	case "kernel busy_poll":
		k.BusyPoll = value
	case "kernel ksoftirqd":
		k.Ksoftirqd = value
	case "kernel gro_normal":
		k.GRONormal = value
	case "kernel budget":
		k.NetdevBudget = must(strconv.Atoi(value))
	case "kernel usecs":
		k.NetdevBudgetUsecs = duration(value)
	case "kernel batch":
		k.GRONormalBatch = must(strconv.Atoi(value))
	case "machine hz":
		m.HZ = must(strconv.Atoi(value))
	case "machine tick":
		m.TickPhase = duration(value)
	case "machine preempt":
		m.Preempt = must(cpu.ParsePreemption(value))
	default:
		if group != "cost" {
			panic("unknown key " + key)
		}
		m.Costs[must(model.ParseStage(key))] = duration(value)
	}
}

func (pl *player) task(w []string) {
	r := pl.build()
	var cfg cpu.TaskConfig
	if last, ok := strings.CutPrefix(w[len(w)-1], "fifo="); ok {
		cfg.FIFO = must(strconv.Atoi(last))
	}
	d := duration(w[2])
	switch w[1] {
	case "hog":
		r.task("hog", cfg, hog(d))
	case "khog":
		r.task("khog", cfg, kernelHog(d))
	case "reader":
		r.readCost = d
		r.reader = r.task("reader", cfg, r.read)
	case "busyreader", "suspender":
		r.readCost = d
		wait := host.BusyWait{Prefer: w[1] == "suspender" || slices.Contains(w, "prefer")}
		if b, ok := strings.CutPrefix(w[len(w)-1], "budget="); ok {
			wait.Budget = must(strconv.Atoi(b))
		}
		r.suspends = w[1] == "suspender"
		r.reader = r.task("reader", cfg, r.busyRead(int64(must(strconv.Atoi(w[3]))), wait))
	default:
		panic("unknown task")
	}
}

func (pl *player) at(t sim.Time, w []string) {
	r := pl.build()
	n := func(i int) int { return must(strconv.Atoi(w[i])) }
	switch w[0] {
	case "wake":
		r.at(t, phaseDevices, r.sds[0].Ksoftirqd().WakeFromDevice)
		return
	case "raise":
		v := vector(w[1])
		r.at(t, phaseDevices, func() { pl.raise = v; pl.disk.Raise() })
		return
	}
	var d *device
	for _, d = range r.devs {
		if d.name == w[1] {
			break
		}
	}
	switch w[0] {
	case "frames":
		d.arrive(t, n(2))
	case "tcp":
		var flags model.TCPFlags
		if slices.Contains(w, "psh") {
			flags |= model.PSH
		}
		if slices.Contains(w, "urg") {
			flags |= model.URG
		}
		d.tcp(t, model.FlowID(n(2)), n(3), int32(n(4)), flags)
	case "saturate":
		d.arrive(t, 1)
		r.at(t, 0, func() { d.saturated = true })
	case "endless":
		d.arrive(t, n(2))
		d.batch, d.batches = n(2), n(3)
	default:
		panic("unknown event")
	}
}

// vector returns the vector of that name.
func vector(name string) Vector {
	for v := range NumVectors {
		if vectorName(int64(v)) == name {
			return v
		}
	}
	panic("unknown vector " + name)
}

func vectorName(v int64) string {
	return [...]string{"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"}[v]
}

func duration(text string) sim.Time { return sim.Time(must(unit.ParseDuration(text))) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// narrative tells the events in the kernel's words, one a line: the time in
// microseconds, then irqs-off, need-resched and context as in a trace. Equal lines in
// a row are one, with the time of the first.
func (p *played) narrative() string {
	var b strings.Builder
	last, times := "", 0
	end := func() {
		if times > 1 {
			fmt.Fprintf(&b, " x%d", times)
		}
		if times > 0 {
			b.WriteByte('\n')
		}
	}
	for i := range p.events {
		e := &p.events[i]
		if !p.told(e) {
			continue
		}
		line := flagText(e.Flags) + " " + eventText(e)
		if line == last {
			times++
			continue
		}
		end()
		last, times = line, 1
		fmt.Fprintf(&b, "%6d.%03d %s", e.At/sim.Microsecond, e.At%sim.Microsecond/sim.Nanosecond, line)
	}
	end()
	return b.String()
}

func flagText(f trace.Flags) string {
	b := []byte{'.', '.', ".shH"[f.Context]}
	if f.IRQsOff {
		b[0] = 'd'
	}
	if f.NeedResched {
		b[1] = 'N'
	}
	return string(b)
}

func eventText(e *trace.Event) string {
	switch e.Point {
	case trace.IRQHandlerEntry, trace.IRQHandlerExit:
		return fmt.Sprintf("%v: %d %s", e.Point, e.A, e.S)
	case trace.SoftirqRaise, trace.SoftirqEntry, trace.SoftirqExit:
		return fmt.Sprintf("%v: %s", e.Point, vectorName(e.A))
	case trace.NAPIPoll:
		return fmt.Sprintf("napi_poll: %s work %d budget %d", e.S, e.B, e.C)
	case trace.NetifReceiveSKB:
		return fmt.Sprintf("netif_receive_skb: %s segments %d", e.S, e.C)
	case trace.SchedSwitch:
		return fmt.Sprintf("sched_switch: %s %s ==> %s", e.Comm, e.T, e.S)
	case trace.SchedWakeup:
		return fmt.Sprintf("sched_wakeup: %s", e.S)
	case note:
		return e.S
	}
	return e.Point.String()
}

// counters lists what was counted.
func (p *played) counters() string {
	var b strings.Builder
	s := &p.stats
	fmt.Fprintf(&b, "softirq: invocations %d restarts %d ksoftirqd_wakeups %d\n", s.Invocations, s.Restarts, s.KsoftirqdWakeups)
	fmt.Fprintf(&b, "net_rx: runs %d polls %d time_squeeze %d processed %d\n", s.Softirqs[NetRX], s.Polls, s.TimeSqueeze, s.Processed)
	for _, d := range p.r.devs {
		fmt.Fprintf(&b, "%s: interrupts %d unmasks %d polls %s\n", d.name, d.interrupts, d.unmasks, runLengths(d.polls))
	}
	if s.BusyPolls > 0 {
		fmt.Fprintf(&b, "busy: polls %d BusyPollRxPackets %d\n", s.BusyPolls, s.BusyPollRxPackets)
	}
	fmt.Fprintf(&b, "stack: lists %d segments %s\n", p.r.stack.lists, runLengths(p.r.stack.segs))
	return b.String()
}

// runLengths writes equal neighbours as NxTIMES.
func runLengths(all []int) string {
	var b strings.Builder
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j] == all[i] {
			j++
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(all[i]))
		if j-i > 1 {
			fmt.Fprintf(&b, "x%d", j-i)
		}
		i = j
	}
	return b.String()
}
