package skbuff

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

// This file has two cores: skbs are allocated on core 0 and freed by a task on core 1.
// Core 0 has a softirq layer in miniature that frees what was left for it.

type rig struct {
	eng     *sim.Engine
	m       *cpu.Machine
	skbs    model.SKBPool
	h       *Heads
	pending bool
	runs    int
	pages   pages
}

// pages notes who returns pages and in which context.
type pages struct{ by []string }

func (p *pages) ReturnPages(coreID, n int, safe bool) {
	p.by = append(p.by, fmt.Sprintf("cpu%d %d safe=%v", coreID, n, safe))
}

func newRig(mode sim.Mode, cfg Config, costs model.Costs) *rig {
	r := &rig{eng: sim.NewEngine(mode)}
	r.m = cpu.NewMachine(r.eng, cpu.Config{Cores: 2, HZ: 250, IPILatency: sim.Microsecond, Costs: costs})
	r.h = New(cfg, r.m, &r.skbs)
	r.m.Cores[0].SetSoftirqs(r)
	r.h.SetKick(r.m.Cores[0], func() { r.pending = true })
	return r
}

func (r *rig) Pending() bool { return r.pending }
func (r *rig) RaiseTimer()   {}
func (r *rig) DoSoftirq()    { r.InvokeSoftirq() }
func (r *rig) InvokeSoftirq() {
	c := r.m.Cores[0]
	prev, entered := c.BeginSoftirq(cpu.Softirq)
	r.pending = false
	c.IRQEnable()
	r.runs++
	r.h.FlushDeferred(c)
	c.IRQDisable()
	c.EndSoftirq(prev, entered)
}

func (r *rig) skb(allocCPU int) *model.SKB {
	s := r.skbs.Get()
	s.Segs, s.Pages, s.Pool, s.AllocCPU = 1, 1, &r.pages, allocCPU
	return s
}

// read frees n groups of size skbs that core 0 has allocated on core 1, one after another.
func (r *rig) read(t *testing.T, n, size, allocCPU int) {
	t.Helper()
	task := r.m.NewTask(r.m.Cores[1], "reader", cpu.TaskConfig{}, func(task *cpu.Task) {
		for range n {
			var list model.SKBList
			for i := range size {
				s := r.skb(allocCPU)
				s.HeadFreed = i > 0
				list.PushBack(s)
			}
			r.h.FreeDeferred(task.Core(), &r.skbs, &list)
		}
	})
	task.WakeFromDevice()
	r.until(10 * sim.Millisecond)
	if err := r.h.Check(); err != nil {
		t.Error(err)
	}
}

type stop struct{ *sim.Engine }

func (s stop) Fire(uint64) { s.Stop() }

func (r *rig) until(at sim.Time) {
	defer r.eng.Close()
	r.eng.Schedule(at, 255, stop{r.eng}, 0)
	r.eng.Run()
	for _, c := range r.m.Cores {
		c.Settle()
	}
}

// Since v5.19 a reader on another core leaves skbs to the core that allocated them. The
// 33rd of 64 finds 32 waiting and sends an interrupt; without more reason nobody frees the
// first 32. Pitfall 11: pages freed on core 1 would never be fit for the cache of a pool
// on core 0; left to core 0 they are freed there in NAPI context.
func TestPitfall11DeferredToAllocCPU(t *testing.T) {
	for _, c := range []struct {
		n, waiting, drained, kicks int
	}{
		{32, 32, 0, 0},
		{33, 0, 33, 1},
	} {
		r := newRig(sim.Lazy, DefaultConfig(), model.Costs{})
		r.read(t, c.n, 1, 0)
		k := r.h.caches[0]
		same(t, "waiting", k.deferred.Len(), c.waiting)
		same(t, "drained", int(k.stats.Drained), c.drained)
		same(t, "interrupts", int(k.stats.Kicks), c.kicks)
		same(t, "live", r.skbs.Live(), c.waiting)
		for _, by := range r.pages.by {
			same(t, "returned by", by, "cpu0 1 safe=true")
		}
		// They feed the cache of core 0: 33 frees.
		same(t, "cached there", k.Cached(), c.drained)
	}
}

// With net.core.skb_defer_max waiting, the reader frees by itself: the interrupt takes
// longer than it needs for the rest here.
func TestDeferMax(t *testing.T) {
	r := newRig(sim.Lazy, DefaultConfig(), model.Costs{})
	r.m.Cores[0].SetSoftirqs(r)
	r.h.caches[0].line = nil // nobody is interrupted
	r.read(t, 70, 1, 0)
	same(t, "waiting", r.h.caches[0].deferred.Len(), 64)
	same(t, "freed by the reader", len(r.pages.by), 6)
	same(t, "by", r.pages.by[0], "cpu1 1 safe=false")
	same(t, "to the slab", r.h.caches[1].stats.SlabFrees, 6)
}

// Up to v5.18, and for skbs of its own core, the reader frees. A limit of 0 turns it off.
func TestNotDeferred(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   Config
		alloc int
	}{
		"v5.14":   {Config{Cache: "unified", Defer: deferNever, DeferMax: 64}, 0},
		"own":     {DefaultConfig(), 1},
		"limit 0": {Config{Cache: "unified", Defer: deferToAlloc}, 0},
	} {
		r := newRig(sim.Lazy, c.cfg, model.Costs{})
		r.read(t, 40, 1, c.alloc)
		same(t, name+": live", r.skbs.Live(), 0)
		same(t, name+": freed by the reader", len(r.pages.by), 40)
		same(t, name+": by", r.pages.by[0], "cpu1 1 safe=false")
	}
}

// An skb and those merged into it are one: they count once, and their descriptors but
// the first were freed when they were merged.
func TestDeferredGroup(t *testing.T) {
	r := newRig(sim.Lazy, DefaultConfig(), model.Costs{})
	r.read(t, 33, 3, 0)
	k := r.h.caches[0]
	same(t, "drained", k.stats.Drained, 99)
	same(t, "descriptors", k.stats.Frees, 33)
	same(t, "interrupts", k.stats.Kicks, 1)
	same(t, "pages", len(r.pages.by), 99)
}

// Lazy, eager and slow runs agree, whatever things cost.
func TestDeferModes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var costs model.Costs
		for _, s := range []model.Stage{model.StageSKBFree, model.StageSlabFree, model.StageSlabBulkFree, model.StageSKBDefer, model.StageIPI, model.StageHardirqEntry} {
			costs[s] = sim.Time(rapid.IntRange(0, 2_000_000).Draw(rt, s.String()))
		}
		cfg := Config{
			Cache: rapid.SampledFrom(CacheNames()).Draw(rt, "cache"), Defer: deferToAlloc,
			DeferMax: rapid.IntRange(0, 70).Draw(rt, "max"),
		}
		n := rapid.IntRange(1, 200).Draw(rt, "n")
		var want string
		for i, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
			r := newRig(mode, cfg, costs)
			r.read(t, n, 1, 0)
			got := fmt.Sprintf("%+v %+v %v %d", r.h.caches[0].stats, r.h.caches[1].stats, r.pages.by, r.runs)
			for _, c := range r.m.Cores {
				got += fmt.Sprintf(" %v %v", c.Account(), c.Spent())
			}
			if i == 0 {
				want = got
			} else if got != want {
				rt.Fatalf("mode %d differs:\n%s\n%s", mode, want, got)
			}
		}
	})
}
