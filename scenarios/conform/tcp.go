package conform

import (
	"errors"
	"fmt"
	"strconv"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/model/host/duplex"
	"napisim/model/tcp"
	"napisim/nic/driver/guest"
	"napisim/scenarios/recording"
	"napisim/scenarios/recording/input"
	"napisim/sim"
	"napisim/softirq"
	"napisim/softirq/stack"
)

// streams reports whether both ends of a recording are processes that answer each other.
func streams(r *recording.Recording) bool {
	return r.Topology == "nic" && r.Sender.Role == "rrcli" || r.Topology != "tun" && r.Sender.Fields["proto"] != "udp" && (r.Sender.Role == "tcpsend" || r.Sender.Role == "rrcli")
}

// firstFrame returns when a process first gave a frame to a driver.
func firstFrame(in *input.Input) int64 {
	if len(in.Frames) == 0 {
		return in.End
	}
	return in.Frames[0].At
}

// What the processes of the harness do outside the network, in nanoseconds: a process
// that ends prints its report before its connections are closed.
const (
	reportTime  = 290_000
	acceptTime  = 2_350 // k61-e1000-tcp-gro-nomit: sched_switch to that of the server that waits for data 7128
	connectTime = 3_300 // the same: NET_TX to the first segment, less what is known
)

// The sizes of the bulk transfer of the harness.
const (
	bulkWrite = 64 << 10
	bulkRead  = 256 << 10
)

// buildStreams makes both processes and their connections.
func (b *bench) buildStreams() error {
	if b.rec.Sender.Fields["proto"] == "udp" {
		return b.buildDatagrams()
	}
	conns, err := field(b.rec.Sender, "conns", 1)
	if err != nil {
		return err
	}
	l := &duplex.Listener{}
	clients, servers := make([]*duplex.Sock, conns), make([]*duplex.Sock, conns)
	out, back := b.ways()
	for i := range conns {
		toServer, toClient := model.FlowID(2*i), model.FlowID(2*i+1)
		var err1, err2 error
		clients[i], err1 = b.sock(out.output, toServer)
		servers[i], err2 = b.sock(back.output, toClient)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		b.stack.Bind(toServer, out.input(servers[i]))
		b.stack.Bind(toClient, back.input(clients[i]))
		l.Listen(servers[i])
	}
	client, server, err := b.streamBodies(l, clients, servers)
	if err != nil {
		return err
	}
	b.processes(client, server)
	return nil
}

// processes makes both processes. The server has slept for long when the client, which
// runs up to its first call, is executed.
func (b *bench) processes(client, server func(*cpu.Task)) {
	core := b.machine.Cores[0]
	b.machine.NewTask(core, "nt", cpu.TaskConfig{Sleeper: true}, server).WakeFromDevice()
	t := b.machine.NewTask(core, "nt", cpu.TaskConfig{}, client)
	b.eng.Schedule(max(b.at(firstFrame(b.in)+b.shift-execTime), 0), phaseMarks, waker{t}, 0)
}

// waker wakes a task.
type waker struct{ t *cpu.Task }

// Fire implements sim.Handler.
func (w waker) Fire(uint64) { w.t.WakeFromDevice() }

func (b *bench) streamBodies(l *duplex.Listener, clients, servers []*duplex.Sock) (client, server func(*cpu.Task), err error) {
	start := b.at(firstFrame(b.in) + b.shift)
	if b.rec.Sender.Role == "tcpsend" {
		bytes, err := field(b.rec.Sender, "bytes", 0)
		if err != nil {
			return nil, nil, err
		}
		return b.bulkSender(clients[0], start, bytes), bulkReceiver(l), nil
	}
	n, err := field(b.rec.Sender, "trans", 0)
	if err != nil {
		return nil, nil, err
	}
	if len(clients) == 1 {
		return b.rrClient(clients[0], start, n), rrServer(l), nil
	}
	return b.rrClients(clients, start, n), b.rrServers(l, len(servers)), nil
}

// field returns a number of a report.
func field(r recording.Report, name string, otherwise int) (int, error) {
	s := r.Fields[name]
	if s == "" && otherwise > 0 {
		return otherwise, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("the report of %s has no number %s", r.Role, name)
	}
	return n, nil
}

// A way is how the packets of one end of a connection reach the other.
type way struct {
	output duplex.Output
	input  func(stack.Socket) stack.Socket
}

// ways returns the way from the sender and the way back.
func (b *bench) ways() (out, back way) {
	if b.veth != nil {
		return vethWay(b.veth), vethWay(b.vethBack)
	}
	input := func(s stack.Socket) stack.Socket { return s }
	return way{b.nicOutput(b.na, 0), input}, way{b.nicOutput(b.nb, 1), input}
}

// nicOutput sends through a NIC.
func (b *bench) nicOutput(dev *guest.Netdev, at int) duplex.Output {
	var skb guest.SKB
	features := b.rec.Devices[at].Features
	return func(c *cpu.Core, p *duplex.Packet) {
		skb = guest.SKB{Segment: p.Segment, MSS: p.MSS, TSO: features[tso], Truesize: p.Truesize}
		if p.Owner != nil {
			skb.Freed = p.Owner.WFree
		}
		dev.XmitSKB(c, &skb)
	}
}

// sock makes a socket that sends a flow.
func (b *bench) sock(out duplex.Output, flow model.FlowID) (*duplex.Sock, error) {
	rcv := tcp.DefaultReceiverConfig()
	rcv.Flow, rcv.DeferBacklogAcks = flow, true
	rcv.HeadTruesize = 1024 + model.SKBHead // of napi_alloc_skb, as recorded
	// Ticks fall on whole milliseconds of the monotonic clock (tick_init_jiffy_update).
	rcv.ClockOffset = sim.Millisecond - b.tickPhase%sim.Millisecond
	for _, name := range tcp.Behaviours() {
		if err := rcv.Choose(name, b.behaviours[name]); err != nil {
			return nil, err
		}
	}
	cfg := duplex.Config{
		Receiver: rcv, TSO: 65536, GrowSKB: b.rec.Kernel.Preset != "v6.1", NoDelay: b.rec.Sender.Role == "rrcli",
		Tasklet: func(fn func()) func() {
			t := softirq.NewTasklet(fn)
			return func() { b.softnets[0].TaskletSchedule(t) }
		},
	}
	s := duplex.New(&b.env, b.machine.Cores[0], cfg, out)
	s.SetBusyPoll(b.busy, host.BusyPoll{Usecs: int64(b.sysctl("net.core.busy_read", 0))})
	return s, nil
}

// execTime is how long a client has run before its first call, in nanoseconds: it is
// executed when all else is ready.
const execTime = 8_000_000

// begin lets a client run up to the instant at which it begins. Another task has had the
// CPU shortly before, as the recording tells.
func (b *bench) begin(t *cpu.Task, start sim.Time) {
	c := t.Core()
	t.ToUser()
	run := func(until sim.Time) {
		for c.Look(); c.Now() < until; c.Look() {
			c.Work(min(until-c.Now(), 100*sim.Microsecond))
		}
	}
	if len(b.in.Frames) > 0 {
		if own := ns(b.in.Frames[0].Own); own > 0 && own < ns(execTime) {
			run(start - own - otherTurn)
			t.SleepUntil(start - own)
		}
	}
	run(start)
	t.ToKernel()
	c.Spend(model.StageSyscall)
}

// otherTurn is about how long a kernel thread has the CPU.
const otherTurn = 5 * sim.Microsecond

// bulkSender is nt tcpsend.
func (b *bench) bulkSender(s *duplex.Sock, start sim.Time, bytes int) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		b.begin(t, start)
		s.Connect(t)
		c.Work(ns(connectTime))
		t.ToUser()
		for left := bytes; left > 0; {
			n := min(left, bulkWrite)
			t.ToKernel()
			c.Spend(model.StageSyscall)
			s.Send(t, n)
			t.ToUser()
			left -= n
		}
		t.ToKernel()
		s.Shutdown(t)
		t.ToUser()
		t.ToKernel()
		for s.Recv(t, 1) > 0 {
			t.ToUser()
			t.ToKernel()
		}
		t.ToUser()
		c.Work(ns(reportTime))
		c.Look()
	}
}

// bulkReceiver is nt tcprecv.
func bulkReceiver(l *duplex.Listener) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		s := l.Accept(t)
		t.Core().Work(ns(acceptTime))
		t.ToUser()
		for {
			t.ToKernel()
			c.Spend(model.StageSyscall)
			n := s.Recv(t, bulkRead)
			t.ToUser()
			c.Spend(model.StageAppRead)
			if n == 0 {
				break
			}
		}
		c.Work(ns(reportTime))
		t.ToKernel()
		s.Shutdown(t)
		t.ToUser()
	}
}
