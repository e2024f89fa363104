package tcp

import (
	"napisim/model"
	"napisim/model/tcp/rto"
	"napisim/model/tcp/sack"
	"napisim/sim"
)

// rackState is what RACK-TLP (RFC 8985) adds to RFC 6675. RACK takes a segment for
// lost when something that was sent later has arrived and a round trip has passed.
// So it also sees a retransmission that was lost, and one of the last two segments
// of a flight, where RFC 6675 misses its three later ones. TLP asks for an ACK when
// the end of a flight is met with silence. Without them each of these cases waits
// for the retransmission timeout.
//
// Where RACK compares times of sending the model compares the order of sending: it
// is the same on a wire that keeps order, and knows no ties.
type rackState struct {
	// delivered is the place in the order of sending of the latest transmission that
	// is known to have arrived: RACK.xmit_ts.
	delivered int64
	// rxts are the retransmissions not yet known to have arrived or to be lost, in
	// the order of sending.
	rxts []rxt
	// reorder is the timer of RACK, probe that of TLP.
	reorder, probe rto.Timer
	// probed is the end of the flight that was probed, 0 if the present one was not.
	probed uint64
	// resent tells that the probe was a retransmission.
	resent bool
}

// rxt is one retransmitted segment, with its place in the order of sending.
type rxt struct {
	sack.Range
	order  int64
	sentAt sim.Time
}

// timerSlack is TCP_TIMEOUT_MIN, two jiffies at 1000 Hz: by so much Linux lets the
// timers of RACK and TLP come later than the RFC says. On a short path it keeps a
// receiver that pauses for a millisecond from being probed.
const timerSlack = 2 * sim.Millisecond

// order returns the place in the order of sending of the frame sent last.
func (s *Sender) order() int64 { return s.stats.Segments }

// rackResent notes a retransmission.
func (s *Sender) rackResent(now sim.Time, start, end uint64) {
	if s.cfg.RACK {
		s.rack.rxts = append(s.rack.rxts, rxt{sack.Range{Start: start, End: end}, s.order(), now})
	}
}

// rackDelivered is steps 1 to 3 of RACK for one ACK, which is on the books already:
// of the transmissions that it reports, which was sent last?
func (s *Sender) rackDelivered(now sim.Time, seg *model.Segment) {
	r := &s.rack
	kept := r.rxts[:0]
	for _, x := range r.rxts {
		if x.End > s.una && !s.board.Sacked(x.End-1) {
			kept = append(kept, x)
		} else if now-x.sentAt >= s.rtt.Least() {
			// Sooner than a round trip it must have been the original that arrived.
			r.delivered = max(r.delivered, x.order)
		}
	}
	r.rxts = kept
	if s.una > s.rxtHigh {
		r.delivered = max(r.delivered, s.ackedOrder)
	}
	for _, b := range seg.Blocks[:seg.SACKs] {
		if b.End > s.rxtHigh && b.End > s.una {
			r.delivered = max(r.delivered, s.burstOf(b.End-1).order)
		}
	}
}

// burstOf returns the outstanding burst that holds an octet; there is one.
func (s *Sender) burstOf(seq uint64) *burst {
	i := s.bursts.len() - 1
	for i > 0 && s.bursts.at(i-1).end > seq {
		i--
	}
	return s.bursts.at(i)
}

// rackDetect is step 5 of RACK: what was overtaken a round trip ago is lost. What may
// still be on its way decides when the timer looks again.
func (s *Sender) rackDetect(now sim.Time) {
	r := &s.rack
	wait := s.rtt.SRTT()
	if s.state == open {
		if s.board.Blocks() == 0 {
			r.reorder.Stop()
			return
		}
		// With so little evidence it might be reordering (RACK_update_reo_wnd).
		wait += s.rtt.Least() / 4
	}
	due := s.rackFirst(now, wait)
	for len(r.rxts) > 0 && r.rxts[0].order < r.delivered {
		lost := r.rxts[0]
		if at := lost.sentAt + wait; at > now {
			due = min(due, at)
			break
		}
		// It is sent again from there on, without those that may still arrive: see
		// retransmitLost.
		r.rxts = r.rxts[:copy(r.rxts, r.rxts[1:])]
		s.stats.LostRetrans++
		s.board.RestartAt(lost.Start)
	}
	if due == sim.Never {
		r.reorder.Stop()
	} else {
		r.reorder.Set(due + timerSlack)
	}
}

// rackFirst declares first transmissions lost that were overtaken and sent at least
// wait ago. It returns when the next of them will have been, or sim.Never.
func (s *Sender) rackFirst(now, wait sim.Time) sim.Time {
	high := s.board.HighSacked()
	start := s.una
	for i := range s.bursts.len() {
		b := s.bursts.at(i)
		end := b.end
		if b.order >= s.rack.delivered {
			// Within a burst order is that of sequence numbers.
			end = min(end, high)
		}
		if end <= start {
			break
		}
		if at := b.sentAt + wait; at > now {
			if h, ok := s.board.Hole(start); ok && h.Start < end && !s.board.IsLost(h.Start) {
				return at
			}
		} else {
			s.board.LoseBelow(end)
		}
		start = b.end
	}
	return sim.Never
}

// inFlight returns the end of the retransmission that covers seq and may still
// arrive; false if there is none.
func (r *rackState) inFlight(seq uint64) (uint64, bool) {
	for _, x := range r.rxts {
		if x.Start <= seq && seq < x.End {
			return x.End, true
		}
	}
	return 0, false
}

// reorderTimeout is the expiry of RACK's timer.
func (s *Sender) reorderTimeout() {
	now := s.eng.Now()
	if s.una == s.nxt {
		return
	}
	s.rackDetect(now)
	if s.state == open && s.board.IsLost(s.una) {
		s.enterRecovery(now)
	}
	s.output()
}

// armProbe is TLP_calc_PTO: with data outstanding and nothing SACKed, two round
// trips of silence mean that the end of the flight is lost. A single segment may
// wait for a delayed ACK, which makes the probe come in place of the timeout. A
// flight is probed once.
func (s *Sender) armProbe(now sim.Time) {
	r := &s.rack
	if !s.cfg.RACK || s.rtt.SRTT() == 0 || s.state != open || s.una == s.nxt || s.board.Blocks() > 0 || r.probed != 0 {
		r.probe.Stop()
		return
	}
	pto := 2*s.rtt.SRTT() + timerSlack
	if s.flight() <= s.mss {
		pto = 2*s.rtt.SRTT() + rto.Min
	}
	r.probe.Set(min(now+pto, s.xmit.Deadline()))
}

// probeTail is TLP_send_probe: a new segment if there is one, else the last again. The
// timeout begins anew.
func (s *Sender) probeTail() {
	if s.state != open || s.una == s.nxt {
		return
	}
	now := s.eng.Now()
	r := &s.rack
	s.stats.TailProbes++
	n := min(int64(s.dataEnd-s.nxt), int64(s.wndEnd-s.nxt), s.mss)
	if r.resent = n <= 0; r.resent {
		s.retransmit(now, s.nxt-min(uint64(s.mss), uint64(s.flight())), s.nxt)
	} else {
		s.sendBurst(now, n)
	}
	r.probed = s.nxt
	s.xmit.Set(now + s.rtt.Timeout())
}

// probeAcked is TLP_process_ack. When the probed flight is acknowledged, a probe that
// was a retransmission has either repaired a loss, of which the congestion control
// must hear, or was for nothing, which a DSACK tells. If more was lost RACK has begun
// a recovery, and the congestion control knows.
func (s *Sender) probeAcked(seg *model.Segment) {
	r := &s.rack
	if r.probed == 0 || s.una < r.probed {
		return
	}
	if r.resent && !seg.DSACK && s.state == open {
		s.ssthresh = s.cc.Lost(s.cwnd, s.flight())
		s.cwnd = min(s.cwnd, s.ssthresh)
	}
	r.probed, r.resent = 0, false
}
