package scenarios

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/model/link"
	"napisim/model/tcp"
	"napisim/model/traffic"
	"napisim/nic/driver"
	"napisim/nic/driver/virtual"
	"napisim/scenarios/spec"
	"napisim/sim"
	"napisim/sim/metric"
	"napisim/sim/trace"
	"napisim/softirq"
	"napisim/softirq/stack"
)

// Phases of events. At one instant peers and links act first, then devices, then
// cores (from 128 on, one each), and at last the marks of the run itself, so that
// whatever happens at the end of the warm-up belongs to it.
const (
	phaseStart sim.Phase = 0
	phaseFeeds sim.Phase = 1 // of tasks that send, one each up to phasePeers
	phasePeers sim.Phase = 8
	phaseLinks sim.Phase = 16
	phaseNICs  sim.Phase = 64
	phaseMarks sim.Phase = 255
)

// port is a network interface with what is at the other end of its cable.
type port struct {
	name  string
	in    *link.Pipe
	up    *uplink
	out   *link.Egress
	dev   *driver.Netdev
	peers *peers

	clients *traffic.Requesters
}

// peers hands what the host sends to the sender that it is meant for.
type peers struct{ byFlow []link.Receiver }

// Deliver implements link.Receiver.
func (p *peers) Deliver(seg *model.Segment) {
	if f := int(seg.Flow); f < len(p.byFlow) && p.byFlow[f] != nil {
		p.byFlow[f].Deliver(seg)
	}
}

// add connects a flow to its sender.
func (p *peers) add(flow model.FlowID, s link.Receiver) {
	for int(flow) >= len(p.byFlow) {
		p.byFlow = append(p.byFlow, nil)
	}
	p.byFlow[flow] = s
}

// System is a scenario put together for one run: the machine, its interfaces, what
// is sent to them and who reads it.
type System struct {
	scenario *spec.Scenario
	seed     uint64

	eng      *sim.Engine
	machine  *cpu.Machine
	softnets []*softirq.Softnet
	busy     *softirq.BusyPoller
	stack    *stack.Stack
	ports    []*port
	taps     map[string]*virtual.Tun
	veths    map[string]*virtual.Veth
	qdiscs   map[int]*virtual.Qdiscs // by core
	env      host.Env
	readers  map[string]*host.UDPSock // by the name of the app
	epolls   map[string]*host.Epoll   // by the name of the app
	udp      []*host.UDPSock
	tcp      []*host.TCPSock
	senders  []*tcp.Sender
	clients  []*traffic.Requester
	nextFlow model.FlowID

	set       metric.Set
	spentBase [][model.NumStages]int64
	workBase  []sim.Time
	accBase   [][cpu.NumContexts]sim.Time
	measured  sim.Time // start of the measured part
}

// Options are how a run is executed; none of them changes its result.
type Options struct {
	// Mode is how the engine executes the run.
	Mode sim.Mode
	// TieSeed, if not zero, runs events of one instant and phase in an order drawn from
	// it: a test mode that exposes hidden dependence on the order of scheduling.
	TieSeed uint64
	// Trace records trace points, if not nil.
	Trace *trace.Log
	// Progress, if not nil, is called at least every hundredth of the run with the
	// simulated time, between events; returning false ends the run.
	Progress func(now sim.Time) bool
}
