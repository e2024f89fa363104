package link_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/link"
	"napisim/model/unit"
	"napisim/sim"
)

// delivery is a segment that has arrived.
type delivery struct {
	At  sim.Time
	Seq uint64
}

// peer notes what it is given, and when; then it does what then says.
type peer struct {
	eng  *sim.Engine
	got  []delivery
	then func(*model.Segment)
}

func (p *peer) Deliver(s *model.Segment) {
	p.got = append(p.got, delivery{p.eng.Now(), s.Seq})
	if s.Arrival != p.eng.Now() {
		panic("a segment does not know when it arrived")
	}
	if p.then != nil {
		p.then(s)
	}
}

func segment(seq uint64, length int32) *model.Segment {
	return &model.Segment{Frame: model.Frame{Seq: seq, Len: length}}
}

// At 1 Gbit/s an ACK of 66 bytes takes (66+24)*8 = 720 ns.
func TestEgress(t *testing.T) {
	eng := sim.NewEngine(sim.Lazy)
	p := &peer{eng: eng}
	e := link.NewEgress(eng, 0, link.Config{Rate: unit.Gbps, Delay: 10_000 * ns}, p)
	s := segment(1, 66)
	for i, want := range []sim.Time{720 * ns, 1440 * ns, 2160 * ns} {
		s.Seq = uint64(i + 1)
		if got := e.Send(0, s); got != want {
			t.Errorf("segment %d departs at %v, want %v", s.Seq, got, want)
		}
	}
	s.Seq = 99 // the link has copied what it needs
	if diff := cmp.Diff(link.Stats{Sent: 3, InFlight: 3}, e.Stats()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// The peer answers the second one with two more, while looking at it.
	p.then = func(s *model.Segment) {
		if s.Seq == 2 {
			if got, want := e.Send(eng.Now(), segment(4, 66)), eng.Now()+720*ns; got != want {
				t.Errorf("the answer departs at %v, want %v", got, want)
			}
			for seq := range uint64(40) { // the queue grows
				e.Send(eng.Now(), segment(5+seq, 66))
			}
			if s.Seq != 2 {
				t.Error("the segment changed under the peer's eyes")
			}
		}
	}
	eng.Run()
	want := []delivery{{10_720 * ns, 1}, {11_440 * ns, 2}, {12_160 * ns, 3}}
	for i := range sim.Time(41) {
		want = append(want, delivery{11_440*ns + (i+1)*720*ns + 10_000*ns, uint64(i + 4)})
	}
	if diff := cmp.Diff(want, p.got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := e.Stats().Check(); err != nil || e.Stats().Delivered != 44 {
		t.Errorf("%+v: %v", e.Stats(), err)
	}
}

// One event is pending, however many segments are on their way.
func TestEgressCostsOneEventPerSegment(t *testing.T) {
	eng := sim.NewEngine(sim.Lazy)
	e := link.NewEgress(eng, 0, link.Config{Rate: unit.Gbps}, &peer{eng: eng})
	for seq := range uint64(100) {
		e.Send(0, segment(seq, 60))
	}
	if got, want := eng.Horizon(), 672*ns; got != want {
		t.Errorf("the horizon is %v, want %v", got, want)
	}
	eng.Run()
	if eng.Fired() != 100 {
		t.Errorf("%d events for 100 segments", eng.Fired())
	}
}

func TestEgressWithoutAPeer(t *testing.T) {
	eng := sim.NewEngine(sim.Lazy)
	e := link.NewEgress(eng, 0, link.Config{Rate: unit.Gbps}, nil)
	e.Send(0, segment(1, 60))
	if got, want := e.Send(0, segment(2, 60)), 2*672*ns; got != want {
		t.Errorf("departs at %v, want %v", got, want)
	}
	eng.Run()
	if diff := cmp.Diff(link.Stats{Sent: 2, Delivered: 2}, e.Stats()); diff != "" || eng.Fired() != 0 {
		t.Errorf("%d events; (-want +got)\n%s", eng.Fired(), diff)
	}
}

func TestEgressDrop(t *testing.T) {
	eng := sim.NewEngine(sim.Lazy)
	p := &peer{eng: eng}
	e := link.NewEgress(eng, 0, link.Config{Rate: unit.Gbps}, p)
	e.SetDrop(func(n int64, _ *model.Frame) bool { return n == 1 })
	for seq := range uint64(3) {
		e.Send(0, segment(seq, 60))
	}
	eng.Run()
	if diff := cmp.Diff([]delivery{{672 * ns, 0}, {3 * 672 * ns, 2}}, p.got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(link.Stats{Sent: 3, Lost: 1, Delivered: 2}, e.Stats()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Both directions keep the same time: what an Egress delivers and what a Pipe yields
// are the same instants.
func TestEgressAgreesWithPipe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := link.Config{
			Rate:  unit.BitRate(rapid.Int64Range(int64(link.MinRate), int64(link.MaxRate)).Draw(t, "rate")),
			Delay: sim.Time(rapid.Int64Range(0, int64(sim.Second)).Draw(t, "delay")),
		}
		eng := sim.NewEngine(sim.Lazy)
		p := &peer{eng: eng}
		e, in := link.NewEgress(eng, 0, cfg, p), link.NewPipe(cfg)
		at := sim.Time(0)
		for seq := range rapid.Uint64Range(1, 20).Draw(t, "n") {
			at += e.Gap() * sim.Time(rapid.IntRange(0, 300).Draw(t, "gap")) / 100
			length := rapid.Int32Range(60, 9000).Draw(t, "len")
			eng.Schedule(at, 1, do(func() {
				departed := e.Send(eng.Now(), segment(seq, length))
				if departed < eng.Now()+e.Gap() {
					t.Fatalf("sent at %v, departed at %v", eng.Now(), departed)
				}
				in.Offer(model.Frame{Seq: seq, Len: length}, eng.Now())
			}), 0)
		}
		eng.Run()
		var want []delivery
		for _, f := range pop(in, sim.Never-1) {
			want = append(want, delivery{f.Arrival, f.Seq})
		}
		if diff := cmp.Diff(want, p.got); diff != "" {
			t.Fatalf("(-pipe +egress)\n%s", diff)
		}
	})
}

func TestSendAllocatesNothing(t *testing.T) {
	eng := sim.NewEngine(sim.Lazy)
	e := link.NewEgress(eng, 0, link.Config{Rate: unit.Gbps}, &peer{eng: eng, got: make([]delivery, 0, 10000)})
	s := segment(0, 60)
	if n := testing.AllocsPerRun(1000, func() {
		e.Send(eng.Now(), s)
		eng.Run()
	}); n != 0 {
		t.Errorf("%v allocations per segment", n)
	}
}
