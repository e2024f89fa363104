package nic_test

import (
	"testing"

	"napisim/model"
	"napisim/model/link"
	"napisim/model/traffic"
	"napisim/model/unit"
	"napisim/nic"
	"napisim/sim"
)

// count is a Line that counts.
type count int

func (c *count) Raise() { *c++ }

// bench returns a device at 10 Gbit/s that receives 10 Mpps of the shortest frames.
func bench(cfg nic.Config) (*sim.Engine, *nic.Device) {
	eng := sim.NewEngine(sim.Lazy)
	in := link.NewPipe(link.Config{Rate: 10 * unit.Gbps})
	tr := traffic.DefaultConfig(sim.Never)
	tr.Rate = 10 * unit.Mpps
	in.Attach(traffic.New(tr, 1, "bench"))
	dev := nic.New(eng, 0, cfg, in, link.NewEgress(eng, 1, link.Config{Rate: 10 * unit.Gbps}, nil))
	for _, v := range dev.Vectors() {
		v.Connect(new(count))
	}
	dev.RX(0).Refill(0, dev.RX(0).Size())
	return eng, dev
}

// BenchmarkFrame is what a frame costs from the source through the link and the ring
// to the driver, in polls of 64 with the vector masked.
func BenchmarkFrame(b *testing.B) {
	_, dev := bench(nic.DefaultConfig())
	ring := dev.RX(0)
	now := sim.Time(0)
	var bytes int64
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if ring.Filled() == 0 {
			now += 64 * 100 * sim.Nanosecond
			ring.Refill(now, ring.Awaiting())
		}
		bytes += int64(ring.Take().Len)
	}
}

var _ = model.MinFrame
