package sim

import (
	"fmt"
	"iter"
	"runtime/debug"
)

// Proc is a process in direct style: a coroutine that runs until it parks and
// goes on when the engine resumes it. A switch costs about 50 ns and needs no
// scheduler; exactly one Proc runs at a time, so there is nothing to lock.
type Proc struct {
	name   string
	eng    *Engine
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	queued bool
	done   bool
}

// Fault is the panic value of a broken model: it says which component failed, at
// what simulated time, and why. Nothing in the model recovers from it; the caller
// of Engine.Run turns it into an error.
type Fault struct {
	Component string
	At        Time
	Value     any
	Stack     []byte // of the coroutine or handler that failed; may be nil
}

// Error formats the fault without its stack.
func (f *Fault) Error() string {
	return fmt.Sprintf("%s at %v: %v", f.Component, f.At, f.Value)
}

// stopSignal unwinds a coroutine that is stopped while parked.
type stopSignal struct{}

// NewProc returns a Proc that runs body when first resumed. The engine stops it in
// Close if it has not returned by then.
func (e *Engine) NewProc(name string, body func(p *Proc)) *Proc {
	p := &Proc{name: name, eng: e}
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		p.yield = yield
		defer p.unwind()
		body(p)
	})
	e.procs = append(e.procs, p)
	return p
}

// Name returns the name given to NewProc.
func (p *Proc) Name() string { return p.name }

// Done reports whether the body has returned.
func (p *Proc) Done() bool { return p.done }

// Park gives control back to the engine and returns when the Proc is resumed.
// Only the Proc itself may call it.
func (p *Proc) Park() {
	if p.eng.running != p {
		panic("sim: proc " + p.name + " parked by another")
	}
	if !p.yield(struct{}{}) {
		panic(stopSignal{})
	}
}

func (p *Proc) resume() {
	if p.done {
		panic(&Fault{Component: p.name, At: p.eng.now, Value: "resumed after its end"})
	}
	if _, more := p.next(); !more {
		p.done = true
	}
}

// unwind is the one place that swallows a panic, that of the stop. It gives every
// other the name and time that it would lose on its way out.
func (p *Proc) unwind() {
	switch r := recover().(type) {
	case nil, stopSignal:
	case *Fault:
		panic(r)
	default:
		panic(&Fault{Component: p.name, At: p.eng.now, Value: r, Stack: debug.Stack()})
	}
}
