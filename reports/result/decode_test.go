package result

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

// broken returns the sample as JSON after one textual change, which has to hit.
func broken(t *testing.T, old, new string) string {
	t.Helper()
	data, err := Marshal(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), old, new, 1)
	if text == string(data) {
		t.Fatalf("%q is not in the sample", old)
	}
	return text
}

func TestReadFaults(t *testing.T) {
	tests := map[string]struct {
		old, new string
		want     string
	}{
		"newer version": {
			`"napisim.result/1"`, `"napisim.result/2"`,
			`schema is "napisim.result/2", but this napisim reads "napisim.result/1"`,
		},
		"other document": {
			`"napisim.result/1"`, `"napisim.compare/1"`,
			`schema is "napisim.compare/1", expected a result document`,
		},
		"no version":    {`"schema": "napisim.result/1",`, ``, `has no schema version`},
		"missing value": {`"value": 529000000,`, ``, `runs[0].metrics.goodput.value: is missing`},
		"text for number": {
			`"value": 529000000`, `"value": "529M"`,
			`runs[0].metrics.goodput.value: expected a number, found the text "529M"`,
		},
		"null for list": {
			`"losses": [`, `"losses": null, "other": [`,
			`runs[0].losses: expected a list, found null`,
		},
		"negative seed": {
			`"seed": 1`, `"seed": -1`,
			`runs[0].seed: -1 is not in the range of whole numbers from 0 to 2^64-1`,
		},
		"fraction of a frame": {
			`"count": 7`, `"count": 7.5`,
			`runs[0].losses[0].count: 7.5 is not in the range of 64-bit whole numbers`,
		},
		"unknown direction": {
			`"better": "higher"`, `"better": "up"`,
			`runs[0].metrics.goodput.better: "up" is none of "higher", "lower" and ""`,
		},
		"no unit": {`"unit": "bit/s"`, `"unit": ""`, `runs[0].metrics.goodput.unit: is empty`},
		"more than all of a core": {
			`"idle": 0.75`, `"idle": 0.85`,
			`runs[0].cores[0].shares: add up to 1.1, more than the whole`,
		},
		"unknown kind": {
			`"kind": "fitted"`, `"kind": "guessed"`,
			`runs[0].provenance[0].kind: "guessed" is none of`,
		},
		"unknown role": {
			`"role": "predicted"`, `"role": ""`,
			`runs[0].published[0].role: "" is neither "fitted" nor "predicted"`,
		},
		"damaged distribution": {`"hdr": "`, `"hdr": "AAAA`, `runs[0].histograms.latency.hdr: decoding a histogram`},
		"other distribution": {
			`"count": 3,`, `"count": 4,`,
			`runs[0].histograms.latency: count is 4, but hdr holds 3 values`,
		},
		"percentiles fall": {`"p50": `, `"p50": 1, "was": `, `runs[0].histograms.latency: percentiles 1,`},
		"fingerprint":      {`"00c0ffee00c0ffee"`, `"coffee?"`, `runs[0].fingerprint: "coffee?" is not a hexadecimal number`},
		"measured more than simulated": {
			`"measured_seconds": 1`, `"measured_seconds": 2`,
			`runs[0].simulated_seconds: 1.25 is less than the measured 2`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(broken(t, test.old, test.new)), "base.json")
			if err == nil {
				t.Fatal("read without an error")
			}
			if want := "base.json: " + test.want; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error\n  %v\ndoes not start with\n  %s", err, want)
			}
		})
	}
}

func TestReadOtherText(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"nothing":     {" \n", "-: is empty, expected a result document"},
		"a scenario":  {"napisim: 1\nname: x\n", `-: is not a result document: expected a JSON object, found "napisim: 1"`},
		"a list":      {"[{}]", `-: is not a result document: expected a JSON object, found "[{}]"`},
		"cut short":   {`{"schema": "napisim.result/1"`, "-: is cut short: the JSON text ends inside the document"},
		"bad syntax":  {"{\n  \"schema\": nil}", "-: 2:14: is not JSON: invalid character 'i'"},
		"two of them": {"{}\n{}", "-: 2:1: more text after the end of the document"},
		"no runs": {`{"schema": "napisim.result/1", "tool": {"name": "", "version": ""},
			"scenario": {"name": "", "digest": "", "resolved": ""}, "runs": []}`, "-: runs: is empty"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(test.text), "-")
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestReadListsEveryFault(t *testing.T) {
	_, err := Read(strings.NewReader(`{"schema": "napisim.result/1", "runs": [{"seed": "one"}]}`), "x.json")
	if err == nil {
		t.Fatal("read without an error")
	}
	lines := strings.Split(err.Error(), "\n")
	// tool, scenario, seed, and eleven fields that a run lacks: ten are listed.
	if len(lines) != maxFaults+1 || lines[0] != "x.json: tool: is missing" ||
		lines[2] != `x.json: runs[0].seed: expected a number, found the text "one"` ||
		lines[maxFaults] != "x.json: and 4 more faults" {
		t.Errorf("got\n%v", err)
	}
}

func TestReadIgnoresUnknownFields(t *testing.T) {
	text := broken(t, `"seed": 1`, `"seed": 1, "later": {"idea": [1, 2]}`)
	if _, err := Read(strings.NewReader(text), "x"); err != nil {
		t.Error(err)
	}
}

func TestReadPassesOnErrors(t *testing.T) {
	unplugged := errors.New("unplugged")
	if _, err := Read(iotest.ErrReader(unplugged), "pipe"); !errors.Is(err, unplugged) {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	data, err := Marshal(sample(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"schema": "napisim.result/1", "runs": [null, {"metrics": {"a": {"value": 1e999}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Read(strings.NewReader(string(data)), "fuzz")
		if err != nil {
			return
		}
		// What was read as valid can be written again.
		if _, err := Marshal(d); err != nil {
			t.Fatal(err)
		}
	})
}
