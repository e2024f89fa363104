package gro_test

import (
	"pgregory.net/rapid"

	"napisim/model"
	"napisim/sim"
	"napisim/softirq/gro"
)

// This file draws the tables and the traffic that TestOracle compares.

// seldom is true for a sixth of the draws if calm is 1, a thirtieth if it is 2, and
// so on. It asks for the greatest number because rapid prefers small ones.
func seldom(t *rapid.T, calm int, label string) bool {
	for range calm {
		if rapid.IntRange(0, 5).Draw(t, label) != 5 {
			return false
		}
	}
	return true
}

// drawConfig varies all that a Config may say, with limits that are reached soon.
func drawConfig(t *rapid.T) gro.Config {
	c := gro.Config{
		Buckets:      rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "buckets"),
		MaxSKBs:      rapid.IntRange(1, 8).Draw(t, "max skbs"),
		MaxSize:      rapid.SampledFrom([]int{60, 500, 4000, 65536, 524280}).Draw(t, "max size"),
		MaxSizeIPv6:  rapid.SampledFrom([]int{80, 2000, 65536, 524280}).Draw(t, "max size IPv6"),
		MaxFrags:     rapid.SampledFrom([]int{17, 18, 45}).Draw(t, "max frags"),
		HeadTruesize: 1280,
		GSO:          gro.GSORule(rapid.IntRange(0, 2).Draw(t, "gso")),
		MatchRecycle: rapid.Bool().Draw(t, "match recycle"),
		MatchCWR:     rapid.Bool().Draw(t, "match cwr"),
		UDP:          gro.UDPRule(rapid.IntRange(0, 4).Draw(t, "udp")),
		Sockets:      tells{},

		FixedIDWithoutDF: rapid.Bool().Draw(t, "fixed id"),
	}
	c.FragList = c.UDP >= gro.UDPFragList && rapid.Bool().Draw(t, "rx-gro-list")
	c.UDPForward = c.UDP >= gro.UDPForward && rapid.Bool().Draw(t, "rx-udp-gro-forwarding")
	return c
}

// sender is a flow that mostly behaves and sometimes does what ends a superframe.
type sender struct {
	*flow
	mss    int32
	idStep uint16
	copied bool // headers are copied into a head of 1 KiB, the payload stays in pages
	calm   int  // how seldom something is odd about a packet
}

func drawSenders(t *rapid.T, calm int) []*sender {
	senders := make([]*sender, rapid.IntRange(1, 12).Draw(t, "flows"))
	hashes := rapid.SampledFrom([]uint32{1, 3, 1 << 31}).Draw(t, "hashes")
	for i := range senders {
		f := newFlow(model.FlowID(i))
		f.frame.Hash = uint32(i) % hashes
		f.frame.IPID = 65530
		f.frame.IPv6 = rapid.IntRange(0, 3).Draw(t, "ipv6") == 3
		f.frame.NoDF = rapid.IntRange(0, 3).Draw(t, "no df") == 3
		if rapid.Bool().Draw(t, "udp") {
			f.frame.Proto, f.frame.Flags, f.frame.Seq = model.UDP, 0, 0
		}
		senders[i] = &sender{
			flow:   f,
			mss:    rapid.SampledFrom([]int32{1, 90, 100, mss}).Draw(t, "mss"),
			idStep: uint16(rapid.IntRange(0, 1).Draw(t, "id step")),
			copied: rapid.Bool().Draw(t, "copied"),
			calm:   calm,
		}
	}
	return senders
}

// oddities are what a sender does now and then, to this packet or from the next on.
var oddities = []func(f *sender, s *model.SKB){
	func(_ *sender, s *model.SKB) { s.Frame.Flags |= model.PSH },
	func(_ *sender, s *model.SKB) { s.Frame.Flags |= model.FIN },
	func(_ *sender, s *model.SKB) { s.Frame.Flags |= model.CWR },
	func(_ *sender, s *model.SKB) { s.Frame.Flags |= model.URG },
	func(_ *sender, s *model.SKB) { s.Frame.Flags |= model.SYN },
	func(_ *sender, s *model.SKB) { s.Frame.Flags |= model.RST },
	func(f *sender, _ *model.SKB) { f.frame.Flags ^= model.ECE },
	func(f *sender, _ *model.SKB) { f.frame.Window++ },
	func(f *sender, _ *model.SKB) { f.frame.Ack += 10 },
	func(f *sender, _ *model.SKB) { f.frame.TSVal++ },
	func(f *sender, _ *model.SKB) { f.frame.TSEcr++ },
	func(f *sender, _ *model.SKB) { f.frame.TTL ^= 1 },
	func(f *sender, _ *model.SKB) { f.frame.TOS ^= 3 },
	func(f *sender, _ *model.SKB) { f.frame.Seq += uint64(f.mss) },
	func(f *sender, _ *model.SKB) { f.frame.Seq -= uint64(f.mss) },
	func(f *sender, _ *model.SKB) { f.frame.IPID += 7 },
	func(f *sender, _ *model.SKB) { f.idStep ^= 1 },
	func(f *sender, _ *model.SKB) { f.frame.NoDF = !f.frame.NoDF },
	func(_ *sender, s *model.SKB) { s.Frame.NoCsum = true },
	func(_ *sender, s *model.SKB) { s.Frame.Proto ^= model.TCP ^ model.UDP },
	func(_ *sender, s *model.SKB) { s.Pages, s.Frags, s.Pool, s.Truesize = 0, 0, nil, s.Payload+768 },
	func(_ *sender, s *model.SKB) { s.Pages, s.Frags, s.Truesize = 0, 0, s.Payload+768 },
	func(_ *sender, s *model.SKB) { s.Frags, s.Truesize = 1, 1280+2048 },
	func(_ *sender, s *model.SKB) { s.Frags, s.Pages, s.Truesize = 2, 2, 1280+2048 },
	func(_ *sender, s *model.SKB) { s.Frags, s.Pages, s.Truesize = 2, 3, 256+3*2048 },
	func(_ *sender, s *model.SKB) { s.Pool = nil },
	func(_ *sender, s *model.SKB) { s.Frame.Hash ^= 16 },
}

// draw is the next packet of the sender. Arrivals number the packets of all flows.
func (f *sender) draw(t *rapid.T, number sim.Time) *model.SKB {
	f.frame.Arrival = number
	if !seldom(t, f.calm, "odd") {
		return f.next(1, f.mss)
	}
	kind := rapid.IntRange(-6, len(oddities)-1).Draw(t, "kind")
	switch kind {
	case -6:
		return f.next(1, 0)
	case -5:
		return f.next(1, max(1, f.mss-1))
	case -4:
		return f.next(1, f.mss+1)
	}
	s := f.next(rapid.IntRange(1, 4).Draw(t, "segments"), f.mss)
	switch {
	case kind >= 0:
		oddities[kind](f, s)
	case s.Segs > 1 && kind == -3:
		s.Payload--
		s.LastSeg--
	case s.Segs > 1 && kind == -2:
		s.Chained = 1
	}
	return s
}

// next is the next packet of n segments.
func (f *sender) next(n int, size int32) *model.SKB {
	id := f.frame.IPID
	s := f.superframe(n, size, 0)
	s.LastSeg = int(size)
	if f.copied {
		s.Frags, s.Truesize = s.Pages, 1280+n*2048
	}
	f.frame.IPID = id + uint16(n)*f.idStep
	return s
}
