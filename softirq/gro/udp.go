package gro

import "napisim/model"

// udpGROReceive is udp4_gro_receive with udp_gro_receive (for sockets v5.0): it finds out
// whether somebody wants the datagram aggregated, and how.
func (t *Table) udpGROReceive(list *groList, skb *groCB) int {
	found, wanted := false, false
	if t.cfg.UDP >= UDPSocket && t.cfg.Sockets != nil {
		found, wanted = t.cfg.Sockets.UDPSocket(skb.skb.Frame.Flow)
	}
	skb.fragList = t.cfg.FragList && !wanted
	if !wanted && !skb.fragList && (found || !t.cfg.UDPForward) {
		skb.flush = FlushProtocol
		return -1
	}
	return t.udpGROReceiveSegment(list, skb)
}

// udpGROReceiveSegment is udp_gro_receive_segment (v5.0). A datagram that it refuses
// outright completes nothing, and so overtakes what is held of its flow.
func (t *Table) udpGROReceiveSegment(list *groList, skb *groCB) int {
	n := skb.skb
	length := n.Payload
	switch {
	case n.Frame.NoCsum:
		skb.flush = FlushNoCsum
	case length == 0:
		skb.flush = FlushEmpty
	case int(n.Frame.Len) > model.EthernetHeader+n.Frame.Headers()+int(n.Frame.Payload):
		skb.flush = FlushPadded
	default:
		return t.udpGROMerge(list, skb, length)
	}
	return -1
}

// udpGROMerge is the loop of udp_gro_receive_segment. The first datagram that is shorter
// is merged and ends the superframe; a longer one ends it and starts the next.
func (t *Table) udpGROMerge(list *groList, skb *groCB, length int) int {
	found := tcpGROLookup(list) // ports are part of the FlowID
	if found < 0 {
		return -1
	}
	p := &list.held[found]
	mss := int(p.skb.Frame.Payload)
	switch {
	case p.fragList != skb.fragList:
		p.flush, skb.flush = FlushFragList, FlushFragList
		return found
	case length > mss:
		p.flush = FlushLonger
	case t.cfg.UDP >= UDPTCPFragList: // 5babae777c61; older kernels merged whatever the IP header said
		p.flush = t.inetGROFlush(p, &skb.skb.Frame)
	}
	if p.flush == FlushNone {
		if skb.fragList {
			p.flush = t.skbGROReceiveList(p, skb)
		} else {
			p.flush = t.skbGROReceive(p, skb)
		}
	}
	switch {
	case p.flush != FlushNone:
	case length < mss:
		p.flush = FlushShort
	case p.skb.Segs >= maxDatagrams:
		p.flush = FlushCount
	default:
		return -1
	}
	return found
}
