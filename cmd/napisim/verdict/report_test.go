package verdict_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"napisim/cmd/napisim/verdict"
	"napisim/reports/bisect"
	"napisim/reports/result"
	"napisim/reports/text"
)

// report returns the report on a game of two players and three seeds: the first takes
// 200 Mbit/s off 800, the second puts 40 back when the first is there.
func report() *verdict.Report {
	g := bisect.Game{Players: 2, Values: map[bisect.Set][]float64{
		0: {800e6, 810e6, 790e6}, 1: {600e6, 611e6, 589e6}, 2: {800e6, 810e6, 790e6}, 3: {640e6, 651e6, 629e6},
	}}
	r := &verdict.Report{
		Schema: verdict.Schema, Scenario: "toy", Metric: "goodput", Unit: "bit/s", Better: result.Higher,
		Good: verdict.End{Kernel: "v1"}, Bad: verdict.End{Kernel: "v2"}, Seed: 1, Seeds: 3,
		Method: bisect.Exhaustive, Combinations: 4, Possible: 4, Runs: 12, Differs: true,
		Players: []verdict.Player{
			{Name: "brake", Good: "off", Bad: "on", Functions: []string{"net_rx_action"}, Commit: "0123456789ab", Effect: "It brakes."},
			{Name: "remedy", Good: "none", Bad: "some"},
		},
	}
	r.Fill(bisect.Analyze(g, nil))
	r.Tidy()
	return r
}

func written(t *testing.T, r *verdict.Report, o text.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteText(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestText: the brake does -200 alone and -160 last, -180 in the mean; the remedy does 0
// and +40, +20 in the mean; the change is -160. The seeds of the brake differ from each
// other by 1: its differences are -200, -199 and -201 alone, so that half widths are
// 4.3027·1/√3 = 2.5.
func TestText(t *testing.T) {
	want := `toy  goodput  good v1  bad v2  seeds 1..3

goodput: 800 ± 25 Mbit/s with v1, 640 ± 27 Mbit/s with v2: 20 % less, which is worse.

brake (net_rx_action; 0123456789ab) accounts for 112 % ± 0.2 % of the change in goodput, -180.0 of
-160.0 Mbit/s.
remedy works against it, by +20.0 Mbit/s: without that the change were larger.

verdict  difference         first          last   value Mbit/s           share
cause    brake       -200.0 ± 2.5  -160.0 ± 2.5   -180.0 ± 2.5   112 % ± 0.2 %
against  remedy                 0           +40            +20   -12 % ± 0.2 %

v1       800.0 Mbit/s  #/######################################
brake   -180.0 Mbit/s          --------------------------------
remedy   +20.0 Mbit/s          ++++
v2       640.0 Mbit/s  #/##########

brake and remedy interact: added to v1, both together do -160 Mbit/s and one by one -200 Mbit/s.

difference  v1    v2    commit
brake       off   on    0123456789ab
remedy      none  some

brake: It brakes.

All 4 combinations were run with 3 seeds each: 12 runs.
value: the mean over both orders in which v1 becomes v2; first: alone on v1; last: on top of all
others. Means with 95 % intervals over the seeds; cleared: surely less than 10 % of the change.
`
	spaces := regexp.MustCompile(` +`)
	got := written(t, report(), text.Options{Width: 100})
	if spaces.ReplaceAllString(got, " ") != spaces.ReplaceAllString(want, " ") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// 26 differences have 67108864 combinations, a number that nobody reads.
func TestManyCombinations(t *testing.T) {
	for possible, want := range map[float64]string{4: "of 4 ", 2048: "of 2048 ", 1 << 26: "of 2^26 "} {
		r := report()
		r.Method, r.Possible = bisect.Screened, possible
		if got := r.Ran(); !strings.Contains(got, want) {
			t.Errorf("%v: %s", possible, got)
		}
	}
}

func TestWidths(t *testing.T) {
	escapes := regexp.MustCompile("\x1b\\[[0-9;]*m")
	plain := written(t, report(), text.Options{Width: 100})
	if got := written(t, report(), text.Options{Width: 100, Colour: true}); escapes.ReplaceAllString(got, "") != plain || got == plain {
		t.Errorf("colour does not only repeat the words:\n%s", got)
	}
	for _, width := range []int{1, 60, 80, 200} {
		for line := range strings.Lines(written(t, report(), text.Options{Width: width})) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > max(width, 45) || strings.HasSuffix(line, " \n") {
				t.Errorf("width %d: %d columns, or spaces at the end: %q", width, n, line)
			}
		}
	}
}

// TestDocuments: JSON has lists and no nulls for them, tables have a row for each player.
func TestDocuments(t *testing.T) {
	r := report()
	files, err := r.Files()
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(files.JSON, &back); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"left_out", "players", "interactions", "waterfall", "notes", "warnings", "verdict"} {
		if _, ok := back[key].([]any); !ok {
			t.Errorf("%s is %v", key, back[key])
		}
	}
	var md bytes.Buffer
	if err := r.WriteMarkdown(&md); err != nil || !strings.Contains(md.String(), "| cause | brake | -200") {
		t.Errorf("%v\n%s", err, md.String())
	}
	if rows := r.Full().Rows; len(rows) != 2 || len(rows[0]) != len(r.Full().Columns) {
		t.Errorf("%v", rows)
	}
}

// TestSentences: what is said where nothing stands out, or nothing could be divided.
func TestSentences(t *testing.T) {
	small := bisect.Analysis{Change: result.Summary{N: 2, Mean: 10}, Orders: 1, Effects: []bisect.Effect{
		{Verdict: bisect.Cleared, Value: result.Summary{N: 2, Mean: 0.5}}, {Verdict: bisect.Cleared, Value: result.Summary{N: 2}},
	}}
	unclear := bisect.Analysis{Change: small.Change, Orders: 1, Effects: []bisect.Effect{{Verdict: bisect.Unclear}, {Verdict: bisect.Unclear}}}
	for name, test := range map[string]struct {
		analysis         bisect.Analysis
		differs, partial bool
		want             string
	}{
		"small":       {small, true, false, "No difference accounts for more than 10 % of the change: it is the sum of small ones. a is cleared. The 2 others together are cleared: no run moved with them."},
		"unclear":     {unclear, true, false, "No difference stands out. a and the 2 others together are unclear: more runs may tell."},
		"equal":       {small, false, false, "No difference in m between v1 and v2 that is above 1 % and above what the seeds vary: there is nothing to explain."},
		"no order":    {bisect.Analysis{Effects: unclear.Effects}, true, false, "The combinations that could be run do not lead from the one kernel to the other: nothing can be divided among the differences."},
		"interrupted": {bisect.Analysis{Effects: unclear.Effects}, true, true, "Not every combination was run with one seed, so nothing is divided among the differences."},
	} {
		r := &verdict.Report{
			Metric: "m", Unit: "frames", Good: verdict.End{Kernel: "v1"}, Bad: verdict.End{Kernel: "v2"}, Differs: test.differs, Partial: test.partial,
			Players: []verdict.Player{{Name: "a"}, {Name: "the 2 others" + verdict.Together, Members: []string{"b", "c"}}},
		}
		r.Fill(test.analysis)
		if got := strings.Join(r.Verdict, " "); got != test.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
