package faults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/scenarios/faults"
)

func at(file string, line, column int) faults.Position {
	return faults.Position{File: file, Line: line, Column: column}
}

func TestString(t *testing.T) {
	tests := []struct {
		fault faults.Fault
		want  string
	}{
		{
			faults.Fault{Position: at("a.yaml", 3, 7), Path: "nics.eth0", Text: "unknown field", Suggestion: "x"},
			`a.yaml:3:7: nics.eth0: unknown field (did you mean "x"?)`,
		},
		{faults.Fault{Position: at("a.yaml", 3, 0), Text: "is not YAML"}, "a.yaml:3: is not YAML"},
		{faults.Fault{Position: at("a.yaml", 0, 0), Text: "is empty"}, "a.yaml: is empty"},
		{faults.Fault{Position: faults.Position{Set: 2}, Path: "cpus", Text: "is bad"}, "--set #2: cpus: is bad"},
		{faults.Fault{Path: "cpus", Text: "is bad"}, "cpus: is bad"},
		{faults.Fault{Text: "is bad"}, "is bad"},
	}
	for _, tt := range tests {
		if got := tt.fault.String(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestErrSortsByPositionAndDropsRepetitions(t *testing.T) {
	first := faults.Fault{Position: at("a.yaml", 2, 9), Path: "x", Text: "t"}
	list := faults.List{
		{Position: faults.Position{Set: 10}, Text: "last"},
		{Position: faults.Position{Set: 9}, Text: "before it"},
		{Position: at("b.yaml", 1, 1), Text: "other file"},
		{Position: at("a.yaml", 10, 1), Text: "later line"},
		first,
		{Position: at("a.yaml", 2, 10), Path: "x", Text: "t"},
		first,
	}
	const want = "a.yaml:2:9: x: t\na.yaml:2:10: x: t\na.yaml:10:1: later line\n" +
		"b.yaml:1:1: other file\n--set #9: before it\n--set #10: last"
	before := fmt.Sprint(list)
	err := list.Err()
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
	if fmt.Sprint(list) != before {
		t.Error("sorting changed the list itself")
	}
	wrapped := fmt.Errorf("check: %w", err)
	if got, ok := errors.AsType[faults.List](wrapped); !ok || len(got) != 6 {
		t.Errorf("the list is not found in a wrapped error: %v", got)
	}
	if err := (faults.List{}).Err(); err != nil {
		t.Errorf("no faults are an error: %v", err)
	}
}

func TestAnd(t *testing.T) {
	earlier := faults.List{{Path: "nics.eth0"}, {Path: "runs"}, {Text: "of no field"}}
	later := faults.List{
		{Path: "nics.eth0.mtu"}, {Path: "nics.eth0"}, {Path: "nics.eth01"}, {Path: "nics"}, {Path: "runs"}, {Path: "cpus"}, {Text: "of none"},
	}
	want := slices.Concat(earlier, faults.List{{Path: "nics.eth01"}, {Path: "nics"}, {Path: "cpus"}, {Text: "of none"}})
	if diff := cmp.Diff(want, earlier.And(later)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestJSON(t *testing.T) {
	got, err := json.Marshal(faults.Fault{Position: at("a.yaml", 3, 7), Path: "cpus", Text: "is bad"})
	if want := `{"file":"a.yaml","line":3,"column":7,"path":"cpus","text":"is bad"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestNearest(t *testing.T) {
	words := []string{"rings", "rx", "rx-usecs", "rx-frames", "napi_schedule", "ksoftirqd", "duration", "net.ipv4.tcp_rmem"}
	for wrong, want := range map[string]string{
		"ring":           "rings",
		"rnigs":          "rings", // neighbours swapped
		"Rings":          "rings",
		"rx_usecs":       "rx-usecs",
		"rx-usec":        "rx-usecs",
		"tx":             "rx",
		"napi-schedul":   "napi_schedule",
		"napi_sched":     "napi_schedule",
		"ksoftirq":       "ksoftirqd",
		"":               "",
		"mtu":            "",
		"delay":          "",
		"time":           "",
		"tcp_rmem":       "net.ipv4.tcp_rmem",
		"rmem":           "",
		"a-long-unknown": "",
	} {
		if got := faults.Nearest(wrong, words); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", wrong, got, want)
		}
	}
	if got := faults.Nearest("ab", []string{"ac", "ad"}); got != "ac" {
		t.Errorf("of two equally near words %q is taken, not the first", got)
	}
}

// edits is the definition of the distance, without a table.
func edits(a, b string) int {
	switch {
	case a == "":
		return len(b)
	case b == "":
		return len(a)
	case a[0] == b[0]:
		return edits(a[1:], b[1:])
	}
	n := min(edits(a[1:], b), edits(a, b[1:]), edits(a[1:], b[1:]))
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		n = min(n, edits(a[2:], b[2:]))
	}
	return n + 1
}

// TestNearestFindsNearest: what is suggested is as near as the definition says, and
// within a third of the word.
func TestNearestFindsNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[abc]{1,7}`)
		wrong, words := word.Draw(t, "wrong"), rapid.SliceOfN(word, 1, 5).Draw(t, "words")
		least := len(wrong) + 8
		for _, w := range words {
			least = min(least, edits(wrong, w))
		}
		got := faults.Nearest(wrong, words)
		if near := least <= max(1, len(wrong)/3); near != (got != "") {
			t.Fatalf("the nearest word is %d edits away; suggested %q", least, got)
		}
		if got != "" && edits(wrong, got) != least {
			t.Fatalf("%q is %d edits away, another word %d", got, edits(wrong, got), least)
		}
	})
}
