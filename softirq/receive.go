package softirq

import (
	"napisim/model"
	"napisim/sim/trace"
	"napisim/softirq/gro"
)

// GROReceive is napi_gro_receive: the driver hands up one packet, which is merged,
// held or passed on. It takes s over. It runs inside the driver's poll.
func (n *NAPI) GROReceive(s *model.SKB) {
	c := n.Core()
	n.traceGRO(s)
	if n.gro == nil {
		n.sd.b.groNormal.Receive(n, s)
		return
	}
	n.stats.GROReceived++
	c.Spend(model.StageGROReceive)
	switch n.gro.Receive(s, c.Machine().Jiffies()) {
	case gro.Normal:
		n.sd.b.groNormal.Receive(n, s)
	case gro.Merged, gro.MergedFree: // the struct is empty; a chained descriptor is counted in the superframe
		c.Spend(model.StageGROMerge)
		n.sd.skbs.Put(s)
	case gro.Held:
	}
}

// Complete is napi_gro_complete: GRO has finished a superframe, which goes where
// the version sends it. The GRO table calls it; it takes s over.
func (n *NAPI) Complete(s *model.SKB) {
	n.Core().Spend(model.StageGROFlush)
	n.sd.b.groNormal.Complete(n, s)
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
	n.sd.count(s)
	n.sd.stack.ReceiveSKB(n.sd.core, s)
}

// listBySKB lists a packet or superframe as one: v5.4.18 for superframes and
// napi_gro_frags, v5.5 to v5.10 for all.
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

// traceGRO emits napi_gro_receive_entry.
func (n *NAPI) traceGRO(s *model.SKB) {
	c := n.Core()
	if c.Machine().Trace == nil {
		return
	}
	c.Look()
	if c.Recording() {
		e := c.Event(trace.NAPIGROReceiveEntry)
		e.A, e.B, e.C, e.D, e.E, e.S = s.ID, int64(s.Frame.Len), int64(s.Frame.Hash), int64(n.ID), int64(s.Truesize), n.Name
		c.Emit(e)
	}
}
