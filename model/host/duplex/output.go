package duplex

import (
	"math"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/tcp/cong"
	"napisim/sim"
)

// maxTCPHeader is MAX_TCP_HEADER, what gso_max_size holds besides payload, and skbTruesize
// what an skb of the write queue is charged for without its data.
const (
	maxTCPHeader = 320
	skbTruesize  = 1280
	initCwnd     = 10
	firstSeq     = 1 // the SYN took number 0
	// limitOutput is net.ipv4.tcp_limit_output_bytes.
	limitOutput = 1 << 20
)

// An skb is one of the write queue.
type skb struct {
	seq    uint64
	n      int
	push   bool
	fin    bool
	sentAt sim.Time
}

func (k *skb) end() uint64 {
	if k.fin {
		return k.seq + uint64(k.n) + 1
	}
	return k.seq + uint64(k.n)
}

// sender is the send half of struct tcp_sock. Windows are in segments where Linux has them
// so.
type sender struct {
	mss     int
	tso     int
	queue   []skb // the first sent of them are out
	sent    int
	una     uint64
	nxt     uint64
	write   uint64 // write_seq
	pushed  uint64 // pushed_seq
	small   uint64 // snd_sml: end of the last small segment
	wndEnd  uint64
	wnd     int64
	maxWnd  int64
	gsoSegs int

	cwnd, cwndCnt, ssthresh int
	packetsOut              int
	usage                   usage
	grow                    openCubic
	cc                      cong.Control // for the end of slow start
	synAt                   sim.Time
	srtt, minRTT            sim.Time
	pacing                  int // sk_pacing_rate, see rate
	lastSent                sim.Time
	clock                   sim.Time // tcp_clock_cache: one look for all that is sent in one go

	wmemQueued, sndbuf int
	noSpace            bool
	touched            int // bytes of the writer's buffer that were read before
	frag               int // what is left of the page that data is copied to

	wmemAlloc   int // skbs that the driver has not freed
	throttled   bool
	tsqQueued   bool
	tsqDeferred bool
	tasklet     func()
}

// usage is what tcp_cwnd_validate keeps.
type usage struct {
	limited bool
	most    int
	seq     uint64
}

func (s *sender) init(cfg *Config) {
	s.mss, s.tso = cfg.Receiver.MSS, cfg.TSO
	s.una, s.nxt, s.write, s.pushed, s.small = firstSeq, firstSeq, firstSeq, firstSeq, firstSeq
	s.cwnd, s.ssthresh = initCwnd, math.MaxInt32
	s.gsoSegs = 1
	s.pacing = s.rate()
	s.sndbuf = 16384
	s.cc, _ = cong.New("cubic", s.mss) // the name is one of cong.Names
}

// established takes what the handshake has told.
func (s *sender) established(now sim.Time, wnd int64) {
	s.wnd, s.maxWnd = wnd, wnd
	s.wndEnd = s.una + uint64(wnd)
	if s.synAt > 0 {
		s.sample(now - s.synAt)
	}
	s.pacing = s.rate()
	s.sndbuf = max(s.sndbuf, s.sndbufExpand())
}

// sndbufExpand is tcp_sndbuf_expand.
func (s *sender) sndbufExpand() int {
	perMSS := s.mss + 12 + maxTCPHeader + model.SharedInfo
	size := 1
	for size < perMSS {
		size *= 2
	}
	return min(2*max(s.cwnd, initCwnd)*(size+model.SKBHead), 4<<20)
}

// unsent reports whether the write queue has something that was not sent.
func (s *sender) unsent() bool { return s.sent < len(s.queue) }

func (s *sender) head() *skb { return &s.queue[s.sent] }

func (s *sender) isTail() bool { return s.sent == len(s.queue)-1 }

// pcount is tcp_skb_pcount of n bytes.
func (s *sender) pcount(n int) int { return max((n+s.mss-1)/s.mss, 1) }

// sizeGoal is tcp_xmit_size_goal: what an skb may hold, half the largest window of the
// receiver at most.
func (s *sender) sizeGoal() int {
	if s.tso == 0 {
		return s.mss
	}
	most := s.tso - 1 - maxTCPHeader
	cutoff := int(s.maxWnd)
	if cutoff > 536 {
		cutoff /= 2
	}
	if cutoff > 0 && most > cutoff {
		most = max(cutoff, 68)
	}
	if goal := s.gsoSegs * s.mss; most < goal || most >= goal+s.mss {
		s.gsoSegs = most / s.mss
	}
	return max(s.gsoSegs*s.mss, s.mss)
}

// rate returns sk_pacing_rate in bytes per millisecond of 1024 us: twice a window per
// round trip in slow start, 1.2 times otherwise. It is set by each acknowledgement
// (tcp_update_pacing_rate).
func (s *sender) rate() int {
	if s.srtt == 0 {
		return math.MaxInt32
	}
	percent := 120
	if s.cwnd < s.ssthresh/2 {
		percent = 200
	}
	us := max(int64(s.srtt/sim.Microsecond), 1)
	return int(int64(s.mss) * int64(max(s.cwnd, s.packetsOut)) * int64(percent) * 10000 / us / 1024)
}

// maxSegs is tcp_tso_autosize.
func (s *sender) maxSegs() int {
	if s.tso == 0 {
		return 1
	}
	bytes := s.pacing
	if halvings := s.minRTT / (512 * sim.Microsecond); halvings < 32 {
		bytes += s.tso >> halvings
	}
	bytes = min(bytes, s.tso-1-maxTCPHeader)
	return max(bytes/s.mss, 2)
}

// cwndTest is tcp_cwnd_test: how many segments may leave, half a window at once.
func (s *sender) cwndTest() int {
	if s.packetsOut >= s.cwnd {
		return 0
	}
	return min(max(s.cwnd/2, 1), s.cwnd-s.packetsOut)
}

// nagleHolds is tcp_nagle_check: a small segment waits while an earlier small one is out.
func (s *sender) nagleHolds(partial, push bool) bool {
	return partial && !push && s.packetsOut > 0 && s.small > s.una && s.small <= s.nxt
}

// splitPoint is tcp_mss_split_point.
func (s *sender) splitPoint(k *skb, segs int, push bool) int {
	window := int(s.wndEnd - k.seq)
	most := s.mss * segs
	if most <= window && !s.isTail() {
		return most
	}
	needed := min(k.n, window)
	if most <= needed {
		return most
	}
	if partial := needed % s.mss; s.nagleHolds(partial != 0, push) {
		return needed - partial
	}
	return needed
}

// fragment is tso_fragment: the skb that is next keeps n bytes.
func (s *sender) fragment(n int) {
	k := s.head()
	rest := skb{seq: k.seq + uint64(n), n: k.n - n, push: k.push, fin: k.fin}
	k.n, k.push, k.fin = n, false, false
	s.queue = append(s.queue, skb{})
	copy(s.queue[s.sent+2:], s.queue[s.sent+1:])
	s.queue[s.sent+1] = rest
	s.wmemQueued += skbTruesize
}

// growHead is tcp_grow_skb (v6.10): the skb that is next takes up to want bytes from the
// one behind it, which goes when it is empty.
func (s *sender) growHead(want int) {
	if want <= 0 || s.isTail() {
		return
	}
	k, next := s.head(), &s.queue[s.sent+1]
	n := min(want, next.n)
	if k.fin || n == 0 {
		return
	}
	k.n += n
	next.n -= n
	next.seq += uint64(n)
	if next.n == 0 {
		k.push, k.fin = k.push || next.push, next.fin
		s.queue = append(s.queue[:s.sent+1], s.queue[s.sent+2:]...)
		s.wmemQueued -= skbTruesize
	}
}

// shouldDefer is tcp_tso_should_defer: a burst waits if an acknowledgement is near that
// lets a larger one go. limited tells that the congestion window is what it waits for.
func (s *sender) shouldDefer(now sim.Time, k *skb, maxSegs int) (wait, limited bool) {
	if now-s.lastSent > sim.Millisecond {
		return false, false
	}
	sendWin := int64(s.wndEnd - k.seq)
	congWin := int64(s.cwnd-s.packetsOut) * int64(s.mss)
	limit := min(sendWin, congWin)
	chunk := min(s.wnd, int64(s.cwnd)*int64(s.mss)) / 3
	switch {
	case limit >= int64(maxSegs)*int64(s.mss), !s.isTail() && limit >= int64(k.n), limit >= chunk, s.sent == 0,
		now-s.queue[0].sentAt < s.srtt/2:
		return false, false
	case congWin < sendWin && congWin <= int64(k.n):
		return true, true
	case congWin >= sendWin && sendWin <= int64(k.n):
		return true, false
	}
	return !k.fin, false
}

// smallQueueFull is tcp_small_queue_check.
func (s *sender) smallQueueFull(k *skb) bool {
	limit := min(max(2*(skbTruesize+k.n), s.pacing), limitOutput)
	if s.wmemAlloc <= limit || s.sent <= 1 {
		return false
	}
	s.throttled = true
	return true
}

// An xmit is one run of tcp_write_xmit.
type xmit struct {
	push, one bool
	maxSegs   int
	sent      int  // segments
	limited   bool // by the congestion window
}

// writeXmit is tcp_write_xmit: it sends what the windows let out, one skb only with one.
// push is TCP_NAGLE_PUSH or TCP_NAGLE_OFF. The socket is owned by the caller, or this is
// a softirq and it is not owned.
func (s *Sock) writeXmit(c *cpu.Core, push, one bool) {
	c.Look()
	n := &s.snd
	n.clock = c.Now()
	x := xmit{push: push, one: one, maxSegs: n.maxSegs()}
	for n.unsent() && s.mayLeave(c, &x) {
		x.sent += n.pcount(n.head().n)
		if one {
			c.MightResched() // memory for the copy may be waited for
		}
		s.transmit(c)
		c.Look()
		if one {
			break
		}
	}
	x.limited = x.limited || n.packetsOut >= n.cwnd
	if x.sent > 0 || x.limited {
		n.validate(x.limited)
	}
}

// mayLeave tests whether the skb that is next, or a part of it that is cut off, may be
// sent.
func (s *Sock) mayLeave(c *cpu.Core, x *xmit) bool {
	n := &s.snd
	quota := n.cwndTest()
	if quota == 0 {
		x.limited = true
		return false
	}
	segs := min(quota, x.maxSegs)
	if s.cfg.GrowSKB {
		before := len(n.queue)
		n.growHead(segs*n.mss - n.head().n)
		if len(n.queue) < before {
			s.env.Heads.On(c).FreeQueued()
		}
	}
	k := n.head()
	if k.end() > n.wndEnd && k.seq+uint64(min(k.n, n.mss)) > n.wndEnd {
		return false // tcp_snd_wnd_test
	}
	if n.pcount(k.n) == 1 {
		last := n.isTail() && !x.push
		if !k.fin && n.nagleHolds(k.n < n.mss, !last) {
			return false
		}
		return !n.smallQueueFull(k)
	}
	if !x.one {
		if wait, limited := n.shouldDefer(n.clock, k, x.maxSegs); wait {
			x.limited = x.limited || limited
			return false
		}
	}
	if limit := n.splitPoint(k, segs, x.push); limit <= 0 {
		return false
	} else if k.n > limit {
		s.allocSKB(c)
		n.fragment(limit)
	}
	return !n.smallQueueFull(n.head())
}

// validate is tcp_cwnd_validate.
func (s *sender) validate(limited bool) {
	u := &s.usage
	if s.una >= u.seq || limited || !u.limited && s.packetsOut > u.most {
		*u = usage{limited: limited, most: s.packetsOut, seq: s.nxt}
	}
}

// transmit is __tcp_transmit_skb of the skb that is next, and tcp_event_new_data_sent.
func (s *Sock) transmit(c *cpu.Core) {
	c.Spend(model.StageTCPXmit)
	c.BHDisable()
	now, n := c.Now(), &s.snd
	k := n.head()
	k.sentAt = n.clock
	segs := n.pcount(k.n)
	if n.packetsOut == 0 || k.n > 0 {
		s.rcv.DataSent(now)
	}
	p := &s.pkt
	*p = Packet{MSS: n.mss, Owner: s, Truesize: skbTruesize + k.n}
	s.rcv.BuildAck(now, &p.Segment)
	p.Seq, p.Payload = k.seq, int32(k.n)
	if k.n > 0 {
		p.Len = p.FrameLen(p.Payload)
	}
	if k.push || segs > 1 {
		p.Flags |= model.PSH
	}
	if k.fin {
		p.Flags |= model.FIN
	}
	n.lastSent = n.clock
	n.nxt = k.end()
	if k.n < segs*n.mss {
		n.small = k.end()
	}
	n.packetsOut += segs
	n.wmemAlloc += p.Truesize
	n.sent++
	s.out(c, p)
	c.BHEnable()
	c.SpendN(model.StageTCPSent, 2) // with the timers of retransmission and loss probe
}

// WFree is tcp_wfree: the driver has freed size bytes of truesize. The last of them bring
// a socket on that has held data back for it. A negative size charges the socket for the
// heads that cutting an skb has made.
func (s *Sock) WFree(c *cpu.Core, size int) {
	c.Look()
	n := &s.snd
	n.wmemAlloc -= size
	if size < 0 {
		return
	}
	if n.wmemAlloc >= skbTruesize && c.InKsoftirqd() || !n.throttled || n.tsqQueued || n.tasklet == nil {
		return
	}
	n.throttled, n.tsqQueued = false, true
	n.tasklet()
}

// tsq is tcp_tsq_handler.
func (s *Sock) tsq() {
	c := s.core
	c.Look()
	s.snd.tsqQueued = false
	if s.owned {
		s.snd.tsqDeferred = true
		return
	}
	s.writeXmit(c, s.cfg.NoDelay, false)
}
