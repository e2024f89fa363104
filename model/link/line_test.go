package link

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/unit"
	"napisim/sim"
)

func TestWireTime(t *testing.T) {
	for _, c := range []struct {
		rate   unit.BitRate
		length int32
		want   moment
	}{
		// 84 bytes on the wire are 672 bits, 1538 bytes are 12304.
		{10 * unit.Mbps, 60, moment{at: 67_200 * sim.Nanosecond}},
		{unit.Gbps, 60, moment{at: 672 * sim.Nanosecond}},
		{unit.Gbps, 1, moment{at: 672 * sim.Nanosecond}}, // padded
		{unit.Gbps, 1514, moment{at: 12_304 * sim.Nanosecond}},
		{2_500 * unit.Mbps, 60, moment{at: 268_800}},
		{10 * unit.Gbps, 60, moment{at: 67_200}},
		{25 * unit.Gbps, 60, moment{at: 26_880}},
		{100 * unit.Gbps, 60, moment{at: 6_720}},
		{400 * unit.Gbps, 60, moment{at: 1_680}},
		{10 * unit.Tbps, 60, moment{at: 67, frac: 200_000_000_000 * 10}}, // 67.2 ps
		{3 * unit.Gbps, 60, moment{at: 224_000}},
		{1300 * unit.Mbps, 60, moment{at: 516_923, frac: 100_000_000}}, // 672/1.3 = 516.923 1/13 ns
	} {
		l := newLine(Config{Rate: c.rate})
		if got := l.after(moment{}, 0, c.length); got != c.want {
			t.Errorf("%d bytes at %v take %+v, want %+v", c.length, c.rate, got, c.want)
		}
		if got := l.afterFraction(moment{}, 0, c.length); got != c.want {
			t.Errorf("%d bytes at %v take %+v by fractions, want %+v", c.length, c.rate, got, c.want)
		}
	}
}

// A line is free again at max(offered, free) + bits/rate, in exact fractions, and what
// is reported is that, rounded up.
func TestLineIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.OneOf(
			rapid.SampledFrom([]int64{int64(unit.Gbps), int64(10 * unit.Gbps), int64(MinRate), int64(MaxRate)}),
			rapid.Int64Range(int64(MinRate), int64(MaxRate)),
		).Draw(t, "rate")
		l := newLine(Config{Rate: unit.BitRate(rate)})
		free, exact := moment{}, new(big.Rat)
		var offered sim.Time
		for range rapid.IntRange(1, 50).Draw(t, "frames") {
			offered += l.gap() * sim.Time(rapid.Int64Range(0, 300).Draw(t, "gap")) / 100
			length := rapid.Int32Range(1, 65549).Draw(t, "length")
			free = l.after(free, offered, length)

			if o := new(big.Rat).SetInt64(int64(offered)); o.Cmp(exact) > 0 {
				exact = o
			}
			exact.Add(exact, big.NewRat(8*model.WireBytes(length), rate).Mul(
				big.NewRat(8*model.WireBytes(length), rate), new(big.Rat).SetInt64(int64(sim.Second))))
			got := new(big.Rat).Add(new(big.Rat).SetInt64(int64(free.at)), new(big.Rat).SetFrac64(int64(free.frac), rate))
			if got.Cmp(exact) != 0 || int64(free.frac) >= rate {
				t.Fatalf("free at %v, want %v", got, exact)
			}
			up := new(big.Rat).SetInt64(int64(free.up()))
			if up.Cmp(exact) < 0 || up.Sub(up, exact).Cmp(big.NewRat(1, 1)) >= 0 {
				t.Fatalf("%v reported for %v", free.up(), exact)
			}
		}
	})
}

// The least gap holds for all lengths and states of the line.
func TestGapIsALowerBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLine(Config{Rate: unit.BitRate(rapid.Int64Range(int64(MinRate), int64(MaxRate)).Draw(t, "rate"))})
		free := l.after(moment{}, 0, 60)
		for range 20 {
			next := l.after(free, 0, rapid.Int32Range(1, 100).Draw(t, "length"))
			if next.up()-free.up() < l.gap() {
				t.Fatalf("%v follows %v, the gap is %v", next, free, l.gap())
			}
			free = next
		}
	})
}

func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue[int]
		var want []int
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					n++
					*q.push() = n
					want = append(want, n)
				}
			},
			"pop": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("empty")
				}
				q.pop()
				want = want[1:]
			},
			"": func(t *rapid.T) {
				if q.len() != len(want) || len(want) > 0 && *q.front() != want[0] {
					t.Fatalf("the queue has %d, want %v", q.len(), want)
				}
			},
		})
	})
}
