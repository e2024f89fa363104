package skbuff

import "testing"

// TestSentPages: a core that has three linear parts in store takes a page with the fourth
// and one with the twelfth, as a page gives eight; what is freed is used first. The page of
// linear parts with frames is another.
func TestSentPages(t *testing.T) {
	withCache("unified", func(k *Cache) {
		const page, linear = 9, 33
		k.data = slab{page: page, free: 3, objects: 8}
		k.linear = slab{page: linear, free: 1, objects: linearObjects}
		spent := func(n int, alloc func()) int64 {
			k.core.Look()
			before := k.core.Now()
			for range n {
				alloc()
			}
			k.core.Look()
			return int64(k.core.Now() - before)
		}
		small, large := func() { k.AllocSent(false) }, func() { k.AllocSent(true) }
		same(t, "three", spent(3, small), 0)
		same(t, "the fourth", spent(1, small), page)
		same(t, "seven more", spent(7, k.AllocQueued), 0)
		k.FreeSent(true, false)
		same(t, "the one that was freed", spent(1, small), 0)
		same(t, "the next", spent(1, small), page)
		same(t, "a linear one", spent(1, large), 0)
		same(t, "another", spent(1, large), linear)
	})
}

// TestSentWithout: where no slabs are configured nothing is kept, and without caches
// nothing happens.
func TestSentWithout(t *testing.T) {
	withCache("unified", func(k *Cache) {
		k.AllocQueued()
		k.FreeQueued()
		k.AllocSent(true)
		same(t, "in store", k.data.free+k.clones.free+k.linear.free, 0)
	})
	var none *Cache
	none.AllocSent(false)
	none.FreeSent(false, false)
	none.AllocQueued()
	none.FreeQueued()
}
