package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"napisim/cmd/napisim/exit"
	"napisim/cmd/napisim/verdict"
	"napisim/reports/bisect"
	"napisim/reports/result"
	"napisim/scenarios"
	"napisim/scenarios/faults"
	"napisim/scenarios/kerneldiff"
	"napisim/scenarios/spec"
)

// toy returns a field of so many differences, whose runs measure what a function says.
func toy(players, seeds, budget int, value func(bisect.Set) float64) *field {
	c := &contest{
		good: &spec.Preset{Name: "good"}, bad: &spec.Preset{Name: "bad"}, seeds: seeds, first: 1, budget: budget,
	}
	for i := range players {
		c.players = append(c.players, kerneldiff.Difference{Name: fmt.Sprint("p", i), Path: fmt.Sprint("at.p", i), From: "off", To: "on"})
	}
	b := &bisecting{metric: "goodput", cmd: (&app{}).versionCommand()}
	f := newField(&app{}, b, c)
	f.build = func(bisect.Set) (*spec.Scenario, error) { return &spec.Scenario{Seed: 1}, nil }
	f.execute = func(jobs []scenarios.Job) ([]result.Run, error) {
		var runs []result.Run
		for _, j := range jobs {
			runs = append(runs, toyRun(j, value))
		}
		return runs, nil
	}
	return f
}

func toyRun(j scenarios.Job, value func(bisect.Set) float64) result.Run {
	s, err := strconv.ParseUint(j.Variant, 10, 64)
	if err != nil {
		panic(err)
	}
	v := value(bisect.Set(s)) + float64(j.Seed) // common to all combinations of a seed
	return result.Run{Seed: j.Seed, Variant: j.Variant, Metrics: map[string]result.Metric{"goodput": {Value: v, Unit: "bit/s", Better: result.Higher}}}
}

func player(t *testing.T, r *verdict.Report, name string) verdict.Player {
	t.Helper()
	for _, p := range r.Players {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no %s in %+v", name, r.Players)
	return verdict.Player{}
}

// worth is a game in which player i adds its weight.
func worth(weights ...float64) func(bisect.Set) float64 {
	return func(s bisect.Set) float64 {
		v := 1000.0
		for i, w := range weights {
			if s.Has(i) {
				v += w
			}
		}
		return v
	}
}

func near(n verdict.Number, want float64) bool { return n.Mean != nil && math.Abs(*n.Mean-want) < 1e-6 }

func TestBisectAll(t *testing.T) {
	r, err := toy(3, 2, 8, worth(-100, 0, 30)).play()
	if err != nil || r.Method != bisect.Exhaustive || r.Combinations != 8 || r.Runs != 16 || !r.Differs {
		t.Fatalf("%v, %+v", err, r)
	}
	for name, want := range map[string]float64{"p0": -100, "p1": 0, "p2": 30} {
		if p := player(t, r, name); !near(p.Value, want) || !near(p.First, want) || !near(p.Last, want) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if r.Players[0].Name != "p0" || len(r.Waterfall) != 3 || r.Waterfall[2].To != 931.5 { // 1000 - 70, and seeds 1 and 2
		t.Errorf("%+v", r.Waterfall)
	}
}

// TestBisectScreened: with 20 differences of which two matter, together with an AND that
// shows only from the bad side, 42 combinations find those, and 8 more tell them apart.
func TestBisectScreened(t *testing.T) {
	f := toy(20, 3, bisect.Least(20), func(s bisect.Set) float64 {
		v := worth(0, 0, 0, -100)(s)
		if s.Has(7) && s.Has(9) {
			v -= 50
		}
		return v
	})
	r, err := f.play()
	if err != nil || r.Method != bisect.Screened || r.Combinations > 42+16 || r.Combinations > f.budget {
		t.Fatalf("%v, %+v", err, r)
	}
	for name, want := range map[string]float64{"p3": -100, "p7": -25, "p9": -25, "the 17 others together": 0} {
		if p := player(t, r, name); !near(p.Value, want) {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if len(r.Interactions) != 1 || r.Interactions[0].A != "p7" || r.Interactions[0].B != "p9" {
		t.Errorf("%+v", r.Interactions)
	}
	if p := player(t, r, "the 17 others together"); p.Verdict != bisect.Cleared || len(p.Members) != 17 {
		t.Errorf("%+v", p)
	}
}

// TestBisectSampled: where all of ten matter, the sample keeps to the budget, and of an
// additive game every order tells the truth.
func TestBisectSampled(t *testing.T) {
	weights := []float64{-20, -20, -20, -20, -20, -20, -20, -20, -20, -20}
	f := toy(10, 2, bisect.Least(10), worth(weights...))
	r, err := f.play()
	if err != nil || r.Method != bisect.SampledOrders || r.Combinations > f.budget || r.Orders < 4 {
		t.Fatalf("%v, %+v", err, r)
	}
	for i, want := range weights {
		if p := player(t, r, fmt.Sprint("p", i)); !near(p.Value, want) {
			t.Errorf("%s: %+v", p.Name, p)
		}
	}
}

// TestBisectLeavesOut: what a scenario refuses is left out and said, and the orders
// through it do not count: only 0, 1 is left.
func TestBisectLeavesOut(t *testing.T) {
	f := toy(2, 2, 4, func(s bisect.Set) float64 { return 1000 - 50*float64(s*s) })
	build := f.build
	f.build = func(s bisect.Set) (*spec.Scenario, error) {
		if s == 2 {
			return nil, faults.List{{Path: "at.p1", Text: "needs p0"}}
		}
		return build(s)
	}
	r, err := f.play()
	if err != nil || r.Combinations != 3 || r.Orders != 1 || len(r.LeftOut) != 1 {
		t.Fatalf("%v, %+v", err, r)
	}
	if l := r.LeftOut[0]; strings.Join(l.Choices, " ") != "at.p0=off at.p1=on" || l.Reason != "at.p1: needs p0" {
		t.Errorf("%+v", l)
	}
	if p := player(t, r, "p0"); !near(p.Value, -50) || p.Last.Mean != nil {
		t.Errorf("%+v", p)
	}
	if p := player(t, r, "p1"); !near(p.Value, -400) {
		t.Errorf("%+v", p)
	}
	files, err := r.Files()
	if err != nil || !strings.Contains(string(files.Text), "! left out, since it cannot be built: at.p0=off at.p1=on: at.p1: needs p0\n") ||
		!strings.Contains(string(files.Text), "3 of 4 combinations were run with 2 seeds each: 6 runs.\n") {
		t.Errorf("%v\n%s", err, files.Text)
	}
	// One of the kernels itself cannot be left out.
	f = toy(2, 2, 4, worth(1, 2))
	f.build = func(bisect.Set) (*spec.Scenario, error) { return nil, faults.List{{Text: "no"}} }
	if r, err := f.play(); r != nil || !isRefusal(err) {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestBisectInterrupted: seeds that met all combinations are a result; without one there
// are the two kernels and the single steps; without these there is nothing.
func TestBisectInterrupted(t *testing.T) {
	stop := exit.With(exit.Interrupted, errors.New("interrupted"))
	for _, test := range []struct {
		runs   int // before the interrupt, all phases together
		seeds  int
		orders float64
		none   bool
	}{{1, 0, 0, true}, {2, 1, 0, false}, {7, 1, 0, false}, {8, 1, 2, false}, {11, 2, 2, false}} {
		f := toy(2, 3, 4, worth(-100, -50))
		left := test.runs
		all := f.execute
		f.execute = func(jobs []scenarios.Job) ([]result.Run, error) {
			if len(jobs) <= left {
				left -= len(jobs)
				return all(jobs)
			}
			runs, _ := all(jobs[:left])
			return runs, stop
		}
		r, err := f.play()
		if exit.Of(err) != exit.Interrupted || test.none != (r == nil) {
			t.Errorf("%d runs: %v, %+v", test.runs, err, r)
			continue
		}
		if test.none {
			continue
		}
		if !r.Partial || r.Seeds != test.seeds || r.Orders != test.orders {
			t.Errorf("%d runs: %d seeds, %v orders: %+v", test.runs, r.Seeds, r.Orders, r)
		}
		files, err := r.Files()
		if err != nil || !strings.Contains(string(files.Text), "! interrupted: only what was finished by then\n") {
			t.Errorf("%v\n%s", err, files.Text)
		}
	}
}

// TestBisectUndefined: seeds in which the metric is missing somewhere are left out.
func TestBisectUndefined(t *testing.T) {
	f := toy(1, 3, 2, worth(-100))
	all := f.execute
	f.execute = func(jobs []scenarios.Job) ([]result.Run, error) {
		runs, err := all(jobs)
		for i := range runs {
			if runs[i].Seed == 2 && runs[i].Variant == "1" {
				delete(runs[i].Metrics, "goodput")
			}
		}
		return runs, err
	}
	r, err := f.play()
	if err != nil || r.Seeds != 2 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "1 of 3 seeds are left out") {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestBisectEndsAreKernels: the combination of all differences is the bad kernel itself,
// although it is built from the good one.
func TestBisectEndsAreKernels(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flood.yaml")
	text := "napisim: 1\nbase: udp-flood-one-core\nduration: 30ms\nwarmup: 10ms\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, metric := range []string{"goodput", "polls"} {
		c := newCall("bisect", file, "--good", "v6.1", "--bad", "v6.6", "--metric", metric, "--runs", "2", "-o", "json")
		c.run(t, exit.OK)
		var r verdict.Report
		if err := json.Unmarshal([]byte(c.out.String()), &r); err != nil {
			t.Fatal(err)
		}
		for kernel, end := range map[string]verdict.End{"v6.1": r.Good, "v6.6": r.Bad} {
			c := newCall("run", file, "--kernel", kernel, "--runs", "2", "-o", "json")
			c.run(t, exit.OK)
			d, err := result.Read(strings.NewReader(c.out.String()), "stdout")
			if err != nil {
				t.Fatal(err)
			}
			if want := result.Summarize(d.Variants()[0].Values(metric)).Mean; want != *end.Mean {
				t.Errorf("%s: %v in the bisection, %v in a run", kernel, *end.Mean, want)
			}
		}
		sum := 0.0
		for _, p := range r.Players {
			sum += *p.Value.Mean
		}
		if math.Abs(sum-*r.Change.Mean) > 1e-6*math.Abs(*r.Change.Mean) {
			t.Errorf("values sum to %v, the change is %v", sum, *r.Change.Mean)
		}
	}
}
