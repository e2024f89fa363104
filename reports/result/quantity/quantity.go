// Package quantity writes numbers with units the way people read them: 529
// Mbit/s, 45.7 k/s, 3.2 us. It is for eyes only; documents for programs hold base
// units and every digit.
//
// Prefixes are decimal, as is usual for rates of a network, bytes included.
// Seconds are scaled down but never up, because nobody reads a kilosecond.
// Counts of things stay whole up to a million. Micro is written u, so that the
// output is plain ASCII except for the sign ± of an interval.
package quantity

import (
	"math"
	"strconv"
	"strings"

	"golang.org/x/perf/benchunit"
)

const (
	valueDigits    = 3 // significant digits of a number that stands alone
	intervalDigits = 2 // significant digits of an interval's half width
	maxDigits      = 6 // significant digits of a mean, however narrow its interval is
)

// Format returns a value with three significant digits and its unit.
func Format(value float64, unit string) string {
	number, unit := Split(value, unit)
	return strings.TrimSpace(number + " " + unit)
}

// Split is Format in two parts, for columns of a table: the number aligns right
// and the unit left. The unit of a ratio, 1, is empty.
func Split(value float64, unit string) (number, scaled string) {
	s := scaleOf(value, unit)
	if s.whole && value == math.Trunc(value) {
		return strconv.FormatFloat(value, 'f', 0, 64), s.unit
	}
	return trim(fixed(value/s.factor, decimals(value/s.factor, valueDigits))), s.unit
}

// Interval writes mean ± half with one unit. The half width gets two significant
// digits and the mean as many decimals, since further digits would be noise. A
// half width that is zero or undefined is left out, and the mean gets four digits.
func Interval(mean, half float64, unit string) (number, scaled string) {
	if !(half > 0) {
		s := scaleOf(mean, unit)
		return trim(fixed(mean/s.factor, decimals(mean/s.factor, valueDigits+1))), s.unit
	}
	s := scaleOf(max(math.Abs(mean), half), unit)
	mean, half = mean/s.factor, half/s.factor
	places := min(decimals(half, intervalDigits), decimals(max(math.Abs(mean), half), maxDigits))
	return fixed(mean, places) + " ± " + fixed(half, places), s.unit
}

// Percent writes a fraction as a percentage with at most three digits.
func Percent(fraction float64) string {
	return Format(100*fraction, "%")
}

// A scale is what a value is divided by, and the unit that results.
type scale struct {
	factor float64
	unit   string
	whole  bool // whole numbers are written with all their digits
}

// largestCount is where counts start to be scaled.
const largestCount = 1e6

func scaleOf(value float64, unit string) scale {
	perSecond, isRate := strings.CutPrefix(unit, "1/")
	switch {
	case unit == "%":
		return scale{1, unit, false}
	case unit == "s":
		prefix := prefixOf(value)
		if prefix.Factor > 1 || value == 0 {
			prefix = benchunit.Scaler{Factor: 1}
		}
		return scale{prefix.Factor, prefix.Prefix + unit, false}
	case isRate:
		prefix := prefixUp(value)
		return scale{prefix.Factor, prefix.Prefix + "/" + perSecond, false}
	case strings.HasPrefix(unit, "bit") || strings.HasPrefix(unit, "B") || unit == "Hz":
		prefix := prefixUp(value)
		return scale{prefix.Factor, prefix.Prefix + unit, prefix.Factor == 1}
	}
	noun := unit
	if unit == "1" {
		noun = ""
	}
	if math.Abs(value) < largestCount {
		return scale{1, noun, true}
	}
	prefix := prefixUp(value)
	return scale{prefix.Factor, strings.TrimSpace(prefix.Prefix + " " + noun), false}
}

// prefixUp is prefixOf for units of which fractions are not scaled: a tenth of
// an interrupt per second is no hundred milli-interrupts.
func prefixUp(value float64) benchunit.Scaler {
	if math.Abs(value) < 1 {
		return benchunit.Scaler{Factor: 1}
	}
	return prefixOf(value)
}

// prefixOf finds the SI prefix for a value as it will be printed: 999.9 k with
// three digits is 1 M.
func prefixOf(value float64) benchunit.Scaler {
	printed, err := strconv.ParseFloat(strconv.FormatFloat(value, 'e', valueDigits-1, 64), 64)
	if err != nil || printed == 0 {
		return benchunit.Scaler{Factor: 1}
	}
	prefix := benchunit.CommonScale([]float64{printed}, benchunit.Decimal)
	prefix.Prefix = strings.Replace(prefix.Prefix, "µ", "u", 1)
	return prefix
}

// decimals returns how many places after the point show a number with some
// significant digits.
func decimals(v float64, digits int) int {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	// The exponent is taken after rounding, so that 9.999 counts as 10.0.
	text := strconv.FormatFloat(v, 'e', digits-1, 64)
	exponent, err := strconv.Atoi(text[strings.IndexByte(text, 'e')+1:])
	if err != nil {
		return 0
	}
	return max(0, digits-1-exponent)
}

// fixed writes a number with so many places; a number too small for a readable
// row of zeros gets an exponent.
func fixed(v float64, places int) string {
	const longest = 7
	if places > longest {
		return strconv.FormatFloat(v, 'g', valueDigits, 64)
	}
	text := strconv.FormatFloat(v, 'f', places, 64)
	if strings.Trim(text, "-0.") == "" {
		return strings.TrimPrefix(text, "-")
	}
	return text
}

// trim drops zeros that end the part after the point.
func trim(number string) string {
	if !strings.Contains(number, ".") || strings.Contains(number, "e") {
		return number
	}
	return strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
}
