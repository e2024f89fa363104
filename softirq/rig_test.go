package softirq

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq/gro"
)

// This file holds a machine for tests: cores with their softnet, devices whose
// frames follow a script, and a stack that counts.

// The phases of a rig's events: devices before all cores, observers after them.
const (
	phaseDevices   sim.Phase = 1
	phaseObservers sim.Phase = 255
)

// note is the trace point with which the rig notes what a device does, its text in
// S. The rig's rings have no end, so the point has no other use here.
const note = trace.RxMissed

// testCosts are the costs of a rig unless a test says otherwise. They are round, so
// that a reader can add them up: 1 us from the interrupt to irq_exit, 300 ns to the
// first softirq, 500 ns to the first poll, 200 ns a poll, 1 us for a completion with
// unmask.
func testCosts() (c model.Costs) {
	for stage, ns := range map[model.Stage]sim.Time{
		model.StageHardirqEntry: 200, model.StageIRQHandler: 500, model.StageNAPISchedule: 100, model.StageHardirqExit: 200,
		model.StageTick: 1000, model.StageTimerSoftirq: 200,
		model.StageSoftirqEntry: 300, model.StageSoftirqExit: 100,
		model.StageNetRXAction: 500, model.StageNetRXTail: 400,
		model.StageNAPIPoll: 200, model.StageNAPIPollTail: 100, model.StageBusyPollTurn: 100,
		model.StageRingLook: 100, model.StageRXDescriptor: 200, model.StageNAPIComplete: 500, model.StageIRQUnmask: 500,
		model.StageGROReceive: 50, model.StageGROMerge: 50, model.StageGROFlush: 100,
		model.StageNetifReceive: 100, model.StageUDPReceive: 100, model.StageContextSwitch: 1000,
	} {
		c[stage] = ns * sim.Nanosecond
	}
	return c
}

// setup is what a rig is built from.
type setup struct {
	mode    sim.Mode
	machine cpu.Config
	kernel  Config
	log     *trace.Log
}

func defaultSetup() setup {
	return setup{
		machine: cpu.Config{Cores: 1, HZ: 250, TickPhase: sim.Millisecond, IPILatency: sim.Microsecond, Costs: testCosts()},
		kernel:  DefaultConfig(),
		log:     trace.NewLog(0, sim.Never, 1_000_000),
	}
}

// rig is a machine under test.
type rig struct {
	eng   *sim.Engine
	m     *cpu.Machine
	sds   []*Softnet
	skbs  model.SKBPool
	stack *testStack
	devs  []*device
	busy  *BusyPoller

	waiting   int // packets that the reader has not read
	reader    *cpu.Task
	readCost  sim.Time
	busyReads bool     // the reader polls
	suspends  bool     // a busy reader suspends and resumes interrupts as epoll does
	deferred  []func() // what happens at the instants of At
}

func newRig(s setup) *rig {
	r := &rig{eng: sim.NewEngine(s.mode)}
	r.m = cpu.NewMachine(r.eng, s.machine)
	r.m.Trace = s.log
	r.stack = &testStack{r: r}
	for _, c := range r.m.Cores {
		r.sds = append(r.sds, NewSoftnet(c, s.kernel, r.stack, &r.skbs))
	}
	r.busy = NewBusyPoller(r.sds)
	return r
}

// at calls f in the engine's context at an instant.
func (r *rig) at(t sim.Time, phase sim.Phase, f func()) {
	r.deferred = append(r.deferred, f)
	r.eng.Schedule(t, phase, r, uint64(len(r.deferred)-1))
}

// Fire runs what at has scheduled.
func (r *rig) Fire(arg uint64) { r.deferred[arg]() }

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Error(...any)
}

// run lets the machine run until an instant, and then checks its books.
func (r *rig) run(t failer, until sim.Time) {
	t.Helper()
	defer r.eng.Close()
	r.at(until, phaseObservers, func() {
		for _, c := range r.m.Cores {
			c.Settle()
		}
		r.eng.Stop()
	})
	r.eng.Run()
	for _, c := range r.m.Cores {
		if err := c.Check(); err != nil {
			t.Error(err)
		}
	}
}

// task starts a task on core 0 at time zero.
func (r *rig) task(name string, cfg cpu.TaskConfig, body func(*cpu.Task)) *cpu.Task {
	t := r.m.NewTask(r.m.Cores[0], name, cfg, body)
	t.WakeFromDevice()
	return t
}

// hog computes in user mode for a time.
func hog(total sim.Time) func(*cpu.Task) {
	return func(t *cpu.Task) {
		t.ToUser()
		work(t.Core(), total)
		t.ToKernel()
	}
}

// kernelHog works in the kernel for a time, without a preemption point.
func kernelHog(total sim.Time) func(*cpu.Task) {
	return func(t *cpu.Task) { work(t.Core(), total) }
}

func work(c *cpu.Core, total sim.Time) {
	for total > 0 {
		d := min(total, sim.Millisecond)
		c.Work(d)
		c.Look()
		total -= d
	}
}

// read is a reader of all packets: it sleeps until the stack wakes it.
func (r *rig) read(t *cpu.Task) {
	c := t.Core()
	for {
		c.Look()
		if r.waiting == 0 {
			t.Sleep()
			continue
		}
		n := r.waiting
		r.waiting = 0
		c.Work(r.readCost * sim.Time(n))
	}
}

// busyRead is a reader that polls the first device before it sleeps: a blocking recv with
// SO_BUSY_POLL of so many microseconds.
func (r *rig) busyRead(usecs int64, w host.BusyWait) func(*cpu.Task) {
	r.busyReads = true
	return func(t *cpu.Task) {
		c := t.Core()
		w.End = func(c *cpu.Core, start int64) bool { return r.waiting > 0 || host.BusyLoopTimeout(c, start, usecs) }
		for {
			c.Look()
			if r.waiting == 0 {
				r.busy.BusyLoop(c, r.devs[0].napi.ID, &w)
				c.Look()
			}
			if r.waiting == 0 {
				if r.suspends {
					r.busy.ResumeIRQs(c, r.devs[0].napi.ID)
					if c.Look(); r.waiting > 0 {
						continue
					}
				}
				r.note(c, "reader sleeps")
				t.Sleep()
				continue
			}
			n := r.waiting
			r.waiting = 0
			if r.suspends {
				r.busy.SuspendIRQs(c, r.devs[0].napi.ID)
			}
			r.note(c, fmt.Sprintf("reader reads %d", n))
			c.Work(r.readCost * sim.Time(n))
		}
	}
}

// note adds what a device does to the trace.
func (r *rig) note(c *cpu.Core, text string) {
	if c.Recording() {
		e := c.Event(note)
		e.S = text
		c.Emit(e)
	}
}

// testStack counts what leaves NAPI, emits netif_receive_skb for each skb, and wakes
// the reader.
type testStack struct {
	r         *rig
	counting  bool  // and nothing else
	delivered int64 // segments
	lists     int
	segs      []int // of each skb, in order
	seen      func(*cpu.Core, *model.SKB)
}

// ReceiveSKB takes one packet up.
func (k *testStack) ReceiveSKB(c *cpu.Core, s *model.SKB) {
	k.core(c, s)
	k.socket(c, s)
}

// ReceiveList takes a list up: first core receive for all, then the sockets.
func (k *testStack) ReceiveList(c *cpu.Core, list *model.SKBList) {
	c.Look()
	k.lists++
	for s := list.Front(); s != nil; s = s.Next() {
		k.core(c, s)
	}
	for s := list.PopFront(); s != nil; s = list.PopFront() {
		k.socket(c, s)
	}
}

func (k *testStack) core(c *cpu.Core, s *model.SKB) {
	c.Spend(model.StageNetifReceive)
	c.Look()
	if c.Recording() {
		e := c.Event(trace.NetifReceiveSKB)
		e.A, e.B, e.C, e.S = s.ID, int64(s.Frame.Len), int64(s.Segs), s.Frame.Proto.String()
		c.Emit(e)
	}
}

func (k *testStack) socket(c *cpu.Core, s *model.SKB) {
	c.Spend(model.StageUDPReceive)
	c.Look()
	k.delivered += int64(s.Segs)
	if k.seen != nil {
		k.seen(c, s)
	}
	if !k.counting {
		k.segs = append(k.segs, s.Segs)
	}
	k.r.skbs.Put(s)
	if k.r.reader != nil {
		k.r.waiting++
		c.Wake(k.r.reader)
	}
}

// device is a NIC with one vector and its driver. Its frames arrive as scripted, in
// a ring that never overflows.
type device struct {
	r     *rig
	name  string
	lines []*cpu.Line // by core
	core  int         // which of them the vector leads to
	phase sim.Phase
	napi  *NAPI
	frags bool // the driver calls napi_gro_frags

	frames     []model.Frame // in the order of arrival
	xdp        bool          // XDP drops every frame
	hash       uint32        // of frames that arrive
	saturated  bool          // behind the last frame, the ring is never empty
	batch      int           // that many frames arrive whenever the vector is unmasked ...
	batches    int           // ... so often
	noMask     bool          // the vector does not mask itself: further frames interrupt again
	edge       bool          // unmasking does not interrupt for frames that have caused an interrupt
	masked     bool
	event      sim.EventID
	signalled  int // frames that have caused an interrupt
	seq        map[model.FlowID]uint64
	taken      int64
	dropped    int64
	interrupts int64
	unmasks    int64
	polling    bool
	polls      []int // the work of each poll
}

// nic adds a device whose vector leads to core 0.
func (r *rig) nic(name string, gc *gro.Config, weight int) *device {
	d := &device{r: r, name: name, phase: phaseDevices + sim.Phase(len(r.devs)), seq: map[model.FlowID]uint64{}}
	irq := 24 + len(r.devs)
	for _, c := range r.m.Cores {
		d.lines = append(d.lines, c.NewLine(irq, name, d.handle))
	}
	d.napi = NewNAPI(NAPIConfig{Name: name, ID: 8193 + len(r.devs), Weight: weight, GRO: gc, Poll: d.poll})
	r.devs = append(r.devs, d)
	r.busy.Add(d.napi)
	return d
}

// arrive adds n UDP frames at an instant, which must not be earlier than the last.
func (d *device) arrive(at sim.Time, n int) {
	for range n {
		f := udpFrame(at)
		f.Hash = d.hash
		d.frame(f)
	}
}

// tcp adds n segments of a flow, each with all of its payload.
func (d *device) tcp(at sim.Time, flow model.FlowID, n int, payload int32, flags model.TCPFlags) {
	for range n {
		d.frame(model.Frame{
			Arrival: at, Proto: model.TCP, Flow: flow, Hash: uint32(flow), Flags: flags | model.ACK,
			Payload: payload, Len: model.TCPFrameLen(payload), Seq: d.seq[flow], TTL: 64, IPID: uint16(d.seq[flow] / 1448),
		})
		d.seq[flow] += uint64(payload)
	}
}

func udpFrame(at sim.Time) model.Frame {
	return model.Frame{Arrival: at, Proto: model.UDP, Payload: 18, Len: model.UDPFrameLen(18), TTL: 64}
}

func (d *device) frame(f model.Frame) {
	if n := len(d.frames); n > 0 && d.frames[n-1].Arrival > f.Arrival {
		panic(fmt.Sprintf("%s: frame for %v behind one for %v", d.name, f.Arrival, d.frames[n-1].Arrival))
	}
	d.frames = append(d.frames, f)
	d.arm()
}

// arm predicts the next interrupt: at the first frame that has caused none.
func (d *device) arm() {
	d.r.eng.Cancel(d.event)
	next := max(d.signalled, int(d.taken))
	if !d.masked && next < len(d.frames) {
		d.event = d.r.eng.Schedule(max(d.r.eng.Now(), d.frames[next].Arrival), d.phase, d, 0)
	}
}

// Fire raises the interrupt.
func (d *device) Fire(uint64) {
	d.interrupts++
	for d.signalled < len(d.frames) && d.frames[d.signalled].Arrival <= d.r.eng.Now() {
		d.signalled++
	}
	d.masked = !d.noMask
	d.lines[d.core].Raise()
	d.arm()
}

// handle is the driver's interrupt handler.
func (d *device) handle(c *cpu.Core) {
	c.Spend(model.StageIRQHandler)
	d.r.sds[c.ID].NAPISchedule(d.napi)
}

// next reports whether the ring has a frame at an instant.
func (d *device) next(now sim.Time) (f model.Frame, ok bool) {
	if i := int(d.taken); i < len(d.frames) {
		return d.frames[i], d.frames[i].Arrival <= now
	}
	return udpFrame(now), d.saturated
}

// poll is the driver's poll function.
func (d *device) poll(budget int) (work int) {
	c := d.napi.Core()
	d.polling = true
	for work < budget {
		c.Look()
		f, ok := d.next(c.Now())
		if !ok {
			break
		}
		d.taken++
		work++
		c.Spend(model.StageRXDescriptor)
		if d.xdp {
			c.Look()
			d.dropped++
			continue
		}
		d.receive(&f)
	}
	c.Look()
	d.polls = append(d.polls, work)
	if work < budget {
		c.Spend(model.StageRingLook)
		if d.napi.CompleteDone(work) {
			c.Spend(model.StageIRQUnmask)
			c.Look()
			d.polling = false
			d.unmask(c)
		}
	}
	d.polling = false
	c.Spend(model.StageRefill) // free of charge in testCosts; it is a debt at the end of the poll
	return work
}

func (d *device) receive(f *model.Frame) {
	s := d.r.skbs.Get()
	s.Frame = *f
	s.Segs, s.Payload, s.LastSeg = 1, int(f.Payload), int(f.Payload)
	s.Truesize = 2048 + model.SKBHead
	s.Arrivals = append(s.Arrivals, f.Arrival)
	if d.frags {
		s.Frags, s.Pages = 1, 1
		d.napi.GROFrags(s)
		return
	}
	s.Frags, s.Pages = 0, 1
	d.napi.GROReceive(s)
}

func (d *device) unmask(c *cpu.Core) {
	d.unmasks++
	d.masked = false
	if !d.edge {
		d.signalled = int(d.taken) // what is in the ring interrupts at once
	}
	d.r.note(c, d.name+" unmasked")
	if d.batches > 0 {
		d.batches--
		d.arrive(c.Now(), d.batch)
	}
	d.arm()
}

// same requires something to be what it has to be.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
