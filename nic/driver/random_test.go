package driver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/unit"
	"napisim/nic"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq/gro"
)

// This file runs random interfaces on random machines: the books balance, nothing is
// stuck, and lazy, eager and slow runs are the same.

func between(low, high sim.Time) *rapid.Generator[sim.Time] {
	return rapid.Map(rapid.Int64Range(int64(low), int64(high)), func(v int64) sim.Time { return sim.Time(v) })
}

// trial is a random interface with its traffic.
type trial struct {
	setup
	arrivals []model.Frame
	sends    []send
	cuts     []sim.Time
	traced   bool
	freer    int // the core that frees what the stack holds, -1 if none does
}

// send is a task that transmits segments of its own numbers.
type send struct {
	core, n int
	at      sim.Time
}

func drawTrial(t *rapid.T) (tr trial) {
	s := onGeneric()
	if rapid.Bool().Draw(t, "lan966x") {
		s = onLAN966x()
	}
	s.machine = cpu.Config{
		Cores:      2,
		HZ:         rapid.SampledFrom([]int{100, 1000}).Draw(t, "hz"),
		Preempt:    rapid.SampledFrom([]cpu.Preemption{cpu.PreemptNone, cpu.PreemptFull}).Draw(t, "preempt"),
		IPILatency: between(0, us).Draw(t, "ipi"),
		TickPhase:  between(0, ms-1).Draw(t, "tick"),
	}
	for stage := range model.NumStages {
		cost := rapid.OneOf(rapid.Just(sim.Time(0)), between(1, us))
		if stage.PerByte() {
			cost = between(0, 300)
		}
		s.machine.Costs[stage] = cost.Draw(t, stage.String())
	}
	s.device.RXRing = rapid.SampledFrom([]int{1, 5, 16, 64, 200}).Draw(t, "rx ring")
	s.device.TXRing = rapid.SampledFrom([]int{1, 3, 64}).Draw(t, "tx ring")
	s.device.RX = nic.Coalesce{Usecs: us * sim.Time(rapid.SampledFrom([]int{0, 0, 10}).Draw(t, "rx-usecs"))}
	s.device.TXLatency = between(0, us).Draw(t, "tx latency")
	s.driver.RXCPU, s.driver.TXCPU = rapid.IntRange(0, 1).Draw(t, "rx cpu"), rapid.IntRange(0, 1).Draw(t, "tx cpu")
	s.driver.XDPDrop = rapid.IntRange(0, 3).Draw(t, "xdp") == 0
	s.driver.RXCsum = rapid.Bool().Draw(t, "csum")
	s.driver.Buffer = rapid.SampledFrom([]int{2048, 4096, 9216}).Draw(t, "buffer")
	if rapid.Bool().Draw(t, "no gro") {
		s.driver.GRO = nil
	} else {
		full := gro.DefaultConfig()
		s.driver.GRO = &full
	}
	s.driver.Pool = PagePoolConfig{
		Size:    rapid.SampledFrom([]int{1, 64, 512}).Draw(t, "pool"),
		Recycle: Recycle(rapid.IntRange(0, 2).Draw(t, "recycle")),
	}
	s.wire.Rate = rapid.SampledFrom([]unit.BitRate{unit.Gbps, 10 * unit.Gbps, 8 * unit.Tbps}).Draw(t, "rate")
	s.holds = rapid.IntRange(0, 2).Draw(t, "holds") == 0
	tr.setup = s
	at := sim.Time(0)
	gap := rapid.OneOf(rapid.Just(sim.Time(0)), between(1, us), between(1, 100*us))
	for range rapid.IntRange(0, 30).Draw(t, "bursts") {
		at += gap.Draw(t, "gap")
		tr.arrivals = append(tr.arrivals, burst(at, rapid.SampledFrom([]int{1, 1, 3, 70}).Draw(t, "burst"))...)
	}
	for range rapid.IntRange(0, 4).Draw(t, "senders") {
		tr.sends = append(tr.sends, send{
			rapid.IntRange(0, 1).Draw(t, "core"), rapid.SampledFrom([]int{1, 10, 70, 1200}).Draw(t, "segments"), between(0, ms).Draw(t, "at"),
		})
	}
	tr.cuts = rapid.SliceOfN(between(0, 3*ms), 0, 4).Draw(t, "cuts")
	tr.traced = rapid.Bool().Draw(t, "traced")
	tr.freer = rapid.IntRange(-1, 1).Draw(t, "freer")
	return tr
}

// run returns what has to be the same in all modes.
func (tr *trial) run(t *rapid.T, mode sim.Mode) string {
	s := tr.setup
	s.mode = mode
	r := newRig(s, slices.Clone(tr.arrivals)...)
	if tr.traced {
		r.m.Trace = trace.NewLog(0, sim.Never, 1_000_000)
	}
	var story strings.Builder
	total := 0
	for i, snd := range tr.sends {
		total += snd.n
		r.task(snd.core, snd.at, func(c *cpu.Core) { r.xmit(c, uint64(10_000*i), snd.n) })
	}
	if s.holds && tr.freer >= 0 {
		r.task(tr.freer, 0, r.freeHeld)
	}
	for _, at := range tr.cuts { // numbers read in the middle of the run
		r.at(at, func() {
			for _, c := range r.m.Cores {
				c.Align()
			}
			r.at(at, func() {
				fmt.Fprintf(&story, "%v: %+v %+v %+v %v\n", at, r.dev.Stats(at), r.Stats(), *r.pool.Stats(), r.losses)
			})
		})
	}
	r.run(t, 100*ms)
	st := r.dev.Stats(r.eng.Now())
	if n := int64(len(tr.arrivals)); r.rx.Taken() != n-st.RXMissedErrors || r.rx.Filled() > 0 {
		t.Fatalf("%d of %d frames taken, %d missed, %d left", r.rx.Taken(), n, st.RXMissedErrors, r.rx.Filled())
	}
	if n := int64(total) - r.Stats().TXDropped; int64(len(r.sent)) != n || r.tx.InFlight() > 0 || r.qdisc.n > 0 {
		t.Fatalf("%d of %d segments sent, %d in the ring, %d in the qdisc", len(r.sent), n, r.tx.InFlight(), r.qdisc.n)
	}
	last := map[uint64]uint64{}
	for _, n := range r.sent {
		if before, ok := last[n/10_000]; ok && before >= n {
			t.Fatalf("segment %d was sent after %d", n, before)
		}
		last[n/10_000] = n
	}
	fmt.Fprintf(&story, "%+v\n%+v\n%+v\n%v\n%v\n", st, r.Stats(), *r.pool.Stats(), r.losses, r.sent)
	for i, c := range r.m.Cores {
		sd := r.sds[i].Stats()
		fmt.Fprintf(&story, "cpu%d %v %+v %v %v %v\n", i, c.Account(), c.Stats(), c.Spent(), sd.Softirqs, sd.Polls)
	}
	for _, e := range r.m.Trace.Events() {
		fmt.Fprintf(&story, "%+v\n", e)
	}
	fmt.Fprintf(&story, "fingerprint %x", r.m.Fingerprint.Sum())
	return story.String()
}

// freeHeld frees for some time what the stack holds, as a reader does.
func (r *rig) freeHeld(c *cpu.Core) {
	for c.Look(); c.Now() < 5*ms; c.Look() {
		if len(r.stack.got) == 0 {
			c.Work(10 * us)
			continue
		}
		s := r.stack.got[0]
		r.stack.got = r.stack.got[1:]
		r.stack.env.FreeSKB(c, s, false)
	}
}

func TestModesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawTrial(t)
		want := tr.run(t, sim.Lazy)
		for mode, name := range map[sim.Mode]string{sim.Eager: "eager", sim.Slow: "slow"} {
			if got := tr.run(t, mode); got != want {
				t.Fatalf("%s: %s", name, firstDifference(want, got))
			}
		}
	})
}

// firstDifference returns the first lines in which two stories differ, with those
// before and after.
func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	around := func(lines []string) string { return strings.Join(lines[max(0, i-3):min(len(lines), i+4)], "\n") }
	return fmt.Sprintf("line %d\nlazy:\n%s\nhere:\n%s", i, around(a), around(b))
}
