package gro_test

import (
	"strings"
	"testing"

	"napisim/softirq/gro"
)

func TestDefaultConfigIsValid(t *testing.T) {
	for _, c := range []gro.Config{gro.DefaultConfig(), v4_8(), v5_12()} {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestValidateReturnsEveryFault(t *testing.T) {
	c := gro.Config{Buckets: 6, MaxSKBs: -1, MaxSize: 524281, MaxFrags: 16, HeadTruesize: 575, GSO: 3}
	err := c.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	want := []string{
		"Buckets is 6, want a power of two",
		"MaxSKBs is -1, want 1 to 4096",
		"MaxSize is 524281, want 1 to 524280",
		"MaxFrags is 16, want 17 to 45",
		"HeadTruesize is 575, want 576 to",
		"GSO is 3",
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d faults, want %d: %v", len(lines), len(want), err)
	}
	for i := range want {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("fault %d is %q, want %q", i, lines[i], want[i])
		}
	}
	for _, buckets := range []int{0, 128} {
		c := gro.DefaultConfig()
		c.Buckets = buckets
		if c.Validate() == nil {
			t.Errorf("%d buckets are valid", buckets)
		}
	}
}

func TestNewRefusesFaults(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a table with a faulty configuration was made")
		}
	}()
	gro.New(gro.Config{}, nil)
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for r := range gro.NumReasons {
		if r.String() == "" || r.Doc() == "" || seen[r.String()] {
			t.Errorf("reason %d: name %q, doc %q", r, r, r.Doc())
		}
		seen[r.String()] = true
	}
	for got, want := range map[string]string{
		gro.GSOBypass.String():  "bypass",
		gro.GSOFlush.String():   "flush",
		gro.GSOMerge.String():   "merge",
		gro.GSORule(9).String(): "GSORule(9)",
		gro.Merged.String():     "GRO_MERGED",
		gro.Result(9).String():  "Result(9)",
		gro.Reason(99).String(): "Reason(99)",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
