package skbuff

import (
	"fmt"
	"slices"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

// CacheBehaviour is a way of keeping descriptors between their free and their next use.
type CacheBehaviour struct {
	// Name selects the behaviour in a scenario.
	Name string
	// Alloc takes a descriptor for a caller that may use the cache (napi_alloc_skb,
	// napi_get_frags, napi_build_skb).
	Alloc func(*Cache)
	// Free takes one back from a caller that may use the cache (napi_consume_skb with a
	// budget).
	Free func(*Cache)
	// Stolen says that descriptors of packets that GRO has merged are freed by Free, too.
	Stolen bool
	// EndOfNetRX is what net_rx_action does at its end.
	EndOfNetRX func(*Cache)

	size, bulk, batch int // capacity, bulk allocation, bulk free
}

// caches is the table of skb_cache behaviours.
var caches = []CacheBehaviour{
	{Name: "free_only", Alloc: allocSlab, Free: freeWhenFull, EndOfNetRX: flushFrees, size: 64, batch: 64},
	{Name: "two_arrays", Alloc: allocTwoArrays, Free: freeTwoArrays, EndOfNetRX: refillTwoArrays, size: 64, bulk: 64, batch: 64},
	{Name: "unified", Alloc: allocUnified, Free: freeWhenFull, Stolen: true, EndOfNetRX: keep, size: 64, bulk: 16, batch: 32},
	{Name: "unified_128", Alloc: allocUnified, Free: freeWhenFull, Stolen: true, EndOfNetRX: keep, size: 128, bulk: 32, batch: 32},
}

// CacheNames lists the values of the skb_cache behaviour: the kernel's history, with the
// proposal of January 2021 in its place.
func CacheNames() []string {
	var all []string
	for _, b := range caches {
		all = append(all, b.Name)
	}
	return all
}

func findCache(name string) (CacheBehaviour, error) {
	if i := slices.IndexFunc(caches, func(b CacheBehaviour) bool { return b.Name == name }); i >= 0 {
		return caches[i], nil
	}
	return CacheBehaviour{}, fmt.Errorf("skb_cache: unknown behaviour %q", name)
}

// Cache is the descriptors that one core keeps, and its defer list.
type Cache struct {
	core *cpu.Core
	b    *CacheBehaviour
	n    int // freed ones, or all of the unified cache
	pre  int // allocated in advance (skb_cache of two_arrays)

	slab     int // free descriptors in the pages that the slab keeps
	owed     int // the next ones that are freed do not come back
	slabPage sim.Time
	data     slab // linear parts of skbs that the stack sends
	clones   slab // descriptors of write queues
	linear   slab // linear parts that hold a frame

	deferred model.SKBList
	groups   int  // skbs on it, those merged into others not counted
	ipi      bool // an interrupt is on its way (defer_ipi_scheduled)
	line     *cpu.Line
	stats    Stats
}

// Stats are the counters of one Cache. Linux has none of them.
type Stats struct {
	// Allocs and Frees are the descriptors given out and taken back through the cache.
	Allocs, Frees int64
	// SlabAllocs and SlabFrees are those that went to the slab one by one.
	SlabAllocs, SlabFrees int64
	// BulkAllocs and BulkFrees are those that went there in bulk; BulkCalls counts the
	// calls of both kinds.
	BulkAllocs, BulkFrees, BulkCalls int64
	// Deferred counts the skbs that other cores left here, Drained those of them that were
	// freed, Kicks the interrupts that they sent for it.
	Deferred, Drained, Kicks int64
}

// Stats returns the counters.
func (k *Cache) Stats() Stats { return k.stats }

// Cached returns the descriptors in the cache.
func (k *Cache) Cached() int { return k.n + k.pre }

// Alloc takes a descriptor and pays for it. napi says that the driver uses the
// napi_alloc_skb family, which draws on the cache; build_skb and alloc_skb do not.
func (k *Cache) Alloc(napi bool) {
	if k == nil {
		return
	}
	k.core.Look() // counted at its instant, also where an interrupt comes first
	k.stats.Allocs++
	if napi {
		k.b.Alloc(k)
	} else {
		allocSlab(k)
	}
}

// FreeN frees n descriptors in NAPI context (napi_consume_skb with a budget).
func (k *Cache) FreeN(n int) {
	if k == nil {
		return
	}
	for range n {
		k.core.Look()
		k.stats.Frees++
		k.b.Free(k)
	}
}

// FreeStolen frees the descriptor of a packet that GRO has merged: its data belongs to
// another skb now (napi_skb_free_stolen_head).
func (k *Cache) FreeStolen() {
	switch {
	case k == nil:
	case k.b.Stolen:
		k.FreeN(1)
	default:
		k.freeSlab(1)
	}
}

// freeSlab frees n descriptors one by one, outside of NAPI context (kfree_skbmem).
func (k *Cache) freeSlab(n int) {
	if k == nil {
		return
	}
	k.core.Look()
	k.putSlab(n)
	k.stats.Frees += int64(n)
	k.stats.SlabFrees += int64(n)
	k.core.SpendN(model.StageSlabFree, n)
}

// EndOfNetRX is what net_rx_action does for the cache before it returns.
func (k *Cache) EndOfNetRX() {
	if k != nil {
		k.core.Look()
		k.b.EndOfNetRX(k)
	}
}

// A page of the slab of descriptors holds slabObjects of them (256 bytes each). Freed pages
// stay with the core and its node up to about slabKeeps descriptors: in recordings of
// bursts of 300 and 1000 frames that many were cheap after all had been freed.
const (
	slabObjects = 16
	slabKeeps   = 9 * slabObjects
)

// takeSlab takes n descriptors out of the pages of the slab, and new pages where those are
// empty.
func (k *Cache) takeSlab(n int) {
	if k.slabPage == 0 {
		return
	}
	for k.slab < n {
		k.core.Work(k.slabPage)
		k.slab += slabObjects
	}
	k.slab -= n
}

// putSlab gives n descriptors back to their pages.
func (k *Cache) putSlab(n int) {
	gone := min(n, k.owed)
	k.owed -= gone
	k.slab = min(k.slab+n-gone, slabKeeps)
}

// bulkAlloc counts and pays for n descriptors; the caller has put them where they are, so that
// the books are right at each instant.
func (k *Cache) bulkAlloc(n int) {
	k.stats.BulkAllocs += int64(n)
	k.stats.BulkCalls++
	k.takeSlab(n)
	k.core.SpendN(model.StageSlabBulkAlloc, n)
}

func (k *Cache) bulkFree(n int) {
	if n == 0 {
		return
	}
	k.n -= n
	k.putSlab(n)
	k.stats.BulkFrees += int64(n)
	k.stats.BulkCalls++
	k.core.SpendN(model.StageSlabBulkFree, n)
}

// allocSlab is kmem_cache_alloc: up to v5.11 for every skb.
func allocSlab(k *Cache) {
	k.stats.SlabAllocs++
	k.takeSlab(1)
	k.core.Spend(model.StageSlabAlloc)
}

// freeWhenFull puts a descriptor into the array. When that is full a batch goes to the
// slab: all of it in _kfree_skb_defer (v4.6 to v5.11), the upper half in
// napi_skb_cache_put (since v5.12), 32 of 128 there in v6.18.
func freeWhenFull(k *Cache) {
	k.n++
	if k.n == k.b.size {
		k.bulkFree(k.b.batch)
	}
}

// flushFrees is __kfree_skb_flush at the end of net_rx_action, v4.6 to v5.11.
func flushFrees(k *Cache) { k.bulkFree(k.n) }

// keep does nothing: since v5.12 the cache stays filled between softirqs.
func keep(*Cache) {}

// allocUnified is napi_skb_cache_get, since v5.12.
func allocUnified(k *Cache) {
	if k.n > 0 {
		k.n--
		return
	}
	k.n = k.b.bulk - 1
	k.bulkAlloc(k.b.bulk)
}

// allocTwoArrays is the first proposal: what was freed is used first.
func allocTwoArrays(k *Cache) {
	switch {
	case k.n > 0:
		k.n--
	case k.pre > 0:
		k.pre--
	default:
		k.pre = k.b.bulk - 1
		k.bulkAlloc(k.b.bulk)
	}
}

// freeTwoArrays is the first proposal: the array for allocations is filled first.
func freeTwoArrays(k *Cache) {
	if k.pre < k.b.size {
		k.pre++
		return
	}
	freeWhenFull(k)
}

// refillTwoArrays is the end of net_rx_action in the first proposal.
func refillTwoArrays(k *Cache) {
	k.bulkFree(k.n)
	if n := k.b.size - k.pre; n > 0 {
		k.core.Look()
		k.pre += n
		k.bulkAlloc(n)
	}
}

// check holds the books of the cache against each other.
func (k *Cache) check() error {
	st := &k.stats
	if got, want := st.SlabAllocs+st.BulkAllocs+st.Frees, st.Allocs+st.SlabFrees+st.BulkFrees+int64(k.Cached()); got != want {
		return fmt.Errorf("skb cache of cpu%d: %d descriptors came in and %d are accounted for", k.core.ID, got, want)
	}
	if k.n >= k.b.size || k.pre > k.b.size {
		return fmt.Errorf("skb cache of cpu%d: %d and %d descriptors in arrays of %d", k.core.ID, k.n, k.pre, k.b.size)
	}
	if n := int64(k.deferred.Len()); st.Deferred != st.Drained+n {
		return fmt.Errorf("defer list of cpu%d: %d skbs left, %d freed and %d on the list", k.core.ID, st.Deferred, st.Drained, n)
	}
	return nil
}
