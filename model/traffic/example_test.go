package traffic_test

import (
	"fmt"

	"napisim/model"
	"napisim/model/traffic"
	"napisim/model/unit"
	"napisim/sim"
)

// A sender of 1 Mpps in bursts of three, over two flows.
func Example() {
	cfg := traffic.DefaultConfig(10 * sim.Microsecond)
	cfg.Rate, cfg.Burst, cfg.Spacing = unit.Mpps, 3, 100*sim.Nanosecond
	cfg.Flows = 2
	if faults := cfg.Validate(); faults != nil {
		fmt.Println(faults)
		return
	}
	g := traffic.New(cfg, 1, "sender")
	var f model.Frame
	for at, _ := g.Peek(); at <= 3*sim.Microsecond; {
		at, _ = g.Next(&f)
		fmt.Printf("%v: flow %d, hash %08x, %d bytes\n", f.Arrival, f.Flow, f.Hash, f.Len)
	}
	// Output:
	// 0ps: flow 0, hash 9528155a, 60 bytes
	// 100ns: flow 1, hash 8785923b, 60 bytes
	// 200ns: flow 0, hash 9528155a, 60 bytes
	// 3us: flow 1, hash 8785923b, 60 bytes
}
