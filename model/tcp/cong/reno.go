package cong

// reno is the congestion avoidance of RFC 5681 with the byte counting of RFC 3465:
// one segment more for each window that is acknowledged.
type reno struct {
	mss int64
	// count collects acknowledged bytes until they make a window. Counting instead
	// of adding SMSS*SMSS/cwnd per ACK gives the same growth whether each segment
	// is acknowledged or each superframe.
	count int64
}

// Grow adds a segment for each window acknowledged.
func (r *reno) Grow(a Ack) int64 {
	r.count += a.Acked
	cwnd := a.Cwnd
	for r.count >= cwnd {
		r.count -= cwnd
		cwnd += r.mss
	}
	return cwnd
}

// SlowStart leaves the end of slow start to the first loss.
func (r *reno) SlowStart(Ack) bool { return false }

// Lost is equation (4) of RFC 5681. It halves what was outstanding and not cwnd,
// which may be far above that when the receiver's window is the limit.
func (r *reno) Lost(_, flight int64) int64 {
	r.count = 0
	return max(flight/2/r.mss*r.mss, 2*r.mss)
}

// Restart drops what was counted towards the next segment.
func (r *reno) Restart() { r.count = 0 }
