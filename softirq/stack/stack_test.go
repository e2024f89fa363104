package stack_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq/stack"
)

const ns = sim.Nanosecond

// costs of the stack: 1000 ns for a list, and for each packet 100 ns of core
// receive, 10 ns of IP and 1 ns where there is no socket.
func costs() (c model.Costs) {
	c[model.StageListReceive] = 1000 * ns
	c[model.StageSublist] = 7 * ns
	c[model.StageNetifReceive] = 100 * ns
	c[model.StageIPReceive] = 10 * ns
	c[model.StageUDPReceive] = 1 * ns
	return c
}

// rig is a core with a stack; what happens is noted with its instant.
type rig struct {
	eng    *sim.Engine
	m      *cpu.Machine
	skbs   model.SKBPool
	losses model.Losses
	log    *trace.Log
	stack  *stack.Stack
	notes  []string
	freed  int
}

func newRig(mode sim.Mode) *rig {
	r := &rig{eng: sim.NewEngine(mode), log: trace.NewLog(0, sim.Never, 1000)}
	r.m = cpu.NewMachine(r.eng, cpu.Config{Cores: 1, HZ: 250, Costs: costs()})
	r.m.Trace = r.log
	r.stack = stack.New(&host.Env{SKBs: &r.skbs, Losses: &r.losses})
	return r
}

// run lets f run on the core from 1 us on.
func (r *rig) run(f func(c *cpu.Core)) {
	defer r.eng.Close()
	task := r.m.NewTask(r.m.Cores[0], "poll", cpu.TaskConfig{}, func(t *cpu.Task) { f(t.Core()) })
	r.at(sim.Microsecond, task.WakeFromDevice)
	r.at(sim.Millisecond, r.eng.Stop)
	r.eng.Run()
}

// since returns an instant in ns from the start of run.
func since(at sim.Time) sim.Time { return (at - sim.Microsecond) / ns }

// received returns the netif_receive_skb lines of the trace.
func (r *rig) received() (lines []string) {
	for _, e := range r.log.Events() {
		if e.Point == trace.NetifReceiveSKB {
			lines = append(lines, fmt.Sprintf("%d: %s skb %d len %d", since(e.At), e.S, e.A, e.B))
		}
	}
	return lines
}

type do func()

func (d do) Fire(uint64) { d() }

func (r *rig) at(t sim.Time, f func()) { r.eng.Schedule(t, 255, do(f), 0) }

// socket notes what it receives.
type socket struct{ r *rig }

func (s socket) Receive(c *cpu.Core, p *model.SKB) {
	c.Look()
	s.r.notes = append(s.r.notes, fmt.Sprintf("%d: skb %d of flow %d", since(c.Now()), p.ID, p.Frame.Flow))
	s.r.skbs.Put(p)
}

// ReturnPages counts pages that come back.
func (r *rig) ReturnPages(_, n int, _ bool) { r.freed += n }

// packet returns segments of a flow as one skb.
func (r *rig) packet(flow model.FlowID, segs int) *model.SKB {
	s := r.skbs.Get()
	s.Dev = "eth0"
	s.Frame = model.Frame{Flow: flow, Payload: 1448, Len: model.TCPFrameLen(1448), Proto: model.TCP}
	s.Segs, s.Payload = segs, 1448*segs
	s.Pages, s.Pool = segs, r
	return s
}

func (r *rig) list(packets ...*model.SKB) *model.SKBList {
	var l model.SKBList
	for _, s := range packets {
		l.PushBack(s)
	}
	return &l
}

// A list passes core receive as a whole, then IP, and only then its sockets, in its
// order. The length traced is that of the kernel: from the IP header on, and of all
// segments.
func TestListPassesEachStepAsAWhole(t *testing.T) {
	r := newRig(sim.Lazy)
	r.stack.Bind(0, socket{r})
	r.stack.Bind(1, socket{r})
	r.run(func(c *cpu.Core) {
		r.stack.ReceiveList(c, r.list(r.packet(1, 1), r.packet(0, 23), r.packet(1, 2)))
	})
	same(t, "core receive", r.received(), []string{
		"1000: eth0 skb 1 len 1500",
		"1100: eth0 skb 2 len 33356", // 52 + 23*1448
		"1200: eth0 skb 3 len 2948",
	})
	same(t, "sockets", r.notes, []string{ // at 1300 + 3*10
		"1330: skb 1 of flow 1",
		"1330: skb 2 of flow 0",
		"1330: skb 3 of flow 1",
	})
	same(t, "counters", r.stack.Stats(), stack.Stats{Packets: 3, Segments: 26, Lists: 1})
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

// One by one, each packet reaches its socket before the next one is looked at.
func TestPacketsOneByOne(t *testing.T) {
	r := newRig(sim.Lazy)
	r.stack.Bind(0, socket{r})
	r.run(func(c *cpu.Core) {
		r.stack.ReceiveSKB(c, r.packet(0, 1))
		r.stack.ReceiveSKB(c, r.packet(0, 3)) // in the struct that the first has left
	})
	same(t, "core receive", r.received(), []string{"0: eth0 skb 1 len 1500", "110: eth0 skb 1 len 4396"})
	same(t, "sockets", r.notes, []string{"110: skb 1 of flow 0", "220: skb 1 of flow 0"})
	same(t, "counters", r.stack.Stats(), stack.Stats{Packets: 2, Segments: 4})
}

// A packet without a socket is lost as UdpNoPorts, with all its segments, after
// udp_rcv has looked for one, and its pages go back.
func TestNoSocket(t *testing.T) {
	for name, flow := range map[string]model.FlowID{"never bound": 3, "between bound flows": 1} {
		t.Run(name, func(t *testing.T) {
			r := newRig(sim.Lazy)
			r.stack.Bind(0, socket{r})
			r.stack.Bind(2, socket{r})
			r.run(func(c *cpu.Core) {
				r.stack.ReceiveList(c, r.list(r.packet(flow, 2), r.packet(2, 1)))
				r.stack.ReceiveSKB(c, r.packet(flow, 1))
			})
			var want model.Losses
			want[model.DropUDPNoPorts] = 3
			same(t, "losses", r.losses, want)
			same(t, "sockets", r.notes, []string{"1221: skb 2 of flow 2"}) // 1000 + 200 + 20, and 1 for the other
			same(t, "udp_rcv", r.m.Cores[0].Spent()[model.StageUDPReceive], 2)
			same(t, "pages", r.freed, 3)
			same(t, "live skbs", r.skbs.Live(), 0)
			same(t, "counters", r.stack.Stats(), stack.Stats{Packets: 3, Segments: 4, Lists: 1})
		})
	}
}

// Packets of another protocol or interface begin a new sublist. The one before it reaches
// its sockets when the first packet of the new one has passed core receive: at 1000 ns for
// the list come packets 1, 2 and 3 (300), then IP and sockets of 1 and 2 (20), 7 for the
// second sublist, packet 4 (100) with IP and socket of 3 (10) and 7, and so on.
func TestSublists(t *testing.T) {
	r := newRig(sim.Lazy)
	r.stack.Bind(0, socket{r})
	r.run(func(c *cpu.Core) {
		packets := []*model.SKB{r.packet(0, 1), r.packet(0, 1), r.packet(0, 1), r.packet(0, 1)}
		packets[2].Frame.IPv6 = true
		packets[3].Frame.IPv6, packets[3].Dev = true, "eth1"
		r.stack.ReceiveList(c, r.list(packets...))
	})
	same(t, "core receive", r.received(), []string{
		"1000: eth0 skb 1 len 1500",
		"1100: eth0 skb 2 len 1500",
		"1200: eth0 skb 3 len 1500",
		"1327: eth1 skb 4 len 1500", // 1300 + 20 + 7
	})
	same(t, "sockets", r.notes, []string{
		"1320: skb 1 of flow 0",
		"1320: skb 2 of flow 0",
		"1437: skb 3 of flow 0", // 1427 + 10
		"1454: skb 4 of flow 0", // 1437 + 7 + 10
	})
	same(t, "counters", r.stack.Stats(), stack.Stats{Packets: 4, Segments: 4, Lists: 1})
}

// Since v5.5 a packet takes over the route of the first of its sublist if the TOS is the
// same; without a list, or before, each is looked up.
func TestRouteHint(t *testing.T) {
	for _, c := range []struct {
		hint    bool
		tos     []uint8
		lookups int64
	}{
		{false, []uint8{0, 0, 0, 0}, 4},
		{true, []uint8{0, 0, 0, 0}, 1},
		{true, []uint8{0, 3, 0, 3}, 3},
		{true, []uint8{0}, 1},
	} {
		r := newRig(sim.Lazy)
		r.stack.RouteHint = c.hint
		r.stack.Bind(0, socket{r})
		r.run(func(core *cpu.Core) {
			var packets []*model.SKB
			for _, tos := range c.tos {
				s := r.packet(0, 1)
				s.Frame.TOS = tos
				packets = append(packets, s)
			}
			r.stack.ReceiveList(core, r.list(packets...))
		})
		same(t, fmt.Sprintf("lookups with hint %v, TOS %v", c.hint, c.tos), r.m.Cores[0].Spent()[model.StageRouteLookup], c.lookups)
		same(t, "sockets", len(r.notes), len(c.tos))
	}
	r := newRig(sim.Lazy)
	r.stack.RouteHint = true
	r.stack.Bind(0, socket{r})
	r.run(func(c *cpu.Core) {
		r.stack.ReceiveSKB(c, r.packet(0, 1))
		r.stack.ReceiveSKB(c, r.packet(0, 1))
	})
	same(t, "lookups one by one", r.m.Cores[0].Spent()[model.StageRouteLookup], 2)
}

// What GRO asks: sockets of UDP are not looked up before one has asked for merged
// datagrams; connections are found by themselves.
func TestSocketsForGRO(t *testing.T) {
	r := newRig(sim.Lazy)
	env := &host.Env{SKBs: &r.skbs, Losses: &r.losses}
	ask := func(flow model.FlowID) string {
		found, gro := r.stack.UDPSocket(flow)
		return fmt.Sprintf("%t/%t/%t", found, gro, r.stack.TCPEstablished(flow))
	}
	r.stack.Bind(0, host.NewUDPSock(env, host.UDPConfig{RcvBuf: 1}))
	r.stack.Bind(1, socket{r})
	same(t, "no socket asked", ask(0), "false/false/false")
	r.stack.Bind(3, host.NewUDPSock(env, host.UDPConfig{RcvBuf: 1, GRO: true}))
	for flow, want := range []string{"true/false/false", "false/false/true", "false/false/false", "true/true/false", "false/false/false"} {
		same(t, fmt.Sprintf("flow %d", flow), ask(model.FlowID(flow)), want)
	}
	r.eng.Close()
}

// Chained datagrams that no socket of this host takes pass unchanged: who forwards them
// gets the superframe, and it counts once.
func TestChainedDatagramsPassUnchanged(t *testing.T) {
	r := newRig(sim.Lazy)
	r.stack.Bind(0, socket{r}) // stands for a forwarder
	r.run(func(c *cpu.Core) {
		s := r.packet(0, 9)
		s.FragList, s.Chained, s.Frame.Proto = true, 8, model.UDP
		r.stack.ReceiveSKB(c, s)
	})
	same(t, "forwarded", len(r.notes), 1)
	same(t, "counters", r.stack.Stats(), stack.Stats{Packets: 1, Segments: 9})
}

// An empty list is none, and takes no time.
func TestEmptyList(t *testing.T) {
	r := newRig(sim.Lazy)
	r.run(func(c *cpu.Core) { r.stack.ReceiveList(c, r.list()) })
	same(t, "counters", r.stack.Stats(), stack.Stats{})
	same(t, "lists", r.m.Cores[0].Spent()[model.StageListReceive], 0)
}

// In steady state a list allocates nothing, sublists included.
func TestListsAllocateNothing(t *testing.T) {
	r := newRig(sim.Lazy)
	r.m.Trace = nil
	r.stack.Bind(0, sink{r})
	allocs := -1.0
	r.run(func(c *cpu.Core) {
		var l model.SKBList
		allocs = testing.AllocsPerRun(100, func() {
			for i := range 8 {
				s := r.packet(0, 1)
				s.Frame.IPv6 = i > 3
				l.PushBack(s)
			}
			r.stack.ReceiveList(c, &l)
		})
	})
	same(t, "allocations", allocs, 0)
}

// sink frees what it receives.
type sink struct{ r *rig }

func (s sink) Receive(_ *cpu.Core, p *model.SKB) { s.r.skbs.Put(p) }

// Counters read in the middle of a run are the same in all modes.
func TestCountersAgreeInAllModes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.SliceOfN(rapid.IntRange(0, 8), 1, 10).Draw(t, "lists")
		cuts := rapid.SliceOfN(rapid.Int64Range(0, 8000), 1, 5).Draw(t, "cuts")
		traced := rapid.Bool().Draw(t, "traced")
		run := func(mode sim.Mode) []string {
			r := newRig(mode)
			if !traced {
				r.m.Trace = nil
			}
			r.stack.Bind(0, socket{r})
			var cut []string
			for _, at := range cuts {
				at := sim.Microsecond + sim.Time(at)*ns
				r.at(at, func() {
					r.m.Cores[0].Align()
					r.at(at, func() { cut = append(cut, fmt.Sprintf("%v: %+v %d", at, r.stack.Stats(), r.losses.Total())) })
				})
			}
			r.run(func(c *cpu.Core) {
				for n, size := range lists {
					c.Work(37 * ns)
					var l model.SKBList
					for i := range size {
						l.PushBack(r.packet(model.FlowID((n+i)%2), 1+i))
					}
					if size == 1 {
						r.stack.ReceiveSKB(c, l.PopFront())
					} else {
						r.stack.ReceiveList(c, &l)
					}
				}
			})
			return append(cut, r.notes...)
		}
		want := run(sim.Lazy)
		for mode, name := range map[sim.Mode]string{sim.Eager: "eager", sim.Slow: "slow"} {
			if diff := cmp.Diff(want, run(mode)); diff != "" {
				t.Fatalf("%s (-lazy +%[1]s)\n%s", name, diff)
			}
		}
	})
}
