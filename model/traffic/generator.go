package traffic

import (
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
	burst sim.Time
	// steady tells that next alone is the clock: constant gaps, single frames of one
	// size.
	steady  bool
	inBurst bool // the next frame is not the first of its burst
	left    int  // frames of its burst that come after the next frame
	period  period
	carry   uint64   // numerator of what the clock of bursts owes, below period.den
	sub     sim.Time // what exponential gaps owe in units of 2^-subBits ps

	frame model.Frame // the next, but for its flow
	sizes alias       // nil for one size
	flows []flow
	flow  int   // of the frame before
	skew  alias // nil for flows that are alike

	gapRand, sizeRand, flowRand *sim.Rand
}

// Exponential gaps are drawn in units of 2^-subBits ps: cut to whole picoseconds they
// would be half of one too short in the mean.
const subBits = 7

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
		steady:   cfg.Gaps == Constant && cfg.Burst == 1 && len(cfg.Sizes) == 1,
		period:   periodOf(cfg.Rate, cfg.Burst),
		frame:    model.Frame{Proto: model.UDP, TTL: 64, IPv6: cfg.IPv6},
		gapRand:  sim.NewRand(seed, name+"/gaps"),
		sizeRand: sim.NewRand(seed, name+"/sizes"),
		flowRand: sim.NewRand(seed, name+"/flows"),
	}
	if len(cfg.Sizes) > 1 {
		weights := make([]uint64, len(cfg.Sizes))
		for i, s := range cfg.Sizes {
			weights[i] = uint64(s.Weight)
		}
		g.sizes = newAlias(weights)
	}
	g.drawSize()
	g.flows = make([]flow, cfg.Flows)
	for i := range g.flows {
		g.flows[i].hash = cfg.hash(cfg.FirstFlow + model.FlowID(i))
	}
	if cfg.Skew > 0 {
		g.skew = newAlias(zipf(cfg.Flows, cfg.Skew))
	}
	g.flow = cfg.Flows - 1 // the turn begins with the first
	switch {
	case g.steady:
		g.next = cfg.Start
	case cfg.Gaps == Exponential:
		g.advanceClock()
		g.startBurst()
	default:
		g.startBurst()
	}
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

// Peek returns the instant at which the next frame is offered, and its length. The
// instant is Never when the sender has stopped.
func (g *Generator) Peek() (offered sim.Time, length int32) {
	if g.next >= g.cfg.Stop {
		return sim.Never, 0
	}
	return g.next, g.frame.Len
}

// Next fills f with the frame that Peek tells of, f.Arrival being the instant at
// which it is offered, and returns what Peek now returns.
func (g *Generator) Next(f *model.Frame) (offered sim.Time, length int32) {
	*f = g.frame
	f.Arrival = g.next
	if len(g.flows) > 1 && (!g.inBurst || !g.cfg.FlowPerBurst) {
		g.pick()
	}
	fl := &g.flows[g.flow]
	fl.ipid++
	f.Flow, f.Hash, f.IPID = g.cfg.FirstFlow+model.FlowID(g.flow), fl.hash, fl.ipid
	if g.steady {
		g.next += g.gap()
	} else {
		g.advance()
	}
	return g.Peek()
}

func (g *Generator) drawSize() {
	i := 0
	if g.sizes != nil {
		i = g.sizes.draw(g.sizeRand)
	}
	g.frame.Len = g.cfg.Sizes[i].Len
	g.frame.Payload = g.frame.Len - model.EthernetHeader - int32(g.frame.Headers())
}

// pick chooses the flow of the next frame.
func (g *Generator) pick() {
	switch {
	case g.skew != nil:
		g.flow = g.skew.draw(g.flowRand)
	case g.cfg.Order == Random:
		g.flow = g.flowRand.IntN(len(g.flows))
	default:
		if g.flow++; g.flow == len(g.flows) {
			g.flow = 0
		}
	}
}

// gap returns the next mean gap. It is a fraction: whole picoseconds are dealt out
// so that their sum never errs by one.
func (g *Generator) gap() sim.Time {
	if g.carry += g.period.frac; g.carry < g.period.den {
		return sim.Time(g.period.whole)
	}
	g.carry -= g.period.den
	return sim.Time(g.period.whole) + 1
}

// advance goes on to the next frame, in general.
func (g *Generator) advance() {
	g.inBurst = g.left > 0
	if g.inBurst {
		g.left--
		g.next += g.cfg.Spacing
	} else {
		g.startBurst()
	}
	if g.sizes != nil {
		g.drawSize()
	}
}

// startBurst makes the first frame of a burst the next frame. A Poisson clock may
// start a burst before the one at hand has ended; the burst then follows it, while
// the clock goes on, so that the mean rate stays.
func (g *Generator) startBurst() {
	g.next = max(g.burst, g.next+g.cfg.Spacing)
	g.left = g.cfg.Burst - 1
	g.advanceClock()
}

// advanceClock moves the clock of bursts on by one gap.
func (g *Generator) advanceClock() {
	gap := g.gap()
	if g.cfg.Gaps == Exponential {
		g.sub += g.gapRand.Exp(gap << subBits)
		gap = g.sub >> subBits
		g.sub -= gap << subBits
	}
	g.burst += gap
}
