package host

import (
	"napisim/model"
	"napisim/model/cpu"
)

// GRO reports whether the socket asked for merged datagrams (UDP_GRO).
func (s *UDPSock) GRO() bool { return s.cfg.GRO }

// unexpectedGSO is udp_unexpected_gso: chained datagrams (SKB_GSO_FRAGLIST) have to come
// apart at every socket, merged ones where UDP_GRO was not asked for.
func (s *UDPSock) unexpectedGSO(p *model.SKB) bool {
	return p.Segs > 1 && (p.FragList || !s.cfg.GRO)
}

// receiveSegments is udp_queue_rcv_skb for an unexpected superframe: each datagram is
// received by itself.
func (s *UDPSock) receiveSegments(c *cpu.Core, p *model.SKB) {
	c.Look() // it takes skbs from the pool that all cores share
	segments := udpRcvSegment(s.env, p)
	c.SpendN(model.StageUDPSegment, segments.Len())
	for d := segments.PopFront(); d != nil; d = segments.PopFront() {
		s.Receive(c, d)
	}
}

// udpRcvSegment is udp_rcv_segment, with skb_segment for merged and skb_segment_list for
// chained datagrams: it takes p apart into its datagrams, in their order. What p stood
// for in memory is dealt out evenly, as the buffers of datagrams of one size are equal.
func udpRcvSegment(env *Env, p *model.SKB) (segments model.SKBList) {
	n := p.Segs
	whole := *p
	for i := range n {
		d := p
		if i > 0 {
			d = env.SKBs.Get()
			d.Dev, d.Frame, d.Pool, d.CsumNone = whole.Dev, whole.Frame, whole.Pool, whole.CsumNone
			d.Head, d.NAPIID, d.AllocCPU = whole.Head, whole.NAPIID, whole.AllocCPU
			d.Arrivals = append(d.Arrivals, whole.Arrivals[i])
			d.Frame.Arrival = whole.Arrivals[i]
			d.Frame.IPID += uint16(i)
		}
		d.Segs, d.Chained, d.FragList = 1, 0, false
		d.Payload = int(whole.Frame.Payload)
		if i == n-1 {
			d.Payload = whole.LastSeg
			d.Frame.Len = max(d.Frame.Len-d.Frame.Payload+int32(whole.LastSeg), model.MinFrame)
			d.Frame.Payload = int32(whole.LastSeg)
		}
		d.LastSeg = d.Payload
		d.Truesize = share(whole.Truesize, n, i)
		d.Pages, d.Frags = share(whole.Pages, n, i), min(whole.Frags, 1)
		segments.PushBack(d)
	}
	p.Arrivals = p.Arrivals[:1]
	return segments
}

// share is the i-th of n parts of total, the larger ones first.
func share(total, n, i int) int {
	part := total / n
	if i < total%n {
		part++
	}
	return part
}
