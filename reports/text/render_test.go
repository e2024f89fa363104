package text_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"napisim/reports/result"
	"napisim/reports/text"
)

var update = flag.Bool("update", false, "rewrite the golden views in testdata")

// document reads a document of testdata.
func document(t testing.TB, name string) *result.Document {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := result.Read(f, name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func render(t testing.TB, d *result.Document, o text.Options) string {
	t.Helper()
	var b strings.Builder
	if err := text.Render(&b, d, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// one makes a document of a single run.
func one(run result.Run) *result.Document {
	run.Fingerprint = "0"
	return &result.Document{Scenario: result.Scenario{Name: "test"}, Runs: []result.Run{run}}
}

// section returns the lines below a heading.
func section(t testing.TB, view, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(view, "\n\n"+heading)
	if !found {
		t.Fatalf("no section %q in\n%s", heading, view)
	}
	body, _, _ := strings.Cut(rest, "\n\n")
	return strings.TrimRight(body, "\n")
}

// TestGolden pins whole views. Look at each difference before running the test
// with -update: the other tests say only what must not get lost.
func TestGolden(t *testing.T) {
	for _, name := range []string{"variants", "single"} {
		for _, width := range []int{60, 100} {
			view := render(t, document(t, name+".json"), text.Options{Width: width})
			golden := filepath.Join("testdata", name+"-"+strconv.Itoa(width)+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(view), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), view); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		}
	}
}

func TestWidth(t *testing.T) {
	d := document(t, "variants.json")
	for _, width := range []int{40, 50, 60, 72, 80, 100, 120, 200} {
		for line := range strings.SplitSeq(render(t, d, text.Options{Width: width}), "\n") {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("width %d: %d columns in %q", width, n, line)
			}
			if strings.TrimRight(line, " ") != line {
				t.Errorf("width %d: trailing spaces in %q", width, line)
			}
		}
	}
}

var escape = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestColourRepeatsTheText takes the colours away and finds the same text.
func TestColourRepeatsTheText(t *testing.T) {
	d := document(t, "variants.json")
	plain := render(t, d, text.Options{})
	if escape.MatchString(plain) {
		t.Error("escape sequences without being asked")
	}
	coloured := render(t, d, text.Options{Colour: true})
	if !escape.MatchString(coloured) {
		t.Error("no colour although asked for")
	}
	if diff := cmp.Diff(plain, escape.ReplaceAllString(coloured, "")); diff != "" {
		t.Errorf("(-plain +coloured):\n%s", diff)
	}
}

func TestTitle(t *testing.T) {
	view := render(t, document(t, "variants.json"), text.Options{})
	for _, want := range []string{
		"example  kernel v5.15  variant drains-first  seeds 1..3\n  digest sha256:5f3a1c22d09b  by napisim v0.1.0\n",
		"\n\nexample  kernel v6.1  variant loops-once-more  seeds 1..3\n",
		"     2  8615d38b4e1723eb       10 s       9 s\n",
	} {
		if !strings.Contains(view, want) {
			t.Errorf("%q is missing in\n%s", want, view)
		}
	}
}

func TestSeedRanges(t *testing.T) {
	d := &result.Document{Scenario: result.Scenario{Name: "s"}}
	for _, seed := range []uint64{42, 9, 3, 1, 2, 10} {
		d.Runs = append(d.Runs, result.Run{Seed: seed})
	}
	view := render(t, d, text.Options{})
	if !strings.HasPrefix(view, "s  seeds 1..3, 9, 10, 42\n") {
		t.Errorf("got %s", view)
	}
}

// TestMeanWithInterval uses five seeds whose interval is known: 1 to 5 have mean
// 3 and half width 2.776·√(2.5/5) = 1.963, in units of 100 Mbit/s here.
func TestMeanWithInterval(t *testing.T) {
	d := &result.Document{}
	for i := range 5 {
		d.Runs = append(d.Runs, result.Run{Seed: uint64(i), Metrics: map[string]result.Metric{
			"goodput":  {Value: 100e6 * float64(i+1), Unit: "bit/s"},
			"cpu_busy": {Value: 0.25, Unit: "1"},
		}})
	}
	view := render(t, d, text.Options{})
	if got := section(t, view, "throughput"); got != "\n  goodput  300 ± 196  Mbit/s" {
		t.Errorf("throughput: %q", got)
	}
	if got := section(t, view, "cpu"); got != "\n  cpu_busy  25  %" {
		t.Errorf("cpu: %q", got)
	}
}

// TestSingleRun shows numbers without an interval and does not repeat the latency
// percentiles that the histogram of the only run has.
func TestSingleRun(t *testing.T) {
	view := render(t, document(t, "single.json"), text.Options{Width: 100})
	if strings.Contains(view, "±") {
		t.Errorf("one run has no interval:\n%s", view)
	}
	if strings.Contains(view, "latency_p50") || !strings.Contains(section(t, view, "latency"), "p99.9") {
		t.Errorf("latency:\n%s", section(t, view, "latency"))
	}
}

func TestHistogramsArePooled(t *testing.T) {
	view := render(t, document(t, "variants.json"), text.Options{Width: 100})
	// Three runs recorded 400 latencies each.
	if got := section(t, view, "latency"); !regexp.MustCompile(`latency +1200 `).MatchString(got) {
		t.Errorf("got %s", got)
	}
	if got := section(t, view, "interrupts, softirqs, polls"); !regexp.MustCompile(`work_per_poll, frames +1200 `).MatchString(got) {
		t.Errorf("got %s", got)
	}
}

func TestHistogramsThatDoNotPool(t *testing.T) {
	d := document(t, "variants.json")
	d.Runs = d.Runs[:2]
	h := d.Runs[1].Histograms["latency"]
	h.Unit = "frames"
	d.Runs[1].Histograms["latency"] = h
	if got := render(t, d, text.Options{}); !strings.Contains(got, "!  histogram latency is not shown: cannot merge") {
		t.Errorf("no warning in\n%s", got)
	}
}

func TestCores(t *testing.T) {
	d := one(result.Run{Cores: []result.Core{
		{CPU: 0, Shares: map[string]float64{"softirq": 0.25, "user": 0.5, "rcu": 0.125, "idle": 0.125}},
		{CPU: 1, Shares: map[string]float64{"idle": 1}},
		{CPU: 2, Shares: map[string]float64{"user": 1}},
		{CPU: 3, Shares: map[string]float64{"idle": 0.9996, "user": 0.0004}},
	}})
	const want = `
  share of time     user  softirq     rcu    idle
          cpu 0   50.0 %   25.0 %  12.5 %  12.5 %
          cpu 2  100.0 %    0.0 %   0.0 %   0.0 %
  idle throughout:  cpu 1, 3`
	if diff := cmp.Diff(want, section(t, render(t, d, text.Options{}), "cpu")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLosses(t *testing.T) {
	d := one(result.Run{Losses: []result.Loss{
		{Place: "socket 1", Reason: "receive buffer full", Counter: "RcvbufErrors", Count: 250},
		{Place: "eth0 rx-0", Reason: "no free descriptor", Counter: "rx_missed_errors", Count: 750},
		{Place: "wire", Reason: "bit errors", Count: 0},
	}})
	const want = `  1000 frames
  place      frames  share  reason               Linux counter
  eth0 rx-0     750   75 %  no free descriptor   rx_missed_errors
  socket 1      250   25 %  receive buffer full  RcvbufErrors`
	if diff := cmp.Diff(want, section(t, render(t, d, text.Options{}), "where frames were lost")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNothingLost(t *testing.T) {
	view := render(t, one(result.Run{Losses: []result.Loss{{Place: "wire", Reason: "bit errors"}}}), text.Options{})
	if !strings.Contains(view, "\nwhere frames were lost\n  nothing was lost\n") {
		t.Errorf("got\n%s", view)
	}
}

// TestPublished sets predictions so that goodput falls as published and
// interrupts fall where the publication saw them rise.
func TestPublished(t *testing.T) {
	run := func(variant string, goodput, interrupts, publishedGoodput, publishedInterrupts float64) result.Run {
		return result.Run{
			Variant: variant,
			Metrics: map[string]result.Metric{"goodput": {Value: goodput, Unit: "bit/s"}, "interrupts": {Value: interrupts, Unit: "1/s"}},
			Published: []result.Published{
				{Source: "thread", Metric: "goodput", Value: publishedGoodput, Unit: "bit/s", Role: result.RoleFitted},
				{Source: "thread", Metric: "interrupts", Value: publishedInterrupts, Unit: "1/s", Role: result.RolePredicted, Note: "by hand"},
				{Source: "thread", Metric: "retransmits", Value: 5, Unit: "frames", Role: result.RolePredicted},
				{Source: "other", Metric: "goodput", Value: 1e9, Unit: "B/s", Role: result.RolePredicted},
			},
		}
	}
	d := &result.Document{Runs: []result.Run{
		run("old", 500e6, 300, 529e6, 100), run("new", 400e6, 200, 396e6, 9700),
	}}
	view := render(t, d, text.Options{Width: 100})
	// 500/529 = 0.945, 300/100 = 3; units that differ have no ratio.
	const want = `  simulated / published
  metric       published   simulated  ratio  role       direction  source
  goodput     529 Mbit/s  500 Mbit/s  0.945  fitted     reference  thread
  interrupts      100 /s      300 /s      3  predicted  reference  thread: by hand
  retransmits   5 frames        none      -  predicted  reference  thread
  goodput         1 GB/s  500 Mbit/s      -  predicted  reference  other`
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(section(t, view, "published numbers"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, second, _ := strings.Cut(view, "variant new")
	// 400/396 = 1.01; 200/9700 = 0.0206; equal publications have no direction.
	const wantSecond = `  simulated / published
  goodput     396 Mbit/s  400 Mbit/s    1.01  fitted     right      thread
  interrupts     9.7 k/s      200 /s  0.0206  predicted  wrong      thread: by hand
  retransmits   5 frames        none       -  predicted  -          thread
  goodput         1 GB/s  400 Mbit/s       -  predicted  -          other`
	lines := strings.Split(section(t, second, "published numbers"), "\n")
	got := strings.Join(append(lines[:1], lines[2:]...), "\n")
	if diff := cmp.Diff(strings.Fields(wantSecond), strings.Fields(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestProvenance names the heaviest stages of each kind: of 60 % measured, spread
// over 3 s, 1.5 s are 30 %, 1 s is 20 %, 0.3 s is 6 %, and 0.1 s + 0.1 s are 4 %.
func TestProvenance(t *testing.T) {
	d := one(result.Run{Provenance: []result.Provenance{
		{Kind: result.KindAssumed, Share: 0.1, Seconds: 0.5, Stages: []result.StageCost{{Stage: "mmio", Seconds: 0.5, Source: "a guess"}}},
		{Kind: result.KindMeasured, Share: 0.6, Seconds: 3, Stages: []result.StageCost{
			{Stage: "e", Seconds: 0.1},
			{Stage: "a", Seconds: 0.3, Source: "perf"},
			{Stage: "b", Seconds: 1, Source: "perf"},
			{Stage: "c", Seconds: 1.5, Source: "perf"},
			{Stage: "d", Seconds: 0.1},
		}},
		{Kind: result.KindFitted, Share: 0.3, Seconds: 1.5, Stages: []result.StageCost{
			{Stage: "f", Seconds: 1, Source: "regression", Rows: []string{"row 1", "row 2"}}, {Stage: "g", Seconds: 0.5},
		}},
	}})
	const want = `  share of busy CPU time
  costs     share  stage   share  source
  measured   60 %  c        30 %  perf
                   b        20 %  perf
                   a         6 %  perf
                   2 more    4 %
  fitted     30 %  f        20 %  regression; fitted on row 1, row 2
                   g        10 %  rows not stated
  assumed    10 %  mmio     10 %  a guess`
	if diff := cmp.Diff(want, section(t, render(t, d, text.Options{}), "provenance of costs")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	d := &result.Document{Runs: []result.Run{
		{Seed: 1, Warnings: []string{"drifts", "no packets"}}, {Seed: 2, Warnings: []string{"drifts"}},
	}}
	want := "\n  !  drifts\n  !  no packets (1 of 2 runs)"
	if got := section(t, render(t, d, text.Options{}), "warnings"); got != want {
		t.Errorf("got %q", got)
	}
}

// TestLeavesOutWhatIsNotThere renders a run without anything in it.
func TestLeavesOutWhatIsNotThere(t *testing.T) {
	view := render(t, one(result.Run{}), text.Options{})
	for _, heading := range []string{"throughput", "latency", "published", "provenance", "warnings", "other"} {
		if strings.Contains(view, heading) {
			t.Errorf("an empty section %q in\n%s", heading, view)
		}
	}
}
