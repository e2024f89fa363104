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

const ns = sim.Nanosecond

// list is a Source of given frames; Arrival is the instant of the offer.
type list []model.Frame

func (l *list) Peek() (sim.Time, int32) {
	if len(*l) == 0 {
		return sim.Never, 0
	}
	return (*l)[0].Arrival, (*l)[0].Len
}

func (l *list) Next(f *model.Frame) (sim.Time, int32) {
	*f = (*l)[0]
	*l = (*l)[1:]
	return l.Peek()
}

// sent returns a source of frames offered at the given instants; the i-th has
// Seq first+i.
func sent(first uint64, length int32, at ...sim.Time) *list {
	var l list
	for i, t := range at {
		l = append(l, model.Frame{Arrival: t, Len: length, Seq: first + uint64(i)})
	}
	return &l
}

func pop(p *link.Pipe, now sim.Time) []model.Frame {
	dst := make([]model.Frame, 100)
	return dst[:p.Pop(now, dst)]
}

// arrivals returns what arrives in the end, as instant and Seq.
func arrivals(p *link.Pipe) (at []sim.Time, seq []uint64) {
	for _, f := range pop(p, sim.Never-1) {
		at, seq = append(at, f.Arrival), append(seq, f.Seq)
	}
	return at, seq
}

// At 1 Gbit/s a frame of 60 bytes takes (60+24)*8 = 672 ns, one of 1514 bytes 12304 ns.
func TestArrivals(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  link.Config
		src  *list
		want []sim.Time
	}{
		{"an idle line", link.Config{Rate: unit.Gbps}, sent(0, 60, 0, 1000*ns), []sim.Time{672 * ns, 1672 * ns}},
		{"a busy line", link.Config{Rate: unit.Gbps}, sent(0, 60, 0, 0, 1343*ns, 1345*ns), []sim.Time{672 * ns, 1344 * ns, 2016 * ns, 2688 * ns}},
		{"a long frame", link.Config{Rate: unit.Gbps}, sent(0, 1514, 0, 12303*ns), []sim.Time{12304 * ns, 24608 * ns}},
		{"delay comes after the line", link.Config{Rate: unit.Gbps, Delay: 5000 * ns}, sent(0, 60, 0, 0), []sim.Time{5672 * ns, 6344 * ns}},
		{ // 672/1.3 = 516.923.. ns; 13 frames take 6720 ns to the picosecond
			"fractions add up",
			link.Config{Rate: 1300 * unit.Mbps},
			sent(0, 60, make([]sim.Time, 13)...),
			[]sim.Time{516_924, 1033_847, 1550_770, 2067_693, 2584_616, 3101_539, 3618_462, 4135_385, 4652_308, 5169_231, 5686_154, 6203_077, 6720_000},
		},
		{ // the line is free at 516923 1/13 ps, just after the second frame is offered
			"a fraction busy", link.Config{Rate: 1300 * unit.Mbps}, sent(0, 60, 0, 516_923, 2_000_000), []sim.Time{516_924, 1033_847, 2516_924},
		},
	} {
		p := link.NewPipe(c.cfg)
		p.Attach(c.src)
		first := p.NextArrival()
		got, _ := arrivals(p)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
		if first != c.want[0] || p.NextArrival() != sim.Never {
			t.Errorf("%s: predicted %v first and %v last", c.name, first, p.NextArrival())
		}
	}
}

// Frames of one instant: sources in the order of attaching, then offers.
func TestMerge(t *testing.T) {
	p := link.NewPipe(link.Config{Rate: unit.Gbps})
	p.Attach(sent(10, 60, 100*ns, 100*ns, 300*ns))
	p.Attach(sent(20, 60, 0, 100*ns, 200*ns))
	p.Offer(model.Frame{Len: 60, Seq: 30}, 100*ns)
	p.Offer(model.Frame{Len: 60, Seq: 31}, 100*ns)
	p.Offer(model.Frame{Len: 60, Seq: 32}, 250*ns)
	at, seq := arrivals(p)
	if diff := cmp.Diff([]uint64{20, 10, 11, 21, 30, 31, 22, 32, 12}, seq); diff != "" {
		t.Errorf("order (-want +got)\n%s", diff)
	}
	if last, want := at[len(at)-1], 9*672*ns; last != want {
		t.Errorf("the last arrives at %v, want %v", last, want)
	}
}

// An offer goes before what a source will offer later, although that had been
// predicted, and tells the receiver.
func TestOfferChangesThePrediction(t *testing.T) {
	p := link.NewPipe(link.Config{Rate: unit.Gbps})
	p.Attach(sent(1, 60, 2000*ns))
	told := 0
	p.SetNotify(func() {
		told++
		if want := 1000*ns + 12304*ns; p.NextArrival() != want {
			t.Errorf("told, the next arrival is %v, want %v", p.NextArrival(), want)
		}
	})
	if got, want := p.NextArrival(), 2672*ns; got != want {
		t.Errorf("before the offer the next arrival is %v, want %v", got, want)
	}
	p.Offer(model.Frame{Len: 1514, Seq: 2}, 1000*ns)
	at, seq := arrivals(p)
	if diff := cmp.Diff([]uint64{2, 1}, seq); diff != "" || told != 1 {
		t.Errorf("told %d times; (-want +got)\n%s", told, diff)
	}
	if diff := cmp.Diff([]sim.Time{13304 * ns, 13976 * ns}, at); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The loss script counts frames in the order of the wire, and a lost frame has
// occupied the line.
func TestDrop(t *testing.T) {
	p := link.NewPipe(link.Config{Rate: unit.Gbps})
	p.Attach(sent(1, 60, 0, 0, 0, 0))
	var asked []int64
	p.SetDrop(func(n int64, f *model.Frame) bool {
		if f.Seq != uint64(n+1) || f.Arrival != sim.Time(n+1)*672*ns {
			t.Errorf("asked about %+v as number %d", *f, n)
		}
		asked = append(asked, n)
		return n != 2
	})
	if got := pop(p, 671*ns); len(got) > 0 || len(asked) > 0 {
		t.Errorf("before any arrival: got %v, asked %v", got, asked)
	}
	if got := pop(p, 2*672*ns); len(got) > 0 || len(asked) != 2 {
		t.Errorf("after two arrivals: got %v, asked %v", got, asked)
	}
	at, _ := arrivals(p)
	if diff := cmp.Diff([]sim.Time{3 * 672 * ns}, at); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(link.Stats{Sent: 4, Lost: 3, Delivered: 1}, p.Stats()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
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
	p := link.NewPipe(link.Config{Rate: unit.Gbps})
	p.Offer(model.Frame{Len: 60}, 5*ns)
	panics("an offer before another", func() { p.Offer(model.Frame{Len: 60}, 4*ns) })
	pop(p, 700*ns)
	panics("a late source", func() { p.Attach(sent(0, 60, 0)) })
	panics("an offer before what has been popped", func() { p.Offer(model.Frame{Len: 60}, 6*ns) })
}

// eager is a link with an event for each frame: senders put frames on the line at
// the instants at which they offer them, and the line delivers them one by one.
type eager struct {
	eng     *sim.Engine
	cfg     link.Config
	drop    link.Drop
	n       int64
	thirds  int64 // of a picosecond, when the line is free: exact for the rates here
	wire    []model.Frame
	arrived []model.Frame
	lost    int64
}

func (e *eager) offer(f model.Frame) {
	e.thirds = max(e.thirds, 3*int64(e.eng.Now())) + 3*8*model.WireBytes(f.Len)/(int64(e.cfg.Rate)/1e12)
	f.Arrival = sim.Time((e.thirds+2)/3) + e.cfg.Delay
	e.wire = append(e.wire, f)
	e.eng.Schedule(f.Arrival, phaseArrival, e, 0)
}

func (e *eager) Fire(uint64) {
	f := e.wire[0]
	e.wire = e.wire[1:]
	e.n++
	if e.drop != nil && e.drop(e.n-1, &f) {
		e.lost++
		return
	}
	e.arrived = append(e.arrived, f)
}

const (
	phaseArrival sim.Phase = iota
	phaseSources
	phaseCommands sim.Phase = 100
)

// do is an event.
type do func()

func (d do) Fire(uint64) { d() }

// Whatever is offered and popped when, a pipe that is pulled gives the same frames at
// the same instants as a link with an event for each frame.
func TestLazyEqualsEager(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Bytes take 1, 2, 4/3 or 8/3 ps, so that instants collide often.
		rate := rapid.SampledFrom([]unit.BitRate{8 * unit.Tbps, 4 * unit.Tbps, 6 * unit.Tbps, 3 * unit.Tbps}).Draw(t, "rate")
		cfg := link.Config{Rate: rate, Delay: sim.Time(rapid.SampledFrom([]int64{0, 1, 84, 500}).Draw(t, "delay"))}
		eng := sim.NewEngine(sim.Lazy)
		p := link.NewPipe(cfg)
		e := &eager{eng: eng, cfg: cfg}
		if rapid.Bool().Draw(t, "drop") {
			// Its answers depend on the order in which it is asked.
			script := func() link.Drop {
				sum := uint64(0)
				return func(n int64, f *model.Frame) bool {
					sum = sum*31 + f.Seq + uint64(n)
					return sum%5 == 0
				}
			}
			p.SetDrop(script())
			e.drop = script()
		}
		gap := rapid.Map(rapid.SampledFrom([]int64{0, 0, 1, 42, 84, 100, 112, 200, 1000}), func(v int64) sim.Time { return sim.Time(v) })
		length := rapid.SampledFrom([]int32{60, 61, 100, 200})
		seq := uint64(0)
		frame := func() model.Frame {
			seq++
			return model.Frame{Len: length.Draw(t, "len"), Seq: seq}
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "sources") {
			var l list
			at := sim.Time(0)
			for range rapid.IntRange(0, 30).Draw(t, "frames") {
				at += gap.Draw(t, "gap")
				f := frame()
				f.Arrival = at
				l = append(l, f)
				eng.Schedule(at, phaseSources+sim.Phase(i), do(func() { e.offer(f) }), 0)
			}
			p.Attach(&l)
		}
		at := sim.Time(0)
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			at += gap.Draw(t, "gap")
			var command do
			if rapid.IntRange(0, 2).Draw(t, "command") == 0 {
				f := frame()
				command = func() {
					p.Offer(f, eng.Now())
					e.offer(f)
				}
			} else {
				n := rapid.IntRange(0, 10).Draw(t, "n")
				command = func() {
					dst := make([]model.Frame, n)
					got := dst[:p.Pop(eng.Now(), dst)]
					want := e.arrived[:min(n, len(e.arrived))]
					e.arrived = e.arrived[len(want):]
					if diff := cmp.Diff(append([]model.Frame{}, want...), append([]model.Frame{}, got...)); diff != "" {
						t.Fatalf("popped at %v: (-want +got)\n%s", eng.Now(), diff)
					}
					if len(e.arrived) == 0 && len(e.wire) > 0 && p.NextArrival() > e.wire[0].Arrival {
						t.Fatalf("next on the wire is %v, predicted %v", e.wire[0].Arrival, p.NextArrival())
					}
				}
			}
			eng.Schedule(at, phaseCommands, command, 0)
		}
		eng.Run()
		got := append(pop(p, eng.Now()), pop(p, eng.Now())...)
		if diff := cmp.Diff(append([]model.Frame{}, e.arrived...), append([]model.Frame{}, got...)); diff != "" {
			t.Fatalf("left: (-want +got)\n%s", diff)
		}
		s := p.Stats()
		if err := s.Check(); err != nil || s.InFlight != 0 || s.Lost != e.lost || s.Sent != e.n {
			t.Fatalf("%+v, %v; want %d sent, %d lost", s, err, e.n, e.lost)
		}
	})
}

func TestPopAllocatesNothing(t *testing.T) {
	p := link.NewPipe(link.Config{Rate: unit.Gbps})
	var frames [4]model.Frame
	now := sim.Time(0)
	for range 100 { // the queue grows to what is in flight
		p.Offer(model.Frame{Len: 60}, now)
	}
	p.Pop(sim.Second, frames[:])
	now = sim.Second
	if n := testing.AllocsPerRun(1000, func() {
		now += 10 * 672 * ns
		p.Offer(model.Frame{Len: 60}, now)
		p.Pop(now, frames[:1])
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}
