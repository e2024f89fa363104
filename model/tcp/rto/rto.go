// Package rto is the clockwork of a TCP sender: the round-trip estimator and the
// retransmission timeout of RFC 6298, and a timer that costs nothing to move.
package rto

import "napisim/sim"

// Bounds of the timeout: TCP_TIMEOUT_INIT, TCP_RTO_MIN and TCP_RTO_MAX of Linux. RFC
// 6298 would have a second as the minimum.
const (
	Initial = sim.Second
	Min     = 200 * sim.Millisecond
	Max     = 120 * sim.Second
)

// Estimator is section 2 of RFC 6298 in integers, with the backoff of section 5. The
// zero value has seen no round trip.
type Estimator struct {
	srtt, rttvar sim.Time
	least        sim.Time
	backoff      uint
}

// Sample takes the round-trip time of a segment that was sent once (Karn).
func (e *Estimator) Sample(rtt sim.Time) {
	if e.srtt == 0 {
		e.srtt, e.rttvar, e.least = rtt, rtt/2, rtt
		return
	}
	e.least = min(e.least, rtt)
	diff := rtt - e.srtt
	e.srtt += diff / 8
	e.rttvar += (max(diff, -diff) - e.rttvar) / 4
}

// SRTT returns the smoothed round-trip time, 0 before the first sample.
func (e *Estimator) SRTT() sim.Time { return e.srtt }

// Least returns the smallest sample, 0 before the first.
func (e *Estimator) Least() sim.Time { return e.least }

// Base returns the timeout without backoff. As in Linux the minimum bounds the
// variance and not the sum, so the timeout never falls below SRTT plus 200 ms.
func (e *Estimator) Base() sim.Time {
	if e.srtt == 0 {
		return Initial
	}
	return min(e.srtt+max(4*e.rttvar, Min), Max)
}

// Timeout returns the timeout: doubled for each BackOff, but not above Max.
func (e *Estimator) Timeout() sim.Time {
	rto := e.Base()
	for range e.backoff {
		if rto *= 2; rto >= Max {
			return Max
		}
	}
	return rto
}

// BackOff doubles the timeout, after it has expired.
func (e *Estimator) BackOff() { e.backoff++ }

// BackedOff reports whether the timeout has expired since the last Progress.
func (e *Estimator) BackedOff() bool { return e.backoff > 0 }

// Progress ends the backoff: new data was acknowledged.
func (e *Estimator) Progress() { e.backoff = 0 }
