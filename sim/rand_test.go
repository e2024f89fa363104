package sim

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// TestRandIsTheSameForEver pins the first numbers of some streams. Every stored
// result depends on them: whoever changes one of these numbers makes all earlier
// results impossible to repeat, and has to say so in the change log.
func TestRandIsTheSameForEver(t *testing.T) {
	tests := []struct {
		seed uint64
		name string
		want [3]uint64
	}{
		{1, "eth0", [3]uint64{0x8d17e79e676d62d5, 0xb57c0043eec386db, 0xae2d98d4f8dc1d12}},
		{1, "eth1", [3]uint64{0x42689e470f3d19d6, 0xf8faab392ee2dcb8, 0xd028122b8a82353a}},
		{2, "eth0", [3]uint64{0x819291c5d0f7f32a, 0x2eb58a4cda59d427, 0x5c29ed16c14d60e8}},
		{0, "", [3]uint64{0xe26914e66610b7d8, 0x4a5ca9b5d41920b8, 0x8263fe826f146b13}},
	}
	for _, tt := range tests {
		r := NewRand(tt.seed, tt.name)
		if got := [3]uint64{r.Uint64(), r.Uint64(), r.Uint64()}; got != tt.want {
			t.Errorf("seed %d, %q: %#x, want %#x", tt.seed, tt.name, got, tt.want)
		}
	}
	r := NewRand(1, "exp")
	var got []Time
	for range 4 {
		got = append(got, r.Exp(Second))
	}
	if want := []Time{623885759445, 1155318811642, 1809197004841, 1303505026017}; !slices.Equal(got, want) {
		t.Errorf("Exp: %d, want %d", got, want)
	}
	// The sum of many takes the rare branches in.
	sum := Time(0)
	for range 1_000_000 {
		sum += r.Exp(Microsecond)
	}
	if want := Time(999926161212); sum != want {
		t.Errorf("sum of Exp: %d, want %d", sum, want)
	}
}

func TestStreamsAreIndependent(t *testing.T) {
	const n = 100_000
	draw := func(seed uint64, name string) []float64 {
		r := NewRand(seed, name)
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(r.Uint64())
		}
		return x
	}
	// Neighbouring seeds and names are what users choose.
	streams := [][]float64{
		draw(1, "eth0"), draw(2, "eth0"), draw(3, "eth0"), draw(1<<63, "eth0"),
		draw(1, "eth1"), draw(2, "eth1"), draw(1, "eth0.rx"), draw(1, ""),
	}
	for i, a := range streams {
		for _, b := range streams[:i] {
			// The correlation of independent streams is normal with deviation 1/√n.
			if c := stat.Correlation(a, b, nil); math.Abs(c)*math.Sqrt(n) > 4 {
				t.Errorf("streams correlate by %v", c)
			}
		}
		if c := stat.Correlation(a[1:], a[:n-1], nil); math.Abs(c)*math.Sqrt(n) > 4 {
			t.Errorf("a stream correlates with itself by %v", c)
		}
	}
}

func TestIntNIsUniform(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 64, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := NewRand(7, "intn")
			const each = 1000
			seen, want := make([]float64, n), make([]float64, n)
			for range each * n {
				seen[r.IntN(n)]++
			}
			for i := range want {
				want[i] = each
			}
			if n == 1 {
				return
			}
			p := distuv.ChiSquared{K: float64(n - 1)}.Survival(stat.ChiSquare(seen, want))
			if p < 0.001 {
				t.Errorf("such a deviation has probability %v", p)
			}
		})
	}
}

func TestUniformStaysWithin(t *testing.T) {
	r := NewRand(1, "uniform")
	const n = 100_000
	x := make([]float64, n)
	for i := range x {
		d := r.Uniform(Microsecond)
		if d < 0 || d >= Microsecond {
			t.Fatalf("%v", d)
		}
		x[i] = float64(d) / float64(Microsecond)
	}
	if d := distance(x, func(x float64) float64 { return x }); d > 1.63 {
		t.Errorf("Kolmogorov's distance is %v", d)
	}
	if d := r.Uniform(1); d != 0 {
		t.Errorf("%v in [0, 1)", d)
	}
}

// distance returns Kolmogorov's distance of x from a distribution, times √n: it
// exceeds 1.63 in one of 100 cases.
func distance(x []float64, cdf func(float64) float64) float64 {
	slices.Sort(x)
	d, n := 0.0, float64(len(x))
	for i, v := range x {
		f := cdf(v)
		d = max(d, f-float64(i)/n, float64(i+1)/n-f)
	}
	return d * math.Sqrt(n)
}

func TestExpIsExponential(t *testing.T) {
	const n = 4_000_000
	r := NewRand(3, "exp")
	x := make([]float64, n)
	for i := range x {
		d := r.Exp(Second)
		if d < 0 {
			t.Fatalf("%v", d)
		}
		x[i] = float64(d) / float64(Second)
	}
	// The k-th moment is k!, and its variance (2k)! - k!².
	for k, factorial := 1, 1.0; k <= 4; k++ {
		factorial *= float64(k)
		moment, variance := 0.0, -factorial*factorial
		for _, v := range x {
			moment += math.Pow(v, float64(k)) / n
		}
		variance += math.Gamma(float64(2*k + 1))
		if off := (moment - factorial) / math.Sqrt(variance/n); math.Abs(off) > 4 {
			t.Errorf("moment %d is %v, %v deviations from %v", k, moment, off, factorial)
		}
	}
	if d := distance(x, func(x float64) float64 { return -math.Expm1(-x) }); d > 1.63 {
		t.Errorf("Kolmogorov's distance is %v", d)
	}
	// Kolmogorov's test does not see the tail, which has code of its own.
	for _, from := range []float64{4, 7, 7.6, 7.8, 9, 12} {
		i, _ := slices.BinarySearch(x, from)
		want := n * math.Exp(-from)
		if off := (float64(n-i) - want) / math.Sqrt(want); math.Abs(off) > 4 {
			t.Errorf("%d values above %v, want %.1f", n-i, from, want)
		}
	}
}

func TestExpOfExtremeMeans(t *testing.T) {
	r := NewRand(1, "extreme")
	for range 100_000 {
		if d := r.Exp(0); d != 0 {
			t.Fatalf("%v from a mean of 0", d)
		}
		if d := r.Exp(1 << 57); d < 0 {
			t.Fatalf("overflow: %d", d)
		}
	}
}

// prec is the precision in bits of the numbers from which the table is computed.
const prec = 160

func num(x float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(x) }

// bigExp returns e^x by its series, after halving x until it is small.
func bigExp(x *big.Float) *big.Float {
	const halvings = 10
	small := new(big.Float).SetMantExp(x, -halvings)
	sum, term := num(1), num(1)
	for k := 1; k < 30; k++ {
		term.Mul(term, small).Quo(term, num(float64(k)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigLog returns ln x by Newton's iteration.
func bigLog(x *big.Float) *big.Float {
	f, _ := x.Float64()
	y := num(math.Log(f))
	for range 4 {
		inverse := bigExp(new(big.Float).Neg(y))
		y.Add(y, inverse.Mul(inverse, x)).Sub(y, num(1))
	}
	return y
}

func bigQuo(a, b *big.Float) *big.Float { return new(big.Float).SetPrec(prec).Quo(a, b) }
func bigSub(a, b *big.Float) *big.Float { return new(big.Float).SetPrec(prec).Sub(a, b) }
func bigAdd(a, b *big.Float) *big.Float { return new(big.Float).SetPrec(prec).Add(a, b) }
func bigNeg(a *big.Float) *big.Float    { return new(big.Float).Neg(a) }

// fixed rounds x to a number of fractional bits.
func fixed(x *big.Float, fraction int) uint64 {
	scaled := new(big.Float).SetMantExp(x, fraction)
	u, _ := scaled.Add(scaled, num(0.5)).Uint64()
	return u
}

// widths returns the widths of layers 0 to 256 of a ziggurat whose tail begins at r,
// the last of them zero, and the height of the density where layer 255 ends. That
// is 1, the peak, for the right r only.
func widths(r *big.Float) (width []*big.Float, peak *big.Float) {
	area := bigAdd(r, num(1))
	area.Mul(area, bigExp(bigNeg(r)))
	width = []*big.Float{bigAdd(r, num(1)), r}
	for {
		last := width[len(width)-1]
		height := bigAdd(bigQuo(area, last), bigExp(bigNeg(last)))
		if len(width) == 256 {
			return append(width, num(0)), height
		}
		width = append(width, bigNeg(bigLog(height)))
	}
}

// TestZigguratTable computes the table anew, in 160 bits.
func TestZigguratTable(t *testing.T) {
	// The beginning of the tail, from a bisection; widths shows that it is right.
	r, _, err := big.ParseFloat("7.6971174701310497140446280480152154991139686400553416", 10, prec, big.ToNearestEven)
	if err != nil {
		t.Fatal(err)
	}
	width, peak := widths(r)
	if off, _ := bigSub(peak, num(1)).Float64(); math.Abs(off) > 1e-40 {
		t.Fatalf("the layers end %v above the peak", off)
	}
	if got := fixed(r, 60); got != zigTail {
		t.Errorf("the tail begins at %#x, not at %#x", got, uint64(zigTail))
	}
	for i, got := range ziggurat {
		want := layer{width: fixed(width[i], 60), inner: fixed(bigQuo(width[i+1], width[i]), 64)}
		if i > 0 {
			want.wedge = fixed(bigSub(num(1), bigExp(bigSub(width[i+1], width[i]))), 64)
		}
		if got != want {
			t.Errorf("layer %d is %#x, want %#x", i, got, want)
		}
	}
}

// TestWedgeIsBelowTheDensity compares the decision in integers with that in floats.
func TestWedgeIsBelowTheDensity(t *testing.T) {
	const one = 1 << 60
	r := NewRand(1, "points")
	for range 200_000 {
		i := 1 + uint64(r.IntN(255))
		above := uint64(0)
		if i < 255 {
			above = ziggurat[i+1].width
		}
		x := above + uint64(r.Uniform(Time(ziggurat[i].width-above)))

		// The decision takes one random number for the ordinate; draw it beforehand.
		copied := *r
		w := float64(copied.Uint64()) / (1 << 64)
		low, high := math.Exp(-float64(ziggurat[i].width)/one), math.Exp(-float64(above)/one)
		ordinate := high - w*(high-low)
		density := math.Exp(-float64(x) / one)
		if math.Abs(ordinate-density) < 1e-14 {
			continue
		}
		if got, want := r.inWedge(i, x), ordinate < density; got != want {
			t.Fatalf("layer %d, x %v: %v below %v is %v", i, float64(x)/one, ordinate, density, got)
		}
	}
}

func BenchmarkExp(b *testing.B) {
	r := NewRand(1, "exp")
	for b.Loop() {
		r.Exp(Microsecond)
	}
}

func BenchmarkUint64(b *testing.B) {
	r := NewRand(1, "bits")
	for b.Loop() {
		r.Uint64()
	}
}
