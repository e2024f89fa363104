package skbuff

import (
	"napisim/model/cpu"
	"napisim/sim"
)

// SentConfig says what the slabs cost that skbs of the stack come from, besides those of
// their descriptors.
type SentConfig struct {
	// DataPage is what a new page costs for the linear parts of skbs (kmalloc-1k, since v6.3
	// skbuff_small_head), ClonePage one for descriptors with a clone (skbuff_fclone_cache).
	DataPage, ClonePage sim.Time
	// LinearPage is what a new page costs for linear parts that hold a frame (kmalloc-4k).
	LinearPage sim.Time
	// DataObjects is how many linear parts a page gives.
	DataObjects int
	// Data, Clones and Linear are how many there were in store before, and Slab the descriptors
	// without a clone.
	Data, Clones, Linear, Slab int
}

// cloneObjects is how many descriptors with a clone a page gives: 512 bytes each.
// linearObjects is the same for linear parts that hold a frame, of pages of 32 KiB.
const (
	cloneObjects  = 8
	linearObjects = 8
)

// A slab is objects of one size. It keeps what was freed up to a limit.
type slab struct {
	page          sim.Time
	free, objects int
}

func (s *slab) alloc(c *cpu.Core) {
	if s.objects == 0 {
		return
	}
	for c.Look(); s.free == 0; c.Look() { // an interrupt meanwhile may take or free some
		c.Work(s.page)
		c.Look()
		s.free += s.objects
	}
	s.free--
}

// release frees one. A core and its node keep some eleven pages that are empty.
func (s *slab) release(c *cpu.Core) {
	c.Look()
	s.free = min(s.free+1, 11*s.objects)
}

// StockSent fills the slabs of a core before a run.
func (h *Heads) StockSent(c *cpu.Core, cfg SentConfig) {
	k := h.caches[c.ID]
	k.slab += cfg.Slab
	k.data = slab{page: cfg.DataPage, free: cfg.Data, objects: cfg.DataObjects}
	k.clones = slab{page: cfg.ClonePage, free: cfg.Clones, objects: cloneObjects}
	k.linear = slab{page: cfg.LinearPage, free: cfg.Linear, objects: linearObjects}
}

// AllocSent takes the memory of an skb that the stack sends and forgets: an acknowledgement,
// or a segment that was cut off. linear tells that its linear part has room for a frame.
func (k *Cache) AllocSent(linear bool) {
	if k != nil {
		k.Alloc(false)
		k.dataSlab(linear).alloc(k.core)
	}
}

func (k *Cache) dataSlab(linear bool) *slab {
	if linear {
		return &k.linear
	}
	return &k.data
}

// FreeSent frees it when it was sent. napi tells that this is NAPI context, or NET_TX.
func (k *Cache) FreeSent(napi, linear bool) {
	if k != nil {
		if napi {
			k.FreeN(1)
		} else {
			k.freeSlab(1)
		}
		k.dataSlab(linear).release(k.core)
	}
}

// AllocQueued takes the memory of an skb of a write queue.
func (k *Cache) AllocQueued() {
	if k != nil {
		k.clones.alloc(k.core)
		k.data.alloc(k.core)
	}
}

// FreeQueued frees it when it was acknowledged.
func (k *Cache) FreeQueued() {
	if k != nil {
		k.clones.release(k.core)
		k.data.release(k.core)
	}
}
