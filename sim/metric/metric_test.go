package metric

import (
	"math/big"
	"testing"

	"napisim/sim"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestBetterString(t *testing.T) {
	for b, want := range map[Better]string{Neither: "neither", Higher: "higher", Lower: "lower", 9: "Better(9)"} {
		if got := b.String(); got != want {
			t.Errorf("%d is %q, want %q", b, got, want)
		}
	}
}

func TestLevelAgainstSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Level
		now, value, area, start := sim.Time(0), int64(0), new(big.Int), sim.Time(0)
		highest := int64(0)
		step := func(t *rapid.T) {
			d := sim.Time(rapid.Int64Range(0, int64(100*sim.Second)).Draw(t, "pause"))
			area.Add(area, new(big.Int).Mul(big.NewInt(value), big.NewInt(int64(d))))
			now += d
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				step(t)
				value = rapid.Int64Range(0, 1<<40).Draw(t, "value")
				highest = max(highest, value)
				l.Set(now, value)
			},
			"reset": func(t *rapid.T) {
				step(t)
				l.Reset(now)
				start, highest = now, value
				area.SetInt64(0)
			},
			"": func(t *rapid.T) {
				want := float64(value)
				if now > start {
					exact, _ := new(big.Float).SetInt(area).Float64()
					want = exact / float64(now-start)
				}
				// The high and the low half are rounded once each.
				if got := l.Mean(now); got < want*(1-1e-15) || got > want*(1+1e-15) {
					t.Errorf("mean %v, want %v", got, want)
				}
				if l.Value() != value || l.Max() != highest {
					t.Errorf("value %d, max %d, want %d and %d", l.Value(), l.Max(), value, highest)
				}
			},
		})
	})
}

func TestLevelRefusesNonsense(t *testing.T) {
	for name, f := range map[string]func(l *Level){
		"time runs back": func(l *Level) { l.Set(sim.Second, 1); l.Set(sim.Second-1, 1) },
		"negative":       func(l *Level) { l.Set(sim.Second, -1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f(new(Level))
		})
	}
}

func TestSetCutsTheWarmUp(t *testing.T) {
	var (
		frames Counter
		ring   Level
		delay  Histogram
		busy   sim.Time
		set    Set
	)
	rx := Desc{Name: "rx_packets", Unit: "frames", Better: Higher}
	depth := Desc{Name: "rx_ring", Unit: "descriptors"}
	latency := Desc{Name: "latency", Unit: "ps", Better: Lower}
	cpu := Desc{Name: "cpu_softirq", Unit: "ps", Better: Lower}
	set.Counter(rx, &frames)
	set.Level(depth, &ring)
	set.Histogram(latency, &delay)
	set.Func(cpu, func() int64 { return int64(busy) })

	work := func(from sim.Time, n, level, d int64) {
		frames.Add(n)
		frames.Inc()
		ring.Set(from, level)
		delay.Add(d)
		busy += sim.Time(d)
	}
	work(0, 9, 100, 1000)
	set.Cut(10 * sim.Second)
	work(15*sim.Second, 4, 200, 30)

	want := []Reading{
		{Desc: rx, Count: 5},
		{Desc: depth, Kind: KindLevel, Mean: 150, Max: 200},
		{Desc: latency, Kind: KindHistogram, Histogram: &delay},
		{Desc: cpu, Count: 30},
	}
	got := set.Read(20 * sim.Second)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Histogram{})); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if delay.Count() != 1 || delay.Max() != 30 {
		t.Errorf("the histogram holds %d values up to %d", delay.Count(), delay.Max())
	}
	if frames.Value() != 15 {
		t.Errorf("the counter lost its warm-up: %d", frames.Value())
	}
	if set.Since() != 10*sim.Second {
		t.Errorf("the window starts at %v", set.Since())
	}
}

func TestSetRefusesTwins(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	var a, b Counter
	var set Set
	set.Counter(Desc{Name: "rx_packets"}, &a)
	set.Counter(Desc{Name: "rx_packets"}, &b)
}
