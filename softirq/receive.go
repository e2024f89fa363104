package softirq

import (
	"napisim/model"
	"napisim/sim/trace"
	"napisim/softirq/gro"
)

// GROReceive is napi_gro_receive (all versions): the driver hands up one packet whose headers
// lie in the skb's head. It is merged, held or passed on. GROReceive takes s over; it is called
// inside the driver's poll.
func (n *NAPI) GROReceive(s *model.SKB) {
	n.traceGRO(trace.NAPIGROReceiveEntry, s)
	result := n.devGROReceive(s)
	switch result {
	case gro.Normal:
		n.sd.b.groNormal.Receive(n, s)
	case gro.MergedFree:
		n.sd.heads.On(n.Core()).FreeStolen()
	case gro.Merged, gro.Held:
	}
	n.traceGROExit(trace.NAPIGROReceiveExit, result)
}

// GROFrags is napi_gro_frags with napi_frags_skb and napi_frags_finish (all versions), which
// drivers that receive into page fragments call instead of GROReceive. It differs in where
// versions send a packet that GRO does not keep.
func (n *NAPI) GROFrags(s *model.SKB) {
	n.traceGRO(trace.NAPIGROFragsEntry, s)
	result := n.devGROReceive(s)
	switch result {
	case gro.Normal:
		n.sd.b.groNormal.Frags(n, s)
	case gro.MergedFree:
		n.reuse = true // napi_reuse_skb
	case gro.Merged, gro.Held:
	}
	n.traceGROExit(trace.NAPIGROFragsExit, result)
}

// devGROReceive is dev_gro_receive (all versions), and what napi_skb_finish does with a packet that
// GRO keeps. It takes s over unless the result is Normal.
func (n *NAPI) devGROReceive(s *model.SKB) gro.Result {
	if n.gro == nil {
		return gro.Normal
	}
	c := n.Core()
	c.Spend(model.StageGROReceive)
	if s.CsumNone && s.Frame.Proto == model.TCP { // skb_gro_checksum_validate
		s.CsumNone = false
		c.Spend(model.StageCsum)
		c.SpendN(model.StageCsumByte, s.Payload)
	}
	c.Look()
	n.stats.GROReceived++
	result := n.gro.Receive(s, c.Machine().Jiffies())
	if result == gro.Merged || result == gro.MergedFree { // the struct is empty; a chained descriptor is counted in the superframe
		n.sd.skbs.Put(s)
		c.Spend(model.StageGROMerge)
	}
	return result
}

// GetFrags is napi_get_frags (all versions): it reports whether the skb of a merged packet is
// used again, so that the driver needs no new one.
func (n *NAPI) GetFrags() (reused bool) {
	reused, n.reuse = n.reuse, false
	return reused
}

// Complete is the end of napi_gro_complete (all versions): GRO has finished a superframe, which
// goes where the version sends it. The GRO table calls it; it takes s over.
func (n *NAPI) Complete(s *model.SKB) {
	c := n.Core()
	c.Spend(model.StageGROFlush)
	n.sd.b.groNormal.Complete(n, s)
	c.Look() // the table goes on with its counters
}

// groFlush is napi_gro_flush (all versions) at the end of a poll. The kernel's callers pass the
// list of packets on right after it; where a version did so before, it is done here.
func (n *NAPI) groFlush(oldOnly bool) {
	if n.sd.b.groNormal.ListFirst {
		n.groNormalList()
	}
	if n.gro != nil && n.gro.Held() > 0 {
		c := n.Core()
		c.Look()
		n.gro.Flush(oldOnly, c.Machine().Jiffies())
	}
}

// groFlushNormal is gro_flush_normal, as the end of a poll does it: the GRO flush, and
// then what waits goes up.
func (n *NAPI) groFlushNormal(oldOnly bool) {
	n.groFlush(oldOnly)
	n.groNormalList()
}

// groNormalList is gro_normal_list (v5.4): what waits goes up to the stack.
func (n *NAPI) groNormalList() {
	if n.rxCount == 0 {
		return
	}
	sd := n.sd
	n.rxCount = 0
	if n.rps != nil {
		sd.steer(n.rps, &n.rxList)
	}
	sd.core.Look() // counted at its instant, also if an interrupt comes first
	for s := n.rxList.Front(); s != nil; s = s.Next() {
		sd.count(s)
	}
	sd.stack.ReceiveList(sd.core, &n.rxList)
}

// groNormalOne is gro_normal_one (v5.4): s joins the list, which goes up when its count
// reaches net.core.gro_normal_batch.
func (n *NAPI) groNormalOne(s *model.SKB, count int) {
	n.rxList.PushBack(s)
	n.rxCount += count
	if n.rxCount >= n.sd.cfg.GRONormalBatch {
		n.groNormalList()
	}
}

// deliverOne passes a packet up by itself: all of them up to v5.3, those of
// napi_gro_receive up to v5.4. Superframes went this way up to v5.4.17 (c80794323e82), and
// overtook what waited in the list.
func deliverOne(n *NAPI, s skb) {
	n.sd.NetifReceiveSKB(n.rps, s)
}

// listBySKB lists a packet or superframe as one: since v5.4 (323ebb61e32b) for
// napi_gro_frags, v5.4.18 for superframes, v5.5 (6570bc79c0df) to v5.10 for all, and still so for packets that GRO does not
// keep, even if the hardware has merged them.
func listBySKB(n *NAPI, s skb) { n.groNormalOne(s, 1) }

// listBySegments lists a superframe with the count of its segments: since v5.11
// (8dc1c444df19) a large one goes up at once, and takes along what waits before it.
func listBySegments(n *NAPI, s skb) { n.groNormalOne(s, s.Segs) }

// listToTheEnd lists without a limit: everything waits for the end of the poll. No kernel
// does so; it shows what gro_normal_batch is good for.
func listToTheEnd(n *NAPI, s skb) {
	n.rxList.PushBack(s)
	n.rxCount++
}

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

// traceGROExit emits napi_gro_receive_exit or napi_gro_frags_exit (since v5.0).
func (n *NAPI) traceGROExit(p trace.Point, result gro.Result) {
	c := n.Core()
	if c.Machine().Trace == nil {
		return
	}
	c.Look()
	if c.Recording() {
		e := c.Event(p)
		e.A = int64(result)
		c.Emit(e)
	}
}
