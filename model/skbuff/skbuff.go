package skbuff

import (
	"errors"
	"fmt"
	"slices"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

// Config is what a kernel version and its sysctls decide.
type Config struct {
	// Cache and Defer name the skb_cache and skb_defer_free behaviours.
	Cache, Defer string
	// DeferMax is net.core.skb_defer_max.
	DeferMax int
	// SlabPage is the time that a new page of the slab costs beyond its descriptors; 0 where
	// allocating one of them says what that costs on average.
	SlabPage sim.Time
}

// The values of the skb_defer_free behaviour in the order of history.
const (
	deferNever   = "never"
	deferToAlloc = "alloc_cpu"
)

// DeferNames lists the values of the skb_defer_free behaviour.
func DeferNames() []string { return []string{deferNever, deferToAlloc} }

// DefaultConfig returns the configuration of v6.1.
func DefaultConfig() Config { return Config{Cache: "unified", Defer: deferToAlloc, DeferMax: 64} }

// Validate returns every fault of the configuration.
func (c *Config) Validate() []error {
	var faults []error
	if _, err := findCache(c.Cache); err != nil {
		faults = append(faults, err)
	}
	if !slices.Contains(DeferNames(), c.Defer) {
		faults = append(faults, fmt.Errorf("skb_defer_free: unknown behaviour %q", c.Defer))
	}
	if c.SlabPage < 0 {
		faults = append(faults, fmt.Errorf("slab page: %v is negative", c.SlabPage))
	}
	if c.DeferMax < 0 {
		faults = append(faults, fmt.Errorf("net.core.skb_defer_max: %d is negative", c.DeferMax))
	}
	return faults
}

// Heads are the caches of all cores. A nil Heads keeps nothing and charges nothing for
// descriptors.
type Heads struct {
	cfg    Config
	cache  CacheBehaviour
	skbs   *model.SKBPool
	caches []*Cache
}

// New returns empty caches for the cores of m. cfg must be valid; skbs takes freed skbs.
// Until SetKick has been called nobody is interrupted for deferred skbs.
func New(cfg Config, m *cpu.Machine, skbs *model.SKBPool) *Heads {
	if faults := cfg.Validate(); len(faults) > 0 {
		panic(fmt.Sprintf("skbuff: %v", errors.Join(faults...)))
	}
	h := &Heads{cfg: cfg, skbs: skbs}
	h.cache, _ = findCache(cfg.Cache)
	for _, c := range m.Cores {
		h.caches = append(h.caches, &Cache{core: c, b: &h.cache, slabPage: cfg.SlabPage})
	}
	return h
}

// Stock puts n descriptors into the cache of a core before a run. The first owed ones that
// are freed leave pages that something else keeps. It belongs to the construction.
func (h *Heads) Stock(c *cpu.Core, n, owed int) {
	k := h.caches[c.ID]
	k.n += n
	k.stats.BulkAllocs += int64(n)
	k.owed = owed
}

// On returns the cache of a core.
func (h *Heads) On(c *cpu.Core) *Cache {
	if h == nil {
		return nil
	}
	return h.caches[c.ID]
}

// SetKick installs the interrupt that a core gets when others have left many skbs for
// it; raise raises NET_RX there (trigger_rx_softirq).
func (h *Heads) SetKick(c *cpu.Core, raise func()) {
	k := h.caches[c.ID]
	k.line = c.NewLine(-1, "CAL", func(c *cpu.Core) {
		c.Look()
		k.ipi = false
		raise()
	})
}

// Free is kfree_skb, or with napi napi_consume_skb with a budget: it frees s on core c to
// the pool skbs, pages and chained skbs included.
func (h *Heads) Free(c *cpu.Core, skbs *model.SKBPool, s *model.SKB, napi bool) {
	n := 1 + s.Chained
	if s.HeadFreed {
		n = 0
	}
	c.SpendN(model.StageSKBFree, n)
	if k := h.On(c); napi {
		k.FreeN(n)
	} else {
		k.freeSlab(n)
	}
	c.Look()
	pool, pages := s.Pool, s.Pages
	skbs.Put(s)
	if pages > 0 && pool != nil {
		pool.ReturnPages(c.ID, pages, napi)
	}
}

// FreeMerged frees the descriptors of n skbs on core c that were merged into others
// (kfree_skb_partial).
func (h *Heads) FreeMerged(c *cpu.Core, n int) {
	c.SpendN(model.StageSKBFree, n)
	h.On(c).freeSlab(n)
}

// FreeDeferred is skb_attempt_defer_free on core c of the first skb of list; the others
// were merged into it. Since v5.19 they are left to the core that allocated the first,
// unless that is c or has too many already. The list is empty afterwards.
func (h *Heads) FreeDeferred(c *cpu.Core, skbs *model.SKBPool, list *model.SKBList) {
	k := h.deferTo(c, list.Front())
	if k == nil {
		freeAll(h, c, skbs, list, false)
		return
	}
	k.stats.Deferred += int64(list.Len())
	k.deferred.Append(list)
	kick := k.groups == h.cfg.DeferMax/2 && !k.ipi && k.line != nil
	k.groups++
	if kick {
		k.ipi = true
		k.stats.Kicks++
	}
	c.Spend(model.StageSKBDefer)
	if kick {
		c.SendIPI(k.line)
	}
}

// deferTo returns the cache of the core that s is left to, nil if it is freed here; the
// core has looked then.
func (h *Heads) deferTo(c *cpu.Core, s *model.SKB) *Cache {
	if h == nil || h.cfg.Defer == deferNever || s.AllocCPU == c.ID || s.HeadFreed {
		return nil
	}
	k := h.caches[s.AllocCPU]
	if c.Look(); k.groups >= h.cfg.DeferMax {
		return nil
	}
	return k
}

func freeAll(h *Heads, c *cpu.Core, skbs *model.SKBPool, list *model.SKBList, napi bool) {
	for s := list.PopFront(); s != nil; s = list.PopFront() {
		h.Free(c, skbs, s, napi)
	}
}

// FlushDeferred is skb_defer_free_flush, at each turn of net_rx_action since v5.19: core
// c frees what others have left for it, in NAPI context.
func (h *Heads) FlushDeferred(c *cpu.Core) {
	k := h.On(c)
	if k == nil || h.cfg.Defer == deferNever {
		return
	}
	if c.Look(); k.groups == 0 {
		return
	}
	var list model.SKBList
	list.Append(&k.deferred)
	k.groups = 0
	k.stats.Drained += int64(list.Len())
	freeAll(h, c, h.skbs, &list, true)
}

// Check holds the books of all caches against each other.
func (h *Heads) Check() error {
	if h == nil {
		return nil
	}
	var faults []error
	for _, k := range h.caches {
		faults = append(faults, k.check())
	}
	return errors.Join(faults...)
}
