package duplex

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/sim/trace"
)

// userPage is the size of the pages of a process.
const userPage = 4096

// Recv is read by task t: it blocks until there is data or the end of the stream, copies
// up to size bytes and returns how many, 0 at the end. The buffer is the same each time,
// and pages of it that were never written to are made on the way.
func (s *Sock) Recv(t *cpu.Task, size int) int {
	c := t.Core()
	c.Spend(model.StageRecvmsg)
	s.busyRead(c)
	s.lock(c)
	copied := 0
	for {
		copied += s.copyQueue(c, copied, size-copied)
		c.Look()
		switch {
		case copied >= size, copied > 0 && s.backlog.Len() == 0, copied == 0 && s.rcv.EOF():
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

// SetBusyPoll makes reads poll through p before they take the socket, if there is nothing
// to read. It belongs to the construction of a run.
func (s *Sock) SetBusyPoll(p host.BusyPoller, cfg host.BusyPoll) {
	cfg.PreferSuffices = false
	s.busy.Set(p, cfg, s.Readable)
}

// busyRead is what tcp_recvmsg does first (sk_busy_loop). A socket that the peer has
// closed is no longer established, but has the end of the stream to read.
func (s *Sock) busyRead(c *cpu.Core) {
	c.Look()
	if s.state == established && !s.Readable() {
		s.busy.Loop(c, s.napiID, true)
	}
}

// copyQueue copies from the receive queue to the buffer from at on, until the queue is
// empty or limit bytes are copied. The socket is owned, so softirqs leave the queue alone.
func (s *Sock) copyQueue(c *cpu.Core, at, limit int) (copied int) {
	for copied < limit {
		n := min(s.rcv.NextLen(), limit-copied)
		if n == 0 {
			break
		}
		c.Spend(model.StageRecvSKB)
		c.SpendN(model.StageCopyByte, n)
		if end := at + copied + n; end > s.touched {
			pages := (end+userPage-1)/userPage - (s.touched+userPage-1)/userPage
			c.SpendN(model.StagePageFault, pages)
			c.SpendN(model.StagePageZero, pages)
			s.touched = end
		}
		c.Look()
		var free model.SKBList
		s.rcv.Read(c.Now(), n, &free)
		copied += n
		s.Bytes += int64(n)
		traceChained(c, &free)
		s.freeAll(c, &free)
	}
	return copied
}

// traceChained emits kfree_skb for the skbs that hang on those that are freed: Linux frees
// a frag_list as if it were dropped.
func traceChained(c *cpu.Core, free *model.SKBList) {
	const ipv4 = 0x0800
	for p := free.Front(); p != nil; p = p.Next() {
		for range p.Chained {
			c.Look()
			if !c.Recording() {
				return
			}
			e := c.Event(trace.KfreeSKB)
			e.A, e.B, e.S, e.T = p.ID, ipv4, "skb_release_data", "NOT_SPECIFIED"
			c.Emit(e)
		}
	}
}

// cleanupRbuf is tcp_cleanup_rbuf: the read may call for an ACK or a window update.
func (s *Sock) cleanupRbuf(c *cpu.Core, copied int) {
	c.Look()
	if s.rcv.CleanupRbuf(c.Now(), copied) {
		s.sendAck(c)
	}
}

// waitData is sk_wait_data.
func (s *Sock) waitData(t *cpu.Task) {
	c := t.Core()
	s.cleanupRbuf(c, 0)
	s.unlock(c)
	c.Spend(model.StageSockWait)
	for {
		c.Look()
		if s.rcv.NextLen() > 0 || s.rcv.EOF() {
			break
		}
		s.sleep(t)
	}
	s.lock(c)
}

// Readable reports whether a read would return at once.
func (s *Sock) Readable() bool { return s.rcv.NextLen() > 0 || s.rcv.EOF() }
