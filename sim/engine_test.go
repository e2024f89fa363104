package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// fire makes a function a handler.
type fire func(arg uint64)

func (f fire) Fire(arg uint64) { f(arg) }

// fault runs the engine and returns the Fault that it panics with.
func fault(t *testing.T, e *Engine) (f *Fault) {
	t.Helper()
	defer e.Close()
	defer func() {
		t.Helper()
		var ok bool
		if f, ok = recover().(*Fault); !ok {
			t.Fatal("no fault")
		}
	}()
	e.Run()
	return nil
}

func TestEventsFireInOrder(t *testing.T) {
	e := NewEngine(Lazy)
	var got []string
	note := fire(func(arg uint64) { got = append(got, fmt.Sprintf("%d at %d", arg, e.Now())) })
	e.Schedule(20, 0, note, 1)
	e.Schedule(10, 1, note, 2)
	e.Schedule(10, 0, note, 3)
	e.Schedule(10, 1, note, 4)
	cancelled := e.Schedule(15, 0, note, 5)
	e.Schedule(10, 2, fire(func(uint64) {
		if !e.Cancel(cancelled) || e.Cancel(cancelled) {
			t.Error("an event can be cancelled once")
		}
		e.Schedule(10, 0, note, 6) // the present instant is no past
	}), 0)
	e.Run()
	want := []string{"3 at 10", "2 at 10", "4 at 10", "6 at 10", "1 at 20"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if e.Fired() != 6 || e.Now() != 20 {
		t.Errorf("%d events, the last at %v", e.Fired(), e.Now())
	}
}

func TestStopLeavesTheRest(t *testing.T) {
	e := NewEngine(Lazy)
	fired := 0
	for i := range Time(5) {
		e.Schedule(i, 0, fire(func(uint64) {
			if fired++; fired == 2 {
				e.Stop()
			}
		}), 0)
	}
	e.Run()
	if fired != 2 || e.Now() != 1 || e.Horizon() != 2 {
		t.Errorf("%d fired, now %d, horizon %d", fired, e.Now(), e.Horizon())
	}
}

func TestHorizon(t *testing.T) {
	e := NewEngine(Lazy)
	if h := e.Horizon(); h != Never {
		t.Errorf("horizon %v of an empty queue", h)
	}
	id := e.Schedule(30, 0, nothing{}, 0)
	e.Schedule(10, 0, fire(func(uint64) {
		if h := e.Horizon(); h != 30 {
			t.Errorf("horizon %v inside a handler, want that of the next event", h)
		}
		e.Schedule(20, 0, nothing{}, 0)
		if h := e.Horizon(); h != 20 {
			t.Errorf("horizon %v after an earlier event was scheduled", h)
		}
		e.Schedule(25, 0, fire(func(uint64) {
			e.Cancel(id)
			if h := e.Horizon(); h != Never {
				t.Errorf("horizon %v after the last event was cancelled", h)
			}
		}), 0)
	}), 0)
	e.Run()
}

func TestAdvanceWithin(t *testing.T) {
	tests := []struct {
		name    string
		mode    Mode
		horizon Time
		d       Time
		want    bool
	}{
		{"before the horizon", Lazy, 100, 89, true},
		{"to the horizon", Lazy, 100, 90, false},
		{"beyond the horizon", Lazy, 100, 91, false},
		{"by nothing", Lazy, 100, 0, true},
		{"by nothing at the horizon", Lazy, 10, 0, false},
		{"no horizon", Lazy, Never, Second, true},
		{"no horizon, for ever", Lazy, Never, Never - 10, true},
		{"eager", Eager, 100, 89, true},
		{"slow", Slow, 100, 89, false},
		{"slow, no horizon", Slow, Never, 1, false},
	}
	for _, tt := range tests {
		for _, inHole := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/hole=%v", tt.name, inHole), func(t *testing.T) {
				e := NewEngine(tt.mode)
				if tt.horizon != Never {
					e.Schedule(tt.horizon, 9, nothing{}, 0)
				}
				try := fire(func(uint64) {
					want := Time(10)
					if got := e.AdvanceWithin(tt.d); got != tt.want {
						t.Errorf("AdvanceWithin: %v", got)
					} else if got {
						want += tt.d
					}
					if e.Now() != want {
						t.Errorf("now %v, want %v", e.Now(), want)
					}
				})
				e.Schedule(10, 0, fire(func(uint64) {
					if !inHole {
						e.q.settle()
					}
					try(0)
				}), 0)
				e.Run()
			})
		}
	}
}

func TestThePastIsClosed(t *testing.T) {
	e := NewEngine(Lazy)
	e.Schedule(10, 0, fire(func(uint64) { e.Schedule(9, 0, nothing{}, 0) }), 0)
	if f := fault(t, e); !strings.Contains(fmt.Sprint(f.Value), "event for 9ps scheduled at 10ps") {
		t.Error(f)
	}
}

func TestFaultOfAHandler(t *testing.T) {
	e := NewEngine(Lazy)
	const cause = "ring: negative fill"
	e.Schedule(7*Nanosecond, 0, fire(func(uint64) { panic(cause) }), 0)
	f := fault(t, e)
	if f.Component != "sim.fire" || f.At != 7*Nanosecond || f.Value != cause {
		t.Errorf("%+v", f)
	}
	if got, want := f.Error(), "sim.fire at 7ns: ring: negative fill"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !strings.Contains(string(f.Stack), "TestFaultOfAHandler") {
		t.Errorf("the stack does not show where it happened:\n%s", f.Stack)
	}
}

func TestStallOfAHandler(t *testing.T) {
	e := NewEngine(Lazy)
	e.stallLimit = 1000
	var again fire
	again = func(arg uint64) { e.Schedule(e.Now()+Time(arg), 0, again, 0) }
	e.Schedule(Nanosecond, 0, again, 1)
	f := fault(t, e)
	if f.Component != "sim.fire" || f.At != Nanosecond+1 || f.Value != stallMessage {
		t.Error(f)
	}
	if e.Fired() < 1000 || e.Fired() > 1010 {
		t.Errorf("noticed after %d events", e.Fired())
	}
}

func TestManyEventsOfOneInstantAreNoStall(t *testing.T) {
	e := NewEngine(Lazy)
	e.stallLimit = 100
	for at := range Time(50) {
		for range 100 {
			e.Schedule(at, 0, nothing{}, 0)
		}
	}
	e.Run()
	if e.Fired() != 5000 {
		t.Errorf("%d events", e.Fired())
	}
}

// TestShuffledEngine shows that only the order within a time and phase moves, that
// it depends on the seed alone, and that every order of three occurs.
func TestShuffledEngine(t *testing.T) {
	run := func(seed uint64) (order string) {
		e := NewEngineShuffled(Lazy, seed)
		note := fire(func(arg uint64) { order += string(rune('a' + arg)) })
		e.Schedule(2, 0, note, 5)
		for arg := range uint64(3) {
			e.Schedule(1, 1, note, arg)
		}
		e.Schedule(1, 0, note, 3)
		e.Schedule(1, 2, note, 4)
		e.Run()
		return order
	}
	seen := make(map[string]int)
	for seed := range uint64(600) {
		order := run(seed)
		if again := run(seed); again != order {
			t.Fatalf("seed %d gives %s and %s", seed, order, again)
		}
		if order[0] != 'd' || order[4:] != "ef" {
			t.Fatalf("seed %d moves events of other times or phases: %s", seed, order)
		}
		seen[order[1:4]]++
	}
	for _, n := range seen {
		if len(seen) != 6 || n < 60 || n > 140 {
			t.Fatalf("orders are not alike: %v", seen)
		}
	}
}

// walker is a model in which several actors advance, wait and wake each other. It
// is written so that its results do not depend on the mode.
type walker struct {
	eng   *Engine
	trace []string
}

// spend lets time pass for p, as a simulated CPU does.
func (w *walker) spend(p *Proc, phase Phase, d Time) {
	if w.eng.AdvanceWithin(d) {
		return
	}
	w.eng.Schedule(w.eng.Now()+d, phase, fire(func(uint64) { w.eng.Ready(p) }), 0)
	p.Park()
}

// TestModesAgree runs random programs of several procs in all modes, and with
// shuffled ties between phases of their own: the trajectories must be the same.
func TestModesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		programs := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 5), 1, 20), 1, 5).Draw(t, "programs")
		run := func(e *Engine) []string {
			defer e.Close()
			w := &walker{eng: e}
			for i, program := range programs {
				p := e.NewProc(fmt.Sprint(i), func(p *Proc) {
					for _, d := range program {
						w.spend(p, Phase(i), Time(d))
						w.trace = append(w.trace, fmt.Sprintf("%d:%d", i, e.Now()))
					}
				})
				e.Schedule(0, Phase(i), fire(func(uint64) { e.Ready(p) }), 0)
			}
			e.Run()
			return w.trace
		}
		want := run(NewEngine(Slow))
		for name, e := range map[string]*Engine{
			"lazy": NewEngine(Lazy), "eager": NewEngine(Eager),
			"shuffled": NewEngineShuffled(Lazy, rapid.Uint64().Draw(t, "seed")),
		} {
			if diff := cmp.Diff(want, run(e)); diff != "" {
				t.Errorf("%s differs from slow (-slow +%s):\n%s", name, name, diff)
			}
		}
	})
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		step := newHold(1000, cancel)
		step(10_000)
		if n := testing.AllocsPerRun(10, func() { step(1000) }); n != 0 {
			t.Errorf("cancel=%v: %v allocations in 1000 events", cancel, n)
		}
	}
}

// A Proc that runs must not move the clock past another that is ready at this
// instant: b is made ready at 5 ps, before a wants to be a second further.
func TestAdvanceWithinWaitsForReadyProcs(t *testing.T) {
	e := NewEngine(Lazy)
	defer e.Close()
	var ranAt Time = -1
	b := e.NewProc("b", func(*Proc) { ranAt = e.Now() })
	a := e.NewProc("a", func(p *Proc) {
		if !e.AdvanceWithin(5) {
			t.Error("alone, a could not advance")
		}
		e.Ready(b)
		if e.AdvanceWithin(Second) {
			t.Error("a advanced past b")
		}
	})
	e.Ready(a)
	e.Run()
	if ranAt != 5 {
		t.Errorf("b ran at %v", ranAt)
	}
}
