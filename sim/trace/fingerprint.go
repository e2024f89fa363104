package trace

import (
	"math/bits"

	"napisim/sim"
)

// Fingerprint is a running hash over the trajectory of a run. It is part of every
// run: two modes of execution, two machines or two versions of the program agree
// on a run if and only if, up to a chance of 2^-64, they agree on this number. The
// zero Fingerprint is that of a run in which nothing has happened.
type Fingerprint struct {
	hash, n uint64
}

// The odd multipliers of xxHash64.
const (
	prime1 = 0x9e3779b185ebca87
	prime2 = 0xc2b2ae3d27d4eb4f
	prime3 = 0x165667b19e3779f9
	prime4 = 0x85ebca77c2b2ae63
	prime5 = 0x27d4eb2f165667c5
)

// Mix adds one step of the trajectory: something happened at an instant, on a cpu,
// with one number that tells it from others. It is one round of xxHash64 over a
// word made of the four, about a nanosecond. With the other three fixed, different
// values of any one give different words, so a single deviation cannot cancel out.
func (f *Fingerprint) Mix(at sim.Time, p Point, cpu int, a int64) {
	word := uint64(at)*prime3 + uint64(a)*prime4 + (uint64(cpu)<<8|uint64(p))*prime5
	f.hash = bits.RotateLeft64(f.hash+word*prime2, 31) * prime1
	f.n++
}

// Sum returns the fingerprint of the steps so far, their number included.
func (f *Fingerprint) Sum() uint64 {
	h := f.hash ^ f.n*prime5
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}
