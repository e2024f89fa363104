package host

import (
	"cmp"

	"napisim/model"
	"napisim/model/cpu"
)

// UDPConfig describes a UDP socket.
type UDPConfig struct {
	// RcvBuf is sk_rcvbuf in bytes of truesize: net.core.rmem_default, or twice the
	// value given to SO_RCVBUF.
	RcvBuf int
	// GRO is UDP_GRO (v5.0): the socket takes merged datagrams as one.
	GRO bool
	// Rcvbuf and Wakeup name the udp_rcvbuf and udp_wakeup behaviours; empty means
	// those of v6.1.
	Rcvbuf, Wakeup string
}

// Validate returns every fault of the configuration.
func (c *UDPConfig) Validate() []error {
	_, _, faults := c.behaviours()
	return faults
}

func (c *UDPConfig) behaviours() (b UDPRcvbufBehaviour, w UDPWakeupBehaviour, faults []error) {
	var err error
	if b, err = model.FindNamed(udpRcvbufs, func(b UDPRcvbufBehaviour) string { return b.Name }, cmp.Or(c.Rcvbuf, udpDefaultRcvbuf), "udp_rcvbuf"); err != nil {
		faults = append(faults, err)
	}
	if w, err = model.FindNamed(udpWakeups, func(b UDPWakeupBehaviour) string { return b.Name }, cmp.Or(c.Wakeup, udpDefaultWakeup), "udp_wakeup"); err != nil {
		faults = append(faults, err)
	}
	return b, w, faults
}

// UDPSock is a bound UDP socket with one reader.
type UDPSock struct {
	Reception
	readiness

	env     *Env
	cfg     UDPConfig
	rcvbuf  UDPRcvbufBehaviour
	wakeup  UDPWakeupBehaviour
	queue   model.SKBList // sk_receive_queue, filled by softirqs
	reading model.SKBList // reader_queue, emptied by the reader
	rmem    int           // sk_rmem_alloc
	deficit int           // forward_deficit: read, but not yet given back to rmem
	rxhash  uint32        // sk_rxhash: of the last datagram queued
	from    model.Frame   // the last datagram read
	stats   UDPStats
}

// UDPStats are the counters of a UDP socket.
type UDPStats struct {
	// InDatagrams counts datagrams queued, RcvbufErrors those refused (both as in
	// /proc/net/snmp, per socket).
	InDatagrams, RcvbufErrors int64
	// Condensed counts datagrams whose payload was copied into the head.
	Condensed int64
	// MaxRmem is the highest receive memory seen, in bytes of truesize.
	MaxRmem int
}

// NewUDPSock returns a bound socket. The configuration must be valid.
func NewUDPSock(env *Env, cfg UDPConfig) *UDPSock {
	b, w, faults := cfg.behaviours()
	if len(faults) > 0 {
		panic(faults[0])
	}
	return &UDPSock{env: env, cfg: cfg, rcvbuf: b, wakeup: w}
}

// Stats returns the socket's counters.
func (s *UDPSock) Stats() UDPStats { return s.stats }

// Queued returns the datagrams that wait for the reader.
func (s *UDPSock) Queued() int { return s.queue.Len() + s.reading.Len() }

// Received returns what the application has received; it keeps moving.
func (s *UDPSock) Received() *Reception { return &s.Reception }

// Receive is udp_rcv and __udp_enqueue_schedule_skb, sock_queue_rcv_skb up to v4.9: a
// datagram is charged to the receive buffer or refused. It takes p over and runs in
// softirq context. Merged datagrams that the socket cannot take as one come apart first.
func (s *UDPSock) Receive(c *cpu.Core, p *model.SKB) {
	if s.unexpectedGSO(p) {
		s.receiveSegments(c, p)
		return
	}
	c.Spend(model.StageUDPReceive)
	c.Look()
	s.markNAPI(p)
	if s.rcvbuf.Full(s.rmem, p.Truesize, s.cfg.RcvBuf) {
		s.refuse(c, p)
		return
	}
	if s.rcvbuf.Condense && s.rmem > s.cfg.RcvBuf/2 && condensed(p) {
		s.condense(c, p)
		// Others may have charged their datagrams meanwhile.
		if s.rcvbuf.Recheck && s.rmem > s.cfg.RcvBuf {
			s.refuse(c, p)
			return
		}
	}
	s.rmem += p.Truesize
	s.stats.MaxRmem = max(s.stats.MaxRmem, s.rmem)
	s.stats.InDatagrams++
	before := s.queue.Len()
	s.rxhash = p.Frame.Hash
	s.queue.PushBack(p)
	if s.wakeup.Ready(before) {
		s.dataReady(c)
	}
}

// refuse drops a datagram that does not fit; the caller has looked.
func (s *UDPSock) refuse(c *cpu.Core, p *model.SKB) {
	s.stats.RcvbufErrors++
	s.env.Drop(c, p, model.DropUDPRcvbuf)
}

// condense is skb_condense: the payload moves into the head, and the pages go home. It
// returns after a look.
func (s *UDPSock) condense(c *cpu.Core, p *model.SKB) {
	s.stats.Condensed++
	c.SpendN(model.StageCopyByte, p.Payload)
	c.Look()
	pool, pages := p.Pool, p.Pages
	p.Truesize = p.Head + model.SKBHead
	p.Pages, p.Pool, p.Frags = 0, nil, 0
	if pages > 0 && pool != nil {
		pool.ReturnPages(c.ID, pages, false)
	}
	c.Look()
}

// Recv is recvmsg (udp_recvmsg) on the socket by task t: it blocks until a datagram is there,
// copies it and returns its payload length. Each call takes the queue's lock with
// softirqs off, so pending softirqs run in the reader's context when it lets go.
func (s *UDPSock) Recv(t *cpu.Task) int {
	c := t.Core()
	c.Spend(model.StageRecvmsg)
	s.env.record(c, &s.rxhash)
	p := s.dequeue(c)
	for p == nil {
		s.busyLoop(c, true)
		c.Look()
		if s.queue.Len() == 0 {
			s.wait.sleep(t)
		}
		p = s.dequeue(c)
	}
	return s.consume(c, p)
}

// TryRecv is Recv with MSG_DONTWAIT: ok is false (-EAGAIN) if nothing waits.
func (s *UDPSock) TryRecv(t *cpu.Task) (n int, ok bool) {
	c := t.Core()
	c.Spend(model.StageRecvmsg)
	p := s.dequeue(c)
	if p == nil && s.busyLoop(c, false) {
		p = s.dequeue(c)
	}
	if p == nil {
		return 0, false
	}
	return s.consume(c, p), true
}

// TryRead implements Pollable; a datagram is read whole.
func (s *UDPSock) TryRead(t *cpu.Task, _ int) bool {
	_, ok := s.TryRecv(t)
	return ok
}

// Readable implements Pollable.
func (s *UDPSock) Readable() bool { return s.Queued() > 0 }

// consume copies a datagram to user space and frees it (skb_consume_udp).
func (s *UDPSock) consume(c *cpu.Core, p *model.SKB) int {
	n := p.Payload
	VerifyChecksum(c, p)
	c.SpendN(model.StageCopyByte, n)
	c.Look()
	for _, arrival := range p.Arrivals {
		s.deliver(c.Now(), arrival)
	}
	s.from = p.Frame
	s.Bytes += int64(n)
	s.Reads++
	if !s.rcvbuf.Batch {
		s.rmem -= p.Truesize // sock_rfree, when the skb is freed
	}
	s.env.FreeSKB(c, p, false)
	return n
}

// dequeue is __skb_recv_udp: the reader takes one datagram from a list of its own,
// to which it first takes over everything queued if it is empty; up to v4.9 it takes it
// from the receive queue. It returns nil if there is nothing.
func (s *UDPSock) dequeue(c *cpu.Core) (p *model.SKB) {
	c.BHDisable()
	if s.Queued() > 0 {
		c.Spend(model.StageRecvSKB)
		c.Look()
		if s.rcvbuf.Batch {
			if s.reading.Len() == 0 {
				s.reading.Append(&s.queue)
			}
			p = s.reading.PopFront()
			s.release(p.Truesize)
		} else {
			p = s.queue.PopFront()
		}
	}
	c.BHEnable()
	return p
}

// release is udp_rmem_release (since v4.10): the memory of what is dequeued goes
// back in batches of a quarter of the buffer, or when the reader's list is empty.
// Both locks are held then, so the list is filled again on the occasion.
func (s *UDPSock) release(size int) {
	s.deficit += size
	if s.deficit < s.cfg.RcvBuf/4 && s.reading.Len() > 0 {
		return
	}
	s.rmem -= s.deficit
	s.deficit = 0
	s.reading.Append(&s.queue)
}
