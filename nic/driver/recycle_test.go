package driver

import (
	"testing"

	"napisim/model"
	"napisim/model/cpu"
)

// Since v6.6 pages freed with softirqs off on the owner's core go into the cache, whoever
// frees them (P2 without NAPI context); with softirqs on they go to the ring, also from
// NAPI context on other cores.
func TestP2InAnySoftirqSinceV66(t *testing.T) {
	for _, c := range []struct {
		name           string
		owner, core    int
		bhOff, safe    bool
		cached, ringed int64
	}{
		{"softirqs off", 0, 0, true, false, 128, 472},
		{"softirqs on", 0, 0, false, true, 0, 512},
		{"of another NAPI", -1, 0, true, true, 0, 512},
		{"on another core", 0, 1, true, true, 0, 512},
	} {
		r := newPoolRig(PagePoolConfig{Size: 512, Recycle: RecycleSoftirq}, bufferSize, model.Costs{})
		r.pool.Prefill(512 + 600)
		r.owner = c.owner
		r.on(c.core, func(core *cpu.Core) {
			if c.bhOff {
				core.BHDisable()
				defer core.BHEnable()
			}
			r.pool.ReturnPages(core.ID, 600, c.safe)
		})
		r.run()
		same(t, c.name+": cached", r.pool.Stats().RecycleCached.Value(), c.cached)
		same(t, c.name+": ring", r.pool.Stats().RecycleRing.Value(), c.ringed)
	}
}
