package sim

import (
	"container/heap"
	"fmt"
	"testing"
)

// The hold model: a constant number of events is pending, and each one, when it
// fires, schedules its successor after an exponential time. It is the usual measure
// of an event queue. With cancellation, every actor also keeps a timeout that each
// of its events takes back and sets anew, as interrupt moderation does.
//
// The same model runs over container/heap in two common forms, for the ratio.
// Compare numbers of one run only, on one core:
//
//	taskset -c 1 go test -run '^$' -bench Hold -count 5 ./sim
var pendingCounts = []int{16, 1_000, 100_000}

const holdMean = Microsecond

func BenchmarkHold(b *testing.B) {
	for _, n := range pendingCounts {
		for _, cancel := range []bool{false, true} {
			name := fmt.Sprintf("pending=%d/cancel=%v/queue=", n, cancel)
			b.Run(name+"sim", func(b *testing.B) { holdSim(b, n, cancel) })
			b.Run(name+"heap-pointers", func(b *testing.B) { holdHeap(b, new(pointerHeap), n, cancel) })
			b.Run(name+"heap-values", func(b *testing.B) { holdHeap(b, new(valueHeap), n, cancel) })
		}
	}
}

// simActor is one actor of the hold model over the engine.
type simActor struct {
	eng     *Engine
	rnd     *Rand
	left    *int
	cancel  bool
	timeout EventID
}

const (
	argEvent = iota
	argTimeout
)

func (a *simActor) Fire(arg uint64) {
	if *a.left--; *a.left == 0 {
		a.eng.Stop()
	}
	if a.cancel {
		if arg == argEvent {
			a.eng.Cancel(a.timeout)
		}
		a.timeout = a.eng.Schedule(a.eng.Now()+4*holdMean, 1, a, argTimeout)
		if arg == argTimeout {
			return
		}
	}
	a.eng.Schedule(a.eng.Now()+a.rnd.Exp(holdMean), 0, a, argEvent)
}

func holdSim(b *testing.B, n int, cancel bool) {
	step := newHold(n, cancel)
	step(4 * n)
	b.ReportAllocs()
	b.ResetTimer()
	step(b.N)
}

// newHold builds a hold model of n actors and returns a function that fires a
// number of its events. The queue is in its steady state after 4n events.
func newHold(n int, cancel bool) (step func(events int)) {
	eng := NewEngine(Lazy)
	rnd := NewRand(1, "hold")
	left := 0
	for range n {
		a := &simActor{eng: eng, rnd: rnd, left: &left, cancel: cancel}
		eng.Schedule(rnd.Exp(holdMean), 0, a, argEvent)
	}
	return func(events int) {
		left = events
		eng.stopped = false
		eng.Run()
	}
}

// holdQueue is what the hold model needs of a queue built on container/heap.
type holdQueue interface {
	push(at Time, fire func(), cancellable bool) (handle *heapEvent)
	remove(handle *heapEvent)
	pop() (at Time, fire func())
}

// heapActor is one actor of the hold model over container/heap: as most programs
// are written, what is to be done is a closure.
type heapActor struct {
	q       holdQueue
	rnd     *Rand
	cancel  bool
	now     *Time
	timeout *heapEvent
}

func (a *heapActor) event() {
	if a.cancel {
		if a.timeout != nil {
			a.q.remove(a.timeout)
		}
		a.arm()
	}
	a.q.push(*a.now+a.rnd.Exp(holdMean), func() { a.event() }, false)
}

func (a *heapActor) arm() {
	a.timeout = a.q.push(*a.now+4*holdMean, func() { a.arm() }, true)
}

func holdHeap(b *testing.B, q holdQueue, n int, cancel bool) {
	rnd := NewRand(1, "hold")
	var now Time
	for range n {
		a := &heapActor{q: q, rnd: rnd, cancel: cancel, now: &now}
		q.push(rnd.Exp(holdMean), func() { a.event() }, false)
	}
	step := func() {
		at, fire := q.pop()
		now = at
		fire()
	}
	for range 4 * n {
		step()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		step()
	}
}

// heapEvent is an event of the two heaps; its index makes it removable.
type heapEvent struct {
	at    Time
	seq   uint64
	fire  func()
	index int
}

// pointerHeap is the priority queue of the documentation of container/heap.
type pointerHeap struct {
	events []*heapEvent
	seq    uint64
}

func (h *pointerHeap) Len() int { return len(h.events) }
func (h *pointerHeap) Less(i, j int) bool {
	a, b := h.events[i], h.events[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (h *pointerHeap) Swap(i, j int) {
	h.events[i], h.events[j] = h.events[j], h.events[i]
	h.events[i].index, h.events[j].index = i, j
}

func (h *pointerHeap) Push(x any) {
	e := x.(*heapEvent)
	e.index = len(h.events)
	h.events = append(h.events, e)
}

func (h *pointerHeap) Pop() any {
	last := len(h.events) - 1
	e := h.events[last]
	h.events[last] = nil
	h.events = h.events[:last]
	return e
}

func (h *pointerHeap) push(at Time, fire func(), _ bool) *heapEvent {
	h.seq++
	e := &heapEvent{at: at, seq: h.seq, fire: fire}
	heap.Push(h, e)
	return e
}
func (h *pointerHeap) remove(e *heapEvent) { heap.Remove(h, e.index) }
func (h *pointerHeap) pop() (Time, func()) {
	e := heap.Pop(h).(*heapEvent)
	return e.at, e.fire
}

// valueHeap keeps the order in the heap itself and only cancellation by pointer.
type valueHeap struct {
	events []valueEvent
	seq    uint64
}

type valueEvent struct {
	at     Time
	seq    uint64
	fire   func()
	handle *heapEvent // nil unless somebody may cancel it
}

func (h *valueHeap) Len() int { return len(h.events) }
func (h *valueHeap) Less(i, j int) bool {
	a, b := &h.events[i], &h.events[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (h *valueHeap) Swap(i, j int) {
	h.events[i], h.events[j] = h.events[j], h.events[i]
	h.place(i)
	h.place(j)
}

func (h *valueHeap) place(i int) {
	if handle := h.events[i].handle; handle != nil {
		handle.index = i
	}
}

func (h *valueHeap) Push(x any) {
	h.events = append(h.events, x.(valueEvent))
	h.place(len(h.events) - 1)
}

func (h *valueHeap) Pop() any {
	last := len(h.events) - 1
	e := h.events[last]
	h.events = h.events[:last]
	return e
}

func (h *valueHeap) push(at Time, fire func(), cancellable bool) *heapEvent {
	h.seq++
	var handle *heapEvent
	if cancellable {
		handle = new(heapEvent)
	}
	heap.Push(h, valueEvent{at: at, seq: h.seq, fire: fire, handle: handle})
	return handle
}
func (h *valueHeap) remove(e *heapEvent) { heap.Remove(h, e.index) }
func (h *valueHeap) pop() (Time, func()) {
	e := heap.Pop(h).(valueEvent)
	return e.at, e.fire
}

// BenchmarkSwitch measures a switch to a Proc and back, with the engine's part.
func BenchmarkSwitch(b *testing.B) {
	eng := NewEngine(Lazy)
	defer eng.Close()
	eng.stallLimit = b.N + 2
	eng.Ready(eng.NewProc("p", func(p *Proc) {
		for range b.N {
			eng.Ready(p)
			p.Park()
		}
	}))
	b.ReportAllocs()
	b.ResetTimer()
	eng.Run()
}

// BenchmarkAdvanceWithin measures the payment of a debt on the fast path.
func BenchmarkAdvanceWithin(b *testing.B) {
	eng := NewEngine(Lazy)
	eng.Schedule(Never, 0, nothing{}, 0)
	for b.Loop() {
		eng.AdvanceWithin(1)
	}
}
