package host

import (
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
}

// UDPSock is a bound UDP socket with one reader.
type UDPSock struct {
	Reception

	env     *Env
	cfg     UDPConfig
	queue   model.SKBList // sk_receive_queue, filled by softirqs
	reading model.SKBList // reader_queue, emptied by the reader
	rmem    int           // sk_rmem_alloc
	deficit int           // forward_deficit: read, but not yet given back to rmem
	wait    waitQueue
	rxhash  uint32 // sk_rxhash: of the last datagram queued
	stats   UDPStats
}

// UDPStats are the counters of a UDP socket.
type UDPStats struct {
	// InDatagrams counts datagrams queued, RcvbufErrors those refused (both as in
	// /proc/net/snmp, per socket).
	InDatagrams, RcvbufErrors int64
	// MaxRmem is the highest receive memory seen, in bytes of truesize.
	MaxRmem int
}

// NewUDPSock returns a bound socket.
func NewUDPSock(env *Env, cfg UDPConfig) *UDPSock { return &UDPSock{env: env, cfg: cfg} }

// Stats returns the socket's counters.
func (s *UDPSock) Stats() UDPStats { return s.stats }

// Queued returns the datagrams that wait for the reader.
func (s *UDPSock) Queued() int { return s.queue.Len() + s.reading.Len() }

// Received returns what the application has received; it keeps moving.
func (s *UDPSock) Received() *Reception { return &s.Reception }

// Receive is udp_rcv and __udp_enqueue_schedule_skb (v4.12 to v6.12): a datagram
// is refused when receive memory is above sk_rcvbuf before it is added. It takes p
// over and runs in softirq context. Merged datagrams that the socket cannot take as one
// come apart first.
func (s *UDPSock) Receive(c *cpu.Core, p *model.SKB) {
	if s.unexpectedGSO(p) {
		s.receiveSegments(c, p)
		return
	}
	c.Spend(model.StageUDPReceive)
	c.Look()
	if s.rmem > s.cfg.RcvBuf {
		s.stats.RcvbufErrors++
		s.env.Drop(c, p, model.DropUDPRcvbuf)
		return
	}
	s.rmem += p.Truesize
	s.stats.MaxRmem = max(s.stats.MaxRmem, s.rmem)
	s.stats.InDatagrams++
	s.rxhash = p.Frame.Hash
	s.queue.PushBack(p)
	s.wait.wake(c)
}

// Recv is recvmsg on the socket by task t: it blocks until a datagram is there,
// copies it and returns its payload length. Each call takes the queue's lock with
// softirqs off, so pending softirqs run in the reader's context when it lets go.
func (s *UDPSock) Recv(t *cpu.Task) int {
	c := t.Core()
	c.Spend(model.StageRecvmsg)
	s.env.record(c, &s.rxhash)
	p := s.dequeue(c)
	for p == nil {
		c.Look()
		if s.queue.Len() == 0 {
			s.wait.sleep(t)
		}
		p = s.dequeue(c)
	}
	n := p.Payload
	VerifyChecksum(c, p)
	c.SpendN(model.StageCopyByte, n)
	c.Look()
	for _, arrival := range p.Arrivals {
		s.deliver(c.Now(), arrival)
	}
	s.Bytes += int64(n)
	s.Reads++
	s.env.FreeSKB(c, p, false)
	return n
}

// dequeue is __skb_recv_udp: the reader takes one datagram from a list of its own,
// to which it first takes over everything queued if it is empty. It returns nil if
// there is nothing.
func (s *UDPSock) dequeue(c *cpu.Core) (p *model.SKB) {
	c.BHDisable()
	if s.Queued() > 0 {
		c.Spend(model.StageRecvSKB)
		c.Look()
		if s.reading.Len() == 0 {
			s.reading.Append(&s.queue)
		}
		p = s.reading.PopFront()
		s.release(p.Truesize)
	}
	c.BHEnable()
	return p
}

// release is udp_rmem_release (since v4.12): the memory of what is dequeued goes
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
