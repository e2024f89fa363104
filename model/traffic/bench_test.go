package traffic_test

import (
	"testing"

	"napisim/model"
	"napisim/model/traffic"
	"napisim/model/unit"
	"napisim/sim"
)

func BenchmarkNext(b *testing.B) {
	for _, bench := range []struct {
		name string
		edit func(*traffic.Config)
	}{
		{"cbr", func(*traffic.Config) {}},
		{"poisson", func(c *traffic.Config) { c.Gaps = traffic.Exponential }},
		{"bursts", func(c *traffic.Config) { c.Burst = 32 }},
		{"imix", func(c *traffic.Config) { c.Sizes = traffic.IMIX() }},
		{"flows=1000", func(c *traffic.Config) { c.Flows = 1000 }},
		{"zipf=1000", func(c *traffic.Config) { c.Flows, c.Order, c.Skew = 1000, traffic.Random, 1 }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			cfg := traffic.DefaultConfig(sim.Never)
			cfg.Rate = 10 * unit.Mpps
			bench.edit(&cfg)
			g := traffic.New(cfg, 1, "bench")
			var f model.Frame
			b.ReportAllocs()
			for b.Loop() {
				g.Next(&f)
			}
		})
	}
}
