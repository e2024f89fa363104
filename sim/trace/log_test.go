package trace

import (
	"testing"

	"napisim/sim"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNilLogRecordsNothing(t *testing.T) {
	var l *Log
	l.Select(NAPIPoll)
	if l.Recording(0) {
		t.Error("a nil log is recording")
	}
	l.Emit(Event{})
	if events := l.Events(); events != nil {
		t.Errorf("a nil log holds %v", events)
	}
}

func TestLogWindow(t *testing.T) {
	l := NewLog(10, 20, 100)
	for at := sim.Time(8); at < 23; at++ {
		if got, want := l.Recording(at), at >= 10 && at < 20; got != want {
			t.Errorf("recording at %d: %v", at, got)
		}
		l.Emit(Event{At: at})
	}
	events := l.Events()
	if len(events) != 10 || events[0].At != 10 || events[9].At != 19 {
		t.Errorf("recorded %v", events)
	}
}

func TestLogSelect(t *testing.T) {
	l := NewLog(0, sim.Never, 100)
	l.Select(NAPIPoll, RxMissed)
	for p := range Lost {
		l.Emit(Event{Point: p})
	}
	if diff := cmp.Diff([]Event{{Point: NAPIPoll}, {Point: RxMissed}}, l.Events()); diff != "" {
		t.Error(diff)
	}
}

func TestFullLogCountsLosses(t *testing.T) {
	l := NewLog(0, sim.Never, 2)
	for i, cpu := range []int32{0, 3, 3, 0, 3} {
		l.Emit(Event{At: sim.Time(i), CPU: cpu})
	}
	want := []Event{{At: 0}, {At: 1, CPU: 3}, {At: 2, CPU: 3, Point: Lost, A: 2}, {At: 3, Point: Lost, A: 1}}
	for range 2 { // reading changes nothing
		if diff := cmp.Diff(want, l.Events()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestEventsAreInOrderOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLog(0, sim.Never, 1000)
		for i, at := range rapid.SliceOf(rapid.Int64Range(0, 5)).Draw(t, "times") {
			l.Emit(Event{At: sim.Time(at), A: int64(i)})
		}
		events := l.Events()
		for i := 1; i < len(events); i++ {
			a, b := events[i-1], events[i]
			if a.At > b.At || a.At == b.At && a.A > b.A {
				t.Errorf("%v before %v", a, b)
			}
		}
	})
}

func TestUnusedLogDoesNotAllocate(t *testing.T) {
	var none *Log
	outside := NewLog(sim.Second, 2*sim.Second, 100)
	at := sim.Time(0)
	n := testing.AllocsPerRun(100, func() {
		for _, l := range []*Log{none, outside} {
			if l.Recording(at) {
				l.Emit(Event{At: at, Point: NAPIPoll})
			}
		}
		at++
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestFingerprintIsTheSameEverywhere pins the hash: a change of these numbers makes
// the fingerprints of all earlier results meaningless.
func TestFingerprintIsTheSameEverywhere(t *testing.T) {
	var f Fingerprint
	if got, want := f.Sum(), uint64(0); got != want {
		t.Errorf("empty: %#x, want %#x", got, want)
	}
	f.Mix(123456789*sim.Nanosecond, NAPIPoll, 3, 64)
	f.Mix(-1, SoftirqExit, 0, -1)
	if got, want := f.Sum(), uint64(0x6912ea6230785b34); got != want {
		t.Errorf("two steps: %#x, want %#x", got, want)
	}
}

func TestFingerprintTellsRunsApart(t *testing.T) {
	type step struct {
		At    sim.Time
		Point Point
		CPU   uint8
		A     int64
	}
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			sim.Time(rapid.Int64().Draw(t, "at")), Point(rapid.Uint8().Draw(t, "point")),
			rapid.Uint8().Draw(t, "cpu"), rapid.Int64().Draw(t, "a"),
		}
	}), 1, 10)
	sum := func(steps []step) uint64 {
		var f Fingerprint
		for _, s := range steps {
			f.Mix(s.At, s.Point, int(s.CPU), s.A)
		}
		return f.Sum()
	}
	rapid.Check(t, func(t *rapid.T) {
		a := steps.Draw(t, "steps")
		if sum(a) != sum(a) {
			t.Fatal("not a function of the steps")
		}
		b := append([]step(nil), a...)
		s := &b[rapid.IntRange(0, len(b)-1).Draw(t, "which")]
		switch delta := rapid.Int64Range(1, 255).Draw(t, "delta"); rapid.IntRange(0, 3).Draw(t, "field") {
		case 0:
			s.At += sim.Time(delta)
		case 1:
			s.Point += Point(delta)
		case 2:
			s.CPU += uint8(delta)
		case 3:
			s.A += delta
		}
		if sum(a) == sum(b) {
			t.Errorf("%v and %v have one fingerprint", a, b)
		}
		if sum(a) == sum(a[:len(a)-1]) || sum(a) == sum(append(a, step{})) {
			t.Errorf("a step more or less does not show in %v", a)
		}
	})
}

func BenchmarkFingerprint(b *testing.B) {
	var f Fingerprint
	at := sim.Time(0)
	for b.Loop() {
		f.Mix(at, NAPIPoll, 1, 64)
		at += 1000
	}
}

func BenchmarkUnusedPoint(b *testing.B) {
	var l *Log
	at := sim.Time(0)
	for b.Loop() {
		if l.Recording(at) {
			l.Emit(Event{At: at, Point: NAPIPoll, A: 1, B: 64, C: 64, S: "eth0"})
		}
		at++
	}
}

func BenchmarkEmit(b *testing.B) {
	l := NewLog(0, sim.Never, 1<<16)
	for b.Loop() {
		if len(l.events) == l.limit {
			l.events = l.events[:0]
		}
		l.Emit(Event{At: 1, Point: NAPIPoll, A: 1, B: 64, C: 64, S: "eth0"})
	}
}

func BenchmarkWriteText(b *testing.B) {
	var out failing
	events := make([]Event, 10_000)
	for i := range events {
		events[i] = recorded[i%len(recorded)]
	}
	for b.Loop() {
		out.n = 1 << 30
		if err := WriteText(&out, events); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
}
