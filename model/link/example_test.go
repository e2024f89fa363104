package link_test

import (
	"fmt"

	"napisim/model"
	"napisim/model/link"
	"napisim/model/traffic"
	"napisim/model/unit"
	"napisim/sim"
)

// Frames are pulled when somebody looks, here after 3 us of 1 Mpps at 1 Gbit/s: those
// offered at 0, 1 and 2 us have arrived 672 ns later, the line's time for 84 bytes.
func ExamplePipe() {
	in := link.NewPipe(link.Config{Rate: unit.Gbps})
	cfg := traffic.DefaultConfig(sim.Second)
	cfg.Rate = unit.Mpps
	in.Attach(traffic.New(cfg, 1, "sender"))

	frames := make([]model.Frame, 64)
	n := in.Pop(3*sim.Microsecond, frames)
	for _, f := range frames[:n] {
		fmt.Println(f.Arrival)
	}
	fmt.Println("next", in.NextArrival())
	// Output:
	// 672ns
	// 1.672us
	// 2.672us
	// next 3.672us
}
