package driver

import (
	"runtime"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/traffic"
	"napisim/model/unit"
	"napisim/sim"
)

// overload is an interface that gets 64-byte frames a little faster than its core can
// take them, so that it polls for ever: one takes at least 380 ns.
func overload(s setup) *rig {
	s.wire.Rate = 10 * unit.Gbps
	s.device.RXRing, s.driver.Pool.Size = 512, 512
	r := newRig(s)
	cfg := traffic.DefaultConfig(sim.Never)
	cfg.Rate, cfg.Sizes = 3*unit.Mpps, traffic.FixedSize(60)
	r.in.Attach(traffic.New(cfg, 1, "overload"))
	return r
}

// steadyStates are interfaces under load whose work needs no memory once their pools
// are filled.
func steadyStates() map[string]*rig {
	dropping := onGeneric()
	dropping.driver.XDPDrop = true
	reloading := onLAN966x()
	reloading.driver.XDPDrop = true
	sending := onGeneric()
	sending.machine.Cores = 2
	sending.driver.TXCPU = 1
	sending.device.TXRing = 16
	sending.driver.Pool.Recycle = RecycleDriverOnly
	all := map[string]*rig{
		"generic, xdp": overload(dropping), "generic, skbs": overload(onGeneric()),
		"lan966x, xdp": overload(reloading), "lan966x, skbs": overload(onLAN966x()),
		"sending": overload(sending),
	}
	r := all["sending"]
	r.out.SetDrop(func(int64, *model.Frame) bool { return true }) // the test's peer would note them
	r.task(1, 0, func(c *cpu.Core) {
		seg := model.Segment{Frame: model.Frame{Len: 1514}}
		for {
			c.BHDisable()
			r.Xmit(c, &seg)
			c.BHEnable()
			c.Work(us)
		}
	})
	return all
}

// A run allocates nothing once its pools are filled. The bound leaves room for what
// the test's own process allocates beside it.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for name, r := range steadyStates() {
		var before, after runtime.MemStats
		var frames int64
		r.at(5*ms, func() {
			frames = -r.rx.Taken()
			runtime.ReadMemStats(&before)
		})
		r.at(15*ms, func() {
			frames += r.rx.Taken()
			runtime.ReadMemStats(&after)
		})
		r.run(t, 16*ms)
		if n := after.Mallocs - before.Mallocs; n > 50 {
			t.Errorf("%s: %d allocations in %d frames", name, n, frames)
		}
		if frames < 5000 {
			t.Errorf("%s: only %d frames", name, frames)
		}
	}
}

// benchmarkFrames runs an overloaded interface until it has taken so many frames.
func benchmarkFrames(b *testing.B, s setup) {
	b.ReportAllocs()
	r := overload(s)
	defer r.eng.Close()
	const warmUp = ms
	var watch func()
	watch = func() {
		if r.rx.Taken() >= int64(b.N) {
			r.eng.Stop()
			return
		}
		r.at(r.eng.Now()+100*us, watch)
	}
	start := int64(0)
	r.at(warmUp, func() {
		start = r.rx.Taken()
		b.ResetTimer()
		watch()
	})
	r.eng.Run()
	b.StopTimer()
	if n := r.rx.Taken() - start; n > 0 {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/frame")
	}
}

// BenchmarkPollingXDPDrop is one frame of a core that polls for ever and drops every
// frame by XDP.
func BenchmarkPollingXDPDrop(b *testing.B) {
	s := onGeneric()
	s.driver.XDPDrop = true
	benchmarkFrames(b, s)
}

// BenchmarkPollingLAN966xXDPDrop is the same with a reload for each frame.
func BenchmarkPollingLAN966xXDPDrop(b *testing.B) {
	s := onLAN966x()
	s.driver.XDPDrop = true
	benchmarkFrames(b, s)
}

// BenchmarkPollingSKBs is one frame that becomes an skb and is freed in the stack.
func BenchmarkPollingSKBs(b *testing.B) { benchmarkFrames(b, onGeneric()) }
