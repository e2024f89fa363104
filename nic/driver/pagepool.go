package driver

import (
	"fmt"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim/metric"
)

// The constants of page_pool (all versions).
const (
	ppAllocCacheSize   = 128 // PP_ALLOC_CACHE_SIZE
	ppAllocCacheRefill = 64  // PP_ALLOC_CACHE_REFILL
	ppMaxRing          = 32768
	pageSize           = 4096
)

// Recycle says how pages of skbs come back to their pool: the page_pool_recycle
// behaviour.
type Recycle uint8

const (
	// RecycleDriverOnly is that of kernels up to v5.13: only the driver recycles, from
	// its own poll; pages that went up with an skb are freed to the page allocator.
	// Pages are allocated one by one.
	RecycleDriverOnly Recycle = iota
	// RecycleRing is that of v5.14 to v6.3: pages of freed skbs go to the pool's ring.
	RecycleRing
	// RecycleDirect is that of v6.4 and v6.5 (8c48eea3adf3): they go to the pool's cache
	// when they are freed in NAPI context on the core that owns the NAPI, else to the ring.
	RecycleDirect
	// RecycleSoftirq is that of v6.6 and later: any softirq on that core will do, and any
	// section with softirqs off.
	RecycleSoftirq
)

// recycleNames are the names of the behaviour's values.
var recycleNames = []string{"driver_only", "ring", "direct_list_owner", "direct_in_softirq"}

// String returns the name that scenarios use.
func (r Recycle) String() string { return recycleNames[r] }

// ParseRecycle returns the behaviour of that name.
func ParseRecycle(name string) (Recycle, error) {
	for i, n := range recycleNames {
		if n == name {
			return Recycle(i), nil
		}
	}
	return 0, fmt.Errorf("page_pool_recycle: unknown behaviour %q", name)
}

// RecycleNames lists the values of the behaviour in the order of history.
func RecycleNames() []string { return append([]string(nil), recycleNames...) }

// PagePoolConfig describes a page_pool.
type PagePoolConfig struct {
	// Size is the capacity of the ring (pool_size), 1 to 32768.
	Size int
	// Recycle is the behaviour of the version.
	Recycle Recycle
}

// Validate returns every fault of the configuration.
func (c *PagePoolConfig) Validate() []error {
	if c.Size < 1 || c.Size > ppMaxRing {
		return []error{fmt.Errorf("page_pool.size: %d is not between 1 and %d (the kernel answers -E2BIG)",
			c.Size, ppMaxRing)}
	}
	return nil
}

// PagePool mirrors struct page_pool: a cache that only the NAPI's core uses, a ring
// that every core may return pages to, and the page allocator behind both. Pages
// are interchangeable, so they are counted, not named.
type PagePool struct {
	cfg   PagePoolConfig
	size  int // bytes that a device may write to a page
	cores []*cpu.Core
	owner func() int // napi.list_owner
	cache int
	ring  int
	held  int // in the receive ring, in skbs or in the driver's hand
	hand  int // taken off the receive ring or not yet posted to it
	stats PagePoolStats
}

// PagePoolStats are the counters of ethtool -S, under its names (rx_pp_...).
type PagePoolStats struct {
	// AllocFast counts pages that were in the cache, AllocRefill those for which it was
	// filled from the ring, AllocEmpty those that found the ring empty, too, and
	// AllocSlow those for which the page allocator was asked: AllocSlowHO if they are
	// larger than a page.
	AllocFast, AllocSlow, AllocSlowHO, AllocEmpty, AllocRefill metric.Counter
	// RecycleCached counts pages put into the cache, RecycleCacheFull those that found
	// no room there, RecycleRing those put into the ring and RingFull those that found no
	// room there either.
	RecycleCached, RecycleCacheFull, RecycleRing, RingFull metric.Counter
	// Taken and Released count pages that came from and went to the page allocator.
	Taken, Released metric.Counter
}

// NewPagePool returns an empty pool of pages into which the device may write up to
// maxLen bytes. They are freed on any of cores; owner reports the core on which the
// pool's NAPI is scheduled, or -1.
func NewPagePool(cfg PagePoolConfig, maxLen int, cores []*cpu.Core, owner func() int) *PagePool {
	return &PagePool{cfg: cfg, size: maxLen, cores: cores, owner: owner}
}

// Stats returns the pool's counters.
func (p *PagePool) Stats() *PagePoolStats { return &p.stats }

// Prefill allocates the pages that a driver posts when its interface goes up, at no
// cost: that happens before the run.
func (p *PagePool) Prefill(n int) {
	p.stats.Taken.Add(int64(n))
	p.held += n
}

// Alloc is page_pool_alloc_pages, n times: pages for the receive ring, from the
// cache, else from the ring, else from the page allocator. It is called in the NAPI's
// poll on core c, and leaves the pages in the driver's hand.
func (p *PagePool) Alloc(c *cpu.Core, n int) {
	for n > 0 {
		c.Look() // the cache is this core's own, but what is counted is seen outside
		fast := 0
		if p.cache == 0 {
			p.refillCache(c)
			c.Look()
			fast-- // the page asked for is counted there
		}
		k := min(n, p.cache)
		p.cache -= k
		p.held += k
		p.hand += k
		p.stats.AllocFast.Add(int64(fast + k))
		c.SpendN(model.StagePageFast, k)
		n -= k
	}
}

// refillCache is page_pool_refill_alloc_cache and, if the ring is empty,
// page_pool_alloc_pages_slow. It counts for the one page that was asked for. The caller has
// looked, as the ring is shared with cores that free skbs.
func (p *PagePool) refillCache(c *cpu.Core) {
	if n := min(p.ring, ppAllocCacheRefill); n > 0 {
		p.ring -= n
		p.cache = n
		p.stats.AllocRefill.Inc()
		c.SpendN(model.StagePageRing, n)
		return
	}
	n := ppAllocCacheRefill
	slow := &p.stats.AllocSlow
	switch {
	case p.size > pageSize:
		n, slow = 1, &p.stats.AllocSlowHO
	case p.cfg.Recycle == RecycleDriverOnly:
		n = 1 // bulk allocation came with v5.13
	}
	p.cache = n
	p.stats.AllocEmpty.Inc()
	slow.Inc()
	p.stats.Taken.Add(int64(n))
	c.SpendN(model.StagePageSlow, n)
	c.SpendN(model.StageDMASyncByte, n*p.size)
}

// RecycleDirect is page_pool_recycle_direct: the driver gives back n pages of its
// hand that never left its poll, as after XDP_DROP.
func (p *PagePool) RecycleDirect(c *cpu.Core, n int) {
	c.Look() // what finds no room in the cache goes to the ring, which other cores share
	p.hand -= n
	p.held -= n
	p.put(c, n, true)
}

// ReturnPages takes back the pages of a freed skb (page_pool_put_page). It implements
// model.PageReturner: the caller has looked, and spent nothing since.
func (p *PagePool) ReturnPages(coreID, n int, safe bool) {
	c := p.cores[coreID]
	p.held -= n
	if p.cfg.Recycle == RecycleDriverOnly {
		p.stats.Released.Add(int64(n))
		c.SpendN(model.StagePageSlow, n)
		return
	}
	p.put(c, n, p.local(c, safe))
}

// local reports whether pages freed on core c may go into the cache (napi_pp_put_page,
// page_pool_napi_local since v6.10).
func (p *PagePool) local(c *cpu.Core, safe bool) bool {
	switch p.cfg.Recycle {
	case RecycleDirect:
		return safe && p.owner() == c.ID
	case RecycleSoftirq:
		return c.InInterrupt() && !c.InHardirq() && p.owner() == c.ID
	case RecycleDriverOnly, RecycleRing:
	}
	return false
}

// put is __page_pool_put_page, n times: into the cache if direct is allowed, then
// into the ring, and what finds no room there goes to the page allocator. All of it
// is visible to other cores before its cost is spent, so that it does not matter when
// the cost is paid.
func (p *PagePool) put(c *cpu.Core, n int, direct bool) {
	cached := 0
	if direct {
		cached = min(n, ppAllocCacheSize-p.cache)
		p.cache += cached
		p.stats.RecycleCached.Add(int64(cached))
		p.stats.RecycleCacheFull.Add(int64(n - cached))
	}
	ringed := min(n-cached, p.cfg.Size-p.ring)
	released := n - cached - ringed
	p.ring += ringed
	p.stats.RecycleRing.Add(int64(ringed))
	p.stats.RingFull.Add(int64(released))
	p.stats.Released.Add(int64(released))
	c.SpendN(model.StagePageFast, cached)
	c.SpendN(model.StagePageRing, ringed)
	c.SpendN(model.StagePageSlow, released)
	// Each is made ready for the device before it is known where there is room.
	c.SpendN(model.StageDMASyncByte, n*p.size)
}

// Check holds the books against each other: pages taken from the page allocator are
// released, in the pool, or held by the receive ring, the driver and skbs. ring and
// skbs are the pages found in the receive ring and in skbs.
func (p *PagePool) Check(ring, skbs int) error {
	taken, released := p.stats.Taken.Value(), p.stats.Released.Value()
	if taken != released+int64(p.cache+p.ring+p.held) || p.held != ring+skbs+p.hand {
		return fmt.Errorf("page_pool: %d pages taken, %d released, %d cached, %d in its ring, %d held: "+
			"%d by the receive ring, %d by skbs, %d by the driver",
			taken, released, p.cache, p.ring, p.held, ring, skbs, p.hand)
	}
	return nil
}
