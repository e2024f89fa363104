package gro

import (
	"fmt"

	"napisim/model"
)

// skbGROReceive is skb_gro_receive (all versions): it appends the packet to p, unless p would get
// too big. The payload moves as page fragments if it lies in pages and the append
// target has room for them; otherwise the packet's own skb is chained and becomes
// the target.
func (t *Table) skbGROReceive(p, skb *groCB) Reason {
	s, n := p.skb, skb.skb
	switch {
	case t.recycleDiffers(s, n):
		return FlushRecycle
	case s.Frame.Headers()+s.Payload+n.Payload >= t.maxSize(&s.Frame):
		return FlushTooBig
	case skb.flush != FlushNone:
		return skb.flush
	}

	var delta int // what p is charged: the packet's truesize without what is freed now
	headFrag := n.Pages > n.Frags
	switch {
	case !headFrag && n.Frags > 0 && p.lastFrags+n.Frags <= t.cfg.MaxFrags:
		p.lastFrags += n.Frags
		delta = n.Truesize - t.cfg.HeadTruesize
		skb.free = true
	case headFrag && p.lastFrags+1+n.Frags <= t.cfg.MaxFrags:
		p.lastFrags += 1 + n.Frags
		delta = n.Truesize - model.SKBHead
		skb.free = true
	default:
		p.lastFrags = n.Frags
		delta = n.Truesize
		s.Chained++
	}
	if delta < 0 {
		panic(fmt.Sprintf("gro: flow %d at %v: truesize %d is less than the skb's head", n.Frame.Flow, n.Frame.Arrival, n.Truesize))
	}
	if s.Chained == 0 {
		s.Frags = p.lastFrags
	}
	t.stats.Merged.Add(int64(n.Segs))
	move(s, n, delta)
	skb.sameFlow = true
	return FlushNone
}

// maxSize is the limit of superframes that begin with this frame.
func (t *Table) maxSize(f *model.Frame) int {
	size := t.cfg.MaxSize
	if f.IPv6 {
		size = t.cfg.MaxSizeIPv6
	}
	if f.Proto != model.TCP {
		size = min(size, legacyMaxSize)
	}
	return size
}

// skbGROReceiveList is skb_gro_receive_list (v5.6; in net/core/gro.c since v6.10): it
// chains the packet to p as it is, headers included. The limit counts the headers of
// both. One owner stands for the pages of all, where the kernel's skbs know their own.
func (t *Table) skbGROReceiveList(p, skb *groCB) Reason {
	s, n := p.skb, skb.skb
	switch {
	case s.Pool != n.Pool && s.Pages > 0 && n.Pages > 0:
		return FlushRecycle
	case s.Frame.Headers()+s.Payload+n.Frame.Headers()+n.Payload >= legacyMaxSize:
		return FlushTooBig
	case skb.flush != FlushNone:
		return skb.flush
	}
	s.FragList = true
	s.Chained++
	t.stats.Merged.Add(int64(n.Segs))
	move(s, n, n.Truesize)
	skb.sameFlow = true
	return FlushNone
}

// recycleDiffers reports whether the pages of two skbs must not be mixed
// (pp_recycle), which would end with pages of one owner returned to the other.
func (t *Table) recycleDiffers(s, n *model.SKB) bool {
	if s.Pool == n.Pool {
		return false
	}
	return t.cfg.MatchRecycle || s.Pages > 0 && n.Pages > 0
}

// move makes all that n stands for part of s, which is charged delta bytes of its
// truesize. What is left in n is an empty descriptor.
func move(s, n *model.SKB, delta int) {
	s.LastSeg = n.Payload - (n.Segs-1)*int(n.Frame.Payload)
	s.Payload += n.Payload
	s.Segs += n.Segs
	s.Truesize += delta
	if n.Pages > 0 {
		s.Pages += n.Pages
		s.Pool = n.Pool
	}
	s.Arrivals = append(s.Arrivals, n.Arrivals...)

	n.Payload, n.LastSeg, n.Segs = 0, 0, 0
	n.Truesize -= delta
	n.Pages, n.Pool, n.Frags = 0, nil, 0
	n.Arrivals = n.Arrivals[:0]
}
