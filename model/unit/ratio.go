package unit

// A Ratio is a fraction of a whole in parts per million, written in percent. It may
// exceed the whole: 150% is a Ratio.
type Ratio int64

// The units of Ratio.
const (
	PartPerMillion Ratio = 1
	Percent              = 10_000 * PartPerMillion
	Whole                = 100 * Percent
)

// Grammar returns how a Ratio is written: 50%, 2.5%.
func (Ratio) Grammar() Grammar {
	return Grammar{
		Quantity:  "ratio",
		Quantum:   "0.0001%",
		Example:   "50%",
		zero:      "%",
		scales:    []scale{{symbol: "%", quanta: uint64(Percent)}},
		spellings: map[string]string{"percent": "%", "pct": "%"},
	}
}

// ParseRatio reads a ratio such as 2.5%.
func ParseRatio(text string) (Ratio, error) {
	value, err := Ratio(0).Grammar().parse(text)
	return Ratio(value), err
}

// String returns the ratio in percent.
func (r Ratio) String() string { return r.Grammar().format(int64(r)) }

// MarshalText writes the ratio as ParseRatio reads it; a negative one is an error.
func (r Ratio) MarshalText() ([]byte, error) { return marshal(r.Grammar(), int64(r)) }

// UnmarshalText reads the ratio as ParseRatio does.
func (r *Ratio) UnmarshalText(text []byte) error { return unmarshal(r, ParseRatio, text) }
