package sim

import "fmt"

// Phase orders events of one instant. Lower phases run first. Two actors that may
// act at the same instant need different phases: within one phase the order is
// that of scheduling, and an actor that runs ahead of the others schedules at
// other moments than one that does not (see the package's tests for eager and
// lazy runs).
type Phase uint8

// Handler is called by the engine when an event is due. Fire runs in the engine's
// context: it must not park, and it must not resume a Proc by itself (Engine.Ready
// does so after Fire has returned).
type Handler interface {
	Fire(arg uint64)
}

// EventID names a pending event. The zero EventID names none.
type EventID uint64

const (
	slotBits = 20
	seqBits  = 36
	maxSlots = 1 << slotBits
	maxSeq   = 1 << seqBits
)

// entry is one element of the heap. It holds no pointer, so that the collector
// has nothing to scan, and four children of a node fill one cache line.
type entry struct {
	at  Time
	key uint64 // phase | sequence | slot
}

func (a entry) before(b entry) bool {
	return a.at < b.at || (a.at == b.at && a.key < b.key)
}

func (a entry) slot() uint32 { return uint32(a.key & (maxSlots - 1)) }

// slot holds what an entry calls. A cancelled slot keeps its place in the heap
// until it reaches the top or until half of the heap is dead: removing it at once
// would need the heap to write back every move of an entry.
type slot struct {
	handler Handler
	arg     uint64
	gen     uint32
	live    bool
}

// queue is a 4-ary heap of entries with cancellation by handle. Its top is always
// live, so that the horizon is one load away.
type queue struct {
	heap  []entry
	slots []slot
	free  []uint32
	seq   uint64
	dead  int
}

// push adds an event. It panics when 2^20 events are pending or 2^36 have been
// scheduled: both mean a model that runs away.
func (q *queue) push(at Time, phase Phase, h Handler, arg uint64) EventID {
	if q.seq >= maxSeq {
		panic("sim: sequence numbers used up: the run has scheduled 2^36 events")
	}
	var s uint32
	if n := len(q.free); n > 0 {
		s = q.free[n-1]
		q.free = q.free[:n-1]
	} else {
		if len(q.slots) >= maxSlots {
			panic("sim: 2^20 events are pending")
		}
		s = uint32(len(q.slots))
		q.slots = append(q.slots, slot{gen: 1})
	}
	sl := &q.slots[s]
	sl.handler, sl.arg, sl.live = h, arg, true
	e := entry{at: at, key: uint64(phase)<<(seqBits+slotBits) | q.seq<<slotBits | uint64(s)}
	q.seq++
	q.heap = append(q.heap, e)
	q.up(len(q.heap)-1, e)
	return EventID(uint64(sl.gen)<<32 | uint64(s))
}

// top returns the earliest live entry; the queue must not be empty.
func (q *queue) top() entry { return q.heap[0] }

// pop removes the earliest event and returns what it calls.
func (q *queue) pop() (Handler, uint64) {
	s := q.heap[0].slot()
	sl := &q.slots[s]
	h, arg := sl.handler, sl.arg
	q.release(s)
	q.removeTop()
	q.dropDead()
	return h, arg
}

// cancel forgets a pending event and reports whether it was still pending.
func (q *queue) cancel(id EventID) bool {
	s, gen := uint32(id), uint32(id>>32)
	if id == 0 || int(s) >= len(q.slots) || q.slots[s].gen != gen || !q.slots[s].live {
		return false
	}
	q.slots[s].live = false
	q.slots[s].handler = nil
	q.dead++
	if q.heap[0].slot() == s {
		q.dropDead()
	} else if q.dead > 64 && q.dead > len(q.heap)/2 {
		q.compact()
	}
	return true
}

func (q *queue) release(s uint32) {
	sl := &q.slots[s]
	sl.handler, sl.live = nil, false
	sl.gen++
	q.free = append(q.free, s)
}

// dropDead removes cancelled entries from the top.
func (q *queue) dropDead() {
	for q.dead > 0 && len(q.heap) > 0 {
		s := q.heap[0].slot()
		if q.slots[s].live {
			return
		}
		q.dead--
		q.release(s)
		q.removeTop()
	}
}

// compact removes every cancelled entry and rebuilds the heap. The order of live
// events does not change: it depends on (time, key) alone.
func (q *queue) compact() {
	kept := q.heap[:0]
	for _, e := range q.heap {
		if q.slots[e.slot()].live {
			kept = append(kept, e)
		} else {
			q.release(e.slot())
		}
	}
	q.heap, q.dead = kept, 0
	for i := (len(kept) - 2) / 4; i >= 0 && len(kept) > 1; i-- {
		q.down(i, kept[i])
	}
}

func (q *queue) removeTop() {
	n := len(q.heap) - 1
	last := q.heap[n]
	q.heap = q.heap[:n]
	if n > 0 {
		q.down(0, last)
	}
}

// up places e, which belongs at i or above.
func (q *queue) up(i int, e entry) {
	h := q.heap
	for i > 0 {
		p := (i - 1) / 4
		if !e.before(h[p]) {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = e
}

// down places e, which belongs at i or below.
func (q *queue) down(i int, e entry) {
	h := q.heap
	n := len(h)
	for {
		c := 4*i + 1
		if c >= n {
			break
		}
		m, best := c, h[c]
		for j := c + 1; j < min(c+4, n); j++ {
			if h[j].before(best) {
				m, best = j, h[j]
			}
		}
		if !best.before(e) {
			break
		}
		h[i] = best
		i = m
	}
	h[i] = e
}

// check panics when the heap order or the accounting of slots is broken. It is
// for tests.
func (q *queue) check() {
	live := 0
	for i, e := range q.heap {
		if i > 0 && e.before(q.heap[(i-1)/4]) {
			panic(fmt.Sprintf("sim: heap order broken at %d", i))
		}
		if q.slots[e.slot()].live {
			live++
		}
	}
	if len(q.heap)-live != q.dead || len(q.heap)+len(q.free) != len(q.slots) {
		panic(fmt.Sprintf("sim: %d entries, %d live, %d dead, %d free, %d slots",
			len(q.heap), live, q.dead, len(q.free), len(q.slots)))
	}
	if len(q.heap) > 0 && !q.slots[q.heap[0].slot()].live {
		panic("sim: dead entry on top")
	}
}
