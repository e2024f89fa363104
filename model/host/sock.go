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
