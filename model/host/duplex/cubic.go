package duplex

import "napisim/sim"

// openCubic is bictcp_update of a connection that has lost nothing: after slow start the
// window grows from where it was, and by a segment for each 20 acknowledged at least
// while the path's limit is not known.
type openCubic struct {
	started bool
	start   sim.Time
	origin  int
	friend  int // tcp_cwnd: what Reno would have
	acked   int
}

const (
	// noLossCount is the most segments that make the window grow before the first loss.
	noLossCount = 20
	// cubePerSegment is 1/C in milliseconds cubed for each segment.
	cubePerSegment = 2_500_000_000
	// betaScale is 8*(1024+717)/3/(1024-717): Reno's rate with beta 0.7, in eighths.
	betaScale = 15
)

// update returns how many acknowledged segments make the window grow by one.
func (u *openCubic) update(now sim.Time, cwnd, acked int) int {
	if !u.started {
		*u = openCubic{started: true, start: now, origin: cwnd, friend: cwnd}
	}
	u.acked += acked
	ms := int64((now - u.start) / sim.Millisecond)
	ms = min(ms, 1_000_000)
	target := u.origin + int(ms*ms/1000*ms/(cubePerSegment/1000))
	count := 100 * cwnd
	if target > cwnd {
		count = cwnd / (target - cwnd)
	}
	count = min(count, noLossCount)
	per := cwnd * betaScale / 8
	for u.acked > per {
		u.acked -= per
		u.friend++
	}
	if u.friend > cwnd {
		count = min(count, cwnd/(u.friend-cwnd))
	}
	return max(count, 2)
}
