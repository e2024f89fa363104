package cong

import "napisim/sim"

// hystart ends slow start before it overruns the path, with the two tests of Ha and
// Rhee ("Taming the elephants", 2011) and the constants of Linux. On short paths it
// is the ACK train that acts: a round whose ACKs come back to back for longer than
// half the path's delay has filled the path.
type hystart struct {
	mss     int64
	running bool
	end     uint64   // the round ends when this is acknowledged
	start   sim.Time // of the round
	lastAck sim.Time // of the train
	least   sim.Time // smallest round-trip time ever
	round   sim.Time // smallest of this round's first samples
	samples int
}

// The constants of Linux: hystart_low_window, hystart_ack_delta, HYSTART_MIN_SAMPLES
// and the bounds of the delay threshold.
const (
	lowWindow   = 16
	ackDelta    = 2 * sim.Millisecond
	minSamples  = 8
	minIncrease = 4 * sim.Millisecond
	maxIncrease = 16 * sim.Millisecond
	// maxBurstTime bounds how much of a train is put down to TSO bursts.
	maxBurstTime = sim.Millisecond
)

// SlowStart looks at one ACK and reports whether the path is full.
func (h *hystart) SlowStart(a Ack) bool {
	if !h.running || a.Una > h.end {
		h.running, h.start, h.lastAck = true, a.Now, a.Now
		h.end, h.round, h.samples = a.Nxt, 0, 0
	}
	if a.Sample > 0 && (h.least == 0 || a.Sample < h.least) {
		h.least = a.Sample
	}
	if a.Cwnd < lowWindow*h.mss || h.least == 0 {
		return false
	}
	if a.Now-h.lastAck <= ackDelta {
		h.lastAck = a.Now
		if a.Now-h.start > (h.least+min(a.BurstTime, maxBurstTime))/2 {
			return true
		}
	}
	if a.Sample == 0 {
		return false
	}
	if h.round == 0 || a.Sample < h.round {
		h.round = a.Sample
	}
	h.samples++
	return h.samples > minSamples && h.round > h.least+min(max(h.least/8, minIncrease), maxIncrease)
}
