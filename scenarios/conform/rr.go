package conform

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/model/host/duplex"
	"napisim/nic/driver/guest"
	"napisim/sim"
)

// rrSize is what the harness sends and asks for.
const rrSize = 1

// rrBuffer is the buffer of its reads.
const rrBuffer = 65536

// call is a system call of a process, entry and exit.
func call(t *cpu.Task, body func()) {
	t.ToKernel()
	t.Core().Spend(model.StageSyscall)
	body()
	t.Core().Spend(model.StageSyscall)
	t.ToUser()
}

// rrClient is nt rrcli with one connection.
func (b *bench) rrClient(s *duplex.Sock, start sim.Time, trans int) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		b.begin(t, start)
		s.Connect(t)
		t.ToUser()
		for range trans {
			call(t, func() { s.Send(t, rrSize) })
			call(t, func() { s.Recv(t, rrBuffer) })
			c.Spend(model.StageAppRead)
		}
		call(t, func() { s.Shutdown(t) })
		c.Work(ns(reportTime))
		c.Look()
	}
}

// rrServer is nt rrserv with one connection.
func rrServer(l *duplex.Listener) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		s := l.Accept(t)
		t.Core().Work(ns(acceptTime))
		t.ToUser()
		for {
			n := 0
			call(t, func() { n = s.Recv(t, rrBuffer) })
			c.Spend(model.StageAppRead)
			if n == 0 {
				break
			}
			call(t, func() { s.Send(t, rrSize) })
		}
		c.Work(ns(reportTime))
		call(t, func() { s.Shutdown(t) })
	}
}

// datagram sends one datagram through a device.
func datagram(t *cpu.Task, dev *guest.Netdev, flow model.FlowID) {
	c := t.Core()
	c.Spend(model.StageUDPSend)
	c.SpendN(model.StageCopyByte, rrSize)
	c.BHDisable()
	dev.XmitSKB(c, &guest.SKB{Segment: model.Segment{Frame: model.Frame{
		Flow: flow, Payload: rrSize, Len: model.UDPFrameLen(rrSize), Proto: model.UDP, TTL: 64,
	}}})
	c.BHEnable()
}

// buildDatagrams makes nt rrcli and rrserv with one flow of UDP.
func (b *bench) buildDatagrams() error {
	trans, err := field(b.rec.Sender, "trans", 0)
	if err != nil {
		return err
	}
	const toServer, toClient model.FlowID = 0, 1
	client, server := b.udpSock(toClient), b.udpSock(toServer)
	start := b.at(firstFrame(b.in) + b.shift)
	b.processes(func(t *cpu.Task) {
		b.begin(t, start)
		for range trans {
			call(t, func() { datagram(t, b.na, toServer) })
			call(t, func() { client.Recv(t) })
			t.Core().Spend(model.StageAppRead)
		}
		t.Core().Work(ns(reportTime))
		t.Core().Look()
	}, func(t *cpu.Task) {
		for {
			call(t, func() { server.Recv(t) })
			t.Core().Spend(model.StageAppRead)
			call(t, func() { datagram(t, b.nb, toClient) })
		}
	})
	return nil
}

// udpSock makes a socket with the default buffer.
func (b *bench) udpSock(flow model.FlowID) *host.UDPSock {
	s := host.NewUDPSock(&b.env, host.UDPConfig{RcvBuf: 212992})
	s.SetBusyPoll(b.busy, host.BusyPoll{Usecs: int64(b.sysctl("net.core.busy_read", 0))})
	b.stack.Bind(flow, s)
	return s
}

// rrEvents is maxevents of epoll_wait in both programs.
const rrEvents = 128

// rrClients is nt rrcli with several connections: one request of each is out.
func (b *bench) rrClients(socks []*duplex.Sock, start sim.Time, trans int) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		b.begin(t, start)
		e := b.epoll()
		for _, s := range socks {
			call(t, func() { s.Connect(t) })
			call(t, func() { e.Add(c, s) })
		}
		started, done := 0, 0
		for _, s := range socks {
			if started < trans {
				started++
				call(t, func() { s.Send(t, rrSize) })
			}
		}
		var ready []*duplex.Sock
		for done < started {
			call(t, func() { ready, _ = e.Wait(t, rrEvents, ready[:0], nil) })
			for _, s := range ready {
				call(t, func() { s.Recv(t, rrBuffer) })
				c.Spend(model.StageAppRead)
				done++
				if started < trans {
					started++
					call(t, func() { s.Send(t, rrSize) })
				}
			}
		}
		for _, s := range socks {
			call(t, func() { s.Shutdown(t) })
		}
		c.Work(ns(reportTime))
		c.Look()
	}
}

// epoll makes an epoll instance.
func (b *bench) epoll() *duplex.Epoll {
	e := &duplex.Epoll{}
	e.SetBusyPoll(b.busy, host.BusyPoll{Usecs: int64(b.sysctl("net.core.busy_poll", 0))})
	return e
}

// rrServers is nt rrserv with several connections.
func (b *bench) rrServers(l *duplex.Listener, conns int) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		e := b.epoll()
		e.AddListener(l)
		var ready []*duplex.Sock
		var accept []*duplex.Listener
		for open, seen := 0, 0; seen < conns || open > 0; {
			call(t, func() { ready, accept = e.Wait(t, rrEvents, ready[:0], accept[:0]) })
			for range accept {
				call(t, func() {
					s := l.Accept(t)
					t.Core().Work(ns(acceptTime))
					e.Add(c, s)
				})
				open++
				seen++
			}
			for _, s := range ready {
				n := 0
				call(t, func() { n = s.Recv(t, rrBuffer) })
				c.Spend(model.StageAppRead)
				if n == 0 {
					call(t, func() { s.Shutdown(t) })
					open--
					continue
				}
				call(t, func() { s.Send(t, rrSize) })
			}
		}
		c.Work(ns(reportTime))
		c.Look()
	}
}
