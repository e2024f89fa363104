package tcp

import (
	"napisim/model"
	"napisim/sim"
)

// memory is the part of a socket that says how much may be queued and announced.
// Window sizes are int64, as the sums with sequence numbers are.
type memory struct {
	rmem      int   // sk_rmem_alloc
	rcvbuf    int   // sk_rcvbuf
	locked    bool  // SO_RCVBUF was set
	backlog   int   // sk_backlog.len
	ratio     int   // scaling_ratio; 0 for tcp_adv_win_scale
	adv       int   // tcp_adv_win_scale
	rcvWnd    int64 // window announced last, counted from ackState.wup
	clamp     int64 // window_clamp
	ssthresh  int64 // rcv_ssthresh: the window that is safe for the segments seen
	scale     uint  // rcv_wscale
	scaleUnit int64
	collapsed int // payload collapsed since the present skb came
}

// initMemory sets buffer and windows as tcp_select_initial_window and
// tcp_init_buffer_space do for an accepted connection.
func (r *Receiver) initMemory() {
	c, m := &r.cfg, &r.memory
	m.rcvbuf, m.ratio, m.adv = c.Rmem[1], c.ScalingRatio, c.AdvWinScale
	if c.RcvBuf > 0 {
		m.rcvbuf, m.locked = max(2*min(c.RcvBuf, c.RmemMax), minRcvbuf), true
	}
	full := m.winFromSpace(m.rcvbuf)
	m.scale = windowScale(max(c.Rmem[2], c.RmemMax))
	m.scaleUnit = 1 << m.scale
	mss := int64(c.MSS)
	// The window of a SYN is not scaled, hence at most 65535, and a whole number
	// of segments: 65160 with the defaults.
	m.rcvWnd = min(full, 65535)
	if m.rcvWnd > mss {
		m.rcvWnd -= m.rcvWnd % mss
	}
	// One segment of the buffer is kept back for what arrives while it is full.
	m.clamp = full
	if full > 2*mss {
		m.clamp = max(full-mss, 2*mss)
	}
	m.ssthresh = min(m.rcvWnd, m.clamp)
}

// winFromSpace is tcp_win_from_space: the payload expected to fit into so much
// receive memory.
func (m *memory) winFromSpace(space int) int64 {
	switch {
	case m.ratio == 0 && m.adv > 0:
		return int64(space - space>>m.adv)
	case m.ratio == 0:
		return int64(space >> -m.adv)
	}
	return int64(space) * int64(m.ratio) >> 8
}

// spaceFromWin is its inverse, tcp_space_from_win.
func (m *memory) spaceFromWin(win int64) int64 {
	switch {
	case m.ratio == 0 && m.adv > 0:
		return win << m.adv / (1<<m.adv - 1)
	case m.ratio == 0:
		return win << -m.adv
	}
	return win << 8 / int64(m.ratio)
}

// space is tcp_space: what could be announced now.
func (m *memory) space() int64 { return m.winFromSpace(m.rcvbuf - m.backlog - m.rmem) }

// window is tcp_receive_window: what the peer may still send.
func (r *Receiver) window() int64 {
	return max(int64(r.ack.wup)+r.rcvWnd-int64(r.rcvNxt), 0)
}

// selectableWindow mirrors __tcp_select_window: the window to announce if an ACK
// were sent now.
//
// Linux has two forms. The one here rounds up to the unit of the window scale; it
// is used whenever a scale was negotiated, and with the default tcp_rmem one
// always is. Without a scale Linux keeps the window a multiple of the MSS instead.
func (r *Receiver) selectableWindow() int64 {
	mss := int64(r.ack.rcvMSS)
	free, allowed := r.space(), r.winFromSpace(r.rcvbuf)
	full := min(r.clamp, allowed)
	if mss = min(mss, full); mss <= 0 {
		return 0
	}
	if free < full/2 {
		r.ack.quick = 0
		if r.scale > 0 {
			free -= free % r.scaleUnit
		}
		// Too little to be worth a segment: silly window avoidance of the receiver.
		if free < allowed>>4 || free < mss {
			return 0
		}
	}
	free = min(free, r.ssthresh)
	if r.scale > 0 {
		return (free + r.scaleUnit - 1) &^ (r.scaleUnit - 1)
	}
	return r.unscaledWindow(free, full, mss)
}

// unscaledWindow is the end of selectableWindow for a connection without window
// scaling: move only in whole segments.
func (r *Receiver) unscaledWindow(free, full, mss int64) int64 {
	window := r.rcvWnd
	switch {
	case window <= free-mss || window > free:
		return free - free%mss
	case mss == full && free > window+full/2:
		return free
	}
	return window
}

// selectWindow mirrors tcp_select_window: it decides the window for an ACK that is
// being sent. The right edge never moves left.
func (r *Receiver) selectWindow() int64 {
	old := r.window()
	wnd := r.selectableWindow()
	if wnd < old {
		wnd = (old + r.scaleUnit - 1) &^ (r.scaleUnit - 1)
	}
	r.rcvWnd, r.ack.wup = wnd, r.rcvNxt
	// The header holds 16 bits.
	return min(wnd>>r.scale, 65535) << r.scale
}

// growWindow mirrors tcp_grow_window: segments whose truesize is mostly payload
// raise the window that may be announced. A segment whose overhead is larger does
// so only while the window is small against the largest buffer, since the buffer
// can still grow.
func (r *Receiver) growWindow(s *model.SKB) {
	room := min(r.clamp, r.space()) - r.ssthresh
	if room <= 0 {
		return
	}
	payload := int64(s.Payload)
	need := r.winFromSpace(r.adjusted(s))
	var incr int64
	if need <= payload {
		incr = 2 * int64(r.cfg.MSS)
	} else {
		need /= 2
		for wnd := r.winFromSpace(r.cfg.Rmem[2]) / 2; r.ssthresh <= wnd; wnd /= 2 {
			if need <= payload {
				incr = 2 * int64(r.ack.rcvMSS)
				break
			}
			need /= 2
		}
	}
	if incr > 0 {
		r.ssthresh += min(room, max(incr, 2*payload))
		// The sender learns of the larger window at once.
		r.ack.quick |= 1
	}
}

// adjusted mirrors truesize_adjust: the truesize of an skb without what goes when it is
// merged into another one.
func (r *Receiver) adjusted(s *model.SKB) int {
	rest := s.Truesize - model.SKBHead - s.Head
	if !r.cfg.GrowLessHead || s.Head == 0 || s.Frags == 0 || rest < s.Payload {
		return s.Truesize
	}
	return rest
}

// charge makes an skb's truesize count against the buffer.
func (r *Receiver) charge(s *model.SKB) { r.rmem += s.Truesize }

// tryRmem mirrors tcp_try_rmem_schedule: it reports whether one more skb may be
// queued. The test is on what is charged before, so one skb may overshoot.
func (r *Receiver) tryRmem(free *model.SKBList) bool {
	return r.rmem <= r.rcvbuf || r.prune(free)
}

// prune mirrors tcp_prune_queue: grow the buffer if it may grow, then copy what is
// queued into denser skbs, then drop what is out of order.
func (r *Receiver) prune(free *model.SKBList) bool {
	r.stats.PruneCalled++
	r.clampWindow()
	if r.rmem <= r.rcvbuf {
		return true
	}
	r.collapseOfo(free)
	r.collapseQueue(free)
	if r.rmem <= r.rcvbuf {
		return true
	}
	r.pruneOfo(free)
	if r.rmem <= r.rcvbuf {
		return true
	}
	r.stats.RcvPruned++
	return false
}

// clampWindow mirrors tcp_clamp_window.
func (r *Receiver) clampWindow() {
	r.ack.quick = 0
	if r.rcvbuf < r.cfg.Rmem[2] && !r.locked {
		r.rcvbuf = min(r.rmem, r.cfg.Rmem[2])
	}
	if r.rmem > r.rcvbuf {
		r.ssthresh = min(r.clamp, 2*int64(r.cfg.MSS))
	}
}

// Collapsing copies payload into skbs of one page: what fits beside skb_shared_info
// in 4096 bytes.
const (
	collapsedRoom     = 4096 - model.SharedInfo
	collapsedTruesize = 4096 + model.SKBHead
)

// denseTruesize returns the truesize of n bytes in collapsed skbs. The last takes
// what kmalloc gives for its size: the next power of two.
func denseTruesize(n int) int {
	t := n / collapsedRoom * collapsedTruesize
	if rest := n % collapsedRoom; rest > 0 {
		size := 512
		for size < rest+model.SharedInfo {
			size *= 2
		}
		t += size + model.SKBHead
	}
	return t
}

// bloated reports whether tcp_collapse would begin with this skb: its memory
// announces more window than it holds payload, or it overlaps what was before.
func (r *Receiver) bloated(e *entry) bool {
	return e.s.Consumed > 0 || r.winFromSpace(e.s.Truesize) > int64(e.s.Payload)
}

// collapseQueue mirrors tcp_collapse on the receive queue: from the first bloated
// skb on, everything is copied.
func (r *Receiver) collapseQueue(free *model.SKBList) {
	first := 0
	for first < r.queue.len() && (r.queue.at(first).done || !r.bloated(r.queue.at(first))) {
		first++
	}
	total := 0
	for i := first; i < r.queue.len(); i++ {
		total += r.queue.at(i).s.Payload - r.queue.at(i).s.Consumed
	}
	c := collapser{total: total, truesize: denseTruesize(total)}
	for i := first; i < r.queue.len(); i++ {
		r.collapse(r.queue.at(i), &c, free)
	}
}

// collapseOfo mirrors tcp_collapse_ofo_queue: each contiguous range of the
// out-of-order queue is copied if it holds more than one skb or more than a page.
func (r *Receiver) collapseOfo(free *model.SKBList) {
	for i := 0; i < len(r.ofo); {
		start, end := r.ofo[i].s.Frame.Seq, r.ofo[i].end()
		worth := r.bloated(&r.ofo[i])
		j := i + 1
		for ; j < len(r.ofo) && r.ofo[j].s.Frame.Seq <= end; j++ {
			end = r.ofo[j].end()
			worth = worth || r.bloated(&r.ofo[j])
		}
		if n := int(end - start); worth && (j-i > 1 || n >= collapsedRoom) {
			c := collapser{truesize: denseTruesize(n)}
			for k := i; k < j; k++ {
				c.total += r.ofo[k].s.Payload
			}
			for k := i; k < j; k++ {
				r.collapse(&r.ofo[k], &c, free)
			}
		}
		i = j
	}
}

// collapser shares the truesize of the dense copies out among the skbs copied.
type collapser struct{ total, truesize, seen int }

// collapse replaces one skb's memory by its part of the dense copies. The skb stays
// on its queue, since it knows its segments' arrivals; its pages and its old
// truesize leave on a carrier, which is freed like the skb that Linux frees here.
func (r *Receiver) collapse(e *entry, c *collapser, free *model.SKBList) {
	s := e.s
	n := s.Payload - s.Consumed
	before := c.truesize * c.seen / max(c.total, 1)
	c.seen += n
	share := c.truesize*c.seen/max(c.total, 1) - before
	carrier := r.pool.Get()
	carrier.Truesize, carrier.Pages, carrier.Pool = s.Truesize, s.Pages, s.Pool
	carrier.Frags, carrier.Chained, carrier.HeadFreed = s.Frags, s.Chained, s.HeadFreed
	free.PushBack(carrier)
	r.rmem += share - s.Truesize
	s.Truesize, s.Pages, s.Pool, s.Frags, s.Chained = share, 0, nil, 0, 0
	*e = newEntry(s)
	r.stats.TCPRcvCollapsed++
	r.collapsed += n
}

// pruneOfo mirrors tcp_prune_ofo_queue: skbs are dropped from the end, an eighth of
// the buffer at a time, until the rest fits. The sender is not told: what it
// believed to be SACKed is not, and only its timeout will find out.
func (r *Receiver) pruneOfo(free *model.SKBList) {
	if len(r.ofo) == 0 {
		return
	}
	r.stats.OfoPruned++
	goal := r.rcvbuf / 8
	for len(r.ofo) > 0 {
		last := len(r.ofo) - 1
		s := r.ofo[last].s
		r.ofo[last] = entry{}
		r.ofo = r.ofo[:last]
		goal -= s.Truesize
		r.lose(model.DropTCPOfo, s)
		r.release(s, free)
		if goal <= 0 {
			if r.rmem <= r.rcvbuf {
				break
			}
			goal = r.rcvbuf / 8
		}
	}
	r.sacks.reset()
}

// drsState is rcvq_space: the measurement of how fast the application reads.
type drsState struct {
	space int64 // bytes read in the last round trip
	seq   uint64
	time  sim.Time
}

// Established tells when the connection was established, as tcp_init_buffer_space does: the
// first measurement of how fast the application reads begins then. A receiver that is not
// told has been idle since long before.
func (r *Receiver) Established(now sim.Time) { r.drs.time = now }

// rcvSpaceAdjust mirrors tcp_rcv_space_adjust, dynamic right-sizing: once per
// round trip the buffer is raised to twice what the application has read in it,
// and more while that grows, so that a sender in slow start is not held back.
func (r *Receiver) rcvSpaceAdjust(now sim.Time) {
	d := &r.drs
	if r.rtt.rtt == 0 || now-d.time < r.rtt.rtt {
		return
	}
	copied := int64(r.copied - d.seq)
	if r.cfg.SubtractUnread {
		copied -= int64(r.rcvNxt - r.copied)
	}
	if copied > d.space {
		if r.cfg.ModerateRcvbuf && !r.locked {
			win := 2*copied + 16*int64(r.cfg.MSS)
			if !r.cfg.NoGrowthTerm {
				win += 2 * (win * (copied - d.space) / d.space)
			}
			space := min(r.spaceFromWin(win), int64(r.cfg.Rmem[2]))
			if int(space) > r.rcvbuf {
				r.rcvbuf = int(space)
				r.clamp = r.winFromSpace(r.rcvbuf)
			}
		}
		d.space = copied
	}
	d.seq, d.time = r.copied, now
}

// BacklogLimit returns how many bytes of truesize the backlog and the receive queue
// may hold together while the socket is locked by its user.
func (r *Receiver) BacklogLimit() int {
	const extra = 64 << 10
	switch r.cfg.Backlog {
	case BacklogSndbuf:
		return r.rcvbuf + r.cfg.SndBuf + extra
	case BacklogDoubleRcvbuf:
		return 2*r.rcvbuf + r.cfg.SndBuf/2 + extra
	}
	return r.rcvbuf + r.cfg.SndBuf/2 + extra
}
