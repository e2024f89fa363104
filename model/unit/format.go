package unit

import (
	"strconv"
	"strings"
)

// format writes a value of the quantity; parse reads it back, except for a negative
// one, which only a message should ever show.
func (g Grammar) format(value int64) string {
	if value < 0 {
		return "-" + g.magnitude(-uint64(value))
	}
	return g.magnitude(uint64(value))
}

func (g Grammar) magnitude(value uint64) string {
	if value == 0 {
		return "0" + g.zero
	}
	if g.whole {
		return g.wholeCount(value)
	}
	return g.decimalCount(value)
}

// decimalCount writes in the largest unit that the value reaches. All units of such
// a quantity are powers of ten, so the decimals end.
func (g Grammar) decimalCount(value uint64) string {
	best := g.scales[0]
	for _, s := range g.scales {
		if !s.alias && s.quanta <= value {
			best = s
		}
	}
	text := strconv.FormatUint(value/best.quanta, 10)
	if rest := value % best.quanta; rest != 0 {
		// best.quanta + rest has one digit more than the fraction, which keeps its zeros.
		fraction := strconv.FormatUint(best.quanta+rest, 10)[1:]
		text += "." + strings.TrimRight(fraction, "0")
	}
	return text + best.symbol
}

// wholeCount writes in the unit that gives the smallest whole number: 65536 is 64KiB,
// 64000 is 64kB and 1448 is 1448B.
func (g Grammar) wholeCount(value uint64) string {
	best := g.scales[0]
	for _, s := range g.scales {
		if !s.alias && value%s.quanta == 0 && s.quanta > best.quanta {
			best = s
		}
	}
	return strconv.FormatUint(value/best.quanta, 10) + best.symbol
}

// marshal is MarshalText of every quantity. It refuses what unmarshal would refuse,
// so that nothing is written that cannot be read back.
func marshal(g Grammar, value int64) ([]byte, error) {
	text := g.format(value)
	if value < 0 {
		return nil, &Error{Text: text, Reason: "must not be negative"}
	}
	return []byte(text), nil
}

// unmarshal is UnmarshalText of every quantity. It leaves the value alone on error.
func unmarshal[T any](into *T, parse func(string) (T, error), text []byte) error {
	value, err := parse(string(text))
	if err != nil {
		return err
	}
	*into = value
	return nil
}
