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

// EventID names a pending event. The zero EventID names none. No two events of a
// run have the same name.
type EventID uint64

const (
	slotBits = 20
	seqBits  = 36
	maxSlots = 1 << slotBits
	maxSeq   = 1 << seqBits
	idMask   = 1<<(seqBits+slotBits) - 1
)

// slot holds what an event calls. An event keeps its slot until it fires or is
// cancelled; the slot is then free for another. It goes on referring to the handler
// until then, which costs nothing, since handlers live as long as the engine.
type slot struct {
	handler Handler
	arg     uint64 // of a free slot: the next free one
	// at and key order the pending event. The key of a free slot is zero, its time
	// that of its last event.
	at  Time
	key uint64
	// carrier is the key of the entry of the heap that stands for the slot, or zero.
	// It differs from key if the event was cancelled, and if it was scheduled on a
	// slot whose last event had left its entry behind.
	carrier uint64
}

// queue holds the pending events in order of (time, phase, sequence), with
// cancellation by handle. Its top is always a pending event, so that the horizon is
// one load away; only between pop and the next push or settle the top is a hole.
//
// A cancelled event leaves its entry in the heap, because to find it there every
// move of an entry would have to be written down. Most timers are cancelled to be
// set anew, for later; the new event then takes over the slot together with the
// entry that is still in the heap, too early. When that entry comes to the top it
// is put where it belongs. So a timer restarted by every frame costs a store, not a
// trip through the heap.
type queue struct {
	heap    eventHeap
	slots   []slot
	free    uint32 // first free slot, or 0
	dead    int    // entries in the heap that stand for no event
	seq     uint64
	shuffle uint64 // if not zero, draws the order within (time, phase)
}

func newQueue() queue {
	// Slot 0 belongs to the mark of the empty heap, which thereby counts as pending.
	return queue{heap: newHeap(), slots: []slot{{key: emptyKey}}, seq: 1}
}

// push adds an event. It panics when 2^20 events are pending or 2^36 have been
// scheduled: both mean a model that runs away.
func (q *queue) push(at Time, phase Phase, h Handler, arg uint64) EventID {
	if q.free == 0 || q.seq >= maxSeq {
		q.addSlot()
	}
	seq := q.seq
	q.seq++
	if q.shuffle != 0 {
		seq = shuffled(seq, q.shuffle)
	}
	s := q.free
	id := seq<<slotBits | uint64(s)
	key := uint64(phase)<<(seqBits+slotBits) | id

	sl := &q.slots[s]
	q.free = uint32(sl.arg)
	takeOver := sl.carrier != 0 && sl.at < at
	sl.handler, sl.arg, sl.at, sl.key = h, arg, at, key
	if takeOver {
		q.dead--
		return EventID(id)
	}
	sl.carrier = key
	if q.heap.push(at, key) {
		q.surface()
	}
	return EventID(id)
}

// pop removes the earliest event and returns what it calls. The top stays a hole:
// most handlers schedule a successor, which then needs one trip through the heap
// instead of two.
func (q *queue) pop() (Handler, uint64) {
	s := slotOf(q.heap.top.key)
	sl := &q.slots[s]
	h, arg := sl.handler, sl.arg
	sl.key, sl.carrier = 0, 0
	sl.arg, q.free = uint64(q.free), s
	q.heap.open()
	return h, arg
}

// settle closes the hole that pop has left. Whoever looks at the top calls it first.
func (q *queue) settle() {
	if q.heap.top.at < 0 {
		q.refill()
	}
}

func (q *queue) refill() {
	q.heap.removeTop()
	q.surface()
}

// isEmpty reports whether no event is pending; there must be no hole.
func (q *queue) isEmpty() bool { return q.heap.top.key == emptyKey }

// cancel forgets a pending event and reports whether it was still pending.
func (q *queue) cancel(id EventID) bool {
	s := slotOf(uint64(id))
	if s == 0 || int(s) >= len(q.slots) || q.slots[s].key&idMask != uint64(id) {
		return false
	}
	sl := &q.slots[s]
	key := sl.key
	sl.key = 0
	sl.arg, q.free = uint64(q.free), s
	q.dead++
	if q.heap.top.key == key {
		q.surface()
	} else if q.dead > 32 && q.dead > q.heap.n/2 {
		q.compact()
	}
	return true
}

// surface removes or moves entries until the top stands for a pending event.
func (q *queue) surface() {
	for {
		top := q.heap.top.key
		sl := &q.slots[slotOf(top)]
		switch {
		case sl.key == top:
			return
		case sl.carrier == top && sl.key != 0:
			sl.carrier = sl.key
			q.heap.replaceTop(sl.at, sl.key)
			continue
		case sl.carrier == top:
			sl.carrier = 0
		}
		q.dead--
		q.heap.removeTop()
	}
}

// compact removes every dead entry and puts the others where they belong, so that
// a model which cancels without ever setting anew cannot fill the heap. The order
// of events does not change: it depends on (time, key) alone.
func (q *queue) compact() {
	q.heap.rebuild(func(e entry) (entry, bool) {
		sl := &q.slots[slotOf(e.key)]
		if sl.carrier != e.key {
			return e, false
		}
		sl.carrier = sl.key
		return entry{sl.at, sl.key}, sl.key != 0
	})
	q.dead = 0
}

// addSlot makes room for one more event.
func (q *queue) addSlot() {
	if q.seq >= maxSeq {
		panic("sim: sequence numbers used up: the run has scheduled 2^36 events")
	}
	if len(q.slots) >= maxSlots {
		panic("sim: 2^20 events are pending")
	}
	q.slots = append(q.slots, slot{})
	q.free = uint32(len(q.slots) - 1)
}

func slotOf(key uint64) uint32 { return uint32(key & (maxSlots - 1)) }

// shuffled maps sequence numbers to sequence numbers, one to one, in an order that
// depends on the seed: each step can be undone within 36 bits.
func shuffled(seq, seed uint64) uint64 {
	const mask = maxSeq - 1
	seq = (seq + seed) & mask
	for range 3 {
		seq = seq * 0x9e3779b97f4a7c15 & mask
		seq ^= seq>>17 ^ seed>>(64-seqBits)
	}
	return seq
}

// check panics when the heap order or the accounting of slots is broken. It is
// for tests.
func (q *queue) check() {
	q.settle()
	q.heap.check()
	free := 0
	for s := q.free; s != 0; s = uint32(q.slots[s].arg) {
		free++
	}
	entries, dead := 0, 0
	seen := func(e entry) {
		entries++
		sl := q.slots[slotOf(e.key)]
		if sl.carrier != e.key || sl.key == 0 {
			dead++
		} else if sl.key != e.key && (entry{sl.at, sl.key}).before(e) {
			panic(fmt.Sprintf("sim: event at %v carried by an entry at %v", sl.at, e.at))
		}
	}
	if !q.isEmpty() {
		seen(q.heap.top)
	}
	for i := range q.heap.n {
		seen(*q.heap.at(i))
	}
	if dead != q.dead || entries-dead+free != len(q.slots)-1 {
		panic(fmt.Sprintf("sim: %d entries, %d dead where %d are counted, %d free of %d slots",
			entries, dead, q.dead, free, len(q.slots)-1))
	}
	if q.slots[slotOf(q.heap.top.key)].key != q.heap.top.key {
		panic("sim: the top is no pending event")
	}
}
