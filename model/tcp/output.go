package tcp

import (
	"napisim/model"
	"napisim/sim"
)

// tsoOverhead is what gso_max_size holds besides payload: MAX_TCP_HEADER, and one
// byte to stay below it.
const tsoOverhead = 320 + 1

// deferLimit is how old the last burst may be for the next to be put off.
const deferLimit = sim.Millisecond

// usage remembers, for one round trip, whether the congestion window was used up.
// Only then may it grow: RFC 2861 and tcp_cwnd_validate.
type usage struct {
	limited bool
	maxPipe int64
	end     uint64 // the round trip ends when this is acknowledged
}

// outcome is what became of an attempt to send new data.
type outcome uint8

const (
	sent outcome = iota
	// blocked: there is no data, or the receiver's window does not let it out.
	blocked
	// full: the congestion window is used up.
	full
	// waiting: the burst was put off, or small queues hold it back.
	waiting
)

// output sends what the windows allow: NextSeg of RFC 6675 with its four rules in
// order. It mirrors tcp_write_xmit and tcp_xmit_retransmit_queue.
func (s *Sender) output() {
	now := s.eng.Now()
	if s.una == s.nxt && s.nxt < s.dataEnd && s.cfg.SlowStartAfterIdle {
		s.restartAfterIdle(now)
	}
	result := sent
	for result == sent {
		// Rule 1: what is lost and was not sent again.
		if s.state != open && s.room() >= s.mss && s.retransmitLost(now) {
			continue
		}
		// Rule 2: new data. The search for lost segments may have found some in flight.
		room := s.room()
		if result = s.sendNew(now, room); result != blocked {
			continue
		}
		if s.state == recovery && !s.cfg.RACK && room >= s.mss && s.retransmitRest(now) {
			result = sent
		}
	}
	s.validateUsage(result == full)
	s.arm(now, result)
	s.armProbe(now)
}

// room is what the congestion window leaves, negative if it has been reduced below
// what is in flight.
func (s *Sender) room() int64 { return s.cwnd - s.board.Pipe() }

// retransmitLost sends the first lost segment that was not sent again in this
// recovery, if there is one. After a lost retransmission HighRxt has fallen back, and
// some of what lies above it need not be sent again.
func (s *Sender) retransmitLost(now sim.Time) bool {
	for {
		h, ok := s.board.Hole(s.board.HighRxt())
		if !ok || !s.board.IsLost(h.Start) {
			return false
		}
		if end, ok := s.rack.inFlight(h.Start); ok {
			s.board.Retransmitted(min(end, h.End))
			continue
		}
		s.board.Retransmitted(s.retransmit(now, h.Start, h.End))
		if h.Start == s.una {
			// The ACK of this copy is the next that can move una.
			s.xmit.Set(now + s.rtt.Timeout())
		}
		return true
	}
}

// retransmitRest applies rules 3 and 4 of NextSeg. They keep the ACK clock going
// when nothing is known to be lost and no new data can be sent. RACK knows better
// what is lost, and Linux does without them.
func (s *Sender) retransmitRest(now sim.Time) bool {
	// Rule 3: something below the highest SACKed octet that is not yet known to be
	// lost.
	if h, ok := s.board.Hole(s.board.HighRxt()); ok && h.Start < s.board.HighSacked() {
		s.board.Retransmitted(s.retransmit(now, h.Start, h.End))
		return true
	}
	// Rule 4, the rescue retransmission: once per recovery the last segment, since
	// nothing behind it could tell by SACK that it was lost. A last hole below the
	// highest SACKed octet was sent again already.
	if !s.rescued {
		if h, ok := s.board.LastHole(); ok && h.Start >= s.board.HighSacked() {
			s.rescued = true
			s.retransmit(now, max(h.Start, h.End-min(h.End, uint64(s.mss))), h.End)
			return true
		}
	}
	return false
}

// retransmit sends one segment again, which begins at seq and ends at limit at the
// latest. It returns where it ends.
func (s *Sender) retransmit(now sim.Time, seq, limit uint64) uint64 {
	end := min(seq+uint64(s.mss), limit)
	s.rxtHigh, s.rxtStamp = max(s.rxtHigh, end), timestamp(now)
	s.stats.Retrans++
	if s.state == recovery {
		s.stats.FastRetrans++
	}
	s.transmit(now, seq, end, s.endsWrite(seq, end))
	s.rackResent(now, seq, end)
	return end
}

// sendNew sends one burst of new data if it may; room is what the congestion window
// leaves.
func (s *Sender) sendNew(now sim.Time, room int64) outcome {
	avail := int64(s.dataEnd - s.nxt)
	wnd := int64(s.wndEnd - s.nxt)
	least := min(avail, s.mss)
	switch {
	case avail == 0 || wnd < least:
		return blocked
	case room < least:
		return full
	}
	limit := min(room, wnd)
	most := s.burstSize()
	if s.shouldDefer(now, limit, min(most, avail)) {
		s.stats.Deferred++
		if room < wnd {
			return full
		}
		return waiting
	}
	// Half the congestion window at most, so that a window makes two bursts at
	// least and the second is clocked by the first.
	limit = min(limit, max(s.cwnd/2, s.mss))
	n := min(limit, most, avail)
	if n < avail {
		n -= n % s.mss
	}
	if s.throttled(now, n) {
		return waiting
	}
	s.sendBurst(now, n)
	return sent
}

// burstSize mirrors tcp_tso_autosize: a burst holds what is sent in a millisecond
// at the estimated rate, at least two segments, at most what TSO takes. On short
// paths, where a burst cannot do much harm, it is larger (since Linux 5.18): by the
// most that TSO takes, halved for each 512 us of the least round trip.
func (s *Sender) burstSize() int64 {
	most := max((int64(s.cfg.TSO)-tsoOverhead)/s.mss*s.mss, s.mss)
	if s.rtt.SRTT() == 0 || most == s.mss {
		return most
	}
	n := s.bytesPerMillisecond()
	if halvings := s.rtt.Least() / (512 * sim.Microsecond); halvings < 32 {
		n += int64(s.cfg.TSO) >> halvings
	}
	return min(max(n-n%s.mss, 2*s.mss), most)
}

// bytesPerMillisecond is sk_pacing_rate over a millisecond: a window per round trip,
// twice that in slow start, when the window doubles, and a fifth more otherwise. It
// only sizes bursts and queues: the peer does not pace.
func (s *Sender) bytesPerMillisecond() int64 {
	percent := int64(120)
	if s.cwnd < s.ssthresh/2 {
		percent = 200
	}
	us := max(int64(s.rtt.SRTT()/sim.Microsecond), 1)
	return s.cwnd * percent * 10 / us
}

// timeOf returns how long n bytes take at the estimated rate.
func (s *Sender) timeOf(n int64) sim.Time {
	return sim.Time(n) * sim.Millisecond / sim.Time(max(s.bytesPerMillisecond(), 1))
}

// shouldDefer decides whether to put off a burst that would be smaller than it
// could be, because an ACK is near that will let a larger one go. It mirrors
// tcp_tso_should_defer; limit is what the windows allow, want what a full burst
// would be. Nothing is put off if
//   - the windows allow a full burst, or a third of themselves: waiting for more
//     would let the network run dry,
//   - nothing is outstanding, or a loss is being repaired: no ACK may come,
//   - the last burst was sent more than a millisecond ago,
//   - the oldest outstanding burst is younger than half a round trip, so its ACK is
//     not near.
func (s *Sender) shouldDefer(now sim.Time, limit, want int64) bool {
	if limit >= want || s.state != open || s.una == s.nxt || now-s.lastSent > deferLimit {
		return false
	}
	if limit >= min(int64(s.wndEnd-s.una), s.cwnd)/3 {
		return false
	}
	return s.bursts.len() > 0 && now-s.bursts.at(0).sentAt >= s.rtt.SRTT()/2
}

// throttled mirrors tcp_small_queue_check: while more than a millisecond's worth of
// this flow, or two bursts, wait in the host's own queue, more would only add to
// the delay. It arms the timer that stands for the TX completion.
func (s *Sender) throttled(now sim.Time, n int64) bool {
	for s.local.len() > 0 && s.local.at(0).leaves <= now {
		s.localLen -= s.local.pop().bytes
	}
	if s.cfg.LimitOutput == 0 {
		return false
	}
	limit := s.cfg.LimitOutput
	if s.rtt.SRTT() > 0 {
		limit = min(limit, max(s.bytesPerMillisecond(), 2*n))
	}
	if s.localLen <= limit {
		return false
	}
	s.stats.Throttled++
	if s.resume.Running() {
		return true
	}
	left := s.localLen
	for i := range s.local.len() {
		b := s.local.at(i)
		if left -= b.bytes; left <= limit {
			s.resume.Set(b.leaves)
			break
		}
	}
	return true
}

// sendBurst sends n bytes of new data in one go.
func (s *Sender) sendBurst(now sim.Time, n int64) {
	end := s.nxt + uint64(n)
	push := s.endsWrite(s.nxt, end) || s.cfg.PushBursts && n > s.mss
	leaves := s.transmit(now, s.nxt, end, push)
	b := burst{end: end, bytes: n, order: s.order(), sentAt: now, leaves: leaves}
	s.bursts.push(b)
	if leaves > now {
		s.local.push(b)
		s.localLen += n
	}
	s.nxt = end
	s.board.Sent(end)
	s.lastSent = now
	s.stats.Bursts++
}

// endsWrite reports whether [seq, end) holds the last byte of a write.
func (s *Sender) endsWrite(seq, end uint64) bool {
	if end == s.dataEnd {
		return true
	}
	size := uint64(s.cfg.WriteSize)
	return size > 0 && (end-FirstSeq)/size > (seq-FirstSeq)/size
}

// transmit offers [seq, end) to the wire in full segments and a rest. push sets PSH
// on the last: a NIC that segments clears it on the others.
func (s *Sender) transmit(now sim.Time, seq, end uint64, push bool) (leaves sim.Time) {
	f := s.frame(now)
	leaves = now
	for seq < end {
		n := min(end-seq, uint64(s.mss))
		f.Seq, f.Payload = seq, int32(n)
		f.Len = f.FrameLen(f.Payload)
		seq += n
		if push && seq == end {
			f.Flags |= model.PSH
		}
		s.ipid++
		f.IPID = s.ipid
		leaves = s.wire.Offer(f, now)
		s.stats.Segments++
		s.stats.Bytes += int64(n)
	}
	return leaves
}

// frame returns what all frames of one instant have in common.
func (s *Sender) frame(now sim.Time) model.Frame {
	return model.Frame{
		Ack: FirstSeq, Window: 65535, Hash: s.cfg.Hash,
		TSVal: timestamp(now), TSEcr: s.tsRecent,
		Flow: s.cfg.Flow, TOS: s.cfg.TOS, TTL: s.cfg.TTL, Proto: model.TCP, Flags: model.ACK, IPv6: s.cfg.IPv6,
	}
}

// validateUsage mirrors tcp_cwnd_validate: it notes once per round trip, or when
// more was in flight than before, whether the congestion window was the limit.
func (s *Sender) validateUsage(limited bool) {
	u := &s.usage
	pipe := s.board.Pipe()
	if s.una >= u.end || limited || !u.limited && pipe > u.maxPipe {
		u.limited, u.maxPipe, u.end = limited, pipe, s.nxt
	}
}

// restartAfterIdle mirrors tcp_cwnd_restart: what the window was worth is forgotten
// by half for each timeout that nothing was sent (RFC 2861), down to the initial
// window (RFC 5681 section 4.1).
func (s *Sender) restartAfterIdle(now sim.Time) {
	idle, rto := now-max(s.lastSent, s.restarted), s.rtt.Base()
	least := min(int64(s.cfg.InitCwnd)*s.mss, s.cwnd)
	if s.stats.Segments == 0 || idle <= rto || s.cwnd <= least {
		return
	}
	s.restarted = now
	s.ssthresh = max(s.ssthresh, s.cwnd*3/4)
	for idle -= rto; idle > 0 && s.cwnd > least; idle -= rto {
		s.cwnd /= 2
	}
	s.cwnd = max(s.cwnd/s.mss*s.mss, least)
	s.cc.Restart()
}

// arm keeps the rule for the transmission timer: it runs while data is outstanding,
// and while data waits for a window that does not open by itself.
func (s *Sender) arm(now sim.Time, result outcome) {
	switch {
	case s.una < s.nxt:
		if !s.xmit.Running() {
			s.xmit.Set(now + s.rtt.Timeout())
		}
	case result == blocked && s.nxt < s.dataEnd:
		if !s.xmit.Running() {
			s.xmit.Set(now + s.rtt.Timeout())
		}
	default:
		s.xmit.Stop()
	}
}

// probe is the persist timer of RFC 9293 section 3.8.6.1: the window is closed, and
// the ACK that opened it may have been lost.
func (s *Sender) probe() {
	now := s.eng.Now()
	s.stats.Probes++
	s.rtt.BackOff()
	if n := min(int64(s.wndEnd-s.nxt), int64(s.dataEnd-s.nxt), s.mss); n > 0 {
		// A window smaller than a segment has stayed so: use it.
		s.sendBurst(now, n)
	} else {
		// As Linux, an empty segment below the window, which must be answered.
		f := s.frame(now)
		f.Seq = s.una - 1
		f.Len = f.FrameLen(0)
		s.ipid++
		f.IPID = s.ipid
		s.wire.Offer(f, now)
	}
	s.xmit.Set(now + s.rtt.Timeout())
}
