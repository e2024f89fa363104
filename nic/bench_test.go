package nic_test

import (
	"runtime"
	"testing"

	"napisim/model"
	"napisim/model/link"
	"napisim/model/traffic"
	"napisim/model/unit"
	"napisim/nic"
	"napisim/sim"
)

// receiver returns a device at 10 Gbit/s with an open-loop sender, its ring posted.
func receiver(cfg nic.Config, tr traffic.Config) (*sim.Engine, *nic.Device) {
	eng := sim.NewEngine(sim.Lazy)
	speed := link.Config{Rate: 10 * unit.Gbps}
	in := link.NewPipe(speed)
	in.Attach(traffic.New(tr, 1, "bench"))
	dev := nic.New(eng, phaseDevice, cfg, in, link.NewEgress(eng, phaseDevice, speed, nil))
	dev.RX(0).Refill(0, cfg.RXRing)
	return eng, dev
}

func sender(rate unit.PacketRate, gaps traffic.Gaps) traffic.Config {
	cfg := traffic.DefaultConfig(sim.Never)
	cfg.Rate, cfg.Gaps = rate, gaps
	return cfg
}

// poll takes what 64 frames at 10 Mpps take, and refills.
func poll(ring *nic.RXRing, now sim.Time) (bytes int64) {
	ring.Pull(now)
	n := ring.Filled()
	for range n {
		bytes += int64(ring.Take().Len)
	}
	ring.Refill(now, n)
	return bytes
}

// BenchmarkFrame is what a frame costs from its source over the link and the ring to
// the driver, in polls of 64 with the vector masked.
func BenchmarkFrame(b *testing.B) {
	for _, gaps := range []traffic.Gaps{traffic.Constant, traffic.Exponential} {
		b.Run(gaps.String(), func(b *testing.B) {
			_, dev := receiver(nic.DefaultConfig(), sender(10*unit.Mpps, gaps))
			now := sim.Time(0)
			b.ReportAllocs()
			for n := 0; n < b.N; n += 64 {
				now += 64 * 100 * ns
				poll(dev.RX(0), now)
			}
			if err := dev.Check(now); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkMissed is what a frame costs that finds no free descriptor.
func BenchmarkMissed(b *testing.B) {
	_, dev := receiver(nic.DefaultConfig(), sender(10*unit.Mpps, traffic.Constant))
	now := sim.Time(0)
	b.ReportAllocs()
	for n := 0; n < b.N; n += 64 {
		now += 64 * 100 * ns
		dev.RX(0).Pull(now)
	}
}

// napi is an interrupt that takes no time: mask, acknowledge, poll, unmask.
type napi struct {
	eng *sim.Engine
	dev *nic.Device
}

func (h *napi) Raise() { h.eng.Schedule(h.eng.Now(), phaseCommands, h, 0) }

func (h *napi) Fire(uint64) {
	now := h.eng.Now()
	v := h.dev.RXVector(0)
	v.Mask()
	v.Ack(now)
	poll(h.dev.RX(0), now)
	v.Unmask(now)
}

// BenchmarkInterrupt is what an interrupt costs with its frames, two events
// included: one of the device, one of the driver.
func BenchmarkInterrupt(b *testing.B) {
	for _, c := range []struct {
		name  string
		rearm nic.Rearm
		rx    nic.Coalesce
		rate  unit.PacketRate
	}{
		{"each_frame", nic.NewerThanConsumer, nic.Coalesce{}, 100 * unit.Kpps},
		{"each_frame/latched", nic.LatchEvents, nic.Coalesce{}, 100 * unit.Kpps},
		{"rx-usecs=20", nic.NewerThanConsumer, nic.Coalesce{Usecs: 20 * us}, unit.Mpps},
		{"rx-usecs=20,rx-frames=32", nic.NewerThanConsumer, nic.Coalesce{Usecs: 20 * us, Frames: 32}, unit.Mpps},
		{"rx-frames=32", nic.NewerThanConsumer, nic.Coalesce{Frames: 32}, unit.Mpps},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg := nic.DefaultConfig()
			cfg.RX, cfg.Rearm = c.rx, c.rearm
			eng, dev := receiver(cfg, sender(c.rate, traffic.Constant))
			v := dev.RXVector(0)
			v.Connect(&napi{eng, dev})
			v.Unmask(0)
			eng.Schedule(0, 255, stopAfter{eng, v, int64(b.N)}, 0)
			b.ReportAllocs()
			b.ResetTimer()
			eng.Run()
			b.ReportMetric(float64(eng.Fired())/float64(b.N), "events/op")
			b.ReportMetric(v.RXFrames().Mean(), "frames/op")
		})
	}
}

// stopAfter ends a run after so many interrupts; it looks every millisecond.
type stopAfter struct {
	eng *sim.Engine
	v   *nic.Vector
	n   int64
}

func (s stopAfter) Fire(uint64) {
	if s.v.Interrupts() >= s.n {
		s.eng.Stop()
		return
	}
	s.eng.Schedule(s.eng.Now()+sim.Millisecond, 255, s, 0)
}

// BenchmarkXmit is what a segment costs, from Xmit to Reap.
func BenchmarkXmit(b *testing.B) {
	_, dev := receiver(nic.DefaultConfig(), sender(unit.Mpps, traffic.Constant))
	s := &model.Segment{Frame: model.Frame{Len: 60}}
	now := sim.Time(0)
	b.ReportAllocs()
	for n := 0; n < b.N; n += 64 {
		for range 64 {
			dev.TX(0).Xmit(now, s)
		}
		now += 100 * us
		dev.TX(0).Reap(now)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	cfg := nic.DefaultConfig()
	cfg.RX = nic.Coalesce{Usecs: 20 * us, Frames: 32}
	eng, dev := receiver(cfg, sender(unit.Mpps, traffic.Exponential))
	v := dev.RXVector(0)
	v.Connect(&napi{eng, dev})
	v.Unmask(0)
	var before, after runtime.MemStats
	eng.Schedule(10*sim.Millisecond, 255, do(func() { runtime.ReadMemStats(&before) }), 0)
	eng.Schedule(110*sim.Millisecond, 255, do(func() {
		runtime.ReadMemStats(&after)
		eng.Stop()
	}), 0)
	eng.Run()
	// 100000 frames and some 4000 interrupts; the runtime itself may allocate a little.
	if n := after.Mallocs - before.Mallocs; n > 20 {
		t.Errorf("%d allocations in 0.1 s at 1 Mpps", n)
	}
}
