package link_test

import (
	"testing"

	"napisim/model"
	"napisim/model/link"
	"napisim/model/traffic"
	"napisim/model/unit"
	"napisim/sim"
)

func BenchmarkPop(b *testing.B) {
	cfg := traffic.DefaultConfig(sim.Never)
	cfg.Rate = 10 * unit.Mpps
	p := link.NewPipe(link.Config{Rate: 10 * unit.Gbps})
	p.Attach(traffic.New(cfg, 1, "bench"))
	var frames [64]model.Frame
	b.ReportAllocs()
	for n := 0; n < b.N; {
		n += p.Pop(p.NextArrival()+64*100*sim.Nanosecond, frames[:])
	}
}
