package duplex

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/model/tcp"
	"napisim/sim"
)

// A Packet is an skb on its way to the driver: a segment, or several of MSS bytes each
// with the headers of the first.
type Packet struct {
	model.Segment
	// MSS is the payload of each segment.
	MSS int
	// Truesize is what the skb is charged for, all segments together. It goes back with
	// WFree, in parts if the skb is cut.
	Truesize int
	// Owner is the socket that is charged, nil for pure acknowledgements.
	Owner *Sock
}

// Segs returns the number of segments.
func (p *Packet) Segs() int {
	if p.MSS <= 0 || int(p.Payload) <= p.MSS {
		return 1
	}
	return (int(p.Payload) + p.MSS - 1) / p.MSS
}

// Output sends a packet down to the driver, as ip_queue_xmit does; softirqs are disabled
// on core c meanwhile. The packet is the caller's again afterwards.
type Output func(c *cpu.Core, p *Packet)

// Config describes a socket.
type Config struct {
	// Receiver configures the receive half. Its flow is the one that the socket sends
	// with, its MSS that of both halves.
	Receiver tcp.ReceiverConfig
	// TSO is gso_max_size of the route: the most that one skb holds. 0 makes every skb a
	// segment.
	TSO int
	// NoDelay is TCP_NODELAY: small segments do not wait for acknowledgements.
	NoDelay bool
	// GrowSKB lets an skb that is about to be sent take more from the one behind it
	// (tcp_grow_skb, v6.10).
	GrowSKB bool
	// Tasklet schedules the tasklet of small queues; fn runs in softirq context.
	Tasklet func(fn func()) (schedule func())
}

// state is the state of a connection, as far as it matters.
type state uint8

const (
	closed state = iota
	synSent
	synRecv
	established
	finished // its own FIN was sent
)

// Sock is one end of a connection.
type Sock struct {
	host.Reception

	env   *host.Env
	cfg   Config
	core  *cpu.Core
	out   Output
	state state
	rcv   *tcp.Receiver
	snd   sender

	owned    bool // lock_sock: a process is inside the socket
	backlog  model.SKBList
	sleeper  *cpu.Task
	listener *Listener
	epoll    *Epoll
	ready    bool // on the epoll's ready list
	pkt      Packet

	delack  *cpu.Timer
	delAt   sim.Time
	ackWait bool // an ACK waits for the end of the backlog
	delWork bool // the delayed-ACK timer fired while the socket was owned
	touched int  // bytes of the reader's buffer that were written before

	napiID int // sk_napi_id: the NAPI that the last packet came through, 0 for none
	busy   host.Busy
}

// New returns a closed socket whose timers run on core c and whose packets leave
// through out.
func New(env *host.Env, c *cpu.Core, cfg Config, out Output) *Sock {
	s := &Sock{env: env, cfg: cfg, core: c, out: out, rcv: tcp.NewReceiver(cfg.Receiver, env.SKBs)}
	s.snd.init(&s.cfg)
	s.touched = 1 // the allocator has written to the first page
	s.delack = c.NewTimer(s.delackTimer)
	if cfg.Tasklet != nil {
		s.snd.tasklet = cfg.Tasklet(s.tsq)
	}
	return s
}

// Receiver returns the receive half, for its counters.
func (s *Sock) Receiver() *tcp.Receiver { return s.rcv }

// Receive is tcp_v4_rcv: a packet is processed at once, or put on the backlog while a
// process owns the socket. It takes p over and runs in softirq context.
func (s *Sock) Receive(c *cpu.Core, p *model.SKB) {
	c.Spend(model.StageTCPLookup)
	host.VerifyChecksum(c, p)
	c.Look()
	if !s.owned {
		s.process(c, p, false)
		return
	}
	c.Spend(model.StageTCPBacklog)
	c.Look()
	if s.coalesceAck(c, p) {
		return
	}
	var free model.SKBList
	s.rcv.AddBacklog(&s.backlog, p, &free)
	s.freeAll(c, &free)
}

// coalesceAck is the part of tcp_add_backlog for pure acknowledgements: one that came
// within the same millisecond as the last of the backlog takes its place.
func (s *Sock) coalesceAck(c *cpu.Core, p *model.SKB) bool {
	tail := s.backlog.Back()
	if tail == nil || tail.Payload > 0 || p.Payload > 0 || tail.Frame.Seq != p.Frame.Seq ||
		tail.Frame.Flags != p.Frame.Flags || p.Frame.Flags != model.ACK ||
		tail.Frame.TSVal != p.Frame.TSVal || tail.Frame.TSEcr != p.Frame.TSEcr {
		return false
	}
	if p.Frame.Ack >= tail.Frame.Ack {
		tail.Frame.Ack, tail.Frame.Window = p.Frame.Ack, p.Frame.Window
	}
	s.env.FreeSKB(c, p, false)
	return true
}

// process is tcp_v4_do_rcv. The caller has looked and spent nothing since.
func (s *Sock) process(c *cpu.Core, p *model.SKB, backlog bool) {
	if p.NAPIID != 0 { // sk_mark_napi_id
		s.napiID = p.NAPIID
	}
	if s.state < established {
		s.handshake(c, p)
		return
	}
	// The fast path needs memory that is set aside already; large skbs never find any.
	fast := p.Payload > 0 && p.Frame.Flags&model.FIN == 0 && p.Truesize <= s.forwardAlloc()
	c.Spend(model.StageTCPReceive)
	c.SpendN(model.StageTCPSegment, p.Segs-1)
	acked := s.ackInput(c, p)
	c.Look()
	var free model.SKBList
	control, fin := p.Payload == 0, p.Frame.Flags&model.FIN != 0
	v := s.rcv.Receive(c.Now(), p, &free)
	if fin {
		s.rcv.EnterPingpong() // tcp_fin
		v.AckNow = s.state == finished
	}
	if v.DataReady && !fast {
		s.readable(c)
	}
	if acked || control || s.snd.unsent() {
		s.dataSndCheck(c)
	}
	c.Look()
	switch {
	case !s.rcv.AckScheduled():
	case v.AckNow && v.AckMayWait && backlog && s.rcv.DeferBacklogAcks():
		s.ackWait = true
	case v.AckNow:
		s.sendAck(c)
	default:
		s.armDelack()
	}
	s.freeAll(c, &free)
	if v.DataReady && fast {
		s.readable(c)
	}
}

// memory of a socket is taken in pages, and what is not used of the last one is kept
// (since v6.0 no more).
const memPage = 4096

// forwardAlloc is sk_forward_alloc.
func (s *Sock) forwardAlloc() int {
	used := s.rcv.RmemAlloc() + s.snd.wmemQueued
	return (memPage - used%memPage) % memPage
}

// sendAck is tcp_send_ack, down to the driver.
func (s *Sock) sendAck(c *cpu.Core) {
	c.Spend(model.StageTCPAck)
	c.BHDisable()
	s.pkt = Packet{}
	s.rcv.BuildAck(c.Now(), &s.pkt.Segment)
	s.pkt.Seq = s.snd.nxt
	s.out(c, &s.pkt)
	c.BHEnable()
	c.Spend(model.StageTCPSent)
}

// armDelack starts the delayed-ACK timer if the receiver waits for it. A timer that is no
// longer needed expires without effect. The caller has looked.
func (s *Sock) armDelack() {
	at := s.rcv.DelAckDeadline()
	if at != sim.Never && (!s.delack.Armed() || at < s.delAt) {
		s.delAt = at
		s.delack.Mod(at)
	}
}

// delackTimer is tcp_delack_timer.
func (s *Sock) delackTimer(c *cpu.Core) {
	c.Look()
	if s.owned {
		s.delWork = true
		return
	}
	s.delackDue(c)
}

// delackDue is tcp_delack_timer_handler. The caller has looked.
func (s *Sock) delackDue(c *cpu.Core) {
	if s.rcv.DelAckTimer(c.Now()) {
		s.sendAck(c)
	}
	s.armDelack()
}

func (s *Sock) freeAll(c *cpu.Core, free *model.SKBList) {
	for p := free.PopFront(); p != nil; p = free.PopFront() {
		s.env.FreeSKB(c, p, false)
	}
}

// lock is lock_sock.
func (s *Sock) lock(c *cpu.Core) {
	c.MightResched()
	c.BHDisable()
	s.owned = true
	c.BHEnable()
}

// unlock is release_sock: what came while the socket was owned is processed now, in the
// caller's context, and then what timers and tasklets have left (tcp_release_cb).
func (s *Sock) unlock(c *cpu.Core) {
	c.BHDisable()
	for s.backlog.Len() > 0 || s.delWork || s.ackWait || s.snd.tsqDeferred {
		switch {
		case s.backlog.Len() > 0:
			s.releaseBacklog(c)
		case s.snd.tsqDeferred:
			s.snd.tsqDeferred = false
			s.writeXmit(c, s.cfg.NoDelay, false)
			c.Look()
		case s.ackWait:
			s.ackWait = false
			if s.rcv.AckScheduled() {
				s.sendAck(c)
			}
			c.Look()
		default:
			s.delWork = false
			s.delackDue(c)
			c.Look()
		}
	}
	s.rcv.BacklogDone()
	s.owned = false
	c.BHEnable()
}

// releaseBacklog is one round of __release_sock. The recordings show no switch between
// its packets, though one was due.
func (s *Sock) releaseBacklog(c *cpu.Core) {
	var list model.SKBList
	list.Append(&s.backlog)
	c.BHEnable()
	for p := list.PopFront(); p != nil; p = list.PopFront() {
		c.Look()
		s.process(c, p, true)
	}
	c.BHDisable()
}

// sleep puts t to sleep on the socket. The caller has looked and found nothing to do; it
// looks again afterwards.
func (s *Sock) sleep(t *cpu.Task) {
	s.sleeper = t
	t.Sleep()
	s.sleeper = nil
}

// readable is sock_def_readable. Who sleeps is woken once.
func (s *Sock) readable(c *cpu.Core) {
	c.Look()
	if t := s.sleeper; t != nil {
		s.sleeper = nil
		c.Spend(model.StageSockWakeup)
		c.Wake(t)
	}
	if s.epoll != nil {
		s.epoll.add(c, s)
	}
}
