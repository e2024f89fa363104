package host

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

// Datagrams is a loop around recvmsg on a UDP socket: the body of a UDP sink.
func Datagrams(s *UDPSock) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		for {
			t.ToKernel()
			c.Spend(model.StageSyscall)
			s.Recv(t)
			t.ToUser()
			c.Spend(model.StageAppRead)
		}
	}
}

// Stream is a loop around recv on a TCP socket, up to size bytes a call: the body
// of a bulk reader such as iperf3, which has a thread for each stream.
func Stream(s *TCPSock, size int) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		for {
			t.ToKernel()
			c.Spend(model.StageSyscall)
			s.Recv(t, size)
			t.ToUser()
			c.Spend(model.StageAppRead)
		}
	}
}

// maxEvents is how many events an EventLoop asks for in one epoll_wait.
const maxEvents = 64

// EventLoop is a loop around epoll_wait: each socket that is ready is read, up to size
// bytes a call, until it would block. It is the body of a server with one thread.
func EventLoop(ep *Epoll, size int) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		for {
			t.ToKernel()
			c.Spend(model.StageSyscall)
			events := ep.Wait(t, maxEvents)
			t.ToUser()
			for _, s := range events {
				for more := true; more; {
					t.ToKernel()
					c.Spend(model.StageSyscall)
					more = s.TryRead(t, size)
					t.ToUser()
					c.Spend(model.StageAppRead)
				}
			}
		}
	}
}

// Service is a UDP socket whose task answers each datagram with one of a fixed length.
type Service struct {
	*UDPSock
	size int32
	out  Output
	seg  model.Segment
	sent int64
}

// NewService returns a service that answers with frames of size bytes, FCS not included,
// through out.
func NewService(s *UDPSock, size int32, out Output) *Service {
	return &Service{UDPSock: s, size: size, out: out}
}

// Sent returns how many answers were sent.
func (s *Service) Sent() int64 { return s.sent }

// TryRead implements Pollable: a datagram that is read is answered.
func (s *Service) TryRead(t *cpu.Task, size int) bool {
	if !s.UDPSock.TryRead(t, size) {
		return false
	}
	s.reply(t)
	return true
}

// reply is the application's work on a request and sendmsg.
func (s *Service) reply(t *cpu.Task) {
	c := t.Core()
	t.ToUser()
	c.Spend(model.StageAppRead)
	t.ToKernel()
	c.Spend(model.StageSyscall)
	s.send(c)
}

// send is udp_sendmsg down to the driver, to whom the last datagram came from.
func (s *Service) send(c *cpu.Core) {
	f := &s.seg.Frame
	*f = model.Frame{Proto: model.UDP, Flow: s.from.Flow, TTL: 64, IPv6: s.from.IPv6, Len: s.size}
	f.Payload = s.size - model.EthernetHeader - int32(f.Headers())
	c.Spend(model.StageUDPSend)
	c.SpendN(model.StageCopyByte, int(f.Payload))
	c.BHDisable()
	s.out(c, &s.seg)
	c.BHEnable()
	s.sent++
}

// Serve is a loop around recvfrom and sendto on a UDP socket: the body of a server with
// one thread, such as netserver for UDP_RR.
func Serve(s *Service) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		for {
			t.ToKernel()
			c.Spend(model.StageSyscall)
			s.Recv(t)
			s.reply(t)
			t.ToUser()
		}
	}
}

// Hog burns CPU time in user mode for ever.
func Hog(t *cpu.Task) {
	t.ToUser()
	for {
		t.Core().Work(100 * sim.Millisecond)
		t.Core().Look()
	}
}

// PacerConfig describes a program that sends by the clock.
type PacerConfig struct {
	// Start is the instant at which it looks at the clock first, and then sends.
	Start sim.Time
	// Count is how many frames it sends, Burst how many one after the other.
	Count, Burst int
	// Gap is the time between the starts of two bursts; 0 sends them back to back.
	Gap sim.Time
	// Prepare is the program's own work before each frame, First what the first one costs
	// more.
	Prepare, First sim.Time
}

// Pacer is a program that sends bursts of frames at fixed instants: it sleeps until the
// instant of each (clock_nanosleep with an absolute time), so that one that is late does
// not delay the next. Each call of send is a system call.
func Pacer(cfg PacerConfig, send func(*cpu.Core)) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		t.SleepUntil(cfg.Start)
		next := cfg.Start
		c.Work(cfg.First)
		for sent := 0; sent < cfg.Count; {
			if cfg.Gap > 0 && sent > 0 {
				next += cfg.Gap
				t.ToKernel()
				c.Spend(model.StageSyscall)
				t.SleepUntil(next)
				t.ToUser()
			}
			for n := min(cfg.Burst, cfg.Count-sent); n > 0; n-- {
				c.Work(cfg.Prepare)
				t.ToKernel()
				c.Spend(model.StageSyscall)
				send(c)
				t.ToUser()
				sent++
			}
		}
	}
}
