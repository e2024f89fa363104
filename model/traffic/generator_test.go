package traffic_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/link"
	"napisim/model/traffic"
	"napisim/model/unit"
	"napisim/sim"
)

var _ link.Source = (*traffic.Generator)(nil)

const (
	ns = sim.Nanosecond
	us = sim.Microsecond
)

// generate returns the first n frames of a generator, fewer if it stops.
func generate(cfg traffic.Config, n int) []model.Frame {
	g := traffic.New(cfg, 1, "test")
	var frames []model.Frame
	for len(frames) < n {
		at, length := g.Peek()
		if at == sim.Never {
			break
		}
		var f model.Frame
		offered, next := g.Next(&f)
		if again, same := g.Peek(); again != offered || same != next {
			panic("Next and Peek disagree")
		}
		if f.Arrival != at || f.Len != length {
			panic("Peek told of another frame")
		}
		frames = append(frames, f)
	}
	return frames
}

func offered(frames []model.Frame) []sim.Time {
	var at []sim.Time
	for _, f := range frames {
		at = append(at, f.Arrival)
	}
	return at
}

func flowsOf(frames []model.Frame) []model.FlowID {
	var ids []model.FlowID
	for _, f := range frames {
		ids = append(ids, f.Flow)
	}
	return ids
}

func TestOfferedInstants(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  traffic.Config
		want []sim.Time
	}{
		{
			"constant gaps of 1/1 Mpps, from start",
			traffic.Config{Rate: unit.Mpps, Start: 5 * us, Stop: sim.Second},
			[]sim.Time{5 * us, 6 * us, 7 * us, 8 * us},
		},
		{ // 10^12 ps / 3 = 333333333333 1/3
			"what a gap cuts off is added to a later one",
			traffic.Config{Rate: 3 * unit.PacketPerSecond, Stop: 2 * sim.Second},
			[]sim.Time{0, 333_333_333_333, 666_666_666_666, sim.Second, 1_333_333_333_333, 1_666_666_666_666},
		},
		{
			"stop is not within",
			traffic.Config{Rate: unit.Mpps, Stop: 2 * us},
			[]sim.Time{0, 1 * us},
		},
		{ // 4 frames at 1 Mpps: bursts are 4 us apart
			"bursts are handed over at once",
			traffic.Config{Rate: unit.Mpps, Burst: 4, Start: us, Stop: 6 * us},
			[]sim.Time{us, us, us, us, 5 * us, 5 * us, 5 * us, 5 * us},
		},
		{
			"bursts with a spacing, cut by stop",
			traffic.Config{Rate: unit.Mpps, Burst: 3, Spacing: 200 * ns, Start: us, Stop: 4200 * ns},
			[]sim.Time{1000 * ns, 1200 * ns, 1400 * ns, 4000 * ns},
		},
		{
			"bursts so long that they touch",
			traffic.Config{Rate: unit.Mpps, Burst: 2, Spacing: us, Stop: 5 * us},
			[]sim.Time{0, us, 2 * us, 3 * us, 4 * us},
		},
	} {
		c.cfg.Sizes = traffic.FixedSize(60)
		if faults := c.cfg.Validate(); faults != nil {
			t.Errorf("%s: %v", c.name, faults)
		}
		if diff := cmp.Diff(c.want, offered(generate(c.cfg, len(c.want)+5))[:len(c.want)]); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
		if c.cfg.Stop < sim.Second {
			if n := len(generate(c.cfg, 100)); n != len(c.want) {
				t.Errorf("%s: %d frames until stop, want %d", c.name, n, len(c.want))
			}
		}
	}
}

// With constant gaps burst i starts at Start + floor(i*burst/rate), to the
// picosecond and for ever.
func TestConstantGapsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := traffic.Config{
			Rate:  unit.PacketRate(rapid.Int64Range(1_000, int64(20*unit.Mpps)).Draw(t, "rate")),
			Burst: rapid.IntRange(0, 3).Draw(t, "burst"),
			Start: sim.Time(rapid.Int64Range(0, 1000).Draw(t, "start")),
			Stop:  sim.Never,
			Sizes: traffic.FixedSize(60),
		}
		burst := int64(max(cfg.Burst, 1))
		for i, at := range offered(generate(cfg, 200)) {
			want := big.NewInt(int64(i) / burst * burst)
			want.Mul(want, big.NewInt(int64(sim.Second)*1000))
			want.Quo(want, big.NewInt(int64(cfg.Rate)))
			if got := big.NewInt(int64(at - cfg.Start)); got.Cmp(want) != 0 {
				t.Fatalf("frame %d is offered %v after the start, want %v", i, got, want)
			}
		}
	})
}

// A million frames of 14.88 Mpps: cutting each gap of 67204.3 ps to whole
// nanoseconds would make the rate 0.3 % too high.
func TestRateHasNoBias(t *testing.T) {
	cfg := traffic.Config{Rate: 14880 * unit.Kpps, Stop: sim.Second / 10, Sizes: traffic.FixedSize(60)}
	if n := len(generate(cfg, 2_000_000)); n != 1_488_000 {
		t.Errorf("%d frames in 0.1 s at 14.88 Mpps, want 1488000", n)
	}
}

func TestExponentialGaps(t *testing.T) {
	const n = 200_000
	for _, c := range []struct {
		burst int
		rate  unit.PacketRate
	}{
		{1, 7 * unit.Mpps},
		{5, 7 * unit.Mpps},
		{1, 50 * unit.Gpps}, // whole picoseconds cut from 20 ps would show
	} {
		burst := c.burst
		cfg := traffic.Config{Rate: c.rate, Gaps: traffic.Exponential, Burst: burst, Stop: sim.Second, Sizes: traffic.FixedSize(60)}
		at := offered(generate(cfg, n*burst+1))
		starts := []sim.Time{}
		for i := 0; i < len(at); i += burst {
			starts = append(starts, at[i])
		}
		// The mean of n exponential gaps errs by 1/sqrt(n), the second moment, which is 2,
		// by sqrt(20/n).
		mean := float64(burst) / (float64(c.rate) / 1000) * float64(sim.Second)
		got := float64(starts[n-1]-starts[0]) / float64(n-1) / mean
		if math.Abs(got-1) > 4/math.Sqrt(n) {
			t.Errorf("%+v: the mean gap is %v of 1/rate", c, got)
		}
		var second float64
		for i := range n - 1 {
			gap := float64(starts[i+1]-starts[i]) / mean
			second += gap * gap / (n - 1)
		}
		if math.Abs(second-2) > 4*math.Sqrt(20.0/n) {
			t.Errorf("%+v: the second moment of gaps is %v, want 2", c, second)
		}
	}
}

// Bursts that fill half of the time often run into the next one: they queue, in
// order and at their spacing, and none is lost.
func TestBurstsThatRunLate(t *testing.T) {
	cfg := traffic.Config{
		Rate: unit.Mpps, Gaps: traffic.Exponential, Burst: 10, Spacing: 500 * ns,
		Stop: sim.Second / 10, Sizes: traffic.FixedSize(60),
	}
	if faults := cfg.Validate(); faults != nil {
		t.Fatal(faults)
	}
	at := offered(generate(cfg, math.MaxInt))
	for i := range at[1:] {
		if at[i+1]-at[i] < 500*ns {
			t.Fatalf("frame %d follows %v after the one before", i+1, at[i+1]-at[i])
		}
	}
	// 10^4 bursts of 10 in 0.1 s; their number errs by 1/sqrt(10^4).
	if n := float64(len(at)); math.Abs(n/1e5-1) > 0.04 {
		t.Errorf("%v frames in 0.1 s at 1 Mpps", n)
	}
}

func TestFlows(t *testing.T) {
	cfg := traffic.DefaultConfig(sim.Second)
	cfg.Flows, cfg.FirstFlow = 3, 10
	frames := generate(cfg, 7)
	if diff := cmp.Diff([]model.FlowID{10, 11, 12, 10, 11, 12, 10}, flowsOf(frames)); diff != "" {
		t.Errorf("round robin: (-want +got)\n%s", diff)
	}
	key := traffic.DefaultRSSKey()
	for i, f := range frames {
		want := model.Frame{
			Arrival: sim.Time(i) * 10 * us, Len: 60, Payload: 60 - 14 - 20 - 8, Proto: model.UDP, TTL: 64,
			Flow: f.Flow, Hash: key.Hash(traffic.FlowTuple(f.Flow)), IPID: uint16(i/3 + 1),
		}
		if diff := cmp.Diff(want, f); diff != "" {
			t.Errorf("frame %d: (-want +got)\n%s", i, diff)
		}
	}

	cfg.Burst, cfg.FlowPerBurst = 2, true
	if diff := cmp.Diff([]model.FlowID{10, 10, 11, 11, 12, 12, 10}, flowsOf(generate(cfg, 7))); diff != "" {
		t.Errorf("a flow per burst: (-want +got)\n%s", diff)
	}

	cfg.HashAddresses = true
	if got, want := generate(cfg, 1)[0].Hash, key.HashAddresses(traffic.FlowTuple(10)); got != want {
		t.Errorf("hash over addresses is %#x, want %#x", got, want)
	}
	cfg.RSSKey = traffic.RSSKey{1, 2, 3}
	if got, want := generate(cfg, 1)[0].Hash, cfg.RSSKey.HashAddresses(traffic.FlowTuple(10)); got != want {
		t.Errorf("hash by another key is %#x, want %#x", got, want)
	}
}

// shares checks that counts are near the given shares of their sum, by the chi-square
// statistic with its mean k-1 and deviation sqrt(2(k-1)).
func shares(t *testing.T, what string, counts []int, want []float64) {
	t.Helper()
	var n, sum, chi float64
	for i := range counts {
		n += float64(counts[i])
		sum += want[i]
	}
	for i := range counts {
		expected := want[i] / sum * n
		chi += (float64(counts[i]) - expected) * (float64(counts[i]) - expected) / expected
	}
	free := float64(len(counts) - 1)
	if chi > free+5*math.Sqrt(2*free) {
		t.Errorf("%s: %v are not in proportion to %v (chi-square %v)", what, counts, want, chi)
	}
}

func TestRandomFlowsAndSizes(t *testing.T) {
	cfg := traffic.DefaultConfig(sim.Second)
	cfg.Rate, cfg.Flows, cfg.Order, cfg.Sizes = 100*unit.Kpps, 8, traffic.Random, traffic.IMIX()
	for skew := range 3 {
		cfg.Skew, cfg.Burst = skew, skew+1
		// All pairs: flows and sizes are right, and independent of each other.
		counts, want := make([]int, 3*8), make([]float64, 3*8)
		for _, f := range generate(cfg, 100_000) {
			counts[3*int(f.Flow)+slices.Index([]int32{60, 590, 1514}, f.Len)]++
		}
		for i := range want {
			want[i] = []float64{7, 4, 1}[i%3] / math.Pow(float64(i/3+1), float64(skew))
		}
		shares(t, "flows and sizes", counts, want)
	}
}

// Each frame of a burst has a size of its own.
func TestSizesWithinABurst(t *testing.T) {
	cfg := traffic.DefaultConfig(sim.Second)
	cfg.Burst, cfg.Sizes = 2, []traffic.Size{{Len: 60, Weight: 1}, {Len: 61, Weight: 1}}
	counts := make([]int, 4)
	frames := generate(cfg, 20_000)
	for i := 0; i < len(frames); i += 2 {
		counts[2*(frames[i].Len-60)+frames[i+1].Len-60]++
	}
	shares(t, "pairs of sizes", counts, []float64{1, 1, 1, 1})
}

// What is changed in one aspect must not shift another: comparisons are paired.
func TestAspectsAreIndependent(t *testing.T) {
	base := traffic.DefaultConfig(sim.Second)
	base.Gaps, base.Order, base.Flows = traffic.Exponential, traffic.Random, 16
	at, flows := offered(generate(base, 1000)), flowsOf(generate(base, 1000))

	mixed := base
	mixed.Sizes = traffic.IMIX()
	if frames := generate(mixed, 1000); !slices.Equal(offered(frames), at) || !slices.Equal(flowsOf(frames), flows) {
		t.Error("a size mix shifts instants or flows")
	}
	faster := base
	faster.Rate *= 2
	if !slices.Equal(flowsOf(generate(faster, 1000)), flows) {
		t.Error("the rate shifts flows")
	}
	one := base
	one.Flows = 1
	if !slices.Equal(offered(generate(one, 1000)), at) {
		t.Error("the number of flows shifts instants")
	}
	a, b := traffic.New(base, 1, "a"), traffic.New(base, 1, "b")
	atA, _ := a.Peek()
	if atB, _ := b.Peek(); atA == atB {
		t.Error("two generators have one stream")
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	cfg := traffic.DefaultConfig(sim.Never)
	cfg.Gaps, cfg.Burst, cfg.Sizes = traffic.Exponential, 3, traffic.IMIX()
	cfg.Flows, cfg.Order, cfg.Skew = 100, traffic.Random, 1
	g := traffic.New(cfg, 1, "test")
	var f model.Frame
	if n := testing.AllocsPerRun(1000, func() { g.Next(&f) }); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}
