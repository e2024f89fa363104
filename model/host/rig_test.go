package host

import (
	"fmt"
	"slices"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/tcp"
	"napisim/sim"
)

// This file holds a machine for tests: cores with a softirq layer in miniature,
// a device that hands packets to it, and a driver that notes what is sent.

// The phases of a rig's events: the device before all cores, the end after them.
const (
	phaseDevice sim.Phase = 1
	phaseEnd    sim.Phase = 255
)

const (
	ns = sim.Nanosecond
	us = sim.Microsecond
	ms = sim.Millisecond
)

// testCosts are round, so that a reader can add them up: 900 ns from an interrupt to
// the softirq, 100 ns to the queue of a UDP socket and 200 ns to that of a TCP
// socket, 300 ns for a wakeup, 1 us for a switch, 50 ns for an skb and 1 ns a byte.
func testCosts() (c model.Costs) {
	for stage, cost := range map[model.Stage]sim.Time{
		model.StageHardirqEntry: 200 * ns, model.StageIRQHandler: 500 * ns, model.StageHardirqExit: 200 * ns,
		model.StageIPI: 400 * ns, model.StageUDPReceive: 100 * ns, model.StageTCPReceive: 200 * ns,
		model.StageTCPAck: 600 * ns, model.StageSockWakeup: 300 * ns, model.StageContextSwitch: 1 * us,
		model.StageRecvSKB: 50 * ns, model.StageCopyByte: 1 * ns,
	} {
		c[stage] = cost
	}
	return c
}

// setup is what a rig is built from.
type setup struct {
	mode    sim.Mode
	machine cpu.Config
	rx      int // the core that takes the device's interrupts
	reader  int // the core of the reader
	timer   int // the core of TCP's timers
}

// onOneCore has device and reader on core 0, onTwoCores the reader on core 1.
func onOneCore() setup {
	return setup{machine: cpu.Config{Cores: 1, HZ: 250, IPILatency: us, Costs: testCosts()}}
}

func onTwoCores() setup {
	s := onOneCore()
	s.machine.Cores, s.reader, s.timer = 2, 1, 1
	return s
}

// rig is a machine under test.
type rig struct {
	setup
	eng    *sim.Engine
	m      *cpu.Machine
	env    Env
	skbs   model.SKBPool
	losses model.Losses
	pages  *pages
	nets   []*softnet
	later  []func()
}

func newRig(s setup) *rig {
	r := &rig{setup: s, eng: sim.NewEngine(s.mode)}
	r.m = cpu.NewMachine(r.eng, s.machine)
	r.env = Env{SKBs: &r.skbs, Losses: &r.losses}
	r.pages = &pages{m: r.m}
	for _, c := range r.m.Cores {
		n := &softnet{c: c}
		n.line = c.NewLine(30+c.ID, "eth0", n.handle)
		c.SetSoftirqs(n)
		c.SetHRTimerSoftirq(func() { n.hrtimer = true })
		r.nets = append(r.nets, n)
	}
	return r
}

// at calls f in the engine's context at an instant.
func (r *rig) at(t sim.Time, f func()) {
	r.later = append(r.later, f)
	r.eng.Schedule(t, phaseDevice, r, uint64(len(r.later)-1))
}

// Fire runs what at has scheduled.
func (r *rig) Fire(arg uint64) { r.later[arg]() }

// do is an event.
type do func()

func (d do) Fire(uint64) { d() }

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Errorf(string, ...any)
}

// run lets the machine run until an instant, and then checks its books.
func (r *rig) run(t failer, until sim.Time) {
	t.Helper()
	defer r.eng.Close()
	r.eng.Schedule(until, phaseEnd, do(r.eng.Stop), 0)
	r.eng.Run()
	for _, c := range r.m.Cores {
		c.Settle()
		if err := c.Check(); err != nil {
			t.Errorf("%v", err)
		}
	}
	held := 0
	r.skbs.Each(func(s *model.SKB) { held += s.Pages })
	if r.pages.out != held {
		t.Errorf("%d pages are out, but skbs hold %d", r.pages.out, held)
	}
}

// task starts a task on the reader's core at an instant.
func (r *rig) task(start sim.Time, body func(*cpu.Task)) *cpu.Task {
	task := r.m.NewTask(r.m.Cores[r.reader], "reader", cpu.TaskConfig{}, body)
	r.at(start, task.WakeFromDevice)
	return task
}

// spent returns how often a stage was charged on all cores.
func (r *rig) spent(s model.Stage) (n int64) {
	for _, c := range r.m.Cores {
		n += c.Spent()[s]
	}
	return n
}

// skb returns a packet as a driver makes it: one segment on one page of the rig.
func (r *rig) skb(f model.Frame, truesize int) *model.SKB {
	s := r.skbs.Get()
	s.Frame = f
	s.Segs, s.Payload, s.LastSeg = 1, int(f.Payload), int(f.Payload)
	s.Truesize, s.Pages, s.Pool = truesize, 1, r.pages
	s.Arrivals = append(s.Arrivals, f.Arrival)
	r.pages.out++
	return s
}

// arrive lets packets arrive at an instant: they wait in the device's ring, and its
// interrupt is raised.
func (r *rig) arrive(t sim.Time, receive func(*cpu.Core, *model.SKB), make ...func() *model.SKB) {
	r.at(t, func() {
		n := r.nets[r.rx]
		n.receive = receive
		for _, m := range make {
			n.ring.PushBack(m())
		}
		n.line.Raise()
	})
}

// softnet is the softirq layer of a core in miniature, with the driver's handler and
// poll: whatever is pending is done before an interrupt, or a BH-off section, is left.
type softnet struct {
	c            *cpu.Core
	line         *cpu.Line
	ring         model.SKBList
	receive      func(*cpu.Core, *model.SKB)
	timer, netRX bool
	hrtimer      bool
}

func (n *softnet) handle(c *cpu.Core) {
	c.Spend(model.StageIRQHandler)
	c.Look()
	n.netRX = true
}

func (n *softnet) Pending() bool  { return n.timer || n.netRX || n.hrtimer }
func (n *softnet) RaiseTimer()    { n.timer = true }
func (n *softnet) InvokeSoftirq() { n.run() }

func (n *softnet) DoSoftirq() {
	off := n.c.IRQSave()
	n.run()
	n.c.IRQRestore(off)
}

func (n *softnet) run() {
	c := n.c
	prev, entered := c.BeginSoftirq(cpu.Softirq)
	for n.Pending() {
		timer, netRX, hrtimer := n.timer, n.netRX, n.hrtimer
		n.timer, n.netRX, n.hrtimer = false, false, false
		c.IRQEnable()
		if timer {
			c.RunTimers()
		}
		for c.Look(); netRX && n.ring.Len() > 0; c.Look() {
			n.receive(c, n.ring.PopFront())
		}
		if hrtimer {
			c.RunSoftHRTimers()
		}
		c.IRQDisable()
	}
	c.EndSoftirq(prev, entered)
}

// pages takes back the pages of skbs, as a page_pool does: it costs something that
// nobody looks for.
type pages struct {
	m        *cpu.Machine
	out      int
	returned []string
	when     []sim.Time
}

func (p *pages) ReturnPages(coreID, n int, safe bool) {
	p.out -= n
	p.returned = append(p.returned, fmt.Sprintf("cpu%d %d safe=%v", coreID, n, safe))
	p.when = append(p.when, p.m.Engine().Now())
	p.m.Cores[coreID].SpendN(model.StagePageRing, n)
}

// same requires something to be what it has to be.
func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// sameAll is same for slices.
func sameAll[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// mss is the payload of a full segment.
const mss = 1448

// conn is a TCP socket of a rig with the ACKs that it has sent.
type conn struct {
	*TCPSock
	r      *rig
	sent   uint64
	acks   []ack
	handed []sim.Time // when each ACK came to the driver
}

// ack is an acknowledgement as the driver has seen it.
type ack struct {
	at     sim.Time
	number int64 // of the next byte expected, counted from 0
	window uint32
}

// newConn returns a connected socket. Segments pass the driver when their cost is
// paid; until then they must stay as they were handed over.
func (r *rig) newConn(t failer, cfg tcp.ReceiverConfig) *conn {
	k := &conn{r: r, sent: tcp.FirstSeq}
	out := func(c *cpu.Core, seg *model.Segment) {
		before := *seg
		k.handed = append(k.handed, c.Now())
		c.Spend(model.StageDevXmit)
		c.Look()
		if *seg != before {
			t.Errorf("the ACK of %d became one of %d on its way", before.Ack, seg.Ack)
		}
		k.acks = append(k.acks, ack{c.Now(), int64(seg.Ack - tcp.FirstSeq), seg.Window})
	}
	k.TCPSock = NewTCPSock(&r.env, r.m.Cores[r.timer], tcp.NewReceiver(cfg, &r.skbs), out)
	return k
}

// quickAcks is how many segments are acknowledged at once on a connection of
// smallWindow: TCP_MAX_QUICKACKS.
const quickAcks = 16

// smallWindow is a socket whose window is 64 KiB from the beginning and does not
// grow. Its first 16 segments are acknowledged at once, those after them are not.
func smallWindow() tcp.ReceiverConfig {
	cfg := tcp.DefaultReceiverConfig()
	cfg.RcvBuf = 65536
	return cfg
}

// send lets the next segments arrive as one packet, a superframe if n > 1.
func (k *conn) send(at sim.Time, n int) {
	seq := k.sent
	k.sent += uint64(n * mss)
	k.r.arrive(at, k.Receive, func() *model.SKB { return k.r.segments(seq, n, at) })
}

// segments returns a packet of n full segments.
func (r *rig) segments(seq uint64, n int, at sim.Time) *model.SKB {
	s := r.skb(model.Frame{
		Arrival: at, Seq: seq, Payload: mss, Len: model.TCPFrameLen(mss),
		Proto: model.TCP, Flags: model.ACK, TSVal: 1, Window: 65535,
	}, 2304)
	s.Segs, s.Payload = n, n*mss
	s.Truesize += (n - 1) * 2048
	s.Pages += n - 1
	s.Frags = n - 1
	r.pages.out += n - 1
	for range n - 1 {
		s.Arrivals = append(s.Arrivals, at)
	}
	return s
}

// read is a reader of up to size bytes a call; it notes what each call gave.
func (k *conn) read(size int, got *[]int) func(*cpu.Task) {
	return func(t *cpu.Task) {
		for {
			n := k.Recv(t, size)
			if got != nil {
				*got = append(*got, n)
			}
		}
	}
}
