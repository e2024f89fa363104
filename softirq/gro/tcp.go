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

// tcpGROReceive is tcp_gro_receive (all versions). A held skb of the flow either takes the packet
// or is completed, so that nothing of a flow overtakes what is held of it.
//
// Of what tcp4_gro_receive does before only the choice of fraglist GRO has an effect
// here: checksums are right.
func (t *Table) tcpGROReceive(list *groList, skb *groCB) int {
	n := skb.skb
	flags, length, super := n.Frame.Flags, n.Payload, n.Segs > 1
	whole := n.Segs * int(n.Frame.Payload)
	mss := 1

	var p *groCB
	var flush Reason
	found := tcpGROLookup(list)
	t.tcpCheckFragList(list, found, skb)
	if found >= 0 {
		p = &list.held[found]
		flush = t.tcpGROFlush(p, n)
		switch {
		case flush != FlushNone:
		case !p.fragList:
			flush = t.skbGROReceive(p, skb)
		case flags != p.skb.Frame.Flags:
			flush = FlushFlags
		case p.skb.Segs >= maxDatagrams:
			flush = FlushCount
		default:
			flush = t.skbGROReceiveList(p, skb)
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

// tcpCheckFragList is tcp4_check_fraglist_gro (v6.10): what no local connection takes is
// chained, not merged, if the device has rx-gro-list. The first segment decides for those
// that follow.
func (t *Table) tcpCheckFragList(list *groList, found int, skb *groCB) {
	switch {
	case !t.cfg.FragList || t.cfg.UDP < UDPTCPFragList:
	case found >= 0:
		skb.fragList = list.held[found].fragList
	default:
		skb.fragList = t.cfg.Sockets == nil || !t.cfg.Sockets.TCPEstablished(skb.skb.Frame.Flow)
	}
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
	if flush := t.inetGROFlush(p, th); flush != FlushNone {
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
