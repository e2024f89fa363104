package host

import (
	"strings"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/skbuff"
	"napisim/sim"
	"napisim/sim/metric"
	"napisim/sim/trace"
)

// Output sends a segment down to the driver, as ip_queue_xmit does; softirqs are
// disabled on core c meanwhile. The segment is the caller's again afterwards.
type Output func(c *cpu.Core, seg *model.Segment)

// Env is what all sockets of a host share.
type Env struct {
	// SKBs takes freed skbs.
	SKBs *model.SKBPool
	// Losses counts what sockets drop.
	Losses *model.Losses
	// Heads are the caches of descriptors; without them descriptors cost nothing.
	Heads *skbuff.Heads
	// RecordFlow is told on which core an application reads a flow (sock_rps_record_flow);
	// nil where RFS is off.
	RecordFlow func(hash uint32, core int)
}

// FreeSKB is kfree_skb: it frees s on core c, pages included. safe tells that the
// caller runs in NAPI context, which page_pool asks.
func (e *Env) FreeSKB(c *cpu.Core, s *model.SKB, safe bool) { e.Heads.Free(c, e.SKBs, s, safe) }

// record notes that the flow of this hash is read on core c. Softirqs of other cores
// change the hash, so it is read after a look.
func (e *Env) record(c *cpu.Core, hash *uint32) {
	if e.RecordFlow != nil {
		c.Look()
		e.RecordFlow(*hash, c.ID)
	}
}

// Drop frees s and counts its segments as lost for reason r.
func (e *Env) Drop(c *cpu.Core, s *model.SKB, r model.DropReason) {
	c.Look()
	e.Losses.Add(r, s.Segs)
	traceDrop(c, s, r)
	e.FreeSKB(c, s, false)
}

// traceDrop emits kfree_skb, which Linux passes for dropped packets only; the caller
// has looked.
func traceDrop(c *cpu.Core, s *model.SKB, r model.DropReason) {
	if c.Recording() {
		const ipv4 = 0x0800
		e := c.Event(trace.KfreeSKB)
		e.A, e.B, e.S, e.T = s.ID, ipv4, r.Location(), strings.ToUpper(r.String())
		c.Emit(e)
	}
}

// VerifyChecksum sums the packet in software if nobody has verified it, as TCP does
// at the latest in tcp_v4_rcv, and UDP when it copies to user space.
func VerifyChecksum(c *cpu.Core, s *model.SKB) {
	if s.CsumNone {
		s.CsumNone = false
		c.SpendN(model.StageCsumByte, s.Payload)
	}
}

// Reception is what an application has received through one socket.
type Reception struct {
	// Bytes is the payload copied to user space.
	Bytes int64
	// Packets is the number of wire frames whose last byte was copied.
	Packets int64
	// Reads is the number of system calls that returned data.
	Reads int64
	// Latency is the time from the last bit on the wire to the end of the copy, in
	// picoseconds, one sample a frame.
	Latency metric.Histogram
}

// deliver notes a frame that has reached the application.
func (r *Reception) deliver(now, arrival sim.Time) {
	r.Packets++
	r.Latency.Add(int64(now - arrival))
}

// waitQueue is the wait queue of a socket with at most one reader.
type waitQueue struct{ sleeper *cpu.Task }

// sleep puts t on the queue and sends it to sleep. The caller has looked and found
// nothing to read; it looks again afterwards.
func (w *waitQueue) sleep(t *cpu.Task) {
	w.sleeper = t
	t.Sleep()
	w.sleeper = nil
	t.Core().Spend(model.StageSockWait)
}

// wake is sock_def_readable. A sleeper is woken once: packets that come while it is
// on its way find nobody to wake and pay nothing for it.
func (w *waitQueue) wake(c *cpu.Core) {
	c.Look()
	t := w.sleeper
	if t == nil {
		return
	}
	w.sleeper = nil
	c.Spend(model.StageSockWakeup)
	c.Wake(t)
}

// BusyLoopTime is busy_loop_current_time: the clock of busy loops, whose microseconds
// last 1024 ns. The caller has looked.
func BusyLoopTime(c *cpu.Core) int64 { return int64(c.Now()/sim.Nanosecond) >> 10 }

// BusyLoopTimeout is busy_loop_timeout: whether a loop that began at start has lasted
// longer than usecs by that clock; a loop of no length is over at once. The caller has
// looked.
func BusyLoopTimeout(c *cpu.Core, start, usecs int64) bool {
	return usecs == 0 || BusyLoopTime(c) > start+usecs
}

// BusyWait is what a task that polls busily asks of the kernel below.
type BusyWait struct {
	// End is loop_end: whether to stop, for a loop on core c that began at start. Without it
	// there is one turn, as for a read that must not block. Who calls End has looked.
	End func(c *cpu.Core, start int64) bool
	// Prefer says that softirqs are to leave the NAPI to the task (v5.11).
	Prefer bool
	// Budget is the most frames of one poll; 0 means the kernel's 8 (v5.11).
	Budget int
}

// BusyPoller is the NAPI layer as busy polling sees it. A NAPI is named by its id; an id
// of none does nothing. The calls are made by a task on core c.
type BusyPoller interface {
	// BusyLoop is napi_busy_loop: it polls until w.End says to stop. What it receives goes up
	// the stack meanwhile.
	BusyLoop(c *cpu.Core, id int, w *BusyWait)
	// SuspendIRQs is napi_suspend_irqs, ResumeIRQs napi_resume_irqs (v6.13).
	SuspendIRQs(c *cpu.Core, id int)
	ResumeIRQs(c *cpu.Core, id int)
}

// BusyPoll are the busy-polling settings of a socket or of an epoll instance.
type BusyPoll struct {
	// Usecs is how long to poll before the task sleeps: SO_BUSY_POLL of a socket, and
	// busy_poll_usecs or net.core.busy_poll of an epoll instance; 0: not at all.
	Usecs int64
	// Prefer is SO_PREFER_BUSY_POLL, or prefer_busy_poll.
	Prefer bool
	// Budget is SO_BUSY_POLL_BUDGET, or busy_poll_budget; 0 means 8.
	Budget int
	// PreferSuffices lets an epoll instance that prefers to poll do so for one turn if Usecs
	// is 0 (v6.13). Sockets do not know it.
	PreferSuffices bool
}

// Busy is what a socket or an epoll instance keeps for busy polling. The zero value polls
// nothing.
type Busy struct {
	poller BusyPoller
	cfg    BusyPoll
	wait   BusyWait // until there is something or the time is over
	once   BusyWait // one turn
}

// Set prepares busy polling through p; readable tells whether there is something, and who
// calls it has looked. Without p there is no busy polling.
func (b *Busy) Set(p BusyPoller, cfg BusyPoll, readable func() bool) {
	b.poller, b.cfg = p, cfg
	b.once = BusyWait{Prefer: cfg.Prefer, Budget: cfg.Budget}
	b.wait = b.once
	b.wait.End = func(c *cpu.Core, start int64) bool {
		return readable() || BusyLoopTimeout(c, start, cfg.Usecs)
	}
}

// Loop polls NAPI id, once if the caller must not block. It reports whether it did.
func (b *Busy) Loop(c *cpu.Core, id int, block bool) bool {
	on := b.cfg.Usecs > 0 || b.cfg.PreferSuffices && b.cfg.Prefer
	if b.poller == nil || id == 0 || !on {
		return false
	}
	w := &b.once
	if block {
		w = &b.wait
	}
	b.poller.BusyLoop(c, id, w)
	return true
}

// SetBusyPoll makes reads from the socket poll through p before they sleep or return
// -EAGAIN (sk_busy_loop). It belongs to the construction of a run.
func (s *UDPSock) SetBusyPoll(p BusyPoller, cfg BusyPoll) {
	cfg.PreferSuffices = false
	s.busy.Set(p, cfg, func() bool { return s.queue.Len() > 0 })
}

// busyLoop is sk_busy_loop; it reports whether it has polled.
func (s *UDPSock) busyLoop(c *cpu.Core, block bool) bool {
	c.Look()
	return s.busy.Loop(c, s.napiID, block)
}

// SetBusyPoll is that of UDPSock. A read polls once before it takes the socket, if the
// receive queue is empty.
func (s *TCPSock) SetBusyPoll(p BusyPoller, cfg BusyPoll) {
	cfg.PreferSuffices = false
	s.busy.Set(p, cfg, func() bool { return s.rcv.NextLen() > 0 })
}

// busyRead is what tcp_recvmsg does first: it polls if there is nothing to read.
func (s *TCPSock) busyRead(c *cpu.Core, block bool) {
	c.Look()
	if s.rcv.NextLen() == 0 {
		s.busy.Loop(c, s.napiID, block)
	}
}

// SetBusyPoll makes Wait poll through p before it sleeps (ep_busy_loop, v4.12): the NAPI
// through which the last packet of a watched socket came. It belongs to the construction of a
// run.
func (ep *Epoll) SetBusyPoll(p BusyPoller, cfg BusyPoll) {
	ep.busy.Set(p, cfg, ep.Available)
}

// busyLoop is ep_busy_loop. A loop that has found nothing forgets the NAPI, until a socket
// becomes ready again, and gives it back to its interrupt.
func (ep *Epoll) busyLoop(c *cpu.Core) {
	id := ep.napiID
	if !ep.busy.Loop(c, id, true) {
		return
	}
	if c.Look(); ep.Available() {
		return
	}
	if ep.busy.cfg.Prefer {
		ep.busy.poller.ResumeIRQs(c, id)
		c.Look()
	}
	ep.napiID = 0
}

// suspendIRQs is ep_suspend_napi_irqs: there are events to return.
func (ep *Epoll) suspendIRQs(c *cpu.Core) {
	if ep.busy.poller != nil && ep.busy.cfg.Prefer && ep.napiID != 0 {
		ep.busy.poller.SuspendIRQs(c, ep.napiID)
	}
}
