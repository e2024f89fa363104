package traffic

import (
	"fmt"
	"math/bits"

	"napisim/model"
	"napisim/model/unit"
	"napisim/sim"
)

// Gaps says how the distances between frames, or between bursts, are distributed.
type Gaps uint8

const (
	// Constant gaps make CBR traffic: frame i is offered at Start + i/Rate.
	Constant Gaps = iota
	// Exponential gaps make a Poisson process.
	Exponential
)

// String returns the name that scenarios use.
func (g Gaps) String() string { return [...]string{"constant", "exponential"}[g] }

// ParseGaps returns the distribution of that name.
func ParseGaps(name string) (Gaps, error) {
	for g := Constant; g <= Exponential; g++ {
		if g.String() == name {
			return g, nil
		}
	}
	return 0, fmt.Errorf("unknown distribution of gaps %q", name)
}

// FlowOrder says which flow the next frame belongs to.
type FlowOrder uint8

const (
	// RoundRobin takes the flows in turn.
	RoundRobin FlowOrder = iota
	// Random draws each frame's flow, see Config.Skew.
	Random
)

// String returns the name that scenarios use.
func (o FlowOrder) String() string { return [...]string{"round_robin", "random"}[o] }

// ParseFlowOrder returns the order of that name.
func ParseFlowOrder(name string) (FlowOrder, error) {
	for o := RoundRobin; o <= Random; o++ {
		if o.String() == name {
			return o, nil
		}
	}
	return 0, fmt.Errorf("unknown order of flows %q", name)
}

// Limits of a Config.
const (
	MaxRate     = 100 * unit.Gpps
	MaxFlows    = 1 << 20
	MaxBurst    = 1 << 16
	MaxFrame    = 65535 + model.EthernetHeader
	MaxSkew     = 4
	maxPeriod   = 1 << 50 // 18 minutes; with subBits more it is below what sim.Rand.Exp takes
	framePerSec = uint64(sim.Second) * uint64(unit.PacketPerSecond)
)

// Size is one length of frames and how often it occurs.
type Size struct {
	// Len is the length in bytes without FCS, model.MinFrame to MaxFrame.
	Len int32
	// Weight is the share of frames of this length, in proportion to the other
	// weights.
	Weight uint32
}

// FixedSize returns a mix of one length.
func FixedSize(length int32) []Size { return []Size{{Len: length, Weight: 1}} }

// IMIX returns the simple Internet mix: packets of 40, 576 and 1500 bytes as 7:4:1,
// in Ethernet frames.
func IMIX() []Size {
	return []Size{{Len: model.MinFrame, Weight: 7}, {Len: 590, Weight: 4}, {Len: 1514, Weight: 1}}
}

// Config describes one sender of UDP datagrams.
type Config struct {
	// Rate is the mean rate of frames while the sender sends. It must be given.
	Rate unit.PacketRate
	// Gaps is the distribution of the distances between frames, or bursts.
	Gaps Gaps
	// Burst is the number of frames sent together; 0 and 1 mean that each frame is
	// sent on its own. Bursts start Burst/Rate apart in the mean, so Rate stays the
	// mean rate of frames.
	Burst int
	// Spacing is the distance between the frames of a burst. Zero hands them all over
	// at once, and the line puts them back to back.
	Spacing sim.Time
	// Start and Stop bound the instants at which frames are offered: Start is within,
	// Stop is not. With constant gaps the first frame is offered at Start.
	Start, Stop sim.Time
	// Sizes are the lengths of frames; several are drawn at random by weight. At
	// least one must be given.
	Sizes []Size
	// Flows is the number of flows; 0 means 1.
	Flows int
	// IPv6 sends datagrams over IPv6: the payload of a frame is 20 bytes shorter.
	IPv6 bool
	// FirstFlow is the number of the first flow; the others follow it.
	FirstFlow model.FlowID
	// Order says how flows take turns.
	Order FlowOrder
	// FlowPerBurst gives all frames of a burst one flow, as a sender's own batches
	// do; otherwise each frame takes the next one.
	FlowPerBurst bool
	// Skew makes some flows heavier under Random: the k-th flow is drawn in proportion
	// to 1/k^Skew. 0 means alike, 1 is Zipf's law; at most MaxSkew.
	Skew int
	// RSSKey is the key of the RSS hash; zero means DefaultRSSKey.
	RSSKey RSSKey
	// HashAddresses leaves the ports out of the RSS hash, as most NICs do for UDP by
	// default (ethtool -N rx-flow-hash udp4 sd).
	HashAddresses bool
}

// DefaultConfig returns 100 kpps of the shortest frames in one flow, from the start
// of the run until the given instant.
func DefaultConfig(stop sim.Time) Config {
	return Config{Rate: 100 * unit.Kpps, Stop: stop, Sizes: FixedSize(model.MinFrame), Flows: 1}
}

// Validate returns every fault of the configuration.
func (c *Config) Validate() []error {
	var faults []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	rateOK := c.Rate > 0 && c.Rate <= MaxRate
	require(rateOK, "rate: %v is not above 0 and at most %v", c.Rate, MaxRate)
	require(c.Gaps <= Exponential, "gaps: %d is no known distribution", c.Gaps)
	burstOK := c.Burst >= 0 && c.Burst <= MaxBurst
	require(burstOK, "burst: %d is not between 0 and %d", c.Burst, MaxBurst)
	require(c.Spacing >= 0, "spacing: %v is negative", c.Spacing)
	require(c.Spacing == 0 || c.Burst > 1, "spacing: is only for bursts of several frames")
	if rateOK && burstOK {
		p := periodOf(c.Rate, c.Burst)
		require(p.whole < maxPeriod-1, "rate: %v is too low, its gaps pass 18 minutes", c.Rate)
		hi, lo := bits.Mul64(uint64(max(c.Spacing, 0)), uint64(c.Burst))
		require(hi == 0 && lo <= p.whole, "spacing: bursts of %d frames %v apart take longer than the %v between them",
			c.Burst, c.Spacing, sim.Time(min(p.whole, uint64(sim.Never))))
	}
	require(c.Start >= 0, "start: %v is negative", c.Start)
	require(c.Stop > c.Start, "stop: %v is not after start, %v", c.Stop, c.Start)
	c.requireSizes(require)
	require(c.Flows >= 0 && c.Flows <= MaxFlows, "flows: %d is not between 0 and %d", c.Flows, MaxFlows)
	require(c.FirstFlow >= 0 && int64(c.FirstFlow)+int64(c.Flows) < 1<<31, "first_flow: %d leaves no numbers for %d flows", c.FirstFlow, c.Flows)
	require(c.Order <= Random, "order: %d is no known order", c.Order)
	require(c.Skew >= 0 && c.Skew <= MaxSkew, "skew: %d is not between 0 and %d", c.Skew, MaxSkew)
	require(c.Skew == 0 || c.Order == Random, "skew: is only for flows in random order")
	return faults
}

func (c *Config) requireSizes(require func(ok bool, format string, args ...any)) {
	var sum uint64
	for i, s := range c.Sizes {
		require(s.Len >= model.MinFrame && s.Len <= MaxFrame,
			"sizes[%d].len: %d is not between %d and %d", i, s.Len, model.MinFrame, MaxFrame)
		sum += uint64(s.Weight)
	}
	require(len(c.Sizes) > 0, "sizes: no length of frames is given")
	require(len(c.Sizes) <= MaxFlows, "sizes: %d lengths are more than %d", len(c.Sizes), MaxFlows)
	require(len(c.Sizes) == 0 || sum > 0, "sizes: all weights are zero")
}

// period is the mean distance of two bursts: an exact number of picoseconds.
type period struct {
	whole     uint64
	frac, den uint64
}

// periodOf returns burst/rate. The whole part of very low rates is out of range,
// which Validate refuses.
func periodOf(rate unit.PacketRate, burst int) period {
	den := uint64(rate)
	hi, lo := bits.Mul64(framePerSec, uint64(max(burst, 1)))
	if hi >= den {
		return period{whole: 1<<64 - 1, den: den}
	}
	p := period{den: den}
	p.whole, p.frac = bits.Div64(hi, lo, den)
	return p
}
