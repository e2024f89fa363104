package skbuff

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

// withCache runs f in a task on a core with that cache, on which nothing costs anything.
func withCache(name string, f func(*Cache)) {
	eng := sim.NewEngine(sim.Lazy)
	defer eng.Close()
	m := cpu.NewMachine(eng, cpu.Config{Cores: 1, HZ: 250})
	h := New(Config{Cache: name, Defer: deferNever, DeferMax: 64}, m, &model.SKBPool{})
	m.NewTask(m.Cores[0], "task", cpu.TaskConfig{}, func(*cpu.Task) {
		f(h.On(m.Cores[0]))
		eng.Stop()
	}).WakeFromDevice()
	eng.Run()
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Vector C1: the cache of v5.12 is empty; of 20 allocations the first and the 17th
// allocate 16 in bulk, and 12 are left.
func TestC1UnifiedAlloc(t *testing.T) {
	withCache("unified", func(k *Cache) {
		for range 20 {
			k.Alloc(true)
		}
		same(t, "bulk allocated", k.Stats().BulkAllocs, 32)
		same(t, "calls", k.Stats().BulkCalls, 2)
		same(t, "left", k.Cached(), 12)
	})
}

// Vector C2: the cache of v5.12 holds 63; the first of two frees fills it, which frees the
// upper 32 and leaves 32; the second makes 33.
func TestC2UnifiedFree(t *testing.T) {
	withCache("unified", func(k *Cache) {
		k.FreeN(63)
		same(t, "before", k.Cached(), 63)
		k.FreeN(1)
		same(t, "after one", k.Cached(), 32)
		k.FreeN(1)
		same(t, "after two", k.Cached(), 33)
		same(t, "bulk freed", k.Stats().BulkFrees, 32)
	})
}

// Vector C3: the first proposal, both arrays empty: one allocation takes 64 in bulk and
// leaves 63; the end of net_rx_action makes them 64 again.
func TestC3TwoArrays(t *testing.T) {
	withCache("two_arrays", func(k *Cache) {
		k.Alloc(true)
		same(t, "left", k.pre, 63)
		same(t, "bulk allocated", k.Stats().BulkAllocs, 64)
		k.EndOfNetRX()
		same(t, "topped up", k.pre, 64)
		same(t, "bulk allocated in all", k.Stats().BulkAllocs, 65)
	})
}

// The larger cache of v6.18: 32 are allocated when it is empty, and 32 freed at 128,
// which leaves 96.
func TestUnified128(t *testing.T) {
	withCache("unified_128", func(k *Cache) {
		k.Alloc(true)
		same(t, "left", k.Cached(), 31)
		k.FreeN(97)
		same(t, "at 128", k.Cached(), 96)
	})
}

// Up to v5.11 frees gather up to 64, and what is left goes at the end of net_rx_action;
// allocations go to the slab one by one, and so do descriptors that GRO has merged.
func TestFreeOnly(t *testing.T) {
	withCache("free_only", func(k *Cache) {
		k.FreeN(64)
		same(t, "at 64", k.Cached(), 0)
		k.FreeN(10)
		same(t, "gathered", k.Cached(), 10)
		k.Alloc(true)
		k.FreeStolen()
		k.EndOfNetRX()
		same(t, "at the end", k.Cached(), 0)
		st := k.Stats()
		same(t, "bulk freed", st.BulkFrees, 74)
		same(t, "calls", st.BulkCalls, 3-1)
		same(t, "allocated one by one", st.SlabAllocs, 1)
		same(t, "freed one by one", st.SlabFrees, 1)
	})
}

// Who feeds the cache and who draws on it since v5.12: packets merged by GRO feed it,
// build_skb does not draw.
func TestWhoUsesTheCache(t *testing.T) {
	withCache("unified", func(k *Cache) {
		for range 5 {
			k.FreeStolen()
		}
		k.Alloc(false)
		same(t, "cached", k.Cached(), 5)
		same(t, "from the slab", k.Stats().SlabAllocs, 1)
		k.Alloc(true)
		same(t, "drawn", k.Cached(), 4)
		same(t, "in bulk", k.Stats().BulkAllocs, 0)
	})
}

// oracle is the caches told with named descriptors, array by array.
type oracle struct {
	scheme        string
	fresh         int
	live          []int
	frees, allocs []int // the arrays
	slab          map[int]bool
}

func (o *oracle) take(n int) (all []int) {
	for range n {
		o.fresh++
		all = append(all, o.fresh)
	}
	return all
}

func (o *oracle) give(all []int) {
	for _, d := range all {
		if o.slab[d] {
			panic("freed twice")
		}
		o.slab[d] = true
	}
}

func pop(l *[]int) int {
	v := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return v
}

func (o *oracle) alloc() {
	switch o.scheme {
	case "free_only":
		o.live = append(o.live, o.take(1)...)
	case "two_arrays":
		if len(o.frees) > 0 {
			o.live = append(o.live, pop(&o.frees))
			return
		}
		if len(o.allocs) == 0 {
			o.allocs = o.take(64)
		}
		o.live = append(o.live, pop(&o.allocs))
	default:
		if len(o.frees) == 0 {
			o.frees = o.take(map[string]int{"unified": 16, "unified_128": 32}[o.scheme])
		}
		o.live = append(o.live, pop(&o.frees))
	}
}

func (o *oracle) free() {
	d := pop(&o.live)
	switch {
	case o.scheme == "two_arrays" && len(o.allocs) < 64:
		o.allocs = append(o.allocs, d)
		return
	default:
		o.frees = append(o.frees, d)
	}
	full, left := 64, 0
	switch o.scheme {
	case "unified":
		left = 32
	case "unified_128":
		full, left = 128, 96
	}
	if len(o.frees) == full {
		o.give(o.frees[left:])
		o.frees = o.frees[:left]
	}
}

func (o *oracle) end() {
	if o.scheme != "free_only" && o.scheme != "two_arrays" {
		return
	}
	o.give(o.frees)
	o.frees = o.frees[:0]
	if o.scheme == "two_arrays" {
		o.allocs = append(o.allocs, o.take(64-len(o.allocs))...)
	}
}

// Whatever is done to a cache, no descriptor is lost or there twice, and it holds as many
// as arrays of named descriptors would.
func TestCachesAgainstArrays(t *testing.T) {
	type step struct{ what, n int }
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(CacheNames()).Draw(t, "skb_cache")
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{rapid.IntRange(0, 2).Draw(t, "what"), rapid.IntRange(0, 90).Draw(t, "n")}
		}), 1, 60).Draw(t, "steps")
		o := &oracle{scheme: name, slab: map[int]bool{}}
		var fault error
		withCache(name, func(k *Cache) {
			for _, s := range steps {
				o.do(k, s.what, s.n)
				if fault = o.compare(k); fault != nil {
					return
				}
			}
		})
		if fault != nil {
			t.Fatal(fault)
		}
	})
}

// do does the same to a cache and to the arrays.
func (o *oracle) do(k *Cache, what, n int) {
	switch what {
	case 0:
		for range n {
			k.Alloc(true)
			o.alloc()
		}
	case 1:
		n = min(n, len(o.live))
		k.FreeN(n)
		for range n {
			o.free()
		}
	default:
		k.EndOfNetRX()
		o.end()
	}
}

// compare holds a cache against the arrays.
func (o *oracle) compare(k *Cache) error {
	st := k.Stats()
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"cached", k.Cached(), len(o.frees) + len(o.allocs)},
		{"from the slab", int(st.BulkAllocs + st.SlabAllocs), o.fresh},
		{"to the slab", int(st.BulkFrees), len(o.slab)},
	} {
		if c.got != c.want {
			return fmt.Errorf("%d descriptors %s, want %d", c.got, c.what, c.want)
		}
	}
	return k.check()
}

// A configuration is told all its faults, and New panics with them.
func TestConfigValidate(t *testing.T) {
	good := DefaultConfig()
	same(t, "faults of the default", len(good.Validate()), 0)
	bad := Config{Cache: "x", Defer: "y", DeferMax: -1}
	same(t, "faults", len(bad.Validate()), 3)
	defer func() {
		if recover() == nil {
			t.Error("New accepts it")
		}
	}()
	New(bad, nil, nil)
}

// Without caches descriptors cost nothing.
func TestNoHeads(t *testing.T) {
	var h *Heads
	k := h.On(nil)
	k.Alloc(true)
	k.FreeN(3)
	k.FreeStolen()
	k.EndOfNetRX()
	if err := h.Check(); err != nil {
		t.Error(err)
	}
}
