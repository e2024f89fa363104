package gro

import (
	"cmp"

	"napisim/model"
)

// tcpGROLookup is tcp_gro_lookup: the held skb of the packet's flow, or -1. The
// ports are part of the FlowID, which the network step compared.
func tcpGROLookup(list *groList) int {
	for i := range list.held {
		if list.held[i].sameFlow {
			return i
		}
	}
	return -1
}

// tcpGROReceive is tcp_gro_receive. A held skb of the flow either takes the packet
// or is completed, so that nothing of a flow overtakes what is held of it.
//
// What tcp4_gro_receive does before has no effect here: checksums are right, and
// fraglist GRO (NETIF_F_GRO_FRAGLIST, off by default) is not modelled.
func (t *Table) tcpGROReceive(list *groList, skb *groCB) int {
	n := skb.skb
	flags, length, super := n.Frame.Flags, n.Payload, n.Segs > 1
	whole := n.Segs * int(n.Frame.Payload)
	mss := 1

	var p *groCB
	var flush Reason
	found := tcpGROLookup(list)
	if found >= 0 {
		p = &list.held[found]
		flush = t.tcpGROFlush(p, n)
		if flush == FlushNone {
			flush = t.skbGROReceive(p, skb)
		}
		if flush == FlushNone {
			mss = int(p.skb.Frame.Payload)
			p.skb.Frame.Flags |= flags & (model.FIN | model.PSH)
		}
	}

	// A segment that is not full ends the burst of its sender, as PSH says outright.
	end := FlushNone
	switch {
	case length == 0:
		end = FlushEmpty
	case super && length != whole, !super && length < mss:
		end = FlushShort
	case flags&(model.URG|model.PSH|model.RST|model.SYN|model.FIN) != 0:
		end = FlushPush
	}
	skb.flush = cmp.Or(skb.flush, end)
	if p != nil && (!skb.sameFlow || end != FlushNone) {
		p.flush = cmp.Or(flush, end)
		return found
	}
	return -1
}

// tcpGROFlush is the first half of tcp_gro_receive: everything in the headers of n
// that keeps it from being merged into p. The word that holds the flags holds the
// window too, so a changed window ends a superframe as a changed flag does; the
// kernel compares it as it stands in the header, unscaled.
func (t *Table) tcpGROFlush(p *groCB, n *model.SKB) Reason {
	ignored := model.FIN | model.PSH
	if !t.cfg.MatchCWR {
		ignored |= model.CWR
	}
	th, th2 := &n.Frame, &p.skb.Frame
	switch {
	case th.Flags&model.CWR != 0, (th.Flags^th2.Flags)&^ignored != 0:
		return FlushFlags
	case th.Window != th2.Window:
		return FlushWindow
	case th.Ack != th2.Ack:
		return FlushAck
	case th.TSVal != th2.TSVal, th.TSEcr != th2.TSEcr:
		return FlushOptions
	}
	if flush := inetGROFlush(p, th); flush != FlushNone {
		return flush
	}
	mss := th2.Payload
	switch {
	case n.Payload == 0:
		return FlushEmpty
	case n.Segs > 1 && th.Payload != mss, n.Segs == 1 && n.Payload > int(mss):
		return FlushLonger
	case th.Seq != th2.Seq+uint64(p.skb.Payload):
		return FlushSequence
	}
	return FlushNone
}
