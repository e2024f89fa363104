package unit_test

import (
	"encoding"
	"errors"
	"maps"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"

	"napisim/model/unit"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A quantity is one type of the package with its type erased, so that each rule is
// tested on all of them.
type quantity struct {
	name    string
	grammar unit.Grammar
	parse   func(string) (int64, error)
	text    func(int64) string
	marshal func(int64) ([]byte, error)
}

func quantities() []quantity {
	return []quantity{
		erase("Duration", unit.ParseDuration),
		erase("BitRate", unit.ParseBitRate),
		erase("PacketRate", unit.ParsePacketRate),
		erase("Bytes", unit.ParseBytes),
		erase("Ratio", unit.ParseRatio),
	}
}

func erase[T interface {
	~int64
	encoding.TextMarshaler
	String() string
	Grammar() unit.Grammar
}](name string, parse func(string) (T, error)) quantity {
	return quantity{
		name:    name,
		grammar: T(0).Grammar(),
		parse:   func(s string) (int64, error) { v, err := parse(s); return int64(v), err },
		text:    func(v int64) string { return T(v).String() },
		marshal: func(v int64) ([]byte, error) { return T(v).MarshalText() },
	}
}

func named(t *testing.T, name string) quantity {
	t.Helper()
	for _, q := range quantities() {
		if q.name == name {
			return q
		}
	}
	t.Fatalf("no quantity %s", name)
	return quantity{}
}

func TestParse(t *testing.T) {
	tests := []struct {
		quantity, text string
		want           int64
		canonical      string
	}{
		{"Duration", "0s", 0, "0s"},
		{"Duration", "0ps", 0, "0s"},
		{"Duration", "1ps", 1, "1ps"},
		{"Duration", "6720ps", 6720, "6.72ns"},
		{"Duration", "1.5us", 1_500_000, "1.5us"},
		{"Duration", "1500ns", 1_500_000, "1.5us"},
		{"Duration", "20us", 20_000_000, "20us"},
		{"Duration", "20\u00b5s", 20_000_000, "20us"},
		{"Duration", "20\u03bcs", 20_000_000, "20us"},
		{"Duration", "8000us", 8_000_000_000, "8ms"},
		{"Duration", "1001us", 1_001_000_000, "1.001ms"},
		{"Duration", "10s", 10_000_000_000_000, "10s"},
		{"Duration", "0.000000000001s", 1, "1ps"},
		{"Duration", "1.500000000000000000000s", 1_500_000_000_000, "1.5s"},
		{"Duration", "010us", 10_000_000, "10us"},
		{"Duration", "9223372.036854775807s", math.MaxInt64, "9223372.036854775807s"},

		{"BitRate", "1bps", 1, "1bps"},
		{"BitRate", "1bit/s", 1, "1bps"},
		{"BitRate", "64kbps", 64_000, "64kbps"},
		{"BitRate", "529Mbit/s", 529_000_000, "529Mbps"},
		{"BitRate", "2.5Gbps", 2_500_000_000, "2.5Gbps"},
		{"BitRate", "100Gbit/s", 100_000_000_000, "100Gbps"},
		{"BitRate", "1.6Tbit/s", 1_600_000_000_000, "1.6Tbps"},
		{"BitRate", "0.001kbit/s", 1, "1bps"},

		{"PacketRate", "0.5pps", 500, "0.5pps"},
		{"PacketRate", "0.001pps", 1, "0.001pps"},
		{"PacketRate", "1.5Mpps", 1_500_000_000, "1.5Mpps"},
		{"PacketRate", "14.880952Mpps", 14_880_952_000, "14.880952Mpps"},
		{"PacketRate", "800kpps", 800_000_000, "800kpps"},
		{"PacketRate", "1Gpps", 1_000_000_000_000, "1Gpps"},

		{"Bytes", "64B", 64, "64B"},
		{"Bytes", "1448B", 1448, "1448B"},
		{"Bytes", "9kB", 9000, "9kB"},
		{"Bytes", "64KiB", 65536, "64KiB"},
		{"Bytes", "1.5KiB", 1536, "1536B"},
		{"Bytes", "212992B", 212992, "208KiB"},
		{"Bytes", "6MiB", 6291456, "6MiB"},
		{"Bytes", "64MB", 64_000_000, "64MB"},
		{"Bytes", "1GB", 1_000_000_000, "1GB"},
		{"Bytes", "1GiB", 1 << 30, "1GiB"},

		{"Ratio", "0%", 0, "0%"},
		{"Ratio", "50%", 500_000, "50%"},
		{"Ratio", "2.5%", 25_000, "2.5%"},
		{"Ratio", "150%", 1_500_000, "150%"},
		{"Ratio", "0.0001%", 1, "0.0001%"},
	}
	for _, tt := range tests {
		q := named(t, tt.quantity)
		got, err := q.parse(tt.text)
		if err != nil || got != tt.want {
			t.Errorf("%s %q = %d, %v; want %d", tt.quantity, tt.text, got, err, tt.want)
			continue
		}
		if text := q.text(got); text != tt.canonical {
			t.Errorf("%s %q is written %q, want %q", tt.quantity, tt.text, text, tt.canonical)
		}
	}
}

func TestRefused(t *testing.T) {
	const (
		tooLargeSeconds = `is too large (at most 9223372.036854775807s)`
		bits            = `; rates count bits, with SI prefixes`
	)
	tests := []struct {
		quantity, text, reason, suggestion string
	}{
		{"Duration", "", `is not a duration (for example 20us)`, ""},
		{"Duration", "soon", `is not a duration (for example 20us)`, ""},
		{"Duration", "us", `is not a duration (for example 20us)`, ""},
		{"Duration", "20", `needs a unit (for example 20us)`, ""},
		{"Duration", "0", `needs a unit (for example 20us)`, ""},
		{"Duration", "-20us", `must not be negative`, ""},
		{"Duration", "-", `must not be negative`, ""},
		{"Duration", "+20us", `is not a duration (for example 20us)`, ""},
		{"Duration", "20 us", `has a blank beside its unit`, "20us"},
		{"Duration", "20us ", `has a blank beside its unit`, "20us"},
		{"Duration", "20 usec", `has an unknown unit`, "20us"},
		{"Duration", "20US", `has an unknown unit`, "20us"},
		{"Duration", "20Ms", `has an unknown unit`, "20ms"},
		{"Duration", "20usecs", `has an unknown unit`, "20us"},
		{"Duration", "2seconds", `has an unknown unit`, "2s"},
		{"Duration", "20m", `has an unknown unit (units: ps, ns, us, ms, s)`, ""},
		{"Duration", "1e3us", `has an unknown unit (units: ps, ns, us, ms, s)`, ""},
		{"Duration", "1,5us", `has an unknown unit (units: ps, ns, us, ms, s)`, ""},
		{"Duration", ".5us", `has no plain decimal number before its unit`, ""},
		{"Duration", "5.us", `has no plain decimal number before its unit`, ""},
		{"Duration", "1.2.3us", `has no plain decimal number before its unit`, ""},
		{"Duration", "0.5ps", `is not a whole number of steps of 1ps`, ""},
		{"Duration", "0.0000000000001s", `is not a whole number of steps of 1ps`, ""},
		{"Duration", "0.0000000000000000001s", `has more decimals than a duration can hold (its step is 1ps)`, ""},
		{"Duration", "9223372.036854775808s", tooLargeSeconds, ""},
		{"Duration", "9223373s", tooLargeSeconds, ""},
		{"Duration", "18446744073709551617ps", tooLargeSeconds, ""},
		{"Duration", "99999999999999999999999s", tooLargeSeconds, ""},

		{"BitRate", "10", `needs a unit (for example 10Gbps)`, ""},
		{"BitRate", "10mbps", `has an unknown unit` + bits, "10Mbps"},
		{"BitRate", "10MBps", `has an unknown unit` + bits, "10Mbps"},
		{"BitRate", "10MBPS", `has an unknown unit` + bits, "10Mbps"},
		{"BitRate", "1gbit", `has an unknown unit` + bits, "1Gbit/s"},
		{"BitRate", "1Gb/s", `has an unknown unit` + bits, "1Gbit/s"},
		{"BitRate", "1g", `has an unknown unit` + bits, "1Gbps"},
		{"BitRate", "10Gibps", `has an unknown unit (units: bps, kbps, Mbps, Gbps, Tbps)`, ""},
		{"BitRate", "0.5bps", `is not a whole number of steps of 1bps`, ""},
		{"BitRate", "9223373Tbps", `is too large (at most 9223372.036854775807Tbps)`, ""},

		{"PacketRate", "1.5mpps", `has an unknown unit`, "1.5Mpps"},
		{"PacketRate", "2M", `has an unknown unit`, "2Mpps"},
		{"PacketRate", "10Gbps", `has an unknown unit (units: pps, kpps, Mpps, Gpps)`, ""},
		{"PacketRate", "0.0001pps", `is not a whole number of steps of 0.001pps`, ""},

		{"Bytes", "64", `needs a unit (for example 64KiB)`, ""},
		{"Bytes", "64kib", `has an unknown unit`, "64KiB"},
		{"Bytes", "64KB", `has an unknown unit`, "64kB"},
		{"Bytes", "64Ki", `has an unknown unit`, "64KiB"},
		{"Bytes", "64bytes", `has an unknown unit`, "64B"},
		{"Bytes", "64k", `has an unknown unit (units: B, kB, KiB, MB, MiB, GB, GiB)`, ""},
		{"Bytes", "0.1KiB", `is not a whole number of steps of 1B`, ""},

		{"Ratio", "50", `needs a unit (for example 50%)`, ""},
		{"Ratio", "50percent", `has an unknown unit`, "50%"},
		{"Ratio", "0.00001%", `is not a whole number of steps of 0.0001%`, ""},
	}
	for _, tt := range tests {
		q := named(t, tt.quantity)
		value, err := q.parse(tt.text)
		var got *unit.Error
		if !errors.As(err, &got) {
			t.Errorf("%s %q = %d, %v; want a *unit.Error", tt.quantity, tt.text, value, err)
			continue
		}
		want := &unit.Error{Text: tt.text, Reason: tt.reason, Suggestion: tt.suggestion}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %q (-want +got):\n%s", tt.quantity, tt.text, diff)
		}
	}
}

// TestSuggestionsAreRight reads each suggested unit of each quantity.
func TestSuggestionsAreRight(t *testing.T) {
	for _, q := range quantities() {
		for _, wrong := range []string{
			"K", "M", "G", "b", "kb", "mb/s", "mbit", "MBIT/S", "gbps", "usecs", "Sec", "PPS", "pkt/s", "bytes", "mi", "pct",
		} {
			var e *unit.Error
			if _, err := q.parse("1" + wrong); !errors.As(err, &e) || e.Suggestion == "" {
				continue
			}
			if _, err := q.parse(e.Suggestion); err != nil {
				t.Errorf("%s: %q suggests %q, which is refused: %v", q.name, "1"+wrong, e.Suggestion, err)
			}
		}
	}
}

func TestErrorText(t *testing.T) {
	_, err := unit.ParseBytes("64kib")
	if got, want := err.Error(), `"64kib" has an unknown unit (did you mean "64KiB"?)`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNegativeValuesAreShownButNotWritten(t *testing.T) {
	for _, q := range quantities() {
		for _, v := range []int64{-1, -1536, math.MinInt64} {
			if text := q.text(v); !strings.HasPrefix(text, "-") {
				t.Errorf("%s %d is shown as %q", q.name, v, text)
			}
			if text, err := q.marshal(v); err == nil {
				t.Errorf("%s %d is written as %q, which cannot be read back", q.name, v, text)
			}
		}
	}
	if got, want := unit.Duration(-1_500_000).String(), "-1.5us"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUnmarshalLeavesValueOnError(t *testing.T) {
	d := 5 * unit.Second
	if err := d.UnmarshalText([]byte("20")); err == nil || d != 5*unit.Second {
		t.Errorf("value is %v after error %v", d, err)
	}
	if err := d.UnmarshalText([]byte("20us")); err != nil || d != 20*unit.Microsecond {
		t.Errorf("value is %v, error %v", d, err)
	}
}

// TestRoundTrip: one value has one text, which reads back as the value and fits the
// pattern.
func TestRoundTrip(t *testing.T) {
	for _, q := range quantities() {
		t.Run(q.name, func(t *testing.T) {
			pattern := regexp.MustCompile(q.grammar.Pattern())
			rapid.Check(t, func(t *rapid.T) {
				value := rapid.Int64Min(0).Draw(t, "value")
				text, err := q.marshal(value)
				if err != nil || string(text) != q.text(value) {
					t.Fatalf("%d is written %q, shown %q, error %v", value, text, q.text(value), err)
				}
				if !pattern.Match(text) {
					t.Fatalf("%q does not fit %s", text, pattern)
				}
				back, err := q.parse(string(text))
				if err != nil || back != value {
					t.Fatalf("%d is written %q, which is read as %d, error %v", value, text, back, err)
				}
			})
		})
	}
}

// quantaOf lists the units of each quantity in quanta, as powers written out here.
var quantaOf = map[string]map[string]*big.Rat{
	"Duration":   {"ps": pow(10, 0), "ns": pow(10, 3), "us": pow(10, 6), "ms": pow(10, 9), "s": pow(10, 12)},
	"BitRate":    {"bps": pow(10, 0), "kbps": pow(10, 3), "Mbit/s": pow(10, 6), "Gbps": pow(10, 9), "Tbit/s": pow(10, 12)},
	"PacketRate": {"pps": pow(10, 3), "kpps": pow(10, 6), "Mpps": pow(10, 9), "Gpps": pow(10, 12)},
	"Bytes":      {"B": pow(2, 0), "kB": pow(10, 3), "MB": pow(10, 6), "GB": pow(10, 9), "KiB": pow(2, 10), "MiB": pow(2, 20), "GiB": pow(2, 30)},
	"Ratio":      {"%": pow(10, 4)},
}

func pow(base, exponent int64) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(base), big.NewInt(exponent), nil))
}

// TestParseIsExact compares the parser with rational arithmetic: it accepts exactly
// the whole numbers of quanta that fit, and only those.
func TestParseIsExact(t *testing.T) {
	for _, q := range quantities() {
		t.Run(q.name, func(t *testing.T) {
			symbols := slices.Sorted(maps.Keys(quantaOf[q.name]))
			rapid.Check(t, func(t *rapid.T) {
				number := rapid.StringMatching(`[0-9]{1,20}(\.[0-9]{1,18})?`).Draw(t, "number")
				symbol := rapid.SampledFrom(symbols).Draw(t, "symbol")
				exact, _ := new(big.Rat).SetString(number)
				exact.Mul(exact, quantaOf[q.name][symbol])
				fits := exact.IsInt() && exact.Num().IsInt64()
				got, err := q.parse(number + symbol)
				if fits != (err == nil) {
					t.Fatalf("%s%s is %s quanta; error %v", number, symbol, exact.RatString(), err)
				}
				if fits && got != exact.Num().Int64() {
					t.Fatalf("%s%s = %d, want %s", number, symbol, got, exact.RatString())
				}
			})
		})
	}
}

func TestGrammar(t *testing.T) {
	for _, q := range quantities() {
		if _, err := q.parse(q.grammar.Example); err != nil {
			t.Errorf("%s: the example is refused: %v", q.name, err)
		}
		if v, err := q.parse(q.grammar.Quantum); err != nil || v != 1 {
			t.Errorf("%s: the quantum %q is %d, error %v", q.name, q.grammar.Quantum, v, err)
		}
		for _, symbol := range q.grammar.Units() {
			if _, err := q.parse("1" + symbol); err != nil {
				t.Errorf("%s: a listed unit is refused: %v", q.name, err)
			}
		}
	}
	want := []string{"ps", "ns", "us", "ms", "s"}
	if diff := cmp.Diff(want, unit.Duration(0).Grammar().Units()); diff != "" {
		t.Errorf("units of Duration (-want +got):\n%s", diff)
	}
}

// FuzzParse: no text makes a parser panic, what is accepted fits the pattern and
// survives being written and read again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"0s", "1.5us", "20\u00b5s", "10Gbps", "529Mbit/s", "0.5pps", "64KiB", "50%", "-1s", "", ".", "1..2B", "9223372036854775808ps", "20 us", "1e9Gbps",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, q := range quantities() {
			value, err := q.parse(text)
			if err != nil {
				var e *unit.Error
				if !errors.As(err, &e) || e.Text != text || e.Reason == "" {
					t.Errorf("%s %q: unhelpful error %v", q.name, text, err)
				}
				continue
			}
			if value < 0 {
				t.Errorf("%s %q = %d", q.name, text, value)
			}
			if !regexp.MustCompile(q.grammar.Pattern()).MatchString(text) {
				t.Errorf("%s %q is accepted but does not fit %s", q.name, text, q.grammar.Pattern())
			}
			if back, err := q.parse(q.text(value)); err != nil || back != value {
				t.Errorf("%s %q = %d is written %q, read as %d, error %v", q.name, text, value, q.text(value), back, err)
			}
		}
	})
}
