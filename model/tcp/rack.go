package tcp

import (
	"napisim/model"
	"napisim/model/tcp/sack"
	"napisim/sim"
)

// rackState is what RACK-TLP (RFC 8985) adds to RFC 6675: it notices a
// retransmission that was lost too, and a loss at the end of a flight that no later
// segment reports, without waiting for the retransmission timeout. Linux has had
// both on by default since v4.18.
//
// What RACK says of first transmissions is left to RFC 6675, which needs three later
// segments where RACK with a reordering window of zero needs one and a round trip.
type rackState struct {
	// delivered is RACK.xmit_ts: when the latest of the segments known to have
	// arrived was sent.
	delivered sim.Time
	// rxts are the retransmissions not yet known to have arrived or to be lost, in
	// the order of sending.
	rxts []rxt
	// reorder is the timer of RACK's step 5, probe that of TLP.
	reorder, probe timer
	// probed is the end of the flight that was probed, 0 if the present one was not.
	probed uint64
	// resent tells that the probe was a retransmission.
	resent bool
}

// rxt is one retransmitted segment.
type rxt struct {
	sack.Range
	sentAt sim.Time
}

// rackResent notes a retransmission.
func (s *Sender) rackResent(now sim.Time, start, end uint64) {
	if s.cfg.RACK {
		s.rack.rxts = append(s.rack.rxts, rxt{sack.Range{Start: start, End: end}, now})
	}
}

// rackDelivered is steps 1 and 2 of RACK for one ACK: from the segments that it
// reports, which was sent last. fresh tells that it reports any.
func (s *Sender) rackDelivered(now sim.Time, seg *model.Segment) {
	r := &s.rack
	kept := r.rxts[:0]
	for _, x := range r.rxts {
		if x.End > s.una && !s.board.Sacked(x.End-1) {
			kept = append(kept, x)
			continue
		}
		// Arrived within less than half a round trip, it must have been the original.
		if now-x.sentAt >= s.rtt.srtt/2 {
			r.delivered = max(r.delivered, x.sentAt)
		}
	}
	r.rxts = kept
	if s.una > s.rxtHigh && seg.Ack == s.una {
		r.delivered = max(r.delivered, s.ackedSent)
	}
	for _, b := range seg.Blocks[:seg.SACKs] {
		if b.End > s.rxtHigh && b.End > s.una {
			r.delivered = max(r.delivered, s.sentAt(b.End-1))
		}
	}
}

// sentAt returns when an outstanding octet was sent first.
func (s *Sender) sentAt(seq uint64) sim.Time {
	for i := s.bursts.len() - 1; i > 0; i-- {
		if s.bursts.at(i-1).end <= seq {
			return s.bursts.at(i).sentAt
		}
	}
	if s.bursts.len() == 0 {
		return 0
	}
	return s.bursts.at(0).sentAt
}

// rackDetect is RACK_detect_loss for retransmissions: one is lost if something sent
// later has arrived and a round trip has passed. It is sent again from there on,
// without those that may still arrive (see retransmitLost).
func (s *Sender) rackDetect(now sim.Time) {
	r := &s.rack
	for len(r.rxts) > 0 && r.rxts[0].sentAt < r.delivered {
		if due := r.rxts[0].sentAt + s.rtt.srtt; due > now {
			r.reorder.set(due)
			return
		}
		lost := r.rxts[0]
		r.rxts = r.rxts[:copy(r.rxts, r.rxts[1:])]
		s.stats.LostRetrans++
		s.board.RestartAt(max(lost.Start, s.una))
	}
	r.reorder.stop()
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

// rackReset forgets retransmissions: a timeout begins anew.
func (s *Sender) rackReset() {
	s.rack.rxts = s.rack.rxts[:0]
	s.rack.reorder.stop()
	s.rack.probe.stop()
}

// armProbe is TLP_calc_PTO: with data outstanding and nothing SACKed, two round
// trips of silence mean that the end of the flight is lost. A single segment may
// wait for a delayed ACK. A flight is probed once.
func (s *Sender) armProbe(now sim.Time) {
	r := &s.rack
	if !s.cfg.RACK || s.rtt.srtt == 0 {
		return
	}
	if s.state != open || s.una == s.nxt || s.board.Blocks() > 0 || r.probed != 0 {
		r.probe.stop()
		return
	}
	pto := 2 * s.rtt.srtt
	if s.flight() <= s.mss {
		pto += minRTO
	}
	r.probe.set(min(now+pto, s.xmit.deadline))
}

// probeTail is TLP_send_probe: a new segment if there is one, else the last again.
func (s *Sender) probeTail() {
	if s.state != open || s.una == s.nxt {
		return
	}
	now := s.eng.Now()
	r := &s.rack
	s.stats.TailProbes++
	n := min(int64(s.dataEnd-s.nxt), int64(s.wndEnd-s.nxt), s.mss)
	r.resent = n <= 0
	if r.resent {
		h, ok := s.board.LastHole()
		if !ok {
			return
		}
		s.retransmit(now, max(h.Start, h.End-min(h.End, uint64(s.mss))), h.End)
	} else {
		s.sendBurst(now, n)
	}
	r.probed = s.nxt
	s.xmit.set(now + s.currentRTO())
}

// probeAcked is TLP_process_ack: when the whole probed flight is acknowledged, a
// probe that was a retransmission has either repaired a loss, which the congestion control must
// hear of, or was for nothing, which a DSACK tells.
func (s *Sender) probeAcked(seg *model.Segment) {
	r := &s.rack
	if r.probed == 0 || s.una < r.probed && s.board.Blocks() == 0 {
		return
	}
	if r.resent && s.una >= r.probed && !seg.DSACK && s.state == open {
		s.ssthresh = s.cc.Lost(s.cwnd, s.flight())
		s.cwnd = min(s.cwnd, s.ssthresh)
	}
	r.probed, r.resent = 0, false
}
