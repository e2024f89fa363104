package sim

import (
	"fmt"
	"math"
	"math/bits"
)

// entry is one element of the heap. It holds no pointer, so that the collector has
// nothing to scan. Times are never negative, so they compare alike as unsigned.
type entry struct {
	at  Time
	key uint64 // phase | sequence | slot
}

func (a entry) before(b entry) bool {
	return a.at < b.at || (a.at == b.at && a.key < b.key)
}

// emptyKey marks a place in which there is no entry. Its slot number is 0.
const emptyKey = math.MaxUint64 &^ (maxSlots - 1)

// empty fills every such place. It is later than all entries.
func empty() entry { return entry{at: Never, key: emptyKey} }

// group holds the four children of one parent: one cache line, if the slice of
// groups is aligned to it, as Go's allocator does for all but the smallest.
type group [4]entry

// eventHeap is a 4-ary heap of entries whose top stands apart, where it is read without
// a bounds check, and so that families do not straddle cache lines. The children of
// the top are group 0; those of entry i, counted through all groups, are group i+1.
type eventHeap struct {
	top    entry
	n      int // entries below the top
	groups []group
}

func newHeap() eventHeap { return eventHeap{top: empty()} }

// at returns entry i below the top.
func (h *eventHeap) at(i int) *entry { return &h.groups[i>>2][i&3] }

// open takes the top away and leaves a hole that push fills. Its time is earlier
// than any: who compares with the top in a hurry is told to look twice.
func (h *eventHeap) open() { h.top.at = math.MinInt64 }

// push adds an entry and reports whether it filled a hole: then what was hidden
// under the hole may have come to the top.
func (h *eventHeap) push(at Time, key uint64) bool {
	switch {
	case h.top.at < 0:
		h.replaceTop(at, key)
		return true
	case h.top.key == emptyKey:
		h.top = entry{at, key}
		return false
	case entry{at, key}.before(h.top):
		at, h.top.at = h.top.at, at
		key, h.top.key = h.top.key, key
	}
	if h.n == 4*len(h.groups) {
		h.grow()
	}
	i := h.n
	h.n++
	groups := h.groups
	for i > 3 {
		parent := i>>2 - 1
		p := &groups[parent>>2][parent&3]
		if p.at < at || p.at == at && p.key < key {
			break
		}
		groups[i>>2][i&3] = *p
		i = parent
	}
	groups[i>>2][i&3] = entry{at, key}
	return false
}

func (h *eventHeap) grow() {
	groups := make([]group, max(16, 2*len(h.groups)))
	for i := copy(groups, h.groups); i < len(groups); i++ {
		groups[i] = group{empty(), empty(), empty(), empty()}
	}
	h.groups = groups
}

// removeTop takes the top, or the hole there, away.
func (h *eventHeap) removeTop() {
	if h.n == 0 {
		h.top = empty()
		return
	}
	h.n--
	last := h.at(h.n)
	at, key := last.at, last.key
	*last = empty()
	h.replaceTop(at, key)
}

// replaceTop puts an entry in the place of the top and sinks it.
func (h *eventHeap) replaceTop(at Time, key uint64) { h.sink(&h.top, 0, at, key) }

// sink places an entry at a place whose children are group g, or below it.
//
// The least of four children is found without a branch: its position is as good as
// random, so that each branch on it would be mispredicted every other time. A
// comparison of (time, key) is a subtraction of 128 bits, its borrow the answer, and
// minus the borrow a mask that selects.
func (h *eventHeap) sink(place *entry, g int, at Time, key uint64) {
	groups := h.groups
	for uint(g) < uint(len(groups)) {
		c := &groups[g]
		t0, k0 := uint64(c[0].at), c[0].key
		t1, k1 := uint64(c[1].at), c[1].key
		t2, k2 := uint64(c[2].at), c[2].key
		t3, k3 := uint64(c[3].at), c[3].key
		_, a := bits.Sub64(k1, k0, 0)
		_, a = bits.Sub64(t1, t0, a)
		_, b := bits.Sub64(k3, k2, 0)
		_, b = bits.Sub64(t3, t2, b)
		t0 ^= (t0 ^ t1) & -a
		k0 ^= (k0 ^ k1) & -a
		t2 ^= (t2 ^ t3) & -b
		k2 ^= (k2 ^ k3) & -b
		_, r := bits.Sub64(k2, k0, 0)
		_, r = bits.Sub64(t2, t0, r)
		t0 ^= (t0 ^ t2) & -r
		k0 ^= (k0 ^ k2) & -r
		if uint64(at) < t0 || uint64(at) == t0 && key < k0 {
			break
		}
		*place = entry{Time(t0), k0}
		m := int(a ^ (a^(b+2))&-r)
		place = &c[m&3]
		g = 4*g + m + 1
	}
	*place = entry{at, key}
}

// rebuild keeps the entries that keep returns true for, as it returns them, and
// restores the order. Entries pass by value: a pointer would put each on the heap.
func (h *eventHeap) rebuild(keep func(e entry) (entry, bool)) {
	n := 0
	for i := range h.n {
		e, kept := keep(*h.at(i))
		*h.at(i) = empty()
		if kept {
			*h.at(n) = e
			n++
		}
	}
	h.n = n
	for i := n/4 - 1; i >= 0; i-- {
		e := *h.at(i)
		h.sink(h.at(i), i+1, e.at, e.key)
	}
}

// check panics when the order is broken.
func (h *eventHeap) check() {
	for i := range 4 * len(h.groups) {
		e, parent := *h.at(i), h.top
		if i > 3 {
			parent = *h.at(i>>2 - 1)
		}
		if e.before(parent) || (e == empty()) != (i >= h.n) {
			panic(fmt.Sprintf("sim: heap broken at %d of %d", i, h.n))
		}
	}
}
