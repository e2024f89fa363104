package traffic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/model/traffic"
	"napisim/model/unit"
	"napisim/sim"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*traffic.Config)
		want []string
	}{
		{"default", func(*traffic.Config) {}, nil},
		{"no flows means one", func(c *traffic.Config) { c.Flows = 0 }, nil},
		{"rate is missing", func(c *traffic.Config) { c.Rate = 0 }, []string{"rate: 0pps is not above 0 and at most 100Gpps"}},
		{"rate is negative", func(c *traffic.Config) { c.Rate = -1 }, []string{"rate: -0.001pps is not above 0 and at most 100Gpps"}},
		{"rate is too high", func(c *traffic.Config) { c.Rate = 101 * unit.Gpps }, []string{"rate: 101Gpps is not above 0 and at most 100Gpps"}},
		{"rate is too low", func(c *traffic.Config) { c.Rate = 0 + 1; c.Burst = 2 }, []string{"rate: 0.001pps is too low, its gaps pass 18 minutes"}},
		{"far too low", func(c *traffic.Config) { c.Rate, c.Burst = 1, 1<<16 }, []string{"rate: 0.001pps is too low, its gaps pass 18 minutes"}},
		{"gaps", func(c *traffic.Config) { c.Gaps = 2 }, []string{"gaps: 2 is no known distribution"}},
		{"burst", func(c *traffic.Config) { c.Burst = -1 }, []string{"burst: -1 is not between 0 and 65536"}},
		{"spacing without bursts", func(c *traffic.Config) { c.Spacing = 1 }, []string{"spacing: is only for bursts of several frames"}},
		{"spacing is negative", func(c *traffic.Config) { c.Spacing, c.Burst = -1, 2 }, []string{"spacing: -1ps is negative"}},
		{ // two frames at 100 kpps have 20 us
			"bursts overlap",
			func(c *traffic.Config) { c.Spacing, c.Burst = 10*us+1, 2 },
			[]string{"spacing: bursts of 2 frames 10.000001us apart take longer than the 20us between them"},
		},
		{"start and stop", func(c *traffic.Config) { c.Start, c.Stop = -1, -1 }, []string{"start: -1ps is negative", "stop: -1ps is not after start, -1ps"}},
		{"no sizes", func(c *traffic.Config) { c.Sizes = nil }, []string{"sizes: no length of frames is given"}},
		{
			"sizes",
			func(c *traffic.Config) { c.Sizes = []traffic.Size{{59, 0}, {1514, 0}, {65550, 0}} },
			[]string{
				"sizes[0].len: 59 is not between 60 and 65549", "sizes[2].len: 65550 is not between 60 and 65549",
				"sizes: all weights are zero",
			},
		},
		{"flows", func(c *traffic.Config) { c.Flows = -1 }, []string{"flows: -1 is not between 0 and 1048576"}},
		{"first flow", func(c *traffic.Config) { c.FirstFlow = 1<<31 - 1 }, []string{"first_flow: 2147483647 leaves no numbers for 1 flows"}},
		{"order", func(c *traffic.Config) { c.Order = 2 }, []string{"order: 2 is no known order"}},
		{"skew", func(c *traffic.Config) { c.Skew, c.Order = 5, traffic.Random }, []string{"skew: 5 is not between 0 and 4"}},
		{"skew of a round robin", func(c *traffic.Config) { c.Skew = 1 }, []string{"skew: is only for flows in random order"}},
		{
			"every fault",
			func(c *traffic.Config) { *c = traffic.Config{Skew: -1} },
			[]string{
				"rate: 0pps is not above 0 and at most 100Gpps", "stop: 0ps is not after start, 0ps",
				"sizes: no length of frames is given", "skew: -1 is not between 0 and 4", "skew: is only for flows in random order",
			},
		},
	} {
		cfg := traffic.DefaultConfig(sim.Second)
		c.edit(&cfg)
		var got []string
		for _, err := range cfg.Validate() {
			got = append(got, err.Error())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}

func TestNames(t *testing.T) {
	for g := traffic.Constant; g <= traffic.Exponential; g++ {
		if got, err := traffic.ParseGaps(g.String()); got != g || err != nil {
			t.Errorf("ParseGaps(%q) = %v, %v", g, got, err)
		}
	}
	for o := traffic.RoundRobin; o <= traffic.Random; o++ {
		if got, err := traffic.ParseFlowOrder(o.String()); got != o || err != nil {
			t.Errorf("ParseFlowOrder(%q) = %v, %v", o, got, err)
		}
	}
	if _, err := traffic.ParseGaps("poisson"); err == nil {
		t.Error("ParseGaps accepts poisson")
	}
	if _, err := traffic.ParseFlowOrder("hash"); err == nil {
		t.Error("ParseFlowOrder accepts hash")
	}
}
