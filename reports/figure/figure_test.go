package figure

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"gonum.org/v1/plot/cmpimg"

	"napisim/reports/result"
)

var update = flag.Bool("update", false, "write the golden figures anew")

// invented has every kind of row: a base, a change the right way and one the wrong way,
// a fitted figure, one that was not simulated, an immense change, one from 0, a value
// below 0, one without a base, and two sources.
func invented() []Row {
	p := func(v float64) *float64 { return &v }
	rows := []Row{
		{Metric: "goodput", Unit: "bit/s", Variant: "before", Published: 500e6, Simulated: p(600e6), Low: p(590e6), High: p(610e6)},
		{
			Metric: "goodput", Unit: "bit/s", Variant: "after", Published: 400e6, Simulated: p(660e6), Low: p(600e6), High: p(720e6),
			PublishedChange: p(0.8), SimulatedChange: p(1.1), Agrees: new(false),
		},
		{Metric: "goodput", Unit: "bit/s", Variant: "a variant with quite a long name & <one> that does not fit", Published: 300e6},
		{Metric: "interrupts", Unit: "1/s", Variant: "before", Published: 100, Simulated: p(0.01), Low: p(-0.02), High: p(0.04), Role: result.RoleFitted},
		{
			Metric: "interrupts", Unit: "1/s", Variant: "after", Published: 9700, Simulated: p(9500), Low: p(9000), High: p(10000), Role: result.RoleFitted,
			PublishedChange: p(97), SimulatedChange: p(950e3), Agrees: new(true),
		},
		{Metric: "retransmits", Unit: "frames", Variant: "before", Published: 1, Simulated: p(0), Low: p(0), High: p(0)},
		{Metric: "retransmits", Unit: "frames", Variant: "after", Published: 450, Simulated: p(470), PublishedChange: p(450), Agrees: new(true)},
		{Metric: "drift", Unit: "s", Source: "elsewhere", Variant: "after", Published: -2e-6, Simulated: p(1e-6), Low: p(0), High: p(2e-6)},
	}
	for i := range rows {
		if rows[i].Source == "" {
			rows[i].Source, rows[i].Base = "a thread", "before"
		}
	}
	return rows
}

// write returns a figure in one format.
func write(t *testing.T, rows []Row, to func(Figure, io.Writer) error) []byte {
	t.Helper()
	f, err := Published(rows, "invented, seeds 1..3, base before")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := to(f, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestGolden holds figures against stored ones: an SVG to the byte, a PNG up to what
// rounding on another processor may change.
func TestGolden(t *testing.T) {
	predicted := invented()[:2]
	for _, c := range []struct {
		file string
		rows []Row
		to   func(Figure, io.Writer) error
		same func(got, want []byte) (bool, error)
	}{
		{"invented.svg", invented(), Figure.WriteSVG, equal},
		{"predicted.svg", predicted, Figure.WriteSVG, equal},
		{"predicted.png", predicted, Figure.WritePNG, alike},
	} {
		t.Run(c.file, func(t *testing.T) {
			got, path := write(t, c.rows, c.to), "testdata/"+c.file
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if same, err := c.same(got, want); !same || err != nil {
				t.Errorf("differs from %s (error %v); after a look at it: go test ./reports/figure -update", path, err)
			}
		})
	}
}

func equal(got, want []byte) (bool, error) { return bytes.Equal(got, want), nil }

func alike(got, want []byte) (bool, error) { return cmpimg.EqualApprox("png", got, want, 0.1) }

func TestSameBytes(t *testing.T) {
	for _, to := range []func(Figure, io.Writer) error{Figure.WriteSVG, Figure.WritePNG} {
		if !bytes.Equal(write(t, invented(), to), write(t, invented(), to)) {
			t.Error("two figures of the same rows differ")
		}
	}
}

// TestWords asks for what a reader must find in the figure.
func TestWords(t *testing.T) {
	all := string(write(t, invented(), Figure.WriteSVG))
	for _, want := range []string{
		"invented, seeds 1..3", "500 Mbit/s", "660 ± 60 Mbit/s", "not simulated", "× 1.10 wrong way", "from 0", "&gt; × 1000",
		"fitted, proves nothing", "which therefore prove nothing", "elsewhere", "&amp; &lt;",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the figure does not say %q", want)
		}
	}
	predicted := string(write(t, invented()[:2], Figure.WriteSVG))
	if strings.Contains(predicted, "fitted") || !strings.Contains(predicted, "No cost was chosen to meet these figures.") {
		t.Error("a figure of predictions speaks of fits")
	}
}

func TestTextThatNoOneCanPrint(t *testing.T) {
	rows := invented()[:1]
	rows[0].Variant, rows[0].Metric, rows[0].Source = "a\x00b\xff", "", strings.Repeat("source ", 100)
	if svg := write(t, rows, Figure.WriteSVG); !utf8.Valid(svg) || bytes.Contains(svg, []byte{0}) || !bytes.Contains(svg, []byte("…")) {
		t.Errorf("not readable:\n%s", svg)
	}
}

func TestFaults(t *testing.T) {
	with := func(change func(*Row)) []Row {
		rows := invented()
		change(&rows[1])
		return rows
	}
	for _, c := range []struct {
		name string
		rows []Row
		want string
	}{
		{"no rows", nil, "no variant has published figures"},
		{"published", with(func(r *Row) { r.Published = math.NaN() }), "goodput of after: NaN cannot be drawn"},
		{"simulated", with(func(r *Row) { *r.Simulated = math.Inf(1) }), "goodput of after: +Inf cannot be drawn"},
		{"interval", with(func(r *Row) { *r.Low = math.Inf(-1) }), "goodput of after: -Inf cannot be drawn"},
		{"too many", make([]Row, 201), "201 published figures are too many to draw, at most 200"},
	} {
		if _, err := Published(c.rows, ""); err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", c.name, err, c.want)
		}
	}
	if _, err := Published(nil, ""); !errors.Is(err, ErrNone) {
		t.Errorf("error %v, want ErrNone", err)
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriterThatFails(t *testing.T) {
	f, err := Published(invented(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.WriteSVG(full{}), f.WritePNG(full{})); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("error %v", err)
	}
}

func TestFactor(t *testing.T) {
	for f, want := range map[float64]string{0.75: "× 0.75", 1: "× 1.00", 41.4545: "× 41.5", 1000: "× 1000", 1001: "> × 1000", 0.01: "× 0.01", 0: "× 0"} {
		if got := factor(f); got != want {
			t.Errorf("factor(%v) = %q, want %q", f, got, want)
		}
	}
}

// TestScale keeps the bars of a metric within their room, and the cut of an interval.
func TestScale(t *testing.T) {
	rows := invented()
	if s := scaleOf(rows[3:5]); s.low != 0 || s.high != 10000 {
		t.Errorf("an interval across 0 moves the scale: %+v", s)
	}
	if s := scaleOf(rows[7:]); s.low != -2e-6 || s.high != 2e-6 || s.at(0, 100) != 50 {
		t.Errorf("a value below 0: %+v", s)
	}
	if s := scaleOf([]Row{{}}); s.at(0, 100) != 0 {
		t.Errorf("nothing but 0: %+v", s)
	}
}
