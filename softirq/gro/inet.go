package gro

import "napisim/model"

// An offload is the gro_receive callback of a transport protocol. It returns the
// index of the held skb that has to be completed now, with the reason in its flush,
// or -1. It merges the packet by skbGROReceive, and says in the packet's flush if it
// must not be held either.
type offload func(t *Table, list *groList, skb *groCB) int

// inetOffloads is inet_offloads. A protocol without an entry is never aggregated.
var inetOffloads = [...]offload{
	model.UDP: (*Table).udpGROReceive,
	model.TCP: (*Table).tcpGROReceive,
}

// inetGROReceive is inet_gro_receive and ipv6_gro_receive. Their tests of the header
// itself always pass here, but for that of the total length, which refuses padded
// frames: udp_gro_receive repeats it, and TCP headers with timestamps exceed the
// shortest frame.
func (t *Table) inetGROReceive(list *groList, skb *groCB) int {
	n := &skb.skb.Frame
	var ops offload
	if int(n.Proto) < len(inetOffloads) {
		ops = inetOffloads[n.Proto]
	}
	if ops == nil {
		skb.flush = FlushProtocol
		return -1
	}
	for i := range list.held {
		p := &list.held[i]
		if f := &p.skb.Frame; f.Proto != n.Proto || f.Flow != n.Flow || f.IPv6 != n.IPv6 {
			p.sameFlow = false
		}
	}
	return ops(t, list, skb)
}

// inetGROFlush is inet_gro_flush, and ipv6_gro_flush for IPv6: it tells whether the IP
// header of a packet keeps it from joining p. Up to v6.9 inet_gro_receive made these
// tests and left the answer to the transport step.
//
// The second packet decides whether the IP ID of a flow with DF counts segments or
// stays constant, the two ways in which senders fill it. Without DF an ID has to count:
// fragments need it (up to v6.18).
func (t *Table) inetGROFlush(p *groCB, n *model.Frame) Reason {
	first := &p.skb.Frame
	switch {
	case n.TTL != first.TTL:
		return FlushTTL
	case n.TOS != first.TOS:
		return FlushTOS
	case n.IPv6:
		return FlushNone
	case n.NoDF != first.NoDF:
		return FlushDF
	}
	offset := n.IPID - first.IPID
	if p.skb.Segs == 1 && offset == 0 && (!n.NoDF || t.cfg.FixedIDWithoutDF) {
		p.fixedID = true
	}
	expected := uint16(p.skb.Segs)
	if p.fixedID {
		expected = 0
	}
	if offset != expected {
		return FlushIPID
	}
	return FlushNone
}
