package nic_test

import (
	"testing"

	"napisim/model"
	"napisim/model/link"
	"napisim/model/unit"
	"napisim/nic"
	"napisim/sim"
)

func state(r *nic.RXRing) [4]int {
	return [4]int{r.Free(), r.Filled(), r.Awaiting(), int(r.Missed())}
}

// Descriptors go around a ring of three: free, filled, awaiting, and frames are missed
// at the instant at which none is free.
func TestRXRing(t *testing.T) {
	cfg := plain(nic.NewerThanConsumer)
	cfg.RXRing = 3
	b := newBed(cfg)
	r := b.dev.RX(0)
	var first *model.Frame
	expect := func(what string, now sim.Time, free, filled, awaiting, missed int) {
		t.Helper()
		if got, want := state(r), [4]int{free, filled, awaiting, missed}; got != want {
			t.Errorf("%s at %v: free, filled, awaiting, missed are %v, want %v", what, now, got, want)
		}
		if err := b.dev.Check(now); err != nil {
			t.Error(err)
		}
	}
	// Frames 0, 1, 2, ... arrive at 1, 2, 3, ... us.
	for i := range sim.Time(12) {
		b.at((i+1)*us-672*ns, func(now sim.Time) { b.in.Offer(model.Frame{Len: 60, Seq: uint64(i)}, now) })
	}
	for _, step := range []struct {
		at sim.Time
		do func(now sim.Time)
	}{
		{2 * us, func(now sim.Time) {
			if r.Filled() != 0 {
				t.Error("frames are known without a pull")
			}
			r.Pull(now) // the frame that arrives at this very instant is included
			expect("pulled", now, 1, 2, 0, 0)
			first = r.Take()
			expect("took one", now, 1, 1, 1, 0)
		}},
		{5500 * ns, func(now sim.Time) {
			// Frame 2 has the last descriptor, 3 and 4 find none, although two frames are
			// taken before anybody pulls, and two descriptors are refilled.
			if f := r.Take(); f.Seq != 1 || f.Arrival != 2*us {
				t.Errorf("took %+v, want frame 1", *f)
			}
			if first.Seq != 0 || first.Arrival != us {
				t.Error("a frame changed before its descriptor was refilled")
			}
			r.Refill(now, 2)
			expect("refilled", now, 2, 1, 0, 2)
		}},
		{7 * us, func(now sim.Time) {
			r.Pull(now)
			expect("pulled", now, 0, 3, 0, 2)
			if first.Seq != 5 {
				t.Errorf("the first descriptor holds frame %d, want 5", first.Seq)
			}
			for _, want := range []uint64{2, 5, 6} {
				if f := r.Take(); f.Seq != want {
					t.Errorf("took frame %d, want %d", f.Seq, want)
				}
			}
			expect("took all", now, 0, 0, 3, 2)
		}},
		{10 * us, func(now sim.Time) {
			r.Refill(now, 1) // too late for the frame that arrives now
			expect("refilled one", now, 1, 0, 2, 5)
		}},
		{13 * us, func(now sim.Time) {
			r.Pull(now)
			expect("pulled", now, 0, 1, 2, 6)
			if f := r.Take(); f.Seq != 10 {
				t.Errorf("took frame %d, want 10", f.Seq)
			}
		}},
	} {
		b.at(step.at, step.do)
	}
	b.eng.Run()
	s := b.dev.Stats(b.eng.Now())
	want := nic.Stats{RXPackets: 6, RXBytes: 6 * 60, RXMissedErrors: 6}
	if s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
}

// A segment of 60 bytes leaves after 672 ns and is completed 1 us later.
func TestTXRing(t *testing.T) {
	cfg := plain(nic.NewerThanConsumer)
	cfg.TXRing, cfg.TXLatency = 2, us
	b := newBed(cfg)
	r := b.dev.TX(0)
	s := &model.Segment{Frame: model.Frame{Len: 60}}
	if r.NextCompletion() != sim.Never {
		t.Errorf("an empty ring completes at %v", r.NextCompletion())
	}
	for i, want := range []bool{true, true, false} {
		if got := r.Xmit(0, s); got != want {
			t.Errorf("segment %d: accepted is %v, want %v", i, got, want)
		}
	}
	if got, want := r.NextCompletion(), 1672*ns; got != want {
		t.Errorf("the first completion is at %v, want %v", got, want)
	}
	for _, c := range []struct {
		at             sim.Time
		reaped, flying int
	}{{1671 * ns, 0, 2}, {1672 * ns, 1, 1}, {1673 * ns, 0, 1}, {2344 * ns, 1, 0}, {5 * us, 0, 0}} {
		b.at(c.at, func(now sim.Time) {
			if n := r.Reap(now); n != c.reaped || r.InFlight() != c.flying {
				t.Errorf("at %v: reaped %d, %d in flight; want %d, %d", now, n, r.InFlight(), c.reaped, c.flying)
			}
		})
	}
	b.eng.Run()
	if got, want := b.dev.Stats(b.eng.Now()), (nic.Stats{TXPackets: 2, TXBytes: 120, TXBusy: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := b.dev.Check(b.eng.Now()); err != nil {
		t.Error(err)
	}
}

func TestMisuse(t *testing.T) {
	panics := func(name string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", name)
			}
		}()
		f()
	}
	b := newBed(plain(nic.NewerThanConsumer))
	r := b.dev.RX(0)
	panics("take from an empty ring", func() { r.Take() })
	panics("refill of what nobody took", func() { r.Refill(0, 1) })
	panics("refill of less than nothing", func() { r.Refill(0, -1) })
}

// What leaves the books is noticed: frames that somebody else takes from the wire,
// segments that somebody else sends.
func TestCheckFindsWhatIsMissing(t *testing.T) {
	eng := sim.NewEngine(sim.Lazy)
	in := link.NewPipe(link.Config{Rate: unit.Gbps})
	out := link.NewEgress(eng, 0, link.Config{Rate: unit.Gbps}, nil)
	dev := nic.New(eng, 0, plain(nic.NewerThanConsumer), in, out)
	in.Offer(model.Frame{Len: 60}, 0)
	if err := dev.Check(0); err != nil {
		t.Fatal(err)
	}
	out.Send(0, &model.Segment{Frame: model.Frame{Len: 60}})
	if err := dev.Check(0); err == nil {
		t.Error("a segment that was never accepted is not noticed")
	}
	in.Pop(us, make([]model.Frame, 1))
	if err := dev.Check(us); err == nil {
		t.Error("a frame that never reached a ring is not noticed")
	}
}
