package figure

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"
)

// cascade leads from 800 over a cause, a step up, one of nothing and one below 0 to -50.
func cascade() []Step {
	return []Step{
		{Name: "v1", Number: "800 ± 20 Mbit/s", To: 800, Half: 20, Level: true},
		{Name: "a cause with quite a long name & <marks>", Number: "-900 Mbit/s", From: 800, To: -100, Half: 30, Strong: true},
		{Name: "remedy", Number: "+50 Mbit/s", From: -100, To: -50, Half: math.NaN()},
		{Name: "nothing", Number: "0 Mbit/s", From: -50, To: -50},
		{Name: "v2", Number: "-50 Mbit/s", To: -50, Level: true},
	}
}

// TestWaterfall holds a figure against the stored one, and writes it twice.
func TestWaterfall(t *testing.T) {
	f, err := Waterfall(cascade(), "goodput, v1 to v2", "how to read it")
	if err != nil {
		t.Fatal(err)
	}
	var svg, again bytes.Buffer
	for _, b := range []*bytes.Buffer{&svg, &again} {
		if err := f.WriteSVG(b); err != nil {
			t.Fatal(err)
		}
	}
	const path = "testdata/waterfall.svg"
	if *update {
		if err := os.WriteFile(path, svg.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(svg.Bytes(), want) || !bytes.Equal(svg.Bytes(), again.Bytes()) {
		t.Errorf("differs from %s; after a look at it: go test ./reports/figure -update", path)
	}
	for _, text := range []string{">v1<", ">800 ± 20 Mbit/s<", ">how to read it<", "&amp;"} {
		if !strings.Contains(svg.String(), text) {
			t.Errorf("no %s", text)
		}
	}
	var png bytes.Buffer
	if err := f.WritePNG(&png); err != nil || !strings.HasPrefix(png.String(), "\x89PNG") {
		t.Errorf("%v", err)
	}
}

func TestWaterfallFaults(t *testing.T) {
	for name, steps := range map[string][]Step{
		"none": nil, "too many": make([]Step, maxRows+1), "no number": {{To: math.NaN()}}, "infinite": {{From: math.Inf(1)}},
	} {
		if _, err := Waterfall(steps, "", ""); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// All levels 0 have no range to draw on.
	f, err := Waterfall([]Step{{Name: "a", Level: true}}, "", "")
	var b bytes.Buffer
	if err != nil || f.WriteSVG(&b) != nil || strings.Contains(b.String(), "NaN") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
