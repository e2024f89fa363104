package sim

import (
	"fmt"
	"runtime/debug"
)

// stallLimit is how many events may fire, or procs be resumed, at one instant
// before the engine calls it a loop. Ten million is far above any honest burst.
const stallLimit = 10_000_000

const stallMessage = "no progress: the same instant again and again"

// Mode selects how a run is executed. Every mode must give the same bytes; the
// slow ones exist so that tests can show it.
type Mode uint8

const (
	// Lazy is the normal mode: debts are paid when somebody looks.
	Lazy Mode = iota
	// Eager pays each cost at the moment it arises. It finds every forgotten look.
	Eager
	// Slow is Lazy without the fast path: every payment goes through the queue.
	Slow
)

// Engine owns simulated time. It is not safe for concurrent use: one run, one
// Engine, one goroutine. Any number of engines may run beside each other.
type Engine struct {
	now     Time
	q       queue
	mode    Mode
	ready   []*Proc // resumed before the next event, in order
	procs   []*Proc
	stopped bool
	fired   uint64
	running *Proc

	stalledAt  Time // the instant of the last step
	stall      int  // steps at that instant
	stallLimit int  // lower in tests
}

// NewEngine returns an engine at time zero.
func NewEngine(mode Mode) *Engine {
	return &Engine{mode: mode, q: newQueue(), stallLimit: stallLimit}
}

// NewEngineShuffled returns an engine that fires events of the same time and phase
// in an order drawn from the seed instead of that of scheduling. It is for tests: a
// model whose results change with the seed depends on an order that it should have
// fixed by phases.
func NewEngineShuffled(mode Mode, seed uint64) *Engine {
	e := NewEngine(mode)
	// Zero stands for no shuffling.
	e.q.shuffle = max(mix(seed), 1)
	return e
}

// Now returns the current instant. A Proc that owes simulated time must pay it
// before it reads the clock.
func (e *Engine) Now() Time { return e.now }

// Mode returns how this run is executed.
func (e *Engine) Mode() Mode { return e.mode }

// Fired returns the number of events fired so far.
func (e *Engine) Fired() uint64 { return e.fired }

// Horizon returns the instant of the earliest pending event, or Never.
func (e *Engine) Horizon() Time {
	e.q.settle()
	return e.q.heap.top.at
}

// AdvanceWithin moves time forward by d and reports true if nobody else can act
// until then, neither an event nor a Proc that is ready; otherwise it changes
// nothing. The running Proc is the only caller. It is the fast path of paying a
// debt: no event, no switch.
func (e *Engine) AdvanceWithin(d Time) bool {
	t := e.now + d
	if t < e.q.heap.top.at && e.mode != Slow && len(e.ready) == 0 {
		e.now = t
		return true
	}
	return e.advanceAgain(t)
}

// advanceAgain decides what the first look at the top could not: the top may be a
// hole, or the mark of an empty queue.
func (e *Engine) advanceAgain(t Time) bool {
	e.q.settle()
	if e.mode == Slow || len(e.ready) > 0 || t >= e.q.heap.top.at && !e.q.isEmpty() {
		return false
	}
	e.now = t
	return true
}

// Schedule arranges that h.Fire(arg) runs at the given instant, which must not
// lie in the past. The returned handle is good for Cancel until the event fires.
func (e *Engine) Schedule(at Time, phase Phase, h Handler, arg uint64) EventID {
	if at < e.now {
		panic(fmt.Sprintf("sim: event for %v scheduled at %v", at, e.now))
	}
	return e.q.push(at, phase, h, arg)
}

// Cancel forgets a pending event. It reports false, and does nothing, when the
// event has fired or was cancelled before.
func (e *Engine) Cancel(id EventID) bool { return e.q.cancel(id) }

// Ready marks a parked Proc to be resumed before the next event. Procs are
// resumed in the order of their Ready calls.
func (e *Engine) Ready(p *Proc) {
	if p.queued {
		panic("sim: proc " + p.name + " made ready twice")
	}
	p.queued = true
	e.ready = append(e.ready, p)
}

// Stop ends Run after the current handler or proc gives up control.
func (e *Engine) Stop() { e.stopped = true }

// Run executes events and procs until Stop is called or nothing is left to do. A
// panic in a handler or Proc passes through, wrapped in a Fault that says where
// and when. Close must be called afterwards in either case.
func (e *Engine) Run() {
	var firing Handler
	defer func() {
		// Procs wrap their own panics, on the stack where they happen.
		if r := recover(); r != nil {
			panic(e.blame(firing, r))
		}
	}()
	for !e.stopped {
		if len(e.ready) > 0 {
			e.resumeFirst()
			continue
		}
		e.q.settle()
		if e.q.isEmpty() {
			return
		}
		e.now = e.q.heap.top.at
		var arg uint64
		firing, arg = e.q.pop()
		if e.stalled() {
			panic(stallMessage)
		}
		e.fired++
		firing.Fire(arg)
	}
}

// blame makes the panic of a handler a Fault.
func (e *Engine) blame(h Handler, r any) *Fault {
	if f, ok := r.(*Fault); ok {
		return f
	}
	return &Fault{Component: fmt.Sprintf("%T", h), At: e.now, Value: r, Stack: debug.Stack()}
}

func (e *Engine) resumeFirst() {
	p := e.ready[0]
	copy(e.ready, e.ready[1:])
	e.ready = e.ready[:len(e.ready)-1]
	p.queued = false
	if e.stalled() {
		panic(&Fault{Component: p.name, At: e.now, Value: stallMessage})
	}
	e.running = p
	p.resume()
	e.running = nil
}

// stalled counts steps at one instant. Many of them are a loop; the caller turns
// it into a fault that names who loops, instead of a hang.
func (e *Engine) stalled() bool {
	if e.now != e.stalledAt {
		e.stalledAt, e.stall = e.now, 0
		return false
	}
	e.stall++
	return e.stall > e.stallLimit
}

// Close ends every Proc that has not returned, also those never started. An
// abandoned coroutine would otherwise keep its stack for ever.
func (e *Engine) Close() {
	for _, p := range e.procs {
		p.stop()
	}
	e.procs = nil
}
