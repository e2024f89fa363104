package softirq

import (
	"runtime"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
	"napisim/softirq/gro"
)

// busy is a device whose ring is never empty, for a number of polls.
type busy struct {
	r      *rig
	napi   *NAPI
	frame  model.Frame
	skbs   bool
	polls  int
	onPoll func(left int)
}

// newBusy makes a machine that polls so often; with gc each frame is a segment of one
// flow, otherwise the driver drops it. onPoll is called before each poll.
func newBusy(gc *gro.Config, polls int, onPoll func(left int)) *busy {
	s := defaultSetup()
	s.log = nil
	r := newRig(s)
	r.stack.counting = true
	b := &busy{r: r, skbs: gc != nil, polls: polls, onPoll: onPoll}
	b.frame = model.Frame{Proto: model.TCP, Flow: 1, Hash: 1, Flags: model.ACK, Payload: 1448, Len: model.TCPFrameLen(1448), TTL: 64}
	b.napi = NewNAPI(NAPIConfig{Name: "eth0", ID: 1, GRO: gc, Poll: b.poll})
	line := r.m.Cores[0].NewLine(24, "eth0", func(*cpu.Core) { r.sds[0].NAPISchedule(b.napi) })
	r.at(10*sim.Microsecond, phaseDevices, line.Raise)
	return b
}

func (b *busy) run() {
	defer b.r.eng.Close()
	b.r.eng.Run()
}

func (b *busy) poll(budget int) int {
	b.onPoll(b.polls)
	if b.polls--; b.polls < 0 {
		b.napi.CompleteDone(0)
		return 0
	}
	c := b.napi.Core()
	if !b.skbs {
		c.Look()
		c.SpendN(model.StageRXDescriptor, budget)
		return budget
	}
	for range budget {
		c.Look()
		c.Spend(model.StageRXDescriptor)
		s := b.r.skbs.Get()
		s.Frame = b.frame
		s.Segs, s.Payload, s.LastSeg, s.Truesize, s.Pages = 1, 1448, 1448, 2304, 1
		s.Arrivals = append(s.Arrivals, c.Now())
		b.frame.Seq += 1448
		b.frame.IPID++
		b.napi.GROReceive(s)
	}
	return budget
}

const warmUp = 2000

// BenchmarkPoll64Drop is one poll of 64 frames that the driver drops, with its share of
// net_rx_action, the softirq loop and ksoftirqd.
func BenchmarkPoll64Drop(b *testing.B) { benchmarkPolls(b, nil) }

// BenchmarkPoll64GRO is one poll of 64 segments of one flow, with GRO and a stack that
// counts.
func BenchmarkPoll64GRO(b *testing.B) {
	c := gro.DefaultConfig()
	benchmarkPolls(b, &c)
}

func benchmarkPolls(b *testing.B, gc *gro.Config) {
	b.ReportAllocs()
	newBusy(gc, warmUp+b.N, func(left int) {
		switch left {
		case b.N:
			b.ResetTimer()
		case 0:
			b.StopTimer()
		}
	}).run()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/NAPIPollWeight, "ns/frame")
}

// A run allocates nothing once its pools are filled. The bound leaves room for what
// the test's own process allocates beside it.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	full := gro.DefaultConfig()
	for name, gc := range map[string]*gro.Config{"drop": nil, "GRO": &full} {
		const polls = 5000
		var before, after runtime.MemStats
		newBusy(gc, warmUp+polls, func(left int) {
			switch left {
			case polls:
				runtime.ReadMemStats(&before)
			case 0:
				runtime.ReadMemStats(&after)
			}
		}).run()
		if n := after.Mallocs - before.Mallocs; n > polls/100 {
			t.Errorf("%s: %d allocations in %d polls", name, n, polls)
		}
	}
}
