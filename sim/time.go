package sim

import (
	"math"
	"strconv"
)

// Time is an instant or a duration of simulated time in picoseconds.
//
// Nanoseconds would be too coarse: a 64-byte frame at 100 Gbit/s takes 6.7 ns,
// and gaps cut to whole nanoseconds bias a rate of 10 Mpps by half a percent. An
// int64 of picoseconds reaches 106 days.
type Time int64

// The units of Time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Never is later than every instant of a run.
const Never Time = math.MaxInt64

// Seconds returns t in seconds. It is for reports; the time path has no floats.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

// String formats t in the largest unit that keeps it at or above one.
func (t Time) String() string {
	switch abs := max(t, -t); {
	case t == Never:
		return "never"
	case abs >= Second:
		return t.in(Second, "s")
	case abs >= Millisecond:
		return t.in(Millisecond, "ms")
	case abs >= Microsecond:
		return t.in(Microsecond, "us")
	case abs >= Nanosecond:
		return t.in(Nanosecond, "ns")
	}
	return strconv.FormatInt(int64(t), 10) + "ps"
}

func (t Time) in(unit Time, name string) string {
	return strconv.FormatFloat(float64(t)/float64(unit), 'g', 9, 64) + name
}
