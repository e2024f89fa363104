package nic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/nic"
	"napisim/sim"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*nic.Config)
		want []string
	}{
		{"default", func(*nic.Config) {}, nil},
		{"least and greatest", func(c *nic.Config) { c.RXRing, c.TXRing = 1, 65536 }, nil},
		{"no power of two", func(c *nic.Config) { c.RXRing, c.TXRing = 1000, 3 }, nil},
		{"rings", func(c *nic.Config) { c.RXRing, c.TXRing = 0, 65537 }, []string{
			"rx: a ring of 0 descriptors is not between 1 and 65536", "tx: a ring of 65537 descriptors is not between 1 and 65536",
		}},
		{"coalescing", func(c *nic.Config) { c.RX, c.TX = nic.Coalesce{Usecs: -1, Frames: -1}, nic.Coalesce{Mode: 3} }, []string{
			"rx-usecs: -1ps is not between 0 and 1s", "rx-frames: -1 is not between 0 and 65536",
			"tx-usecs: 3 is no known way to start a timer",
		}},
		{"a count that cannot be reached", func(c *nic.Config) {
			c.RXRing, c.RX, c.TX = 64, nic.Coalesce{Frames: 65}, nic.Coalesce{Frames: 1000, Usecs: us}
		}, []string{"rx-frames: 65 never come together in a ring of 64, and rx-usecs is 0"}},
		{"rearm and latency", func(c *nic.Config) { c.Rearm, c.TXLatency = 2, 2*sim.Second }, []string{
			"rearm: 2 is no known semantics", "tx_latency: 2s is not between 0 and 1s",
		}},
	} {
		cfg := nic.DefaultConfig()
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
	for m := nic.FromFirst; m <= nic.FromLast; m++ {
		if got, err := nic.ParseTimerMode(m.String()); got != m || err != nil {
			t.Errorf("ParseTimerMode(%q) = %v, %v", m, got, err)
		}
	}
	for r := nic.NewerThanConsumer; r <= nic.LatchEvents; r++ {
		if got, err := nic.ParseRearm(r.String()); got != r || err != nil {
			t.Errorf("ParseRearm(%q) = %v, %v", r, got, err)
		}
	}
	if _, err := nic.ParseTimerMode("itr"); err == nil {
		t.Error("ParseTimerMode accepts itr")
	}
	if _, err := nic.ParseRearm("level"); err == nil {
		t.Error("ParseRearm accepts level")
	}
}
