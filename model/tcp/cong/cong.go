// Package cong holds congestion controls: how the congestion window grows in
// congestion avoidance, and how far it falls at a loss. Slow start, recovery and
// timeouts belong to the sender and are the same for all.
//
// All arithmetic is in integers, so that a run is the same on every architecture.
// A new control is one file and one line in the table of controls.
package cong

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"napisim/sim"
)

// Ack is what a control learns when new data is acknowledged. Windows are in bytes.
type Ack struct {
	// Now is the current instant, RTT the smoothed round-trip time and Sample the
	// one that this ACK measured, 0 for none.
	Now, RTT, Sample sim.Time
	// Cwnd is the congestion window, Acked what was newly acknowledged.
	Cwnd, Acked int64
	// Una and Nxt are the first sequence number not acknowledged and the next to be
	// sent.
	Una, Nxt uint64
	// BurstTime is how long four of the largest TSO bursts take at the present
	// rate: by so much bursts alone can stretch a train of ACKs.
	BurstTime sim.Time
}

// Control is one algorithm. A value serves one connection and keeps its state.
type Control interface {
	// Grow returns the congestion window after an ACK of new data. The sender
	// calls it in congestion avoidance, and only when the congestion window was
	// what limited it.
	Grow(a Ack) int64
	// SlowStart is told of every ACK of new data in slow start. It reports whether
	// slow start should end although nothing was lost.
	SlowStart(a Ack) bool
	// Lost returns ssthresh after a loss event: the congestion window was cwnd and
	// flight bytes were outstanding. The sender calls it once per loss event.
	Lost(cwnd, flight int64) int64
	// Restart tells that growth begins anew, after a timeout or an idle period: what
	// was learned about the path's time course is out of date.
	Restart()
}

// controls has the constructor of each control by its name in scenarios. They are
// given the maximum segment size.
var controls = map[string]func(mss int64) Control{
	"reno":  func(mss int64) Control { return &reno{mss: mss} },
	"cubic": func(mss int64) Control { return &cubic{mss: mss, hystart: hystart{mss: mss}} },
}

// Names returns the names of all controls in alphabetical order.
func Names() []string { return slices.Sorted(maps.Keys(controls)) }

// New returns a control by name for a connection with the given segment size.
func New(name string, mss int) (Control, error) {
	construct, ok := controls[name]
	if !ok {
		return nil, fmt.Errorf("unknown congestion control %q (known: %s)", name, strings.Join(Names(), ", "))
	}
	return construct(int64(mss)), nil
}
