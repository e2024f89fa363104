package unit

// A Duration is a length of time in picoseconds. It reaches 106 days, as simulated
// time does.
type Duration int64

// The units of Duration.
const (
	Picosecond  Duration = 1
	Nanosecond           = 1000 * Picosecond
	Microsecond          = 1000 * Nanosecond
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
)

// Grammar returns how a Duration is written: 20us, 1.5ms.
func (Duration) Grammar() Grammar {
	return Grammar{
		Quantity: "duration",
		Quantum:  "1ps",
		Example:  "20us",
		zero:     "s",
		scales: []scale{
			{symbol: "ps", quanta: uint64(Picosecond)},
			{symbol: "ns", quanta: uint64(Nanosecond)},
			{symbol: "us", quanta: uint64(Microsecond)},
			{symbol: "\u00b5s", quanta: uint64(Microsecond), alias: true}, // the micro sign
			{symbol: "\u03bcs", quanta: uint64(Microsecond), alias: true}, // the letter mu
			{symbol: "ms", quanta: uint64(Millisecond)},
			{symbol: "s", quanta: uint64(Second)},
		},
		spellings: map[string]string{
			"nsec": "ns", "nsecs": "ns",
			"usec": "us", "usecs": "us",
			"msec": "ms", "msecs": "ms",
			"sec": "s", "secs": "s", "second": "s", "seconds": "s",
		},
	}
}

// ParseDuration reads a duration such as 20us. Units are ps, ns, us (or µs), ms and s.
func ParseDuration(text string) (Duration, error) {
	value, err := Duration(0).Grammar().parse(text)
	return Duration(value), err
}

// String returns the duration in the largest unit that it reaches.
func (d Duration) String() string { return d.Grammar().format(int64(d)) }

// MarshalText writes the duration as ParseDuration reads it; a negative one is an error.
func (d Duration) MarshalText() ([]byte, error) { return marshal(d.Grammar(), int64(d)) }

// UnmarshalText reads the duration as ParseDuration does.
func (d *Duration) UnmarshalText(text []byte) error { return unmarshal(d, ParseDuration, text) }
