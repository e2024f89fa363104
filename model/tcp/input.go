package tcp

import (
	"napisim/model"
	"napisim/sim"
)

// Verdict tells the caller of Receive what to do next.
type Verdict struct {
	// AckNow demands an ACK before anything else: BuildAck fills it. Without it the
	// caller looks at DelAckDeadline.
	AckNow bool
	// AckMayWait tells that this ACK may wait for the end of the backlog if the skb comes
	// from there (since v6.7): AckScheduled says then whether it is still owed.
	AckMayWait bool
	// DataReady demands a wakeup of the reader: sk_data_ready.
	DataReady bool
	// Coalesced tells that Linux would have merged the skb into the one before it
	// and freed its descriptor here.
	Coalesced bool
	// Merged is the number of skbs that were merged now into those before them: the one
	// received, or some that it has freed from the out-of-order queue. The caller charges
	// the free of their descriptors.
	Merged int
	// Collapsed is the payload in bytes that was copied into denser skbs to find
	// memory. The caller charges the copy.
	Collapsed int
	// Dropped is the number of segments of the skb that went no further, for the
	// reason Reason. Segments of other skbs that had to make room are not in it.
	Dropped int
	// Reason is valid if Dropped is not zero.
	Reason model.DropReason
}

// Receive takes over one skb that IP has delivered to the socket: tcp_rcv_established
// and tcp_data_queue. It puts on free what is to be freed now: s itself if it was a
// duplicate or refused, and others that had to make room. A superframe is one pass.
func (r *Receiver) Receive(now sim.Time, s *model.SKB, free *model.SKBList) Verdict {
	r.clock(now)
	r.stats.Segments += int64(s.Segs)
	r.stats.SKBs++
	if s.Payload == 0 {
		r.stats.Control += int64(s.Segs)
	}
	r.collapsed = 0
	merged := r.stats.TCPRcvCoalesce
	var v Verdict
	seq, end := s.Frame.Seq, s.EndSeq()
	switch {
	case end < r.ack.wup || seq > r.rcvNxt+uint64(r.window()):
		// tcp_sequence refuses it and tcp_send_dupack answers: a retransmission that
		// came too late, or a probe of a closed window.
		r.refuse(s, &v)
		free.PushBack(s)
		v.AckNow = true
		return v
	case seq <= r.ack.wup && s.Frame.TSVal > r.tsRecent:
		// RFC 7323 section 4.3: echo the timestamp of the earliest segment that is
		// not acknowledged, so that a delayed ACK counts as round-trip time.
		r.tsRecent = s.Frame.TSVal
	}
	r.rttFromTimestamp(now, s)
	switch {
	case s.Payload == 0 && s.Frame.Flags&model.FIN == 0:
		free.PushBack(s)
	case end <= r.rcvNxt:
		r.refuse(s, &v)
		free.PushBack(s)
	case r.window() == 0, seq >= r.rcvNxt+uint64(r.window()):
		if r.window() == 0 {
			r.stats.TCPZeroWindowDrop++
		}
		r.refuse(s, &v)
		free.PushBack(s)
	case seq <= r.rcvNxt:
		r.inOrder(now, s, free, &v)
	default:
		r.outOfOrder(s, free, &v)
	}
	v.AckNow, v.AckMayWait = r.ackDue(now)
	v.Collapsed = r.collapsed
	v.Merged = int(r.stats.TCPRcvCoalesce - merged)
	return v
}

// refuse counts a segment outside of the window and asks for an ACK that tells the
// sender where the window is, with a DSACK if the data was there before.
func (r *Receiver) refuse(s *model.SKB, v *Verdict) {
	r.ack.enterQuick(r.rcvWnd)
	r.ack.scheduled = true
	if s.Payload == 0 {
		return
	}
	reason := model.DropTCPWindow
	if s.EndSeq() <= r.rcvNxt {
		reason = model.DropTCPOld
		r.stats.TCPDSACKOldSent++
		r.sacks.setDup(s.Frame.Seq, s.EndSeq())
	}
	r.refuseFor(reason, s, v)
}

// refuseFor counts all segments of an skb that was just received as lost.
func (r *Receiver) refuseFor(reason model.DropReason, s *model.SKB, v *Verdict) {
	v.Dropped, v.Reason = r.lose(reason, s), reason
}

// lose counts the segments of an skb that goes no further; a bare FIN has none.
func (r *Receiver) lose(reason model.DropReason, s *model.SKB) int {
	n := payloadSegs(s)
	r.stats.Lost.Add(reason, n)
	return n
}

// inOrder queues an skb that begins at or before RCV.NXT and ends after it.
func (r *Receiver) inOrder(now sim.Time, s *model.SKB, free *model.SKBList, v *Verdict) {
	if s.Frame.Seq < r.rcvNxt {
		r.stats.TCPDSACKOldSent++
		r.sacks.setDup(s.Frame.Seq, r.rcvNxt)
	}
	// With an empty queue this never fails: all that is charged is out of order and
	// can be dropped. So also a buffer smaller than one superframe passes data.
	if !r.tryRmem(free) {
		r.stats.TCPRcvQDrop++
		r.refuseFor(model.DropTCPRcvQ, s, v)
		v.DataReady = r.dataReady()
		free.PushBack(s)
		return
	}
	v.Coalesced = r.queueRcv(newEntry(s))
	if s.Payload > 0 {
		r.eventDataRecv(now, s)
	} else {
		r.ack.scheduled = true
	}
	if len(r.ofo) > 0 {
		r.ofoQueue(free)
		if len(r.ofo) == 0 {
			// RFC 5681 section 4.2: the last gap is filled, tell the sender at once.
			r.ack.now = true
		}
		r.sacks.remove(r.rcvNxt, len(r.ofo) == 0)
	}
	v.DataReady = r.dataReady()
}

// queueRcv appends an skb that has not been charged yet: tcp_queue_rcv.
func (r *Receiver) queueRcv(e entry) (coalesced bool) {
	s := e.s
	if b := r.queue.back(); b != nil {
		var saved int
		if saved, coalesced = e.join(b, r.cfg.pagedHead()); coalesced {
			s.Truesize -= saved
			r.stats.TCPRcvCoalesce++
		}
	}
	r.charge(s)
	r.advance(e)
	return coalesced
}

// advance puts an entry at the end of the receive queue and moves RCV.NXT. What
// the skb repeats of earlier data is marked as read: a reader skips it.
func (r *Receiver) advance(e entry) {
	s := e.s
	s.Consumed = int(r.rcvNxt - s.Frame.Seq)
	if s.Consumed > 0 && s.Payload > 0 {
		r.stats.Lost.Add(model.DropTCPOld, endedBy(s, s.Consumed))
	}
	r.stats.BytesQueued += int64(s.Payload - s.Consumed)
	r.rcvNxt = s.EndSeq()
	r.fin = r.fin || s.Frame.Flags&model.FIN != 0
	r.queue.push(e)
}

// dataReady mirrors tcp_data_ready: wake the reader at SO_RCVLOWAT, and earlier if
// waiting for more would fill the buffer or close the window.
func (r *Receiver) dataReady() bool {
	n := r.Readable()
	return n >= r.cfg.RcvLowat || r.fin ||
		n > 0 && (r.rmem > r.rcvbuf-r.rcvbuf/8 || r.window() <= int64(r.ack.rcvMSS))
}

// ofoQueue mirrors tcp_ofo_queue: what RCV.NXT has reached moves to the receive
// queue.
func (r *Receiver) ofoQueue(free *model.SKBList) {
	n := 0
	for ; n < len(r.ofo) && r.ofo[n].s.Frame.Seq <= r.rcvNxt; n++ {
		e := r.ofo[n]
		if e.s.Frame.Seq < r.rcvNxt {
			r.dupOfo(e.s.Frame.Seq, min(e.end(), r.rcvNxt), true)
		}
		if e.end() <= r.rcvNxt {
			r.lose(model.DropTCPOld, e.s)
			r.release(e.s, free)
			continue
		}
		if !e.joined || r.queue.back().end() != e.s.Frame.Seq {
			e.joined = false
			if saved, ok := e.join(r.queue.back(), r.cfg.pagedHead()); ok {
				e.s.Truesize -= saved
				r.rmem -= saved
				r.stats.TCPRcvCoalesce++
			}
		}
		r.advance(e)
	}
	clear(r.ofo[:n])
	r.ofo = append(r.ofo[:0], r.ofo[n:]...)
}

// outOfOrder mirrors tcp_data_queue_ofo.
func (r *Receiver) outOfOrder(s *model.SKB, free *model.SKBList, v *Verdict) {
	if !r.tryRmem(free) {
		r.stats.TCPOFODrop++
		r.refuseFor(model.DropTCPRcvQ, s, v)
		v.DataReady = r.dataReady()
		free.PushBack(s)
		return
	}
	r.ack.scheduled = true
	r.stats.TCPOFOQueue++
	seq, end := s.Frame.Seq, s.EndSeq()
	at := r.ofoSearch(seq)
	if at > 0 {
		if before := r.ofo[at-1].end(); end <= before {
			r.dupOfo(seq, end, false)
			r.stats.TCPOFOMerge++
			r.refuseFor(model.DropTCPOld, s, v)
			free.PushBack(s)
			r.sacks.add(seq, end)
			return
		} else if before > seq {
			r.dupOfo(seq, before, false)
		}
	}
	// r.ofo[at:to] are those that s makes redundant.
	to := at
	if at > 0 && r.ofo[at-1].s.Frame.Seq == seq {
		at--
	}
	for to < len(r.ofo) && r.ofo[to].end() <= end {
		to++
	}
	for _, e := range r.ofo[at:to] {
		r.dupOfo(e.s.Frame.Seq, e.end(), true)
		r.stats.TCPOFOMerge++
		r.lose(model.DropTCPOld, e.s)
		r.release(e.s, free)
	}
	if to < len(r.ofo) && r.ofo[to].s.Frame.Seq < end {
		r.dupOfo(r.ofo[to].s.Frame.Seq, end, true)
	}
	e := newEntry(s)
	if at > 0 {
		if saved, ok := e.join(&r.ofo[at-1], r.cfg.pagedHead()); ok {
			s.Truesize -= saved
			v.Coalesced = true
			r.stats.TCPRcvCoalesce++
		}
	}
	r.ofoReplace(at, to, e)
	if at+1 < len(r.ofo) && r.ofo[at+1].s.Frame.Seq != end {
		r.ofo[at+1].joined = false // what it was joined to has gone
	}
	r.charge(s)
	r.sacks.add(seq, end)
	r.growWindow(s)
}

// ofoSearch returns the index of the first out-of-order skb that begins after seq.
// Most arrive in their own order, so the end is tried first.
func (r *Receiver) ofoSearch(seq uint64) int {
	lo, hi := 0, len(r.ofo)
	if hi == 0 || r.ofo[hi-1].s.Frame.Seq <= seq {
		return hi
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if r.ofo[mid].s.Frame.Seq > seq {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// ofoReplace puts e in the place of r.ofo[at:to].
func (r *Receiver) ofoReplace(at, to int, e entry) {
	if at == to {
		r.ofo = append(r.ofo, entry{})
		copy(r.ofo[at+1:], r.ofo[at:])
		r.ofo[at] = e
		return
	}
	r.ofo[at] = e
	n := at + 1 + copy(r.ofo[at+1:], r.ofo[to:])
	clear(r.ofo[n:])
	r.ofo = r.ofo[:n]
}

// dupOfo reports a duplicate found in the out-of-order queue.
func (r *Receiver) dupOfo(seq, end uint64, extend bool) {
	r.stats.TCPDSACKOfoSent++
	if extend {
		r.sacks.extendDup(seq, end)
	} else {
		r.sacks.setDup(seq, end)
	}
}

// BacklogVerdict is what AddBacklog did with an skb.
type BacklogVerdict uint8

// The outcomes of AddBacklog.
const (
	// Backlogged: the skb was put on the list.
	Backlogged BacklogVerdict = iota
	// BacklogCoalesced: its data went into the last skb of the list; the skb is to
	// be freed.
	BacklogCoalesced
	// BacklogDropped: the limit was exceeded; the skb is to be freed.
	BacklogDropped
)

// AddBacklog mirrors tcp_add_backlog: an skb has arrived while the socket is locked
// by its user. The list is the caller's and so is the skb if it is put there;
// otherwise s is put on free. When the owner lets go, the caller gives every skb to
// Receive and calls BacklogDone.
func (r *Receiver) AddBacklog(list *model.SKBList, s *model.SKB, free *model.SKBList) BacklogVerdict {
	if tail := list.Back(); tail != nil && r.cfg.BacklogCoalesce && r.coalesceBacklog(tail, s) {
		free.PushBack(s)
		return BacklogCoalesced
	}
	if r.backlog+r.rmem > r.BacklogLimit() {
		r.stats.TCPBacklogDrop++
		r.stats.Segments += int64(s.Segs)
		r.stats.SKBs++
		r.stats.Lost.Add(model.DropTCPBacklog, s.Segs)
		free.PushBack(s)
		return BacklogDropped
	}
	r.backlog += s.Truesize
	list.PushBack(s)
	return Backlogged
}

// BacklogDone tells that the backlog has been worked off. Until then also the skbs
// that Receive has already had count against the limit, as in __release_sock, so
// that a fast sender cannot keep the owner there for ever.
func (r *Receiver) BacklogDone() { r.backlog = 0 }

// coalesceBacklog merges s into the last skb of the backlog where Linux does:
// contiguous, with the same timestamps, and within the fragments of one skb. Here
// the skbs really become one, since they go through Receive as one.
func (r *Receiver) coalesceBacklog(tail, s *model.SKB) bool {
	const refuse = model.SYN | model.RST | model.URG | model.FIN
	mss := tail.Frame.Payload
	if s.Payload == 0 || tail.EndSeq() != s.Frame.Seq || (tail.Frame.Flags|s.Frame.Flags)&refuse != 0 ||
		tail.Frame.TSVal != s.Frame.TSVal || tail.Frame.TSEcr != s.Frame.TSEcr || tail.Frame.TOS != s.Frame.TOS ||
		tail.Pool != s.Pool || tail.LastSeg != int(mss) || s.Frame.Payload > mss || s.Segs > 1 && s.Frame.Payload != mss {
		return false
	}
	to, from := newEntry(tail), newEntry(s)
	saved, ok := from.join(&to, r.cfg.pagedHead())
	if !ok {
		return false
	}
	tail.Segs += s.Segs
	tail.Payload += s.Payload
	tail.LastSeg = s.LastSeg
	tail.Truesize += s.Truesize - saved
	tail.Pages += s.Pages
	tail.Frags = from.frags
	tail.Frame.Flags |= s.Frame.Flags
	tail.Arrivals = append(tail.Arrivals, s.Arrivals...)
	r.backlog += s.Truesize - saved
	s.Pages, s.Pool, s.Segs, s.Payload = 0, nil, 0, 0
	s.HeadFreed = false // its descriptor is freed by the caller
	r.stats.TCPBacklogCoalesce++
	return true
}
