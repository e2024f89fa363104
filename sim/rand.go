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

// lnTwo and expSteps are fixed-point numbers of 64 fractional bits for Exp:
// ln 2, and the partial sums of (ln 2)^k/k! for k = 1, 2, ... (the last is 1 to 64 bits).
const lnTwo = 0xb17217f7d1cf79ab

var expSteps = [...]uint64{
	lnTwo,
	0xeef193f6d75a96fc,
	0xfd27186259aaf6c2,
	0xff9d6dd050f4c5a7,
	0xfff4cfcfef1e626b,
	0xfffee81886e1c62f,
	0xffffe7fe850e0bb5,
	0xfffffe2a8731b17d,
	0xffffffdfac6eeadc,
	0xfffffffdf9640067,
	0xffffffffe22ec79c,
	0xfffffffffe6a9ded,
	0xffffffffffebff81,
	0xffffffffffff1417,
	0xfffffffffffff5ce,
	0xffffffffffffff95,
	0xfffffffffffffffb,
	0xffffffffffffffff,
}

// Exp returns an exponentially distributed time of the given mean, by algorithm
// SA of Ahrens and Dieter (Comm. ACM 15, 1972) in 64-bit fixed point: no
// logarithm and no float, hence reproducible everywhere. The result never exceeds
// 46 times the mean, which must be below 2^57 (40 hours).
func (r *Rand) Exp(mean Time) Time {
	u := r.pcg.Uint64()
	// The number of leading zero bits is geometric; the bits after it are uniform.
	k := bits.LeadingZeros64(u)
	if k > 40 {
		k = 41 + bits.LeadingZeros64(r.pcg.Uint64()|1<<40)
	}
	u = r.pcg.Uint64()
	frac := u
	if u >= lnTwo {
		// Take the least of n uniforms, n distributed by the steps.
		least := r.pcg.Uint64()
		for i := 1; ; i++ {
			if v := r.pcg.Uint64(); v < least {
				least = v
			}
			if i >= len(expSteps) || u < expSteps[i] {
				break
			}
		}
		frac, _ = bits.Mul64(least, lnTwo)
	}
	// mean * (k ln 2 + frac), with frac of 64 fractional bits.
	m := uint64(mean)
	hiK, loK := bits.Mul64(uint64(k), lnTwo)
	lo, carry := bits.Add64(loK, frac, 0)
	whole := hiK + carry
	hi, _ := bits.Mul64(m, lo)
	return Time(whole*m + hi)
}
