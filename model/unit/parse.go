package unit

import (
	"math"
	"math/bits"
	"strings"
)

// maxDecimals bounds the digits behind the point so that a fraction fits 64 bits. A
// picosecond in seconds needs 12; only an IEC fraction beyond any use needs more.
const maxDecimals = 18

// parse reads a text of the quantity and returns it in quanta.
func (g Grammar) parse(text string) (int64, error) {
	fail := func(reason, suggestion string) (int64, error) {
		return 0, &Error{Text: text, Reason: reason, Suggestion: suggestion}
	}
	number, symbol := split(text)
	switch {
	case strings.HasPrefix(text, "-"):
		return fail("must not be negative", "")
	case number == "":
		return fail("is not a "+g.Quantity+" (for example "+g.Example+")", "")
	case symbol == "":
		return fail("needs a unit (for example "+g.Example+")", "")
	case !decimal(number):
		return fail("has no plain decimal number before its unit", "")
	}
	unit, known := g.scale(symbol)
	if !known {
		return fail(g.unknown(symbol), g.meant(number, symbol))
	}
	value, problem := g.quanta(number, unit)
	if problem != "" {
		return fail(problem, "")
	}
	return value, nil
}

// split cuts a text behind its leading digits and points.
func split(text string) (number, symbol string) {
	n := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if n < 0 {
		return text, ""
	}
	return text[:n], text[n:]
}

// decimal reports whether a text of digits and points is a number such as 20 or 1.5.
// Forms that leave out a side of the point are refused: they are easily misread.
func decimal(number string) bool {
	whole, fraction, point := strings.Cut(number, ".")
	return whole != "" && (!point || fraction != "" && !strings.Contains(fraction, "."))
}

// unknown is the reason for a unit that the quantity does not have.
func (g Grammar) unknown(symbol string) string {
	trimmed := strings.TrimSpace(symbol)
	if _, known := g.scale(trimmed); known && trimmed != symbol {
		return "has a blank beside its unit"
	}
	if g.nearest(trimmed) == "" {
		return "has an unknown unit (units: " + strings.Join(g.Units(), ", ") + ")"
	}
	if g.trap != "" {
		return "has an unknown unit; " + g.trap
	}
	return "has an unknown unit"
}

// meant returns the text with the unit that was probably meant, or "".
func (g Grammar) meant(number, symbol string) string {
	if near := g.nearest(strings.TrimSpace(symbol)); near != "" {
		return number + near
	}
	return ""
}

// quanta multiplies a decimal number with a unit, exactly. The problem is empty when
// the product is a whole number of quanta that fits.
func (g Grammar) quanta(number string, unit scale) (value int64, problem string) {
	tooLarge := "is too large (at most " + g.format(math.MaxInt64) + ")"
	whole, fraction, _ := strings.Cut(number, ".")
	count, ok := digits(whole)
	if !ok {
		return 0, tooLarge
	}
	over, total := bits.Mul64(count, unit.quanta)
	if over != 0 || total > math.MaxInt64 {
		return 0, tooLarge
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > maxDecimals {
		return 0, "has more decimals than a " + g.Quantity + " can hold (its step is " + g.Quantum + ")"
	}
	numerator, _ := digits(fraction) // at most 18 digits: always fits
	denominator := uint64(1)
	for range len(fraction) {
		denominator *= 10
	}
	// numerator < denominator, so the quotient is below unit.quanta and Div64 cannot overflow.
	hi, lo := bits.Mul64(numerator, unit.quanta)
	part, rest := bits.Div64(hi, lo, denominator)
	if rest != 0 {
		return 0, "is not a whole number of steps of " + g.Quantum
	}
	if total+part > math.MaxInt64 {
		return 0, tooLarge
	}
	return int64(total + part), ""
}

// digits reads a text of digits; ok is false when the value needs more than 64 bits.
func digits(text string) (value uint64, ok bool) {
	for i := range len(text) {
		hi, lo := bits.Mul64(value, 10)
		sum, carry := bits.Add64(lo, uint64(text[i]-'0'), 0)
		if hi != 0 || carry != 0 {
			return 0, false
		}
		value = sum
	}
	return value, true
}
