package traffic

import (
	"math/bits"

	"napisim/model"
	"napisim/sim"
)

// Generator is a sender of UDP datagrams: an iterator over the frames that it hands
// to its line. It draws each frame when Next is called, and nothing it yields
// depends on when that is.
type Generator struct {
	cfg  Config
	next sim.Time // of the next frame
	// The burst that comes after this one starts at burst, by the clock of bursts; it
	// waits for the end of this one if that runs late.
	burst   sim.Time
	inBurst bool // the next frame is not the first of its burst
	left    int  // frames of its burst that come after the next frame
	period  period
	carry   uint64 // numerator of what the clock of bursts owes, below period.den
	// Exponential gaps are drawn in units of 2^-subBits ps: cut to whole picoseconds,
	// they would be half of one too short in the mean.
	subBits uint
	sub     sim.Time // what was cut off and is still owed

	template model.Frame
	sizes    alias // nil for one size
	flows    []flow
	flow     int   // of the frame before
	skew     alias // nil for flows that are alike

	gapRand, sizeRand, flowRand *sim.Rand
}

// flow is what frames of one flow carry.
type flow struct {
	hash uint32
	ipid uint16
}

// New returns the generator of that name; its random streams belong to the name and
// the seed. cfg must be valid.
func New(cfg Config, seed uint64, name string) *Generator {
	cfg.Flows = max(cfg.Flows, 1)
	cfg.Burst = max(cfg.Burst, 1)
	if cfg.RSSKey == (RSSKey{}) {
		cfg.RSSKey = DefaultRSSKey()
	}
	g := &Generator{
		cfg:      cfg,
		next:     cfg.Start - cfg.Spacing,
		burst:    cfg.Start,
		flow:     -1,
		period:   periodOf(cfg.Rate, cfg.Burst),
		template: model.Frame{Proto: model.UDP, TTL: 64},
		gapRand:  sim.NewRand(seed, name+"/gaps"),
		sizeRand: sim.NewRand(seed, name+"/sizes"),
		flowRand: sim.NewRand(seed, name+"/flows"),
	}
	g.setSize(&g.template, cfg.Sizes[0])
	if len(cfg.Sizes) > 1 {
		weights := make([]uint64, len(cfg.Sizes))
		for i, s := range cfg.Sizes {
			weights[i] = uint64(s.Weight)
		}
		g.sizes = newAlias(weights)
	}
	g.flows = make([]flow, cfg.Flows)
	for i := range g.flows {
		g.flows[i].hash = cfg.hash(cfg.FirstFlow + model.FlowID(i))
	}
	if cfg.Skew > 0 {
		g.skew = newAlias(zipf(cfg.Flows, cfg.Skew))
	}
	if cfg.Gaps == Exponential {
		g.subBits = uint(min(16, bits.LeadingZeros64(g.period.whole)-8))
		g.advanceBurst()
	}
	g.startBurst()
	return g
}

func (c *Config) hash(id model.FlowID) uint32 {
	if c.HashAddresses {
		return c.RSSKey.HashAddresses(FlowTuple(id))
	}
	return c.RSSKey.Hash(FlowTuple(id))
}

// zipf returns the weights 1/k^skew for k from 1 to n, as shares of 2^40.
func zipf(n, skew int) []uint64 {
	weights := make([]uint64, n)
	for i := range weights {
		w := uint64(1) << 40
		for range skew {
			w /= uint64(i + 1)
		}
		weights[i] = max(w, 1)
	}
	return weights
}

// Peek returns the instant at which the next frame is offered, Never if there is
// none.
func (g *Generator) Peek() sim.Time {
	if g.next >= g.cfg.Stop {
		return sim.Never
	}
	return g.next
}

// Next fills f with the next frame and reports true, or reports false when the
// sender has stopped. f.Arrival is the instant at which the frame is offered.
func (g *Generator) Next(f *model.Frame) bool {
	if g.next >= g.cfg.Stop {
		return false
	}
	*f = g.template
	f.Arrival = g.next
	if g.sizes != nil {
		g.setSize(f, g.cfg.Sizes[g.sizes.draw(g.sizeRand)])
	}
	if !g.inBurst || !g.cfg.FlowPerBurst {
		g.flow = g.pick()
	}
	fl := &g.flows[g.flow]
	fl.ipid++
	f.Flow, f.Hash, f.IPID = g.cfg.FirstFlow+model.FlowID(g.flow), fl.hash, fl.ipid
	g.advance()
	return true
}

func (g *Generator) setSize(f *model.Frame, s Size) {
	f.Len = s.Len
	f.Payload = s.Len - model.EthernetHeader - model.IPv4Header - model.UDPHeader
}

// pick returns the flow of the next frame.
func (g *Generator) pick() int {
	switch {
	case g.skew != nil:
		return g.skew.draw(g.flowRand)
	case g.cfg.Order == Random:
		return g.flowRand.IntN(len(g.flows))
	}
	if g.flow+1 == len(g.flows) {
		return 0
	}
	return g.flow + 1
}

// advance moves on to the frame after the next.
func (g *Generator) advance() {
	g.inBurst = g.left > 0
	if !g.inBurst {
		g.startBurst()
		return
	}
	g.left--
	g.next += g.cfg.Spacing
}

// startBurst makes the first frame of a burst the next frame. A Poisson clock may
// start a burst before the one at hand has ended; the burst then follows it, while
// the clock goes on, so that the mean rate stays.
func (g *Generator) startBurst() {
	g.next = max(g.burst, g.next+g.cfg.Spacing)
	g.left = g.cfg.Burst - 1
	g.advanceBurst()
}

// advanceBurst moves the clock of bursts on by one gap. The mean is a fraction:
// whole picoseconds are dealt out so that their sum never errs by one.
func (g *Generator) advanceBurst() {
	gap := sim.Time(g.period.whole)
	if g.carry += g.period.frac; g.carry >= g.period.den {
		g.carry -= g.period.den
		gap++
	}
	if g.cfg.Gaps == Exponential {
		g.sub += g.gapRand.Exp(gap << g.subBits)
		gap = g.sub >> g.subBits
		g.sub -= gap << g.subBits
	}
	g.burst += gap
}
