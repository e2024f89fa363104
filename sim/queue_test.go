package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// nothing is a handler for tests of the queue, which calls none.
type nothing struct{}

func (nothing) Fire(uint64) {}

// naiveQueue is the oracle: a slice, sorted by (time, phase, sequence).
type naiveQueue struct {
	events []naiveEvent
	pushed uint64
}

type naiveEvent struct {
	at    Time
	phase Phase
	seq   uint64 // also the argument
	id    EventID
}

func (n *naiveQueue) push(at Time, phase Phase) uint64 {
	n.pushed++
	e := naiveEvent{at: at, phase: phase, seq: n.pushed}
	i, _ := slices.BinarySearchFunc(n.events, e, func(a, b naiveEvent) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.phase, b.phase), cmp.Compare(a.seq, b.seq))
	})
	n.events = slices.Insert(n.events, i, e)
	return e.seq
}

// pair drives the queue and its oracle with the same operations.
type pair struct {
	q    queue
	n    naiveQueue
	now  Time
	gone []EventID // fired or cancelled
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newPair() *pair { return &pair{q: newQueue()} }

func (p *pair) push(at Time, phase Phase) {
	seq := p.n.push(at, phase)
	id := p.q.push(at, phase, nothing{}, seq)
	for i := range p.n.events {
		if p.n.events[i].seq == seq {
			p.n.events[i].id = id
		}
	}
}

func (p *pair) look(t failer) {
	t.Helper()
	p.q.settle()
	if p.q.isEmpty() != (len(p.n.events) == 0) {
		t.Fatalf("empty: %v with %d events pending", p.q.isEmpty(), len(p.n.events))
	}
	if len(p.n.events) > 0 && p.q.heap.top.at != p.n.events[0].at {
		t.Fatalf("horizon %v, want %v", p.q.heap.top.at, p.n.events[0].at)
	}
}

func (p *pair) pop(t failer) {
	t.Helper()
	p.look(t)
	if len(p.n.events) == 0 {
		return
	}
	e := p.n.events[0]
	p.n.events = slices.Delete(p.n.events, 0, 1)
	if _, arg := p.q.pop(); arg != e.seq {
		t.Fatalf("event %d fired, want %+v", arg, e)
	}
	p.now = e.at
	p.gone = append(p.gone, e.id)
}

func (p *pair) cancel(t failer, i int) {
	t.Helper()
	id := p.n.events[i].id
	p.n.events = slices.Delete(p.n.events, i, i+1)
	if !p.q.cancel(id) {
		t.Fatalf("pending event %d could not be cancelled", id)
	}
	p.gone = append(p.gone, id)
}

func (p *pair) cancelGone(t failer, i int) {
	t.Helper()
	if p.q.cancel(p.gone[i]) {
		t.Fatalf("event %d was cancelled after its end", p.gone[i])
	}
}

func TestQueueAgainstSortedSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair()
		// Few distinct times and phases, so that ties are the rule.
		anyTime := func(t *rapid.T) Time { return p.now + Time(rapid.IntRange(0, 6).Draw(t, "delay")) }
		anyPhase := func(t *rapid.T) Phase { return Phase(rapid.IntRange(0, 2).Draw(t, "phase")) }
		pending := func(t *rapid.T) int {
			if len(p.n.events) == 0 {
				t.Skip("nothing pending")
			}
			return rapid.IntRange(0, len(p.n.events)-1).Draw(t, "which")
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) { p.push(anyTime(t), anyPhase(t)) },
			"pushMany": func(t *rapid.T) {
				for range rapid.IntRange(10, 60).Draw(t, "n") {
					p.push(anyTime(t), anyPhase(t))
				}
			},
			"pop":  func(t *rapid.T) { p.pop(t) },
			"look": func(t *rapid.T) { p.look(t) },
			"popAndPush": func(t *rapid.T) {
				p.pop(t)
				p.push(anyTime(t), anyPhase(t))
			},
			"cancel": func(t *rapid.T) { p.cancel(t, pending(t)) },
			"cancelMany": func(t *rapid.T) {
				for range rapid.IntRange(0, len(p.n.events)).Draw(t, "n") {
					p.cancel(t, pending(t))
				}
			},
			"rearm": func(t *rapid.T) {
				p.cancel(t, pending(t))
				p.push(anyTime(t), anyPhase(t))
			},
			"cancelGone": func(t *rapid.T) {
				if len(p.gone) == 0 {
					t.Skip("nothing gone")
				}
				p.cancelGone(t, rapid.IntRange(0, len(p.gone)-1).Draw(t, "which"))
			},
			"check": func(*rapid.T) { p.q.check() },
		})
		p.q.check()
		for len(p.n.events) > 0 {
			p.pop(t)
		}
		p.look(t)
		if p.q.dead != 0 {
			t.Errorf("%d dead entries in an empty queue", p.q.dead)
		}
	})
}

// TestQueueLong reaches the depths and the compactions that short sequences do not.
func TestQueueLong(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 0))
		p := newPair()
		// The longer the delays, the deeper the heap; the more cancelling, the more dead.
		delay, cancelling := 1+r.Int64N(1000), r.IntN(100)
		for range 20_000 {
			p.push(p.now+Time(r.Int64N(delay)), Phase(r.IntN(3)))
			switch {
			case r.IntN(100) < cancelling && len(p.n.events) > 0:
				p.cancel(t, r.IntN(len(p.n.events)))
				if len(p.gone) > 0 && r.IntN(4) == 0 {
					p.cancelGone(t, r.IntN(len(p.gone)))
				}
			case len(p.n.events) > 400:
				p.pop(t)
				p.pop(t)
			}
			if r.IntN(50) == 0 {
				p.q.check()
			}
		}
		for len(p.n.events) > 0 {
			p.pop(t)
		}
		p.look(t)
	}
}

func TestOrderIsTimePhaseSequence(t *testing.T) {
	q := newQueue()
	for arg, e := range []struct {
		at    Time
		phase Phase
	}{{2, 0}, {1, 2}, {1, 1}, {1, 2}, {1, 0}, {0, 255}, {2, 0}} {
		q.push(e.at, e.phase, nothing{}, uint64(arg))
	}
	var got []uint64
	for q.settle(); !q.isEmpty(); q.settle() {
		_, arg := q.pop()
		got = append(got, arg)
	}
	if want := []uint64{5, 4, 2, 1, 3, 0, 6}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// TestRearmedTimerStaysInPlace shows that a timer set anew again and again leaves
// nothing behind in the heap.
func TestRearmedTimerStaysInPlace(t *testing.T) {
	q := newQueue()
	for i := range Time(10) {
		q.push(1_000_000+i, 0, nothing{}, 0)
	}
	id := q.push(100, 0, nothing{}, 1)
	for at := range Time(1000) {
		q.cancel(id)
		id = q.push(100+at, 0, nothing{}, 1)
		q.check()
		if q.heap.n > 10 || len(q.slots) != 12 {
			t.Fatalf("%d entries, %d slots", q.heap.n, len(q.slots))
		}
	}
	if q.heap.top.at != 1099 {
		t.Errorf("horizon %v, want 1099", q.heap.top.at)
	}
}

// TestCancelWithoutRearmIsBounded shows that dead entries do not pile up.
func TestCancelWithoutRearmIsBounded(t *testing.T) {
	q := newQueue()
	q.push(0, 0, nothing{}, 0)
	for range 1000 {
		// The earlier event takes the slot over, but not the entry.
		id := q.push(2000, 0, nothing{}, 1)
		q.cancel(id)
		q.cancel(q.push(1000, 0, nothing{}, 1))
		q.check()
	}
	if q.heap.n > 70 {
		t.Errorf("%d entries for one event", q.heap.n)
	}
}

func TestCancelOfNothing(t *testing.T) {
	q := newQueue()
	for _, id := range []EventID{0, 1, 7, empty64(), 1 << 63, ^EventID(0)} {
		if q.cancel(id) {
			t.Errorf("cancelled %#x in an empty queue", uint64(id))
		}
	}
}

// empty64 is the name that the mark of the empty heap would have.
func empty64() EventID { return EventID(emptyKey & idMask) }

func TestQueueLimits(t *testing.T) {
	expect := func(message string, f func()) {
		t.Helper()
		defer func() {
			if r, _ := recover().(string); !strings.Contains(r, message) {
				t.Errorf("panic %q, want one about %q", r, message)
			}
		}()
		f()
	}
	q := newQueue()
	q.seq = maxSeq - 1
	q.push(1, 255, nothing{}, 0)
	expect("sequence numbers", func() { q.push(1, 0, nothing{}, 0) })

	q = newQueue()
	for i := range maxSlots - 1 {
		q.push(Time(maxSlots-i), 0, nothing{}, 0)
	}
	expect("events are pending", func() { q.push(1, 0, nothing{}, 0) })
	q.check()
}

func TestShuffleIsOneToOne(t *testing.T) {
	// Two inputs with one output would differ in a bit that some step forgets, so
	// neighbours and single bits are the ones to try.
	seen := make(map[uint64]uint64)
	try := func(seq, seed uint64) {
		s := shuffled(seq, seed)
		if s >= maxSeq {
			t.Fatalf("%#x became %#x", seq, s)
		}
		if other, ok := seen[s]; ok && other != seq {
			t.Fatalf("%#x and %#x both became %#x", seq, other, s)
		}
		seen[s] = seq
	}
	for _, seed := range []uint64{1, 12345, 1 << 63, ^uint64(0)} {
		clear(seen)
		for i := range uint64(100_000) {
			try(i, seed)
		}
		for bit := range seqBits {
			try(1<<bit, seed)
			try(maxSeq-1-1<<bit, seed)
		}
	}
}
