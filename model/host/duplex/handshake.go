package duplex

import (
	"napisim/model"
	"napisim/model/cpu"
)

// synOptions is what the options of a SYN add to a header with timestamps: MSS, SACK and
// window scale.
const synOptions = 8

// Connect is connect: the SYN leaves, and the answer is taken from the backlog or waited
// for.
func (s *Sock) Connect(t *cpu.Task) {
	c := t.Core()
	s.lock(c)
	s.state = synSent
	s.sendSYN(c, model.SYN)
	for s.state != established {
		s.unlock(c)
		c.Look()
		if s.state != established {
			s.sleep(t)
		}
		s.lock(c)
	}
	s.unlock(c)
}

// sendSYN sends a SYN or SYN-ACK.
func (s *Sock) sendSYN(c *cpu.Core, flags model.TCPFlags) {
	c.Spend(model.StageTCPXmit)
	c.BHDisable()
	s.pkt = Packet{}
	s.rcv.BuildAck(c.Now(), &s.pkt.Segment)
	s.pkt.Seq, s.pkt.Flags = 0, flags
	s.pkt.Len += synOptions
	s.snd.synAt = c.Now()
	s.out(c, &s.pkt)
	c.BHEnable()
}

// handshake is tcp_rcv_state_process of the states before ESTABLISHED; the socket of the
// passive side stands for its listener and its request until then.
func (s *Sock) handshake(c *cpu.Core, p *model.SKB) {
	syn, ack := p.Frame.Flags&model.SYN != 0, p.Frame.Flags&model.ACK != 0
	wnd := int64(p.Frame.Window)
	switch {
	case s.state == closed && syn && !ack:
		c.Spend(model.StageTCPHandshake)
		s.state = synRecv
		s.env.FreeSKB(c, p, false)
		s.sendSYN(c, model.SYN|model.ACK)
	case s.state == synSent && syn && ack:
		c.Spend(model.StageTCPReceive)
		c.Spend(model.StageTCPAckInput)
		s.establish(c, wnd)
		s.env.FreeSKB(c, p, false)
		s.sendAck(c)
		s.readable(c)
	case s.state == synRecv && ack && !syn:
		c.Spend(model.StageTCPHandshake)
		s.establish(c, wnd)
		if p.Payload > 0 { // the acknowledgement was lost or overtaken
			s.process(c, p, false)
		} else {
			s.env.FreeSKB(c, p, false)
		}
		if s.listener != nil {
			s.listener.add(c, s)
		}
	default:
		s.env.FreeSKB(c, p, false)
	}
}

// establish is tcp_finish_connect and tcp_init_transfer.
func (s *Sock) establish(c *cpu.Core, wnd int64) {
	c.Look()
	s.state = established
	s.rcv.Established(c.Now())
	s.snd.established(c.Now(), wnd)
}

// A Listener is a listening socket: connections that are established wait there.
type Listener struct {
	queue   []*Sock
	sleeper *cpu.Task
	epoll   *Epoll
	ready   bool
}

// Listen makes s the socket of a connection that l will accept.
func (l *Listener) Listen(s *Sock) { s.listener = l }

// add is sock_def_readable of a listener.
func (l *Listener) add(c *cpu.Core, s *Sock) {
	c.Look()
	l.queue = append(l.queue, s)
	if t := l.sleeper; t != nil {
		l.sleeper = nil
		c.Spend(model.StageSockWakeup)
		c.Wake(t)
	}
	if l.epoll != nil {
		l.epoll.addListener(c, l)
	}
}

// Accept is accept: it waits for a connection.
func (l *Listener) Accept(t *cpu.Task) *Sock {
	c := t.Core()
	c.Spend(model.StageTCPHandshake)
	for c.Look(); len(l.queue) == 0; c.Look() {
		l.sleeper = t
		t.Sleep()
		l.sleeper = nil
	}
	s := l.queue[0]
	l.queue = l.queue[1:]
	return s
}
