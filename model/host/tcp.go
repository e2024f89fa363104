package host

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/tcp"
	"napisim/sim"
)

// TCPSock is an established TCP socket with one reader: the lock, the backlog, the
// wakeups and the timers around a tcp.Receiver.
type TCPSock struct {
	Reception
	readiness

	env     *Env
	rcv     *tcp.Receiver
	out     Output
	owned   bool // lock_sock: the reader is inside the socket
	backlog model.SKBList
	rxhash  uint32 // sk_rxhash
	delack  *cpu.Timer
	delAt   sim.Time // what delack was set to
	delWork bool     // the delayed-ACK timer fired while the socket was owned
	comp    *cpu.SoftHRTimer
	ackWait bool            // an ACK waits for the end of the backlog
	acks    []model.Segment // by core: one may be on its way down on each
	stats   TCPStats
}

// TCPStats are the counters of a socket beside those of its tcp.Receiver.
type TCPStats struct {
	// Backlogged counts skbs that found the socket owned by its reader.
	Backlogged int64
}

// NewTCPSock returns an established socket whose softirq timers run on core c,
// and whose segments leave through out.
func NewTCPSock(env *Env, c *cpu.Core, rcv *tcp.Receiver, out Output) *TCPSock {
	s := &TCPSock{env: env, rcv: rcv, out: out, acks: make([]model.Segment, len(c.Machine().Cores))}
	s.delack = c.NewTimer(s.delackTimer)
	s.comp = c.NewSoftHRTimer(s.compressedAckKick)
	return s
}

// Stats returns the socket's counters.
func (s *TCPSock) Stats() TCPStats { return s.stats }

// Receiver returns the protocol state, for its counters.
func (s *TCPSock) Receiver() *tcp.Receiver { return s.rcv }

// Received returns what the application has received; it keeps moving.
func (s *TCPSock) Received() *Reception { return &s.Reception }

// Receive is tcp_v4_rcv: a packet is processed at once, or put on the backlog while
// the reader owns the socket. It takes p over and runs in softirq context.
func (s *TCPSock) Receive(c *cpu.Core, p *model.SKB) {
	c.Spend(model.StageTCPReceive)
	c.SpendN(model.StageTCPSegment, p.Segs-1)
	VerifyChecksum(c, p)
	c.Look()
	s.markNAPI(p)
	s.rxhash = p.Frame.Hash
	if !s.owned {
		s.process(c, p, false)
		return
	}
	s.stats.Backlogged++
	var free model.SKBList
	if s.rcv.AddBacklog(&s.backlog, p, &free) == tcp.BacklogDropped {
		traceDrop(c, p, model.DropTCPBacklog)
	}
	s.freeAll(c, &free)
}

// process is tcp_rcv_established: it runs in softirq context, or in the reader's
// when the backlog is worked off. The caller has looked and spent nothing since.
//
// The order of its fast path, the acknowledgement, the free, the wakeup, is taken
// for every packet; tcp_data_queue wakes the reader before the acknowledgement.
func (s *TCPSock) process(c *cpu.Core, p *model.SKB, backlog bool) {
	var free model.SKBList
	v := s.rcv.Receive(c.Now(), p, &free)
	if v.Dropped > 0 {
		traceDrop(c, p, v.Reason)
	}
	switch {
	case v.AckNow && v.AckMayWait && backlog && s.rcv.DeferBacklogAcks():
		s.ackWait = true
	case v.AckNow:
		s.sendAck(c)
	default:
		s.armDelack()
		s.armCompSACK(c)
	}
	c.SpendN(model.StageCopyByte, v.Collapsed)
	if v.Merged > 0 {
		s.env.Heads.FreeMerged(c, v.Merged)
	}
	s.freeAll(c, &free)
	if v.DataReady {
		s.dataReady(c)
	}
}

// sendAck is tcp_send_ack, down to the driver.
func (s *TCPSock) sendAck(c *cpu.Core) {
	c.Spend(model.StageTCPAck)
	c.BHDisable()
	ack := &s.acks[c.ID]
	s.rcv.BuildAck(c.Now(), ack)
	s.comp.Cancel() // tcp_event_ack_sent
	s.out(c, ack)
	c.BHEnable()
}

// armDelack starts the delayed-ACK timer if the receiver waits for it, or makes it
// earlier. A timer that is no longer needed, or now too early, expires without effect
// and is set again if it has to be, as in Linux. The caller has looked.
func (s *TCPSock) armDelack() {
	at := s.rcv.DelAckDeadline()
	if at != sim.Never && (!s.delack.Armed() || at < s.delAt) {
		s.delAt = at
		s.delack.Mod(at)
	}
}

// armCompSACK starts the timer of duplicate ACKs that are held back. The caller has looked.
func (s *TCPSock) armCompSACK(c *cpu.Core) {
	if at := s.rcv.CompSACKDeadline(); at != sim.Never && !s.comp.Armed() {
		s.comp.StartOn(c, at)
	}
}

// compressedAckKick is tcp_compressed_ack_kick, in the HRTIMER softirq.
func (s *TCPSock) compressedAckKick(c *cpu.Core) {
	c.Look()
	switch {
	case s.owned:
		s.delWork = true
	case s.rcv.CompSACKTimer(c.Now()):
		s.sendAck(c)
	}
}

// delackTimer is tcp_delack_timer.
func (s *TCPSock) delackTimer(c *cpu.Core) {
	c.Look()
	if s.owned {
		s.delWork = true
		return
	}
	s.delackDue(c)
}

// delackDue is tcp_delack_timer_handler. The caller has looked.
func (s *TCPSock) delackDue(c *cpu.Core) {
	if s.rcv.CompSACKTimer(c.Now()) || s.rcv.DelAckTimer(c.Now()) {
		s.sendAck(c)
	}
	s.armDelack()
}

// freeAll frees what the state machine has done with. The list is the caller's own:
// a softirq may come in between.
func (s *TCPSock) freeAll(c *cpu.Core, free *model.SKBList) {
	for p := free.PopFront(); p != nil; p = free.PopFront() {
		s.env.FreeSKB(c, p, false)
	}
}

// lock is lock_sock.
func (s *TCPSock) lock(c *cpu.Core) {
	c.BHDisable()
	s.owned = true
	c.BHEnable()
}

// unlock is release_sock: what came while the socket was owned is processed now, in
// the caller's context, and then a timer that fired meanwhile, and the ACK that has waited
// for it (tcp_release_cb).
//
// Where Linux lets other cores spin on the socket's lock while the timer's work is
// done, they go on here and may find the socket owned still: nobody may let go of it
// before the backlog was seen empty at that very instant.
func (s *TCPSock) unlock(c *cpu.Core) {
	c.BHDisable()
	for {
		if s.backlog.Len() > 0 {
			s.releaseBacklog(c)
			continue
		}
		if !s.delWork && !s.ackWait {
			break
		}
		s.releaseCB(c)
	}
	s.rcv.BacklogDone()
	s.owned = false
	c.BHEnable()
}

// releaseCB is tcp_release_cb. The caller has looked, and it returns after a look.
func (s *TCPSock) releaseCB(c *cpu.Core) {
	if s.delWork {
		s.delWork = false
		s.delackDue(c)
		c.Look()
		return
	}
	s.ackWait = false
	if s.rcv.AckScheduled() {
		s.sendAck(c)
		c.Look()
	}
}

// releaseBacklog is one round of __release_sock: softirqs may add to the backlog
// again while the packets taken off it are processed.
func (s *TCPSock) releaseBacklog(c *cpu.Core) {
	var list model.SKBList
	list.Append(&s.backlog)
	c.BHEnable()
	for p := list.PopFront(); p != nil; p = list.PopFront() {
		c.Look()
		s.process(c, p, true)
		c.CondResched()
	}
	c.BHDisable()
}

// Recv is tcp_recvmsg by task t: it blocks until data is there, copies up to size
// bytes of it and returns how many.
func (s *TCPSock) Recv(t *cpu.Task, size int) int {
	c := t.Core()
	c.Spend(model.StageRecvmsg)
	s.env.record(c, &s.rxhash)
	s.busyRead(c, true)
	s.lock(c)
	copied := 0
	for {
		copied += s.copyQueue(c, size-copied)
		c.Look()
		switch {
		case copied > 0 && s.backlog.Len() == 0, copied >= size:
			s.cleanupRbuf(c, copied)
			s.unlock(c)
			s.Reads++
			return copied
		case s.backlog.Len() > 0:
			s.unlock(c)
			s.lock(c)
		default:
			s.waitData(t)
		}
	}
}

// TryRecv is Recv with MSG_DONTWAIT: it copies what is in the receive queue and does
// not wait for the backlog, which is worked off when it releases the socket; ok is false
// (-EAGAIN) if it copies nothing.
func (s *TCPSock) TryRecv(t *cpu.Task, size int) (n int, ok bool) {
	c := t.Core()
	c.Spend(model.StageRecvmsg)
	s.busyRead(c, false)
	s.lock(c)
	n = s.copyQueue(c, size)
	if n > 0 {
		s.Reads++
	}
	s.cleanupRbuf(c, n)
	s.unlock(c)
	return n, n > 0
}

// TryRead implements Pollable.
func (s *TCPSock) TryRead(t *cpu.Task, size int) bool {
	_, ok := s.TryRecv(t, size)
	return ok
}

// Readable implements Pollable.
func (s *TCPSock) Readable() bool { return s.rcv.NextLen() > 0 }

// copyQueue copies from the receive queue until it is empty or limit bytes are
// copied. The socket is owned, so softirqs leave the queue alone.
func (s *TCPSock) copyQueue(c *cpu.Core, limit int) (copied int) {
	for copied < limit {
		n := min(s.rcv.NextLen(), limit-copied)
		if n == 0 {
			break
		}
		c.Spend(model.StageRecvSKB)
		c.SpendN(model.StageCopyByte, n)
		c.Look()
		var free model.SKBList
		for _, arrival := range s.rcv.Read(c.Now(), n, &free).Arrivals {
			s.deliver(c.Now(), arrival)
		}
		copied += n
		s.Bytes += int64(n)
		if free.Len() > 0 { // tcp_eat_recv_skb: one skb and those merged into it
			s.env.Heads.FreeDeferred(c, s.env.SKBs, &free)
		}
	}
	return copied
}

// cleanupRbuf is tcp_cleanup_rbuf: the read may call for an ACK or a window update.
func (s *TCPSock) cleanupRbuf(c *cpu.Core, copied int) {
	c.Look()
	if s.rcv.CleanupRbuf(c.Now(), copied) {
		s.sendAck(c)
	}
}

// waitData is sk_wait_data: the socket is released, the task sleeps until there is
// data, and takes the socket again.
func (s *TCPSock) waitData(t *cpu.Task) {
	c := t.Core()
	s.cleanupRbuf(c, 0)
	s.unlock(c)
	for {
		c.Look()
		if s.rcv.NextLen() > 0 {
			break
		}
		s.wait.sleep(t)
	}
	s.lock(c)
}
