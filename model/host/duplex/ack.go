package duplex

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/tcp/cong"
	"napisim/sim"
)

// ackInput is tcp_ack: the windows move, and what was acknowledged is freed. It reports
// whether something was. The caller has looked.
func (s *Sock) ackInput(c *cpu.Core, p *model.SKB) (acked bool) {
	c.Look()
	now, n := c.Now(), &s.snd
	ack := p.Frame.Ack
	if ack > n.nxt || ack < n.una {
		return false
	}
	// RFC 793: an acknowledgement that is not older than the last brings the window.
	n.wnd = int64(p.Frame.Window)
	n.maxWnd = max(n.maxWnd, n.wnd)
	n.wndEnd = max(n.wndEnd, ack+uint64(n.wnd))
	if ack == n.una {
		return false
	}
	c.Spend(model.StageTCPAckInput)
	queued := len(n.queue)
	n.clean(now, ack)
	for range queued - len(n.queue) {
		s.env.Heads.On(c).FreeQueued()
	}
	return true
}

// clean is tcp_clean_rtx_queue with tcp_cong_control.
func (s *sender) clean(now sim.Time, ack uint64) {
	before := s.una
	s.una = ack
	var first, last sim.Time
	done, pkts := 0, 0
	for done < s.sent {
		k := &s.queue[done]
		if k.end() > ack {
			if k.seq < ack { // tcp_tso_acked
				part := int(ack-k.seq) / s.mss
				pkts += part
				k.seq += uint64(part * s.mss)
				k.n -= part * s.mss
				s.wmemQueued -= part * s.mss
			}
			break
		}
		if first == 0 {
			first = k.sentAt
		}
		last = k.sentAt
		pkts += s.pcount(k.n)
		s.wmemQueued -= skbTruesize + k.n
		done++
	}
	s.queue = append(s.queue[:0], s.queue[done:]...)
	s.sent -= done
	s.packetsOut -= pkts
	var sample sim.Time
	if first > 0 {
		s.sample(now - first)
		sample = now - last
	}
	s.raise(now, pkts, int64(ack-before), sample)
	s.pacing = s.rate()
}

// sample is tcp_rtt_estimator and tcp_update_rtt_min.
func (s *sender) sample(rtt sim.Time) {
	rtt = max(rtt, sim.Microsecond)
	if s.srtt == 0 {
		s.srtt = rtt
	} else {
		s.srtt += (rtt - s.srtt) / 8
	}
	if s.minRTT == 0 || rtt < s.minRTT {
		s.minRTT = rtt
	}
}

// raise is cubictcp_acked and cubictcp_cong_avoid.
func (s *sender) raise(now sim.Time, pkts int, bytes int64, sample sim.Time) {
	if s.slowStart() {
		a := cong.Ack{
			Now: now, RTT: s.srtt, Sample: sample, Cwnd: int64(s.cwnd * s.mss), Acked: bytes,
			Una: s.una, Nxt: s.nxt, BurstTime: s.burstTime(),
		}
		if s.cc.SlowStart(a) {
			s.ssthresh = s.cwnd
		}
	}
	if !s.cwndLimited() || pkts == 0 {
		return
	}
	if s.slowStart() {
		grown := min(s.cwnd+pkts, s.ssthresh)
		pkts -= grown - s.cwnd
		s.cwnd = grown
		if pkts == 0 {
			return
		}
	}
	s.avoid(s.grow.update(now, s.cwnd, pkts), pkts)
}

func (s *sender) slowStart() bool { return s.cwnd < s.ssthresh }

// burstTime is hystart_ack_delay: how long four bursts take at the present rate.
func (s *sender) burstTime() sim.Time {
	return min(sim.Time(4*max(s.tso, s.mss))*1024*sim.Microsecond/sim.Time(max(s.pacing, 1)), sim.Millisecond)
}

// cwndLimited is tcp_is_cwnd_limited.
func (s *sender) cwndLimited() bool {
	return s.usage.limited || s.slowStart() && s.cwnd < 2*s.usage.most
}

// avoid is tcp_cong_avoid_ai: one segment more for each w acknowledged.
func (s *sender) avoid(w, acked int) {
	if s.cwndCnt >= w {
		s.cwndCnt = 0
		s.cwnd++
	}
	s.cwndCnt += acked
	s.cwnd += s.cwndCnt / w
	s.cwndCnt %= w
}

// dataSndCheck is tcp_data_snd_check: it sends what the windows let out now, and wakes a
// writer that waits for memory.
func (s *Sock) dataSndCheck(c *cpu.Core) {
	c.Look()
	if s.snd.unsent() {
		s.writeXmit(c, s.cfg.NoDelay, false)
	}
	s.checkSpace(c)
}

// checkSpace is tcp_check_space and sk_stream_write_space: the writer is woken when a
// third of the buffer is free.
func (s *Sock) checkSpace(c *cpu.Core) {
	c.Look()
	n := &s.snd
	if !n.noSpace {
		return
	}
	if n.packetsOut < n.cwnd {
		n.sndbuf = max(n.sndbuf, n.sndbufExpand())
	}
	if n.sndbuf-n.wmemQueued < n.wmemQueued/2 {
		return
	}
	n.noSpace = false
	if t := s.sleeper; t != nil {
		s.sleeper = nil
		c.Spend(model.StageSockWakeup)
		c.Wake(t)
	}
}
