package cong

import "napisim/sim"

// cubic is RFC 8312 in integers: times in milliseconds, windows in bytes. As in
// Linux the time K to the plateau is taken from the window at the start of the
// epoch, so that it also fits an epoch that starts after slow start.
type cubic struct {
	hystart
	mss int64
	// wMax is the window before the last loss, lowered by fast convergence.
	wMax int64
	// The epoch: its start, the plateau and the time to reach it.
	started bool
	start   sim.Time
	origin  int64
	k       int64 // ms
	est     int64 // W_est: what Reno would have
	// Bytes acknowledged that have not made est, and the window, grow yet.
	acked, carry int64
}

// The constants of RFC 8312: beta 0.7 and C 0.4 segments per second cubed.
const (
	betaNum, betaDen = 7, 10
	// msCubedPerSegment is 1/C in milliseconds cubed per segment.
	msCubedPerSegment = 2_500_000_000
	// maxEpoch keeps the cube of a time within 63 bits. A hundred seconds past the
	// plateau the window is 400000 segments above it: far beyond any use.
	maxEpoch = 100_000
)

// Grow moves the window towards where the curve will be a round trip from now.
func (c *cubic) Grow(a Ack) int64 {
	if !c.started {
		c.begin(a)
	}
	c.estimate(a)
	// At most half a window more per round trip, as RFC 9438 has it.
	most := a.Cwnd + a.Cwnd/2
	if c.est > c.window(a.Now-c.start) {
		// TCP-friendly region (RFC 8312 section 4.2): not slower than Reno would be.
		return min(max(a.Cwnd, c.est), most)
	}
	target := min(c.window(a.Now-c.start+a.RTT), most)
	if target <= a.Cwnd {
		return a.Cwnd
	}
	// Section 4.3: (target-cwnd)/cwnd per acknowledged segment.
	c.carry = min(c.carry+a.Acked, a.Cwnd)
	grown := (target - a.Cwnd) * c.carry / a.Cwnd
	if grown > 0 {
		c.carry = 0
	}
	return a.Cwnd + grown
}

func (c *cubic) begin(a Ack) {
	c.started, c.start, c.est, c.acked, c.carry = true, a.Now, a.Cwnd, 0, 0
	c.origin, c.k = max(c.wMax, a.Cwnd), 0
	if c.wMax > a.Cwnd {
		c.k = cbrt((c.wMax - a.Cwnd) * (msCubedPerSegment / 1000) / c.mss * 1000)
	}
}

// window is W_cubic of RFC 8312 equation 1, t into the epoch.
func (c *cubic) window(t sim.Time) int64 {
	d := min(int64(t/sim.Millisecond)-c.k, maxEpoch)
	return c.origin + d*d*d/(msCubedPerSegment/1000)*c.mss/1000
}

// estimate moves W_est of RFC 8312 equation 4, which grows by 3(1-beta)/(1+beta) =
// 9/17 segments per round trip. Counting acknowledged windows instead of dividing
// the time by the round-trip time is what RFC 9438 prefers.
func (c *cubic) estimate(a Ack) {
	c.acked += a.Acked
	for per := a.Cwnd * 17 / 9; c.acked >= per; c.acked -= per {
		c.est += c.mss
	}
}

// Lost is the multiplicative decrease with fast convergence: a flow that lost
// before it was back at its last maximum leaves room for new flows.
func (c *cubic) Lost(cwnd, _ int64) int64 {
	c.started = false
	if cwnd < c.wMax {
		c.wMax = cwnd * (betaDen + betaNum) / (2 * betaDen)
	} else {
		c.wMax = cwnd
	}
	return max(cwnd*betaNum/betaDen/c.mss*c.mss, 2*c.mss)
}

// Restart ends the epoch; the next ACK begins another.
func (c *cubic) Restart() {
	c.started = false
	c.hystart = hystart{mss: c.mss}
}

// cbrt returns the integer cube root of x >= 0, two bits of the radicand's three
// at a time from the top.
func cbrt(x int64) int64 {
	var y int64
	for s := 60; s >= 0; s -= 3 {
		y *= 2
		b := 3*y*(y+1) + 1
		if x>>s >= b {
			x -= b << s
			y++
		}
	}
	return y
}
