package metric

import (
	"fmt"
	"math/bits"

	"napisim/sim"
)

// Level follows a quantity that stays at a value until it changes, such as the
// number of filled descriptors, and averages it over time. The zero Level is at
// zero since time zero.
type Level struct {
	value, max int64
	at, since  sim.Time
	// area is the integral of value over time since the start of the window. It has
	// 128 bits: a socket buffer of 6 MB fills 63 bits with picoseconds in 1.5 s.
	areaHi, areaLo uint64
}

// Set records that the quantity is v from the given instant on. It panics when
// time runs backwards or v is negative: either would spoil the average silently.
func (l *Level) Set(at sim.Time, v int64) {
	if v < 0 {
		panic(fmt.Sprintf("metric: level set to %d at %v", v, at))
	}
	l.advance(at)
	l.value = v
	l.max = max(l.max, v)
}

// Value returns the present value.
func (l *Level) Value() int64 { return l.value }

// Max returns the highest value in the window, the one at its start included.
func (l *Level) Max() int64 { return l.max }

// Mean returns the time-weighted mean from the start of the window to the given
// instant, or the present value if no time has passed.
func (l *Level) Mean(at sim.Time) float64 {
	l.advance(at)
	if at == l.since {
		return float64(l.value)
	}
	return wide(l.areaHi, l.areaLo) / float64(at-l.since)
}

// Reset starts a new window at the given instant, with the present value.
func (l *Level) Reset(at sim.Time) {
	l.advance(at)
	l.since, l.max = at, l.value
	l.areaHi, l.areaLo = 0, 0
}

func (l *Level) advance(at sim.Time) {
	if at < l.at {
		panic(fmt.Sprintf("metric: level of %v asked for %v", l.at, at))
	}
	hi, lo := bits.Mul64(uint64(l.value), uint64(at-l.at))
	var carry uint64
	l.areaLo, carry = bits.Add64(l.areaLo, lo, 0)
	l.areaHi += hi + carry
	l.at = at
}

// wide returns a 128-bit integer as a float. Scaling by 2^64 is exact, so a fused
// multiply-add gives the same bits as two operations.
func wide(hi, lo uint64) float64 { return float64(hi)*0x1p64 + float64(lo) }
