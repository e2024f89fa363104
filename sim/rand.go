package sim

import (
	"math/bits"
	"math/rand/v2"
)

// Rand is a stream of random numbers. All draws are integers from integer
// arithmetic, so that a run is the same to the last bit on every architecture.
type Rand struct {
	pcg rand.PCG
}

// NewRand returns the stream of a named component. Streams with different names
// are independent, and adding a component does not shift the others: two
// strategies run with one seed meet the same traffic.
func NewRand(seed uint64, name string) *Rand {
	const (
		offset = 14695981039346656037 // FNV-1a, 64 bit
		prime  = 1099511628211
	)
	h := uint64(offset)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	r := &Rand{}
	r.pcg.Seed(mix(seed), mix(h^mix(seed+0x9e3779b97f4a7c15)))
	return r
}

// mix is the finaliser of splitmix64: it spreads neighbouring seeds apart.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Uint64 returns 64 random bits.
func (r *Rand) Uint64() uint64 { return r.pcg.Uint64() }

// IntN returns an integer in [0, n), n > 0, by Lemire's multiplication without
// the rejection step: its bias is below n/2^64.
func (r *Rand) IntN(n int) int {
	hi, _ := bits.Mul64(r.pcg.Uint64(), uint64(n))
	return int(hi)
}

// Uniform returns a time in [0, d).
func (r *Rand) Uniform(d Time) Time {
	hi, _ := bits.Mul64(r.pcg.Uint64(), uint64(d))
	return Time(hi)
}

// Exp returns an exponentially distributed time of the given mean, which must be
// below 2^59 (six days). It is the ziggurat of Marsaglia and Tsang (J. Stat.
// Software 5, 2000) in fixed point: no logarithm and no float, hence the same
// everywhere, and in 98 of 100 cases one random number and one multiplication.
func (r *Rand) Exp(mean Time) Time {
	tail := Time(0)
	for {
		u := r.pcg.Uint64()
		// The low bits choose the layer. They are also the last of the 64 bits of the
		// position in it, where they shift it by less than 2^-56 of its width.
		i := u & 255
		x, _ := bits.Mul64(u, ziggurat[i].width)
		switch {
		case u < ziggurat[i].inner, i > 0 && r.inWedge(i, x):
			return tail + scale(mean, x)
		case i == 0:
			// What lies beyond the tail's beginning is distributed like the whole.
			tail += scale(mean, zigTail)
		}
	}
}

// inWedge decides a point of layer i whose abscissa x lies beyond the layer above:
// is a random ordinate of the layer below the density? With w uniform, d the
// distance of x from the layer above, and both divided by the density there, the
// answer is w * wedge > 1 - exp(-d). The partial sums of the right side enclose it
// from above and below in turn, so that two or three terms decide, exactly.
func (r *Rand) inWedge(i, x uint64) bool {
	above := uint64(0)
	if i < 255 {
		above = ziggurat[i+1].width
	}
	w, _ := bits.Mul64(r.pcg.Uint64(), ziggurat[i].wedge)
	d := (max(x, above) - above) << 4 // now with 64 fractional bits
	sum, term := d, d
	for k := uint64(2); ; k += 2 {
		if w > sum {
			return true
		}
		term = nextTerm(term, d, k)
		if sum -= term; w <= sum || term == 0 {
			return false
		}
		term = nextTerm(term, d, k+1)
		sum += term
	}
}

// nextTerm returns the term d^k/k! of 64 fractional bits from the one before it.
func nextTerm(term, d, k uint64) uint64 {
	product, _ := bits.Mul64(term, d)
	return product / k
}

// scale returns mean times x, x with 60 fractional bits.
func scale(mean Time, x uint64) Time {
	hi, lo := bits.Mul64(uint64(mean), x)
	return Time(hi<<4 | lo>>60)
}
