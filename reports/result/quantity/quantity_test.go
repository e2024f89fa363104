package quantity_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"napisim/reports/result/quantity"
)

func TestFormat(t *testing.T) {
	tests := []struct {
		value float64
		unit  string
		want  string
	}{
		{529e6, "bit/s", "529 Mbit/s"},
		{528.96e6, "bit/s", "529 Mbit/s"},
		{1e9, "bit/s", "1 Gbit/s"},
		{999.4e6, "bit/s", "999 Mbit/s"},
		{999.6e6, "bit/s", "1 Gbit/s"},
		{0, "bit/s", "0 bit/s"},
		{12, "bit/s", "12 bit/s"},
		{0.25, "bit/s", "0.25 bit/s"},
		{45678, "1/s", "45.7 k/s"},
		{850.4, "1/s", "850 /s"},
		{0.1, "1/s", "0.1 /s"},
		{100e6, "1/s", "100 M/s"},
		{3.2e-6, "s", "3.2 us"},
		{3.204e-6, "s", "3.2 us"},
		{3.216e-6, "s", "3.22 us"},
		{999.6e-9, "s", "1 us"},
		{6.7e-9, "s", "6.7 ns"},
		{0.25e-9, "s", "0.25 ns"},
		{0.0045, "s", "4.5 ms"},
		{1.5, "s", "1.5 s"},
		{86400, "s", "86400 s"},
		{0, "s", "0 s"},
		{64, "1", "64"},
		{1.0 / 3, "1", "0.333"},
		{0, "1", "0"},
		{0.000012, "1", "0.000012"},
		{1.2e-9, "1", "1.2e-09"},
		{12345, "frames", "12345 frames"},
		{999999, "frames", "999999 frames"},
		{1234567, "frames", "1.23 M frames"},
		{12.34, "frames", "12.3 frames"},
		{2.5e9, "1", "2.5 G"},
		{1514, "B", "1.51 kB"},
		{512, "B", "512 B"},
		{-45678, "1/s", "-45.7 k/s"},
		{-0.0001, "%", "-0.0001 %"},
		{25.142, "%", "25.1 %"},
	}
	for _, test := range tests {
		if got := quantity.Format(test.value, test.unit); got != test.want {
			t.Errorf("Format(%v, %q) = %q, want %q", test.value, test.unit, got, test.want)
		}
	}
}

func TestInterval(t *testing.T) {
	nan := math.NaN()
	tests := []struct {
		mean, half float64
		unit       string
		want       string
	}{
		{529.04e6, 2.31e6, "bit/s", "529.0 ± 2.3 Mbit/s"},
		{529.04e6, 0, "bit/s", "529 Mbit/s"},
		{529.4e6, nan, "bit/s", "529.4 Mbit/s"},
		{529.04e6, 231e6, "bit/s", "529 ± 231 Mbit/s"},
		{45678, 12.3, "1/s", "45.678 ± 0.012 k/s"},
		// A mean of 1 known to a billionth still gets six digits.
		{1, 1e-9, "1", "1.00000 ± 0.00000"},
		{0, 5e6, "1/s", "0.0 ± 5.0 M/s"},
		{0, 0, "frames", "0 frames"},
		{3.2e-6, 0.15e-6, "s", "3.20 ± 0.15 us"},
	}
	for _, test := range tests {
		number, unit := quantity.Interval(test.mean, test.half, test.unit)
		if got := number + " " + unit; strings.TrimSpace(got) != test.want {
			t.Errorf("Interval(%v, %v, %q) = %q, want %q", test.mean, test.half, test.unit, got, test.want)
		}
	}
}

// TestFormatProperty reads the text back: three digits and a prefix lose less
// than half a percent of any value.
func TestFormatProperty(t *testing.T) {
	factors := map[byte]float64{'T': 1e12, 'G': 1e9, 'M': 1e6, 'k': 1e3, 'm': 1e-3, 'u': 1e-6, 'n': 1e-9}
	units := []string{"s", "1/s", "bit/s", "frames", "1"}
	rapid.Check(t, func(t *rapid.T) {
		mantissa := rapid.Float64Range(1, 10).Draw(t, "mantissa")
		exponent := rapid.IntRange(-12, 14).Draw(t, "exponent")
		unit := rapid.SampledFrom(units).Draw(t, "unit")
		value := mantissa * math.Pow(10, float64(exponent))
		number, scaled := quantity.Split(value, unit)
		got, err := strconv.ParseFloat(number, 64)
		if err != nil {
			t.Fatal(err)
		}
		rest := strings.TrimSuffix(scaled, strings.TrimPrefix(unit, "1"))
		if rest = strings.TrimSpace(rest); rest != "" {
			got *= factors[rest[0]]
		}
		if math.Abs(got-value) > 0.00501*value {
			t.Fatalf("%v %s is written %q %q", value, unit, number, scaled)
		}
	})
}

func ExampleFormat() {
	fmt.Println(quantity.Format(529e6, "bit/s"))
	fmt.Println(quantity.Format(45.7e3, "1/s"))
	fmt.Println(quantity.Format(3.2e-6, "s"))
	fmt.Println(quantity.Format(12345, "frames"))
	// Output:
	// 529 Mbit/s
	// 45.7 k/s
	// 3.2 us
	// 12345 frames
}

func ExampleInterval() {
	number, unit := quantity.Interval(529.04e6, 2.31e6, "bit/s")
	fmt.Println(number, unit)
	// Output:
	// 529.0 ± 2.3 Mbit/s
}
