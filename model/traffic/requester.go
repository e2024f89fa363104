package traffic

import (
	"fmt"

	"napisim/model"
	"napisim/sim"
	"napisim/sim/metric"
)

// Wire is the way from a peer to the host. Offer puts a frame on it at the instant at,
// which is the current one; the result is the wire's own.
type Wire interface {
	Offer(f model.Frame, at sim.Time) sim.Time
}

// RequesterConfig describes a peer that sends a request, waits for the answer, and sends
// the next: one transaction at a time, as netperf UDP_RR.
type RequesterConfig struct {
	// Flow and Hash are written into every frame: the flow's number and the RSS hash.
	Flow model.FlowID
	Hash uint32
	// IPv6 sends datagrams over IPv6.
	IPv6 bool
	// Size is the length of a request's frame without FCS.
	Size int32
	// Think is the time from an answer to the next request: what the peer's own machine
	// takes.
	Think sim.Time
	// Timeout is the time after which an unanswered request is sent again; 0 means never.
	Timeout sim.Time
}

// Validate returns every fault of the configuration.
func (c *RequesterConfig) Validate() []error {
	var faults []error
	if c.Size < model.MinFrame || c.Size > MaxFrame {
		faults = append(faults, fmt.Errorf("size: %d is not between %d and %d", c.Size, model.MinFrame, MaxFrame))
	}
	if c.Think < 0 {
		faults = append(faults, fmt.Errorf("think: %v is negative", c.Think))
	}
	if c.Timeout < 0 {
		faults = append(faults, fmt.Errorf("timeout: %v is negative", c.Timeout))
	}
	return faults
}

// Requesters are the peers at one end of a wire. What several of them send at one instant
// goes out in the order of their flows.
type Requesters struct {
	eng   *sim.Engine
	phase sim.Phase
	wire  Wire
	due   []*Requester // who sends at this instant
}

// NewRequesters returns the far end of a wire, with no peers yet. Their events have the
// given phase and the one after it.
func NewRequesters(eng *sim.Engine, phase sim.Phase, wire Wire) *Requesters {
	return &Requesters{eng: eng, phase: phase, wire: wire}
}

// send puts the request of r on the wire, at this instant but not before all others that
// send at it are known.
func (g *Requesters) send(r *Requester) {
	if len(g.due) == 0 {
		g.eng.Schedule(g.eng.Now(), g.phase+1, g, 0)
	}
	i := len(g.due)
	g.due = append(g.due, r)
	for ; i > 0 && g.due[i-1].cfg.Flow > r.cfg.Flow; i-- {
		g.due[i] = g.due[i-1]
	}
	g.due[i] = r
}

// Fire sends the requests of this instant.
func (g *Requesters) Fire(uint64) {
	for i, r := range g.due {
		g.due[i] = nil
		g.wire.Offer(r.frame, g.eng.Now())
	}
	g.due = g.due[:0]
}

// Requester is one of these peers.
type Requester struct {
	eng   *sim.Engine
	group *Requesters
	cfg   RequesterConfig
	frame model.Frame
	sent  sim.Time // the request that is open, its first try
	open  bool
	event sim.EventID // of the timeout, or of the next request
	stats RequesterStats
}

// RequesterStats are the counters of a Requester.
type RequesterStats struct {
	// Requests counts requests sent, Retries those that were sent again, Answers the
	// transactions that ended.
	Requests, Retries, Answers int64
	// RTT distributes the time from a request to its answer, in picoseconds: from the instant at
	// which the peer hands the request to the wire to the answer's last bit.
	RTT metric.Histogram
}

// Add returns a further peer, which does nothing until Start; cfg must be valid.
func (g *Requesters) Add(cfg RequesterConfig) *Requester {
	r := &Requester{eng: g.eng, group: g, cfg: cfg}
	r.frame = model.Frame{Proto: model.UDP, TTL: 64, IPv6: cfg.IPv6, Flow: cfg.Flow, Hash: cfg.Hash, Len: cfg.Size}
	r.frame.Payload = cfg.Size - model.EthernetHeader - int32(r.frame.Headers())
	return r
}

// Start lets the peer send its first request at an instant.
func (r *Requester) Start(at sim.Time) { r.event = r.eng.Schedule(at, r.group.phase, r, 0) }

// Stats returns the counters; they keep moving.
func (r *Requester) Stats() *RequesterStats { return &r.stats }

// Fire sends the next request, or the open one again.
func (r *Requester) Fire(uint64) {
	now := r.eng.Now()
	if r.open {
		r.stats.Retries++
	} else {
		r.open, r.sent = true, now
	}
	r.stats.Requests++
	r.frame.IPID++
	r.event = 0
	if r.cfg.Timeout > 0 {
		r.event = r.eng.Schedule(now+r.cfg.Timeout, r.group.phase, r, 0)
	}
	r.group.send(r)
}

// Deliver takes an answer in the engine's context. One that no request waits for is that of
// a request sent twice, and is ignored.
func (r *Requester) Deliver(*model.Segment) {
	if !r.open {
		return
	}
	now := r.eng.Now()
	r.open = false
	r.stats.Answers++
	r.stats.RTT.Add(int64(now - r.sent))
	r.eng.Cancel(r.event)
	r.event = r.eng.Schedule(now+r.cfg.Think, r.group.phase, r, 0)
}
