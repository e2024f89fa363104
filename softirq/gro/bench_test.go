package gro_test

import (
	"testing"

	"napisim/model"
	"napisim/sim"
	"napisim/softirq/gro"
)

// poller is a poll that takes 64 frames, builds skbs, runs GRO and throws away
// what comes out.
type poller struct {
	table *gro.Table
	pool  model.SKBPool
	owner pages
}

func newPoller() *poller {
	p := &poller{}
	c := gro.DefaultConfig()
	c.FragList, c.Sockets = true, host{gro: true, tcp: true}
	p.table = gro.New(c, p)
	return p
}

func (p *poller) Complete(s *model.SKB) { p.pool.Put(s) }

func (p *poller) poll(frames []model.Frame) {
	for i := range frames {
		s := p.pool.Get()
		s.Frame = frames[i]
		s.Segs, s.Payload = 1, int(s.Frame.Payload)
		s.Truesize, s.Pages, s.Pool = 2304, 1, &p.owner
		s.Arrivals = append(s.Arrivals, sim.Time(i))
		if p.table.Receive(s, 0) != gro.Held {
			p.pool.Put(s)
		}
	}
	p.table.Flush(false, 0)
}

// traffic is 64 frames of flows that take turns.
func traffic(flows int, payload int32) []model.Frame {
	senders := make([]*flow, flows)
	for i := range senders {
		senders[i] = newFlow(model.FlowID(i))
	}
	frames := make([]model.Frame, 64)
	for i := range frames {
		frames[i] = senders[i%flows].send(payload, 0).Frame
	}
	return frames
}

// datagrams is traffic of UDP.
func datagrams(flows int) []model.Frame {
	frames := traffic(flows, 1000)
	for i := range frames {
		frames[i].Proto, frames[i].Flags, frames[i].Len = model.UDP, 0, model.UDPFrameLen(1000)
	}
	return frames
}

var polls = []struct {
	name   string
	frames []model.Frame
}{
	{"UDP_GRO", datagrams(1)},
	{"chained datagrams", datagrams(3)},
	{"one flow", traffic(1, mss)},
	{"four flows", traffic(4, mss)},
	{"64 flows", traffic(64, mss)},
	{"pure ACKs", traffic(1, 0)},
}

func BenchmarkPollOf64(b *testing.B) {
	for _, bb := range polls {
		b.Run(bb.name, func(b *testing.B) {
			p := newPoller()
			b.ReportAllocs()
			for b.Loop() {
				p.poll(bb.frames)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(64*b.N), "ns/frame")
		})
	}
}

// In steady state neither receiving nor flushing allocates.
func TestNoAllocations(t *testing.T) {
	for _, tt := range polls {
		p := newPoller()
		for range 200 {
			p.poll(tt.frames) // grows the slices of arrivals of every skb in turn
		}
		if n := testing.AllocsPerRun(100, func() { p.poll(tt.frames) }); n != 0 {
			t.Errorf("%s: %v allocations a poll", tt.name, n)
		}
		if n := p.pool.Live(); n != 0 {
			t.Errorf("%s: %d skbs lost", tt.name, n)
		}
	}
}
