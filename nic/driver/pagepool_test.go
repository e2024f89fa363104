package driver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

// bufferSize is what a device may write to a page of the pools under test.
const bufferSize = 2048

// A poolRig is a pool on a machine of two cores, which do what they are told one after
// the other. list_owner is what a test says.
type poolRig struct {
	eng   *sim.Engine
	m     *cpu.Machine
	pool  *PagePool
	owner int
	steps [2][]poolStep // by core
	next  sim.Time
}

type poolStep struct {
	at sim.Time
	do func(c *cpu.Core)
}

func newPoolRig(cfg PagePoolConfig, size int, costs model.Costs) *poolRig {
	r := &poolRig{eng: sim.NewEngine(sim.Lazy), owner: -1}
	r.m = cpu.NewMachine(r.eng, cpu.Config{Cores: 2, HZ: 100, Costs: costs})
	r.pool = NewPagePool(cfg, size, r.m.Cores, func() int { return r.owner })
	return r
}

// on lets a core do something, a millisecond after what came before.
func (r *poolRig) on(core int, do func(c *cpu.Core)) {
	r.next += sim.Millisecond
	r.steps[core] = append(r.steps[core], poolStep{r.next, do})
}

// run lets the cores do it all and returns what they were charged.
func (r *poolRig) run() (spent [model.NumStages]int64) {
	defer r.eng.Close()
	for i, c := range r.m.Cores {
		r.m.NewTask(c, "task", cpu.TaskConfig{}, func(t *cpu.Task) {
			for _, s := range r.steps[i] {
				c.Look()
				c.Work(s.at - c.Now())
				c.Look()
				s.do(c)
			}
		}).WakeFromDevice()
	}
	r.eng.Schedule(r.next+10*sim.Millisecond, 255, do(r.eng.Stop), 0)
	r.eng.Run()
	for _, c := range r.m.Cores {
		for s, n := range c.Spent() {
			spent[s] += n
		}
	}
	return spent
}

// do is an event.
type do func()

func (d do) Fire(uint64) { d() }

// same requires something to be what it has to be.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

// The vectors P1 and P2, and what other versions and places make of the same: a ring
// of 512, 512 pages posted, and 600 that a socket held are freed.
func TestP1P2Recycling(t *testing.T) {
	type outcome struct{ Cached, CacheFull, Ring, RingFull, Released int64 }
	inRing := outcome{Ring: 512, RingFull: 88, Released: 88}
	for _, c := range []struct {
		name    string
		recycle Recycle
		owner   int // list_owner
		core    int // that frees
		safe    bool
		want    outcome
	}{
		{"P1: by the application on another core", RecycleDirect, -1, 1, false, inRing},
		{"on another core while the NAPI is scheduled", RecycleDirect, 0, 1, true, inRing},
		{"on the owner's core, but not in NAPI context", RecycleDirect, 0, 0, false, inRing},
		{"in NAPI context, but of another NAPI", RecycleDirect, -1, 0, true, inRing},
		// 128 fit into the cache; 472 find it full, and the ring has room for them.
		{"P2: in softirq of the owner", RecycleDirect, 0, 0, true, outcome{Cached: 128, CacheFull: 472, Ring: 472}},
		{"up to v6.3, elsewhere", RecycleRing, -1, 1, false, inRing},
		{"up to v6.3, in softirq of the owner", RecycleRing, 0, 0, true, inRing},
		{"up to v5.13, elsewhere", RecycleDriverOnly, -1, 1, false, outcome{Released: 600}},
		{"up to v5.13, in softirq of the owner", RecycleDriverOnly, 0, 0, true, outcome{Released: 600}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newPoolRig(PagePoolConfig{Size: 512, Recycle: c.recycle}, bufferSize, model.Costs{})
			r.pool.Prefill(512 + 600)
			r.owner = c.owner
			r.on(c.core, func(core *cpu.Core) { r.pool.ReturnPages(core.ID, 600, c.safe) })
			spent := r.run()
			st := r.pool.Stats()
			same(t, "counters", outcome{
				st.RecycleCached.Value(), st.RecycleCacheFull.Value(), st.RecycleRing.Value(), st.RingFull.Value(), st.Released.Value(),
			}, c.want)
			if err := r.pool.Check(512, 0); err != nil {
				t.Error(err)
			}
			// Each page that may be recycled is synced for the device, wherever it goes then.
			synced := int64(600 * bufferSize)
			if c.recycle == RecycleDriverOnly {
				synced = 0
			}
			same(t, "through the cache", spent[model.StagePageFast], c.want.Cached)
			same(t, "through the ring", spent[model.StagePageRing], c.want.Ring)
			same(t, "to the page allocator", spent[model.StagePageSlow], c.want.Released)
			same(t, "bytes synced", spent[model.StageDMASyncByte], synced)
		})
	}
}

// allocCounts are the counters of allocation.
type allocCounts struct{ Fast, Slow, SlowHO, Empty, Refill, Taken int64 }

func countsOf(st *PagePoolStats) allocCounts {
	return allocCounts{
		st.AllocFast.Value(), st.AllocSlow.Value(), st.AllocSlowHO.Value(), st.AllocEmpty.Value(),
		st.AllocRefill.Value(), st.Taken.Value(),
	}
}

// Pages come from the cache, else from the ring, 64 at a time, else from the page
// allocator: 64 at a time since v5.13, one by one before, and so always if they are
// larger than 4096 bytes.
func TestPagePoolAlloc(t *testing.T) {
	direct := PagePoolConfig{Size: 512, Recycle: RecycleDirect}
	for _, c := range []struct {
		name  string
		cfg   PagePoolConfig
		size  int
		ring  int   // pages in the ring before
		alloc []int // calls
		want  allocCounts
		cache int // left
		spent [3]int64
	}{
		{
			"empty pool", direct, bufferSize, 0,
			[]int{1},
			allocCounts{Slow: 1, Empty: 1, Taken: 64},
			63,
			[3]int64{1, 0, 64},
		},
		{
			"bulk", direct, bufferSize, 0,
			[]int{64, 1},
			allocCounts{Fast: 63, Slow: 2, Empty: 2, Taken: 128},
			63,
			[3]int64{65, 0, 128},
		},
		{
			// 64 from the ring: one asked for it, 63 are fast; 36: one and 35; then 30 of 64 new.
			"ring first", direct, bufferSize, 100,
			[]int{130},
			allocCounts{Fast: 63 + 35 + 29, Slow: 1, Empty: 1, Refill: 2, Taken: 64},
			34,
			[3]int64{130, 100, 64},
		},
		{
			"v5.13",
			PagePoolConfig{Size: 512, Recycle: RecycleDriverOnly},
			bufferSize, 0,
			[]int{5},
			allocCounts{Slow: 5, Empty: 5, Taken: 5},
			0,
			[3]int64{5, 0, 5},
		},
		{
			"a page", direct, 4096, 0,
			[]int{2},
			allocCounts{Fast: 1, Slow: 1, Empty: 1, Taken: 64},
			62,
			[3]int64{2, 0, 64},
		},
		{
			"more than a page", direct, 4097, 0,
			[]int{2},
			allocCounts{SlowHO: 2, Empty: 2, Taken: 2},
			0,
			[3]int64{2, 0, 2},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newPoolRig(c.cfg, c.size, model.Costs{})
			r.pool.ring = c.ring
			r.pool.stats.Taken.Add(int64(c.ring))
			n := 0
			for _, k := range c.alloc {
				n += k
				r.on(0, func(core *cpu.Core) { r.pool.Alloc(core, k) })
			}
			spent := r.run()
			c.want.Taken += int64(c.ring)
			same(t, "counters", countsOf(r.pool.Stats()), c.want)
			same(t, "left in the cache", r.pool.cache, c.cache)
			same(t, "in the driver's hand", r.pool.hand, n)
			same(t, "page_fast, page_ring, page_slow", [3]int64{
				spent[model.StagePageFast], spent[model.StagePageRing], spent[model.StagePageSlow],
			}, c.spent)
			same(t, "bytes synced", spent[model.StageDMASyncByte], c.spent[2]*int64(c.size)) // new pages only
			if err := r.pool.Check(0, 0); err != nil {
				t.Error(err)
			}
		})
	}
}

// What the driver recycles from its own poll goes into the cache in every version, and
// is fast when it is wanted again.
func TestRecycleDirectInEveryVersion(t *testing.T) {
	for i := range RecycleNames() {
		r := newPoolRig(PagePoolConfig{Size: 100, Recycle: Recycle(i)}, bufferSize, model.Costs{})
		r.pool.Prefill(300)
		r.on(0, func(c *cpu.Core) {
			r.pool.hand += 240
			r.pool.RecycleDirect(c, 240) // 128 into the cache, 100 into the ring, 12 nowhere
			r.pool.Alloc(c, 128+50)      // 128 fast; 64 from the ring, 49 of them fast
		})
		r.run()
		st := r.pool.Stats()
		same(t, "cached", st.RecycleCached.Value(), 128)
		same(t, "ring", st.RecycleRing.Value(), 100)
		same(t, "ring full", st.RingFull.Value(), 12)
		same(t, "allocation", countsOf(st), allocCounts{Fast: 128 + 49, Refill: 1, Taken: 300})
		if err := r.pool.Check(60, 0); err != nil {
			t.Error(err)
		}
	}
}

// The ring is looked at when the work before is paid for: what another core returns
// until then is there.
func TestAllocLooksAtTheRing(t *testing.T) {
	var costs model.Costs
	costs[model.StagePageFast] = sim.Microsecond
	r := newPoolRig(PagePoolConfig{Size: 512, Recycle: RecycleRing}, bufferSize, costs)
	r.pool.Prefill(200)
	r.pool.cache, r.pool.held = 100, 100
	// The cache lasts for 100 us from 1 ms on; the pages come after 50 us.
	r.on(0, func(c *cpu.Core) { r.pool.Alloc(c, 101) })
	r.next -= 950 * sim.Microsecond
	r.on(1, func(c *cpu.Core) { r.pool.ReturnPages(c.ID, 30, false) })
	r.run()
	same(t, "counters", countsOf(r.pool.Stats()), allocCounts{Fast: 100, Refill: 1, Taken: 200})
}

// So is it when the driver's own pages find the cache full: those of another core were
// in the ring before.
func TestRecycleDirectLooksAtTheRing(t *testing.T) {
	r := newPoolRig(PagePoolConfig{Size: 100, Recycle: RecycleRing}, bufferSize, model.Costs{})
	r.pool.Prefill(300)
	r.on(0, func(c *cpu.Core) {
		r.pool.hand += 138
		c.Work(100 * sim.Microsecond)
		r.pool.RecycleDirect(c, 138)
	})
	r.next -= 950 * sim.Microsecond
	r.on(1, func(c *cpu.Core) { r.pool.ReturnPages(c.ID, 100, false) })
	r.run()
	same(t, "into the ring, by core", [2]int64{
		r.m.Cores[0].Spent()[model.StagePageRing], r.m.Cores[1].Spent()[model.StagePageRing],
	}, [2]int64{0, 100})
	same(t, "released", r.m.Cores[0].Spent()[model.StagePageSlow], 10)
}

// Pages that are not where the books have them are noticed.
func TestPagePoolCheck(t *testing.T) {
	good := func() *PagePool {
		p := NewPagePool(PagePoolConfig{Size: 8}, bufferSize, nil, nil)
		p.Prefill(10)
		p.held, p.hand, p.cache, p.ring = 7, 2, 2, 1
		return p
	}
	if err := good().Check(3, 2); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(p *PagePool){
		"cache":   func(p *PagePool) { p.cache++ },
		"ring":    func(p *PagePool) { p.ring-- },
		"held":    func(p *PagePool) { p.held++ },
		"hand":    func(p *PagePool) { p.hand-- },
		"release": func(p *PagePool) { p.stats.Released.Inc() },
		"take":    func(p *PagePool) { p.stats.Taken.Inc() },
	} {
		p := good()
		spoil(p)
		if err := p.Check(3, 2); err == nil || !strings.Contains(err.Error(), "page_pool: ") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	if good().Check(4, 2) == nil || good().Check(3, 3) == nil {
		t.Error("pages that are nowhere on the books go unnoticed")
	}
}

// A namedPool is page_pool with pages that have names, as simple as can be: every page
// is moved by itself.
type namedPool struct {
	cfg                    PagePoolConfig
	cache, ring            []int
	hand, held, released   []int // hand: with the driver; held: in skbs
	taken                  int
	fast, slow, empty, ref int64
	cached, full, ringed   int64
	over                   int64 // found the ring full
}

func pop(from *[]int) int {
	last := len(*from) - 1
	page := (*from)[last]
	*from = (*from)[:last]
	return page
}

func (p *namedPool) fresh() int {
	p.taken++
	return p.taken
}

func (p *namedPool) alloc() {
	switch {
	case len(p.cache) > 0:
		p.fast++
	case len(p.ring) > 0:
		for len(p.ring) > 0 && len(p.cache) < 64 {
			p.cache = append(p.cache, p.ring[0])
			p.ring = p.ring[1:]
		}
		p.ref++
	default:
		p.empty++
		p.slow++
		p.cache = append(p.cache, p.fresh())
		for p.cfg.Recycle != RecycleDriverOnly && len(p.cache) < 64 {
			p.cache = append(p.cache, p.fresh())
		}
	}
	p.hand = append(p.hand, pop(&p.cache))
}

func (p *namedPool) put(page int, direct bool) {
	switch {
	case direct && len(p.cache) < 128:
		p.cache = append(p.cache, page)
		p.cached++
		return
	case direct:
		p.full++
	}
	if len(p.ring) < p.cfg.Size {
		p.ring = append(p.ring, page)
		p.ringed++
		return
	}
	p.over++
	p.released = append(p.released, page)
}

func (p *namedPool) free(direct bool) {
	page := pop(&p.held)
	if p.cfg.Recycle == RecycleDriverOnly {
		p.released = append(p.released, page)
		return
	}
	p.put(page, direct && p.cfg.Recycle == RecycleDirect)
}

// lost returns how many pages are in no place, or in two.
func (p *namedPool) lost() int {
	all := slices.Concat(p.cache, p.ring, p.hand, p.held, p.released)
	slices.Sort(all)
	places, pages := len(all), len(slices.Compact(all))
	return p.taken - pages + places - pages
}

// Whatever is allocated, given up, recycled and freed, on whichever core: the pool
// counts as one in which every page has a name.
func TestPagePoolAgainstNamedPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := PagePoolConfig{
			Size:    rapid.SampledFrom([]int{1, 7, 64, 200, 512}).Draw(t, "ring"),
			Recycle: Recycle(rapid.IntRange(0, 2).Draw(t, "recycle")),
		}
		r := newPoolRig(cfg, bufferSize, model.Costs{})
		want := &namedPool{cfg: cfg}
		skbs, fault := 0, ""
		check := func(step string) {
			st, w := r.pool.Stats(), want
			got := fmt.Sprint(r.pool.cache, r.pool.ring, r.pool.hand, r.pool.held, st.Taken, st.Released,
				countsOf(st), st.RecycleCached, st.RecycleCacheFull, st.RecycleRing, st.RingFull)
			exp := fmt.Sprint(len(w.cache), len(w.ring), len(w.hand), len(w.hand)+len(w.held), w.taken, len(w.released),
				allocCounts{w.fast, w.slow, 0, w.empty, w.ref, int64(w.taken)}, w.cached, w.full, w.ringed, w.over)
			if got != exp {
				fault += fmt.Sprintf("%s: pool has\n%s, want\n%s\n", step, got, exp)
			}
			if err := r.pool.Check(0, skbs); err != nil {
				fault += fmt.Sprintf("%s: %v\n", step, err)
			}
			if n := w.lost(); n != 0 {
				fault += fmt.Sprintf("%s: %d pages of the oracle are lost or double\n", step, n)
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			n := rapid.OneOf(rapid.IntRange(0, 5), rapid.IntRange(0, 300)).Draw(t, "n")
			switch step := rapid.SampledFrom([]string{"alloc", "alloc", "give up", "give up", "recycle", "free", "free"}).Draw(t, "step"); step {
			case "alloc":
				r.on(0, func(c *cpu.Core) {
					r.pool.Alloc(c, n)
					for range n {
						want.alloc()
					}
					check(step)
				})
			case "give up": // posted, filled and given up with an skb
				r.on(0, func(*cpu.Core) {
					n := min(n, len(want.hand))
					r.pool.hand -= n
					skbs += n
					for range n {
						want.held = append(want.held, pop(&want.hand))
					}
				})
			case "recycle":
				r.on(0, func(c *cpu.Core) {
					n := min(n, len(want.hand))
					r.pool.RecycleDirect(c, n)
					for range n {
						want.put(pop(&want.hand), true)
					}
					check(step)
				})
			case "free":
				core := rapid.IntRange(0, 1).Draw(t, "core")
				owner := rapid.IntRange(-1, 0).Draw(t, "owner")
				safe := rapid.Bool().Draw(t, "safe")
				r.on(core, func(c *cpu.Core) {
					n := min(n, len(want.held))
					r.owner = owner
					skbs -= n
					r.pool.ReturnPages(c.ID, n, safe)
					for range n {
						want.free(safe && owner == core)
					}
					check(step)
				})
			}
		}
		if r.run(); fault != "" {
			t.Fatal(fault)
		}
	})
}

func TestRecycleNames(t *testing.T) {
	same(t, "names", RecycleNames(), []string{"driver_only", "ring", "direct_list_owner", "direct_in_softirq"})
	for i, name := range RecycleNames() {
		got, err := ParseRecycle(name)
		if err != nil || got != Recycle(i) || got.String() != name {
			t.Errorf("ParseRecycle(%s) = %v, %v", name, got, err)
		}
	}
	if _, err := ParseRecycle("direct"); err == nil || !strings.Contains(err.Error(), `"direct"`) {
		t.Errorf("error is %v", err)
	}
	RecycleNames()[0] = "changed"
	if RecycleDriverOnly.String() != "driver_only" {
		t.Error("the table of names can be changed from outside")
	}
}
