package sim

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// goroutines waits until coroutines that have ended are gone, and counts the rest.
func goroutines(t *testing.T, want int) {
	t.Helper()
	for range 100 {
		if runtime.NumGoroutine() <= want {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, want %d", runtime.NumGoroutine(), want)
}

func TestProcsAreResumedInOrderOfReady(t *testing.T) {
	e := NewEngine(Lazy)
	defer e.Close()
	var got []string
	var procs []*Proc
	for _, name := range []string{"a", "b", "c"} {
		procs = append(procs, e.NewProc(name, func(p *Proc) {
			got = append(got, p.Name()+"1")
			p.Park()
			got = append(got, p.Name()+"2")
		}))
	}
	e.Schedule(1, 0, fire(func(uint64) {
		for _, i := range []int{2, 0, 1} {
			e.Ready(procs[i])
		}
	}), 0)
	// The procs come before the next event, even one of the same instant.
	e.Schedule(1, 0, fire(func(uint64) {
		got = append(got, "event")
		e.Ready(procs[1])
		e.Ready(procs[2])
	}), 0)
	e.Run()
	want := []string{"c1", "a1", "b1", "event", "b2", "c2"}
	if !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if procs[0].Done() || !procs[1].Done() {
		t.Error("done is not what it should be")
	}
}

func TestCloseLeavesNoCoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	e := NewEngine(Lazy)
	cleaned := 0
	for i := range 30 {
		p := e.NewProc("p", func(p *Proc) {
			defer func() { cleaned++ }()
			if i%3 == 1 {
				return
			}
			p.Park()
			t.Error("a stopped proc went on")
		})
		if i%3 > 0 { // every third is never started
			e.Ready(p)
		}
	}
	e.Run()
	e.Close()
	e.Close() // a second time does nothing
	if cleaned != 20 {
		t.Errorf("%d of 20 bodies ran their deferred calls", cleaned)
	}
	goroutines(t, before)
}

func TestCloseAfterAFault(t *testing.T) {
	before := runtime.NumGoroutine()
	e := NewEngine(Lazy)
	e.Ready(e.NewProc("waits", func(p *Proc) { p.Park() }))
	e.NewProc("never started", func(*Proc) {})
	const cause = "accounts do not balance"
	e.Ready(e.NewProc("cpu3", func(*Proc) {
		if !e.AdvanceWithin(5 * Microsecond) {
			t.Error("nobody else could act")
		}
		panic(cause)
	}))
	f := fault(t, e)
	if f.Component != "cpu3" || f.At != 5*Microsecond || f.Value != cause {
		t.Errorf("%+v", f)
	}
	if !strings.Contains(string(f.Stack), "TestCloseAfterAFault") {
		t.Errorf("the stack does not show where it happened:\n%s", f.Stack)
	}
	goroutines(t, before)
}

func TestFaultKeepsItsComponent(t *testing.T) {
	e := NewEngine(Lazy)
	want := &Fault{Component: "eth0", At: 3, Value: "negative fill"}
	e.Ready(e.NewProc("cpu0", func(*Proc) { panic(want) }))
	if f := fault(t, e); f != want {
		t.Errorf("%+v", f)
	}
}

func TestStallOfProcs(t *testing.T) {
	e := NewEngine(Lazy)
	e.stallLimit = 1000
	var ping, pong *Proc
	ping = e.NewProc("ping", func(p *Proc) {
		for {
			e.Ready(pong)
			p.Park()
		}
	})
	pong = e.NewProc("pong", func(p *Proc) {
		for {
			e.Ready(ping)
			p.Park()
		}
	})
	e.Ready(ping)
	if f := fault(t, e); f.Value != stallMessage || f.Component != "ping" && f.Component != "pong" {
		t.Error(f)
	}
}

// TestProgressWithoutEventsIsNoStall has procs that move time themselves.
func TestProgressWithoutEventsIsNoStall(t *testing.T) {
	e := NewEngine(Lazy)
	defer e.Close()
	e.stallLimit = 10
	e.Ready(e.NewProc("walks", func(p *Proc) {
		for range 1000 {
			e.AdvanceWithin(1)
			e.Ready(p)
			p.Park()
		}
	}))
	e.Run()
	if e.Now() != 1000 {
		t.Errorf("now %v", e.Now())
	}
}

func TestMisuseOfProcs(t *testing.T) {
	tests := []struct {
		name, want string
		body       func(e *Engine, p, other *Proc)
	}{
		{"ready twice", "made ready twice", func(e *Engine, _, other *Proc) { e.Ready(other); e.Ready(other) }},
		{"parked by another", "parked by another", func(_ *Engine, _, other *Proc) { other.Park() }},
		{"resumed after its end", "after its end", func(e *Engine, p, _ *Proc) { e.Ready(p) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := NewEngine(Lazy)
			other := e.NewProc("other", func(p *Proc) { p.Park() })
			e.Ready(e.NewProc("p", func(p *Proc) { tt.body(e, p, other) }))
			if f := fault(t, e); f.Component != "p" || !strings.Contains(f.Error(), tt.want) {
				t.Error(f)
			}
		})
	}
}
