package guest

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/nic/driver"
	"napisim/nic/emulated"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq"
	"napisim/softirq/gro"
)

// This file holds the machine of the recordings: one core, two interfaces of a guest
// joined by a hub, and pktgen.

const (
	ns = sim.Nanosecond
	us = sim.Microsecond
	ms = sim.Millisecond
)

// The phases of a rig's events: devices before cores, observers after.
const (
	phaseNB  sim.Phase = 1
	phaseNA  sim.Phase = 2
	phaseEnd sim.Phase = 255
)

// recordedCosts are instruction counts of recordings with events on, a nanosecond each:
// 0.7 us from an interrupt's line to the raise, 1.1 us from one interrupt's exit to the next,
// 1.0 us from there to the softirq, 6 us a received frame, 0.15 us a sent one.
func recordedCosts() (c model.Costs) {
	for stage, cost := range map[model.Stage]sim.Time{
		model.StageHardirqEntry: 500, model.StageIRQHandler: 400, model.StageNAPISchedule: 300, model.StageHardirqExit: 1200,
		model.StageSoftirqEntry: 600, model.StageNetRXAction: 300,
		model.StageNAPIPoll: 500, model.StageNAPIPollTail: 300, model.StageNetRXTail: 1000,
		model.StageTXCompletion: 150, model.StageTXPost: 470, model.StageDoorbell: 50,
		model.StageRXDescriptor: 2000, model.StageSKBBuild: 2000, model.StageGROReceive: 1900,
		model.StageRingLook: 100, model.StageListReceive: 50, model.StageRefill: 60,
		model.StageNAPIComplete: 300, model.StageIRQUnmask: 100, model.StageContextSwitch: 1000,
	} {
		c[stage] = cost * ns
	}
	return c
}

// setup is what a rig is built from.
type setup struct {
	mode    sim.Mode
	shuffle uint64
	kernel  string // k61 or k612
	driver  string // e1000, e1000e or virtio
	device  emulated.Config
	config  Config
	costs   model.Costs
}

func ofDriver(kernel, name string) setup {
	s := setup{kernel: kernel, driver: name, costs: recordedCosts()}
	s.device = emulated.Config{RXRing: 2048, TXRing: 2048}
	s.config = Config{BQL: true, BQLMin: BQLMax, FixedITR: name == "e1000e"}
	g := gro.DefaultConfig()
	s.config.GRO = &g
	if name == "virtio" {
		s.device = emulated.Config{RXRing: 1024, TXRing: 256}
		s.config.BQL = kernel == "k612"
	}
	return s
}

func (s setup) softirq() softirq.Config {
	c := softirq.DefaultConfig()
	if s.kernel == "k612" {
		c.NAPISchedule, c.Ksoftirqd = "skip_in_net_rx_action", "inline"
	}
	return c
}

// rig is the machine under test.
type rig struct {
	setup
	eng    *sim.Engine
	m      *cpu.Machine
	sd     *softirq.Softnet
	skbs   model.SKBPool
	losses model.Losses
	stack  *testStack
	na, nb *Netdev
	full   bool // senders send full frames
}

func newRig(s setup) *rig {
	r := &rig{setup: s, eng: sim.NewEngine(s.mode)}
	if s.shuffle != 0 {
		r.eng = sim.NewEngineShuffled(s.mode, s.shuffle)
	}
	r.m = cpu.NewMachine(r.eng, cpu.Config{Cores: 1, HZ: 100, Preempt: cpu.PreemptVoluntary, TickPhase: 9 * ms, Costs: s.costs})
	r.stack = &testStack{env: host.Env{SKBs: &r.skbs, Losses: &r.losses}}
	r.sd = softirq.NewSoftnet(r.m.Cores[0], s.softirq(), r.stack, &r.skbs)
	h := driver.Host{Machine: r.m, Softnets: []*softirq.Softnet{r.sd}, SKBs: &r.skbs, Losses: &r.losses}
	a, b := s.config, s.config
	a.Name, a.RXIRQ, a.TXIRQ = "na", 26, 27
	b.Name, b.RXIRQ, b.TXIRQ = "nb", 29, 30
	switch s.driver {
	case "e1000":
		db, da := emulated.NewE1000(r.eng, phaseNB, s.device), emulated.NewE1000(r.eng, phaseNA, s.device)
		emulated.Join(da.Port, db.Port)
		nb, na := NewE1000(b, h, db), NewE1000(a, h, da)
		nb.Open()
		na.Open()
		r.na, r.nb = na.Netdev, nb.Netdev
	case "e1000e":
		db, da := emulated.NewE1000E(r.eng, phaseNB, s.device), emulated.NewE1000E(r.eng, phaseNA, s.device)
		emulated.Join(da.Port, db.Port)
		nb, na := NewE1000E(b, h, db), NewE1000E(a, h, da)
		nb.Open()
		na.Open()
		r.na, r.nb = na.Netdev, nb.Netdev
	case "virtio":
		a.RXIRQName, a.TXIRQName = "virtio0-input.0", "virtio0-output.0"
		b.RXIRQName, b.TXIRQName = "virtio1-input.0", "virtio1-output.0"
		db, da := emulated.NewVirtio(r.eng, phaseNB, s.device), emulated.NewVirtio(r.eng, phaseNA, s.device)
		emulated.Join(da.Port, db.Port)
		nb, na := NewVirtio(b, h, db), NewVirtio(a, h, da)
		nb.Open()
		na.Open()
		r.na, r.nb = na.Netdev, nb.Netdev
	}
	OpenNetTX(r.sd, r.nb, r.na)
	r.m.Trace = trace.NewLog(0, sim.Never, 1<<16)
	return r
}

// do is a function that the engine calls.
type do func()

func (f do) Fire(uint64) { f() }

func (r *rig) at(t sim.Time, f func()) { r.eng.Schedule(t, phaseEnd, do(f), 0) }

// task starts a task at an instant.
func (r *rig) task(start sim.Time, body func(t *cpu.Task)) {
	t := r.m.NewTask(r.m.Cores[0], "kpktgend_0", cpu.TaskConfig{}, body)
	r.at(start, t.WakeFromDevice)
}

// udp is a frame of pktgen.
func udp() *model.Segment {
	return &model.Segment{Frame: model.Frame{Proto: model.UDP, Len: 60, Payload: 18}}
}

// pktgen sends a burst of n at each instant, or as soon after it as it can.
func (r *rig) pktgen(n int, starts []sim.Time) {
	r.task(starts[0], func(t *cpu.Task) {
		c := t.Core()
		for _, at := range starts {
			r.na.NewSKB()
			for c.Look(); c.Now() < at; c.Look() {
				r.at(at, t.WakeFromDevice)
				t.Sleep()
			}
			c.BHDisable()
			for sent := 0; sent < n; {
				k := r.na.Burst(c, udp(), n-sent)
				if sent += k; k == 0 {
					c.Work(us)
				}
				if sent < n {
					c.BHEnable()
					c.BHDisable()
				}
			}
			c.BHEnable()
		}
	})
}

// udpsend sends a datagram at each instant, by the stack.
func (r *rig) udpsend(starts []sim.Time) {
	r.task(starts[0], func(t *cpu.Task) {
		c := t.Core()
		for _, at := range starts {
			for c.Look(); c.Now() < at; c.Look() {
				r.at(at, t.WakeFromDevice)
				t.Sleep()
			}
			c.BHDisable()
			r.na.Xmit(c, udp())
			c.BHEnable()
		}
	})
}

type failer interface {
	Helper()
	Errorf(string, ...any)
}

// run lets the machine run until an instant, and then checks its books.
func (r *rig) run(t failer, until sim.Time) {
	t.Helper()
	defer r.eng.Close()
	r.at(until, r.eng.Stop)
	r.eng.Run()
	for _, d := range []*Netdev{r.na, r.nb} {
		if err := d.Check(); err != nil {
			t.Errorf("%v", err)
		}
		segs := int64(0)
		r.skbs.Each(func(s *model.SKB) {
			if s.Dev == d.cfg.Name {
				segs += int64(s.Segs)
			}
		})
		if d == r.nb {
			segs += r.stack.skipped
		}
		if got := segs + r.stack.freed[d.cfg.Name]; d.rx.Taken() != got {
			t.Errorf("%s: %d frames taken, but %d in skbs and freed", d.cfg.Name, d.rx.Taken(), got)
		}
	}
	for _, c := range r.m.Cores {
		c.Settle()
		if err := c.Check(); err != nil {
			t.Errorf("%v", err)
		}
	}
}

// testStack takes packets and frees them. The first list that is not a full batch
// takes longer: in all recordings the first poll of a few frames does, by 4 to 6 us.
type testStack struct {
	env   host.Env
	freed map[string]int64
	warm  bool

	arrived func(c *cpu.Core, dev string) // tells a process

	truesize int   // of the last packet
	skipped  int64 // frames that a test took off the ring of nb itself
}

func (k *testStack) ReceiveSKB(c *cpu.Core, s *model.SKB) {
	c.Look()
	if k.freed == nil {
		k.freed = map[string]int64{}
	}
	k.freed[s.Dev] += int64(s.Segs)
	k.truesize = s.Truesize
	if k.arrived != nil {
		k.arrived(c, s.Dev)
	}
	k.env.FreeSKB(c, s, false)
}

func (k *testStack) ReceiveList(c *cpu.Core, list *model.SKBList) {
	if list.Len() < 8 && !k.warm {
		k.warm = true
		c.Work(4500 * ns)
	}
	for s := list.PopFront(); s != nil; s = list.PopFront() {
		k.ReceiveSKB(c, s)
	}
}

// happening is a line of an excerpt or of a run.
type happening struct {
	at   sim.Time
	what string
}

// excerpt reads a file of testdata.
func excerpt(t *testing.T, name string) (all []happening) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.SplitN(line, " ", 3)
		at, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, happening{sim.Time(at) * ns, f[2]})
	}
	return all
}

// other stands for a vector that excerpts leave out.
const other = " other"

func vector(v int64) string {
	switch softirq.Vector(v) {
	case softirq.NetRX:
		return " NET_RX"
	case softirq.NetTX:
		return " NET_TX"
	}
	return other
}

// happenings are those of a run, in the form of an excerpt.
func (r *rig) happenings() (all []happening) {
	for _, e := range r.m.Trace.Events() {
		what := ""
		switch e.Point {
		case trace.IRQHandlerEntry:
			what = "irq " + e.S
		case trace.SoftirqRaise:
			what = "raise " + [...]string{".", "s", "h", "H"}[e.Flags.Context] + vector(e.A)
		case trace.SoftirqEntry:
			what = "entry" + vector(e.A)
		case trace.SoftirqExit:
			what = "exit" + vector(e.A)
		case trace.NAPIPoll:
			what = fmt.Sprintf("poll %s %d", e.S, e.B)
		}
		if what != "" && !strings.HasSuffix(what, other) {
			all = append(all, happening{e.At, what})
		}
	}
	return all
}

// mallocs returns how many objects were ever allocated.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
