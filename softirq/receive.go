package softirq

import (
	"napisim/model"
	"napisim/sim/trace"
	"napisim/softirq/gro"
)

// GROReceive is napi_gro_receive: the driver hands up one packet whose headers lie in
// the skb's head. It is merged, held or passed on. GROReceive takes s over; it is called
// inside the driver's poll.
func (n *NAPI) GROReceive(s *model.SKB) {
	n.traceGRO(trace.NAPIGROReceiveEntry, s)
	if !n.devGROReceive(s) {
		n.sd.b.groNormal.Receive(n, s)
	}
}

// GROFrags is napi_gro_frags, which drivers that receive into page fragments call
// instead of GROReceive. It differs in where versions send a packet that GRO does not keep.
func (n *NAPI) GROFrags(s *model.SKB) {
	n.traceGRO(trace.NAPIGROFragsEntry, s)
	if !n.devGROReceive(s) {
		n.sd.b.groNormal.Frags(n, s)
	}
}

// devGROReceive is dev_gro_receive, and what napi_skb_finish does with a packet that
// GRO keeps. It reports whether it took s over.
func (n *NAPI) devGROReceive(s *model.SKB) bool {
	if n.gro == nil {
		return false
	}
	c := n.Core()
	c.Spend(model.StageGROReceive)
	if s.CsumNone && s.Frame.Proto == model.TCP { // skb_gro_checksum_validate
		s.CsumNone = false
		c.SpendN(model.StageCsumByte, s.Payload)
	}
	c.Look()
	n.stats.GROReceived++
	switch n.gro.Receive(s, c.Machine().Jiffies()) {
	case gro.Normal:
		return false
	case gro.MergedFree:
		n.sd.skbs.Put(s)
		c.Spend(model.StageGROMerge)
		n.sd.heads.On(c).FreeStolen()
	case gro.Merged: // the struct is empty; a chained descriptor is counted in the superframe
		c.Spend(model.StageGROMerge)
		n.sd.skbs.Put(s)
	case gro.Held:
	}
	return true
}

// Complete is the end of napi_gro_complete: GRO has finished a superframe, which goes
// where the version sends it. The GRO table calls it; it takes s over.
func (n *NAPI) Complete(s *model.SKB) {
	c := n.Core()
	c.Spend(model.StageGROFlush)
	n.sd.b.groNormal.Complete(n, s)
	c.Look() // the table goes on with its counters
}

// groFlush is napi_gro_flush.
func (n *NAPI) groFlush(oldOnly bool) {
	if n.gro != nil && n.gro.Held() > 0 {
		c := n.Core()
		c.Look()
		n.gro.Flush(oldOnly, c.Machine().Jiffies())
	}
}

// groNormalList is gro_normal_list: what waits goes up to the stack.
func (n *NAPI) groNormalList() {
	if n.rxCount == 0 {
		return
	}
	sd := n.sd
	sd.core.Look() // counted at its instant, also if an interrupt comes first
	for s := n.rxList.Front(); s != nil; s = s.Next() {
		sd.count(s)
	}
	n.rxCount = 0
	sd.stack.ReceiveList(sd.core, &n.rxList)
}

// groNormalOne is gro_normal_one: s joins the list, which goes up when its count
// reaches net.core.gro_normal_batch.
func (n *NAPI) groNormalOne(s *model.SKB, count int) {
	n.rxList.PushBack(s)
	n.rxCount += count
	if n.rxCount >= n.sd.cfg.GRONormalBatch {
		n.groNormalList()
	}
}

// deliverOne passes a packet up by itself: napi_gro_receive up to v5.4.
func deliverOne(n *NAPI, s skb) {
	n.sd.core.Look()
	n.sd.count(s)
	n.sd.stack.ReceiveSKB(n.sd.core, s)
}

// listBySKB lists a packet or superframe as one: v5.4.18 for superframes and
// napi_gro_frags, v5.5 to v5.10 for all, and still so for packets that GRO does not
// keep, even if the hardware has merged them.
func listBySKB(n *NAPI, s skb) { n.groNormalOne(s, 1) }

// listBySegments lists a superframe with the count of its segments: since v5.11
// (8dc1c444df19) a large one goes up at once, and takes along what waits before it.
func listBySegments(n *NAPI, s skb) { n.groNormalOne(s, s.Segs) }

// count notes an skb on its way up.
func (sd *Softnet) count(s *model.SKB) {
	sd.stats.Processed++
	if s.Frame.Proto == model.TCP {
		sd.stats.GROSegments.Add(int64(s.Segs))
	}
}

// traceGRO emits napi_gro_receive_entry or napi_gro_frags_entry.
func (n *NAPI) traceGRO(p trace.Point, s *model.SKB) {
	c := n.Core()
	if c.Machine().Trace == nil {
		return
	}
	c.Look()
	if c.Recording() {
		e := c.Event(p)
		e.A, e.B, e.C, e.D, e.E, e.S = s.ID, int64(s.Frame.Len)-model.EthernetHeader, int64(s.Frame.Hash), int64(n.ID), int64(s.Truesize), n.Name
		c.Emit(e)
	}
}
