package driver

import (
	"fmt"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/model/link"
	"napisim/model/unit"
	"napisim/nic"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq"
	"napisim/softirq/gro"
)

// This file holds an interface for tests, between a wire whose frames follow a script
// and a stack that counts.

const (
	ns = sim.Nanosecond
	us = sim.Microsecond
	ms = sim.Millisecond
)

// The phases of a rig's events: link and device before all cores, observers after.
const (
	phaseLink   sim.Phase = 0
	phaseDevice sim.Phase = 1
	phaseEnd    sim.Phase = 255
)

// testCosts are round, so that a reader can add them up. From an interrupt it takes
// 1 us to irq_exit, 300 ns to the first softirq, 500 ns to the first poll and 200 ns to
// the driver's; a frame takes 380 ns, a refilled descriptor 200, and the end of a poll
// 1 us.
func testCosts() (c model.Costs) {
	for stage, cost := range map[model.Stage]sim.Time{
		model.StageHardirqEntry: 200, model.StageIRQHandler: 500, model.StageNAPISchedule: 100, model.StageHardirqExit: 200,
		model.StageSoftirqEntry: 300, model.StageNetRXAction: 500, model.StageNAPIPoll: 200,
		model.StageTXCompletion: 50, model.StageDevXmit: 120,
		model.StageRXDescriptor: 200, model.StageDMASync: 30, model.StageSKBBuild: 100, model.StageGROReceive: 50,
		model.StageRingLook: 70, model.StageXDP: 90,
		model.StagePageFast: 10, model.StageRefill: 40, model.StageDoorbell: 150,
		model.StageNAPIComplete: 500, model.StageIRQUnmask: 500,
	} {
		c[stage] = cost * ns
	}
	return c
}

// toPoll is the time from an interrupt to the first look of the driver's poll.
const toPoll = 2000 * ns

// setup is what a rig is built from.
type setup struct {
	mode    sim.Mode
	machine cpu.Config
	lan966x bool
	device  nic.Config
	driver  Config
	wire    link.Config
	holds   bool // the stack keeps what it gets
}

// onLAN966x is an interface with rings of 64; onGeneric is the same with the generic
// driver. Neither moderates interrupts.
func onLAN966x() setup {
	s := onGeneric()
	s.lan966x = true
	s.device.SharedVector, s.device.Rearm = true, nic.LatchEvents
	return s
}

func onGeneric() setup {
	full := gro.DefaultConfig() // GRO looks at every frame, so takes have instants of their own
	return setup{
		machine: cpu.Config{Cores: 1, HZ: 100, TickPhase: 9 * ms, Costs: testCosts()},
		device:  nic.Config{RXRing: 64, TXRing: 64},
		driver: Config{
			Name: "eth0", Buffer: 2048, RXCsum: true, GRO: &full,
			Pool: PagePoolConfig{Size: 64, Recycle: RecycleRing}, RXIRQ: 32, TXIRQ: 33,
		},
		wire: link.Config{Rate: 8 * unit.Tbps}, // a byte takes 1 ps
	}
}

// rig is an interface under test.
type rig struct {
	setup
	eng    *sim.Engine
	m      *cpu.Machine
	sds    []*softirq.Softnet
	skbs   model.SKBPool
	losses model.Losses
	stack  *testStack
	in     *link.Pipe
	out    *link.Egress
	frames frames
	sent   []uint64 // Seq of what has reached the peer
	*Netdev
}

// newRig builds an interface that meets these frames. What belongs to the start of a
// run is done by run.
func newRig(s setup, arrivals ...model.Frame) *rig {
	r := &rig{setup: s, eng: sim.NewEngine(s.mode), frames: arrivals}
	r.m = cpu.NewMachine(r.eng, s.machine)
	r.stack = &testStack{env: host.Env{SKBs: &r.skbs, Losses: &r.losses}, holds: s.holds}
	for _, c := range r.m.Cores {
		r.sds = append(r.sds, softirq.NewSoftnet(c, softirq.DefaultConfig(), r.stack, &r.skbs))
	}
	r.in = link.NewPipe(s.wire)
	if len(arrivals) > 0 {
		r.in.Attach(&r.frames)
	}
	r.out = link.NewEgress(r.eng, phaseLink, s.wire, r)
	dev := nic.New(r.eng, phaseDevice, s.device, r.in, r.out)
	h := Host{Machine: r.m, Softnets: r.sds, SKBs: &r.skbs, Losses: &r.losses}
	if s.lan966x {
		r.Netdev = NewLAN966x(s.driver, h, dev).Netdev
	} else {
		r.Netdev = NewGeneric(s.driver, h, dev).Netdev
	}
	r.Open()
	return r
}

// Deliver implements link.Receiver.
func (r *rig) Deliver(seg *model.Segment) { r.sent = append(r.sent, seg.Seq) }

func (r *rig) at(t sim.Time, f func()) { r.eng.Schedule(t, phaseEnd, do(f), 0) }

// failer is what *testing.T and *rapid.T have in common.
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
	held, segs := 0, int64(0)
	r.skbs.Each(func(s *model.SKB) {
		held += s.Pages
		segs += int64(s.Segs)
	})
	if err := r.Check(held); err != nil {
		t.Errorf("%v", err)
	}
	if taken := r.rx.Taken() - r.Stats().XDPDropped; taken != segs+r.skbs.Freed() {
		t.Errorf("%d frames became %d segments in skbs and %d freed", taken, segs, r.skbs.Freed())
	}
	for _, c := range r.m.Cores {
		c.Settle()
		if err := c.Check(); err != nil {
			t.Errorf("%v", err)
		}
	}
}

// spent returns how often a stage was charged on all cores.
func (r *rig) spent(s model.Stage) (n int64) {
	for _, c := range r.m.Cores {
		n += c.Spent()[s]
	}
	return n
}

// task starts a task on a core at an instant.
func (r *rig) task(core int, start sim.Time, body func(c *cpu.Core)) {
	t := r.m.NewTask(r.m.Cores[core], "task", cpu.TaskConfig{}, func(t *cpu.Task) { body(t.Core()) })
	r.at(start, t.WakeFromDevice)
}

// xmit sends segments numbered from first on, as a socket does.
func (r *rig) xmit(c *cpu.Core, first uint64, n int) {
	for i := range uint64(n) {
		seg := model.Segment{Frame: model.Frame{Seq: first + i, Len: model.TCPFrameLen(0), Proto: model.TCP}}
		c.BHDisable()
		r.Xmit(c, &seg)
		c.BHEnable()
	}
}

// frames is a source that sends what it holds.
type frames []model.Frame

func (f *frames) Peek() (offered sim.Time, length int32) {
	if len(*f) == 0 {
		return sim.Never, 0
	}
	return (*f)[0].Arrival, (*f)[0].Len
}

func (f *frames) Next(to *model.Frame) (offered sim.Time, length int32) {
	*to = (*f)[0]
	*f = (*f)[1:]
	return f.Peek()
}

// burst returns n frames offered at one instant: with 64 bytes and 20 more of overhead
// they are 84 ps apart on the rig's wire.
func burst(at sim.Time, n int) (all []model.Frame) {
	for range n {
		all = append(all, model.Frame{Arrival: at, Proto: model.UDP, Len: 60, Payload: 18})
	}
	return all
}

// every returns n frames offered with a gap.
func every(start, gap sim.Time, n int) (all []model.Frame) {
	for i := range n {
		all = append(all, burst(start+gap*sim.Time(i), 1)...)
	}
	return all
}

// testStack takes packets and frees them, or keeps them.
type testStack struct {
	env   host.Env
	holds bool
	got   []*model.SKB
}

func (k *testStack) ReceiveSKB(c *cpu.Core, s *model.SKB) {
	c.Look()
	if k.holds {
		k.got = append(k.got, s)
		return
	}
	k.env.FreeSKB(c, s, false)
}

func (k *testStack) ReceiveList(c *cpu.Core, list *model.SKBList) {
	for s := list.PopFront(); s != nil; s = list.PopFront() {
		k.ReceiveSKB(c, s)
	}
}

// watch notes each 10 ns, on a grid a little behind that of the work, what has changed
// on the device.
func (r *rig) watch(from, until sim.Time) *[]string {
	lines, last := &[]string{}, ""
	for t := from; t < until; t += 10 * ns {
		r.at(t+5*ns, func() {
			state := fmt.Sprintf("tx %d, taken %d, awaiting %d, masked %v",
				r.tx.InFlight(), r.rx.Taken(), r.rx.Awaiting(), r.dev.RXVector(0).Masked())
			if state != last {
				*lines = append(*lines, fmt.Sprintf("%5d: %s", (t-from)/ns, state))
				last = state
			}
		})
	}
	return lines
}

// polls returns the work of each poll, by the id of its NAPI, as traced.
func polls(log *trace.Log) map[int64][]int64 {
	all := map[int64][]int64{}
	for _, e := range log.Events() {
		if e.Point == trace.NAPIPoll {
			all[e.A] = append(all[e.A], e.B)
		}
	}
	return all
}

// inAllModes runs a test lazily, eagerly and through the queue.
func inAllModes(t *testing.T, s setup, test func(t *testing.T, s setup)) {
	t.Helper()
	for mode, name := range []string{"lazy", "eager", "slow"} {
		s.mode = sim.Mode(mode)
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}
