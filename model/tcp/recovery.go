package tcp

import (
	"fmt"

	"napisim/model"
	"napisim/model/tcp/cong"
	"napisim/model/tcp/sack"
	"napisim/sim"
)

// Deliver is called at the instant at which an ACK reaches the peer. It does not
// keep seg.
func (s *Sender) Deliver(seg *model.Segment) {
	now := s.eng.Now()
	if seg.Ack > s.nxt {
		panic(&sim.Fault{
			Component: fmt.Sprintf("tcp sender of flow %d", s.cfg.Flow), At: now,
			Value: fmt.Sprintf("ACK of %d, but only data below %d was sent", seg.Ack, s.nxt),
		})
	}
	s.stats.Acks++
	if seg.DSACK {
		s.stats.DSACKs++
	}
	if seg.Ack < s.una {
		return // an ACK that was overtaken says nothing new
	}
	s.tsRecent = seg.TSVal
	// The right edge never moves left; an ACK that says so is older than the one
	// that moved it.
	edge := seg.Ack + uint64(seg.Window)
	opened := edge > s.wndEnd
	s.wndEnd = max(s.wndEnd, edge)

	acked := int64(seg.Ack - s.una)
	if acked > 0 {
		s.acknowledge(now, seg)
	}
	fresh := s.mark(seg)
	if s.cfg.RACK && (acked > 0 || fresh > 0) {
		s.rackDelivered(now, seg)
		s.probeAcked(seg)
	}
	s.advanceState(now, acked, fresh)
	if opened && s.una == s.nxt {
		// The receiver is there and has room: probing is over.
		s.rtt.Progress()
		s.xmit.Stop()
	}
	s.output()
}

// mark puts the SACK blocks on the board and returns the octets reported for the
// first time. A DSACK needs no exception: what it reports is acknowledged or SACKed
// anyway (RFC 2883), so it is never fresh.
func (s *Sender) mark(seg *model.Segment) int64 {
	var fresh int64
	for _, b := range seg.Blocks[:seg.SACKs] {
		fresh += s.board.Mark(b)
	}
	return fresh
}

// acknowledge takes new data off the books.
func (s *Sender) acknowledge(now sim.Time, seg *model.Segment) {
	// Karn: a sample is unambiguous if nothing of what is acknowledged was sent
	// twice. Otherwise the echoed timestamp must be that of the last copy. An older
	// one belongs to a copy that arrived long ago and whose ACK was lost; Linux
	// takes that for the round-trip time and waits needlessly from then on.
	s.lastRTT = 0
	switch {
	case s.una >= s.rxtHigh:
		s.lastRTT = now - s.bursts.at(0).sentAt
		s.rtt.Sample(s.lastRTT)
	case seg.TSEcr >= s.rxtStamp:
		s.rtt.Sample(sim.Time(max(timestamp(now)-seg.TSEcr, 1)) * sim.Millisecond)
	}
	s.una = seg.Ack
	for s.bursts.len() > 0 && s.bursts.at(0).end <= s.una {
		s.ackedOrder = s.bursts.pop().order
	}
	s.board.Ack(s.una)
	s.rtt.Progress()
	s.dupAcks = 0
	// RFC 6298 rules 5.2 and 5.3.
	if s.una < s.nxt {
		s.xmit.Set(now + s.rtt.Timeout())
	} else {
		s.xmit.Stop()
	}
}

// advanceState moves between the states after an ACK that acknowledged so many
// octets and SACKed so many for the first time.
func (s *Sender) advanceState(now sim.Time, acked, fresh int64) {
	if acked == 0 && fresh > 0 {
		s.stats.DupAcks++
	}
	if s.state != recovery {
		s.grow(now, acked)
	}
	if s.state != open && s.una >= s.recoveryPoint {
		s.state = open
	}
	if s.cfg.RACK && (acked > 0 || fresh > 0) {
		s.rackDetect(now)
	}
	if s.state != open {
		return
	}
	// RFC 6675 section 5: a duplicate ACK is one that brings new SACK information.
	if acked == 0 && fresh > 0 {
		s.dupAcks++
	}
	if s.dupAcks >= sack.DupThresh || s.una < s.nxt && s.board.IsLost(s.una) {
		s.enterRecovery(now)
	}
}

// grow raises the congestion window for newly acknowledged octets. In slow start
// all of them count, not one segment per ACK: an ACK per superframe must not slow
// the sender down (RFC 3465 with L unbounded, as Linux).
func (s *Sender) grow(now sim.Time, acked int64) {
	if acked == 0 {
		return
	}
	a := cong.Ack{
		Now: now, RTT: s.rtt.SRTT(), Sample: s.lastRTT, Cwnd: s.cwnd, Acked: acked, Una: s.una, Nxt: s.nxt,
	}
	if s.cwnd < s.ssthresh {
		a.BurstTime = s.timeOf(4 * int64(s.cfg.TSO))
		if s.state == open && s.cc.SlowStart(a) {
			s.ssthresh = s.cwnd
		}
		if s.cwnd >= 2*s.usage.maxPipe {
			return
		}
		n := min(acked, s.ssthresh-s.cwnd)
		s.cwnd += n
		acked -= n
	}
	if acked > 0 && s.usage.limited {
		a.Cwnd, a.Acked = s.cwnd, acked
		s.cwnd = s.cc.Grow(a)
	}
}

// enterRecovery is step 4 of RFC 6675 section 5: the windows are reduced, and the
// first segment is sent again whatever the pipe holds.
func (s *Sender) enterRecovery(now sim.Time) {
	s.stats.Recoveries++
	s.state = recovery
	s.recoveryPoint, s.rescued, s.dupAcks = s.nxt, false, 0
	s.ssthresh = s.cc.Lost(s.cwnd, s.flight())
	s.cwnd = s.ssthresh
	if h, ok := s.board.Hole(s.una); ok {
		s.board.Retransmitted(s.retransmit(now, h.Start, h.End))
		s.xmit.Set(now + s.rtt.Timeout())
	}
}

// timeout is the expiry of the retransmission timer: RFC 5681 section 3.1 and RFC
// 6298 rules 5.4 to 5.6. What is SACKed stays so, as in Linux and as RFC 6675
// section 5.1 allows, unless the receiver is seen to have reneged.
func (s *Sender) timeout() {
	s.stats.RTOs++
	if s.board.Reneging() {
		s.stats.Reneged++
		s.board.Forget()
	}
	// A segment that times out again halves nothing: ssthresh remembers the first.
	if s.state != loss || !s.rtt.BackedOff() {
		s.ssthresh = s.cc.Lost(s.cwnd, s.flight())
	}
	s.cc.Restart()
	s.state, s.recoveryPoint, s.dupAcks = loss, s.nxt, 0
	s.cwnd = s.mss
	s.board.LoseAll()
	s.rack.rxts = s.rack.rxts[:0]
	s.rtt.BackOff()
	s.output()
}
