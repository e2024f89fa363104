package tcp

import (
	"napisim/model"
	"napisim/sim"
)

// Bounds of the delayed ACK, TCP_DELACK_MIN (also TCP_ATO_MIN) and TCP_DELACK_MAX.
const (
	delackMin = 40 * sim.Millisecond
	delackMax = 200 * sim.Millisecond
	// idleRTO stands for the socket's own retransmission timeout. One that sends no
	// data keeps the least there is.
	idleRTO = 200 * sim.Millisecond
	// maxQuickAcks is TCP_MAX_QUICKACKS.
	maxQuickAcks = 16
)

// ackState mirrors inet_csk(sk)->icsk_ack and what belongs to it in tcp_sock.
type ackState struct {
	wup         uint64 // RCV.NXT when the last ACK was sent
	rcvMSS      int    // estimate of the peer's segment size
	lastSegSize int
	quick       int // ACKs still to be sent at once
	ato         sim.Time
	lastRcv     sim.Time
	scheduled   bool
	now         bool
	pushed      int8 // ICSK_ACK_PUSHED, and PUSHED2 at 2
	pingpong    bool
	timer       sim.Time // when a delayed ACK is due; 0 when none is

	// SACK compression.
	dupAcks    int
	dupRcvNxt  uint64
	compressed int
	compTimer  sim.Time // 0 when none is armed
}

// incrQuick mirrors tcp_incr_quickack: enough ACKs at once to open half the window.
func (a *ackState) incrQuick(rcvWnd int64) {
	n := int(rcvWnd) / (2 * a.rcvMSS)
	if n == 0 {
		n = 2
	}
	a.quick = max(a.quick, min(n, maxQuickAcks))
}

// enterQuick mirrors tcp_enter_quickack_mode.
func (a *ackState) enterQuick(rcvWnd int64) {
	a.incrQuick(rcvWnd)
	a.pingpong = false
	a.ato = delackMin
}

// measure mirrors tcp_measure_rcv_mss and reports whether a new size was seen. It
// also notes what looks like the end of a write: a segment shorter than the others.
func (a *ackState) measure(s *model.SKB, advMSS int) (changed bool) {
	last := a.lastSegSize
	a.lastSegSize = 0
	n := s.Payload
	if s.Segs > 1 {
		n = int(s.Frame.Payload) // gso_size
	}
	if n >= a.rcvMSS {
		changed = n != a.rcvMSS
		a.rcvMSS = min(n, advMSS)
		return changed
	}
	// A sender with small segments: believe it after two of the same size, unless
	// they are ends of writes.
	if n >= defaultMSS || n >= minMSS && s.Frame.Flags&model.PSH == 0 {
		a.lastSegSize = n
		if n == last {
			a.rcvMSS = n
			return false
		}
	}
	a.pushed = min(a.pushed+1, 2)
	return false
}

// eventDataRecv mirrors tcp_event_data_recv: payload has been queued in order.
func (r *Receiver) eventDataRecv(now sim.Time, s *model.SKB) {
	a := &r.ack
	a.scheduled = true
	if a.measure(s, r.cfg.MSS) && r.cfg.ScalingRatio > 0 {
		r.updateRatio(s)
	}
	r.rttFromWindow(now)
	switch gap := now - a.lastRcv; {
	case a.ato == 0:
		// The first data: ACK at once so that the sender's slow start gets going.
		a.incrQuick(r.rcvWnd)
		a.ato = delackMin
	case gap <= delackMin/2:
		a.ato = a.ato/2 + delackMin/2
	case gap < a.ato:
		a.ato = min(a.ato/2+gap, idleRTO)
	case gap > idleRTO:
		// After such a pause the sender begins with a small window again.
		a.incrQuick(r.rcvWnd)
	}
	a.lastRcv = now
	if s.Payload >= 128 {
		r.growWindow(s)
	}
}

// updateRatio is the part of tcp_measure_rcv_mss since Linux 6.6: the share of the
// buffer that can be announced follows from what the first skb with a new segment
// size really takes.
func (r *Receiver) updateRatio(s *model.SKB) {
	ratio := max(min(s.Payload<<8/s.Truesize, 255), 1)
	if ratio != r.ratio {
		r.ratio = ratio
		r.clamp = r.winFromSpace(r.rcvbuf)
	}
}

// ackDue mirrors tcp_ack_snd_check: it reports whether an ACK must be sent now, and
// arms the timer of a delayed or compressed one otherwise. wait tells that one due now may
// wait for the end of the backlog.
func (r *Receiver) ackDue(now sim.Time) (due, wait bool) {
	a := &r.ack
	if !a.scheduled {
		return false, false
	}
	// More than one full segment, and the window would not be smaller than the one
	// announced last: otherwise the reader will open it soon, and its ACK does both.
	full := int64(r.rcvNxt-a.wup) > int64(a.rcvMSS) &&
		(r.cfg.AckIfDrained && int(r.rcvNxt-r.copied) < r.cfg.RcvLowat || r.selectableWindow() >= r.rcvWnd)
	switch {
	case full || a.quick > 0 && !a.pingpong || a.now:
		return true, true
	case len(r.ofo) == 0:
		return r.delayAck(now), false
	}
	return r.dupAckDue(now), false
}

// dupAckDue is the end of __tcp_ack_snd_check, SACK compression (since v4.19): it reports
// whether a duplicate ACK goes out, and arms the timer of those held back otherwise.
func (r *Receiver) dupAckDue(now sim.Time) bool {
	a := &r.ack
	if a.compressed >= r.cfg.CompSACKs {
		return true
	}
	if a.dupRcvNxt != r.rcvNxt {
		a.dupRcvNxt, a.dupAcks = r.rcvNxt, 0
	}
	if a.dupAcks < r.cfg.CompSACKFirst {
		a.dupAcks++
		return true
	}
	a.compressed++
	if a.compTimer == 0 {
		a.compTimer = now + min(r.cfg.CompSACKDelay, r.rtt.rtt/20)
	}
	return false
}

// EnterPingpong mirrors inet_csk_enter_pingpong_mode: acknowledgements wait for data that
// can carry them.
func (r *Receiver) EnterPingpong() { r.ack.pingpong = true }

// delayAck mirrors tcp_send_delayed_ack. It reports true when the timer would be so
// near that it is not worth waiting.
func (r *Receiver) delayAck(now sim.Time) bool {
	a := &r.ack
	ato := min(max(a.ato, delackMin), delackMax)
	if r.cfg.InitialRTT > 0 {
		// A socket that knows its round-trip time has no reason to wait longer.
		ato = min(ato, max(r.cfg.InitialRTT, delackMin))
	}
	at := now + ato
	if a.timer != 0 {
		if a.timer <= now+ato/4 {
			return true
		}
		at = min(at, a.timer)
	}
	a.timer = at
	return false
}

// AckScheduled is inet_csk_ack_scheduled: an ACK is owed.
func (r *Receiver) AckScheduled() bool { return r.ack.scheduled }

// DeferBacklogAcks reports whether ACKs that may wait do so while the backlog is worked off.
func (r *Receiver) DeferBacklogAcks() bool { return r.cfg.DeferBacklogAcks }

// DelAckDeadline returns the instant at which DelAckTimer is to be called for a delayed
// ACK; sim.Never if there is nothing to wait for. It changes only in Receive, BuildAck
// and DelAckTimer. An owner whose kernel has a tick rounds it to one.
func (r *Receiver) DelAckDeadline() sim.Time { return orNever(r.ack.timer) }

// CompSACKDeadline is the same for CompSACKTimer and duplicate ACKs held back by SACK
// compression, whose timer is a high-resolution one.
func (r *Receiver) CompSACKDeadline() sim.Time { return orNever(r.ack.compTimer) }

func orNever(at sim.Time) sim.Time {
	if at == 0 {
		return sim.Never
	}
	return at
}

// CompSACKTimer mirrors tcp_compressed_ack_kick. It reports whether an ACK must be sent;
// a call before the deadline does nothing.
func (r *Receiver) CompSACKTimer(now sim.Time) bool {
	r.clock(now)
	a := &r.ack
	if a.compTimer == 0 || a.compTimer > now {
		return false
	}
	a.compTimer = 0
	return a.compressed > 0
}

// DelAckTimer mirrors tcp_delack_timer_handler. It reports whether an ACK must be sent;
// a call before the deadline does nothing.
func (r *Receiver) DelAckTimer(now sim.Time) bool {
	r.clock(now)
	a := &r.ack
	send := false
	if a.timer != 0 && a.timer <= now {
		a.timer = 0
		if a.scheduled {
			if a.pingpong {
				a.pingpong, a.ato = false, delackMin
			} else {
				// The second segment did not come in time: wait longer the next time.
				a.ato = min(2*a.ato, idleRTO)
			}
			r.stats.DelayedACKs++
			send = true
		}
	}
	return send
}

// CleanupRbuf mirrors tcp_cleanup_rbuf, which recvmsg calls when it has copied
// bytes. It reports whether an ACK must be sent, because one was held back for the
// reader or because the window has opened enough for the sender to know.
func (r *Receiver) CleanupRbuf(now sim.Time, copied int) bool {
	r.clock(now)
	a := &r.ack
	if a.scheduled {
		drained := copied > 0 && r.rmem == 0 && (a.pushed > 1 || a.pushed > 0 && !a.pingpong)
		if int64(r.rcvNxt-a.wup) > int64(a.rcvMSS) || drained {
			return true
		}
	}
	if wnd := r.window(); copied > 0 && !r.fin && 2*wnd <= r.clamp {
		if next := r.selectableWindow(); next > 0 && next >= 2*wnd {
			r.stats.WindowUpdates++
			return true
		}
	}
	return false
}

// DataSent tells that the host sends data on this connection, which carries what
// BuildAck fills in. If it answers data that has just come, the connection is
// interactive (ping-pong mode): ACKs wait for an answer to ride on.
func (r *Receiver) DataSent(now sim.Time) {
	r.clock(now)
	if now-r.ack.lastRcv < r.ack.ato {
		r.ack.pingpong = true
	}
}

// BuildAck fills seg with the acknowledgement that is sent now and settles what was
// delayed: window, timestamps and SACK blocks. Seq and Payload stay zero; a caller
// that sends data adds its own.
func (r *Receiver) BuildAck(now sim.Time, seg *model.Segment) {
	r.clock(now)
	wnd := r.selectWindow()
	r.ipid++
	*seg = model.Segment{Frame: model.Frame{
		Ack: r.rcvNxt, Window: uint32(wnd), TSVal: timestamp(now + r.cfg.ClockOffset), TSEcr: r.tsRecent,
		Flow: r.cfg.Flow, IPID: r.ipid, TTL: 64, Proto: model.TCP, Flags: model.ACK, IPv6: r.cfg.IPv6,
	}}
	r.sacks.fill(seg)
	seg.Len = seg.FrameLen(sackOption(seg.SACKs))
	a := &r.ack
	if a.quick > 0 {
		if a.quick--; a.quick == 0 {
			a.ato = delackMin
		}
	}
	r.stats.AcksSent++
	r.stats.CompressedACKs += int64(a.compressed)
	if wnd == 0 {
		r.stats.ZeroWindows++
	}
	if len(r.ofo) > 0 {
		r.stats.DupACKs++
	}
	a.scheduled, a.now, a.pushed, a.timer, a.compressed, a.compTimer = false, false, 0, 0, 0, 0
}

// timestamp is the value of the timestamp option: milliseconds, from one because
// an echo of zero means that there is none.
func timestamp(now sim.Time) uint32 { return uint32(now/sim.Millisecond) + 1 }

// sackOption returns the length of the SACK option with its padding.
func sackOption(blocks int) int32 {
	if blocks == 0 {
		return 0
	}
	return int32(4 + 8*blocks)
}

// sackState mirrors selective_acks and duplicate_sack of struct tcp_sock.
type sackState struct {
	blocks [4]model.SACKBlock // the most recently changed first
	n      int
	dup    model.SACKBlock
	hasDup bool
}

// maxSACKBlocks fit beside the timestamp option; a DSACK takes the place of one.
const maxSACKBlocks = 3

// add mirrors tcp_sack_new_ofo_skb: data beyond a gap has arrived.
func (k *sackState) add(seq, end uint64) {
	for i := range k.n {
		b := k.blocks[i]
		if seq > b.End || end < b.Start {
			continue
		}
		b.Start, b.End = min(b.Start, seq), max(b.End, end)
		copy(k.blocks[1:i+1], k.blocks[:i])
		k.blocks[0] = b
		k.mergeFirst()
		return
	}
	k.n = min(k.n+1, len(k.blocks))
	copy(k.blocks[1:k.n], k.blocks[:])
	k.blocks[0] = model.SACKBlock{Start: seq, End: end}
}

// mergeFirst lets the first block swallow those that it has grown into.
func (k *sackState) mergeFirst() {
	for i := 1; i < k.n; {
		a, b := &k.blocks[0], k.blocks[i]
		if a.Start > b.End || b.Start > a.End {
			i++
			continue
		}
		a.Start, a.End = min(a.Start, b.Start), max(a.End, b.End)
		k.n--
		copy(k.blocks[i:k.n], k.blocks[i+1:])
		i = 1
	}
}

// remove mirrors tcp_sack_remove: RCV.NXT has moved.
func (k *sackState) remove(rcvNxt uint64, all bool) {
	n := 0
	for _, b := range k.blocks[:k.n] {
		if !all && b.Start > rcvNxt {
			k.blocks[n] = b
			n++
		}
	}
	k.n = n
}

// reset forgets all blocks.
func (k *sackState) reset() { k.n = 0 }

// setDup mirrors tcp_dsack_set: the next ACK reports a duplicate (RFC 2883).
func (k *sackState) setDup(seq, end uint64) {
	k.dup, k.hasDup = model.SACKBlock{Start: seq, End: end}, true
}

// extendDup mirrors tcp_dsack_extend.
func (k *sackState) extendDup(seq, end uint64) {
	if k.hasDup && seq <= k.dup.End && end >= k.dup.Start {
		k.dup.Start, k.dup.End = min(k.dup.Start, seq), max(k.dup.End, end)
		return
	}
	k.setDup(seq, end)
}

// fill writes the option into an ACK; a DSACK is reported once.
func (k *sackState) fill(seg *model.Segment) {
	if k.hasDup {
		seg.Blocks[0], seg.SACKs, seg.DSACK = k.dup, 1, true
		k.hasDup = false
	}
	n := copy(seg.Blocks[seg.SACKs:maxSACKBlocks], k.blocks[:k.n])
	seg.SACKs += n
}

// rttState is rcv_rtt_est: a receiver without data of its own measures round trips
// by the echo of its ACKs' timestamps, or by the time that a window takes.
type rttState struct {
	rtt     sim.Time
	seq     uint64 // a window measurement ends here
	time    sim.Time
	started bool
	lastEcr uint32
}

// update mirrors tcp_rcv_rtt_update. A window takes at least a round trip, so of
// those measurements the least counts.
func (t *rttState) update(sample sim.Time, window bool) {
	switch {
	case t.rtt == 0:
		t.rtt = sample
	case window:
		t.rtt = min(t.rtt, sample)
	default:
		t.rtt += (sample - t.rtt) / 8
	}
}

// rttFromTimestamp mirrors tcp_rcv_rtt_measure_ts. The clock of timestamps counts
// milliseconds, so nothing below one can be seen.
func (r *Receiver) rttFromTimestamp(now sim.Time, s *model.SKB) {
	ecr := s.Frame.TSEcr
	if ecr == 0 || ecr == r.rtt.lastEcr {
		return
	}
	r.rtt.lastEcr = ecr
	if s.Payload >= r.ack.rcvMSS {
		ms := max(timestamp(now+r.cfg.ClockOffset)-ecr, 1)
		r.rtt.update(sim.Time(ms)*sim.Millisecond, false)
	}
}

// rttFromWindow mirrors tcp_rcv_rtt_measure.
func (r *Receiver) rttFromWindow(now sim.Time) {
	t := &r.rtt
	if t.started && r.rcvNxt < t.seq {
		return
	}
	if t.started {
		t.update(max(now-t.time, sim.Microsecond), true)
	}
	t.started, t.seq, t.time = true, r.rcvNxt+uint64(r.rcvWnd), now
}
