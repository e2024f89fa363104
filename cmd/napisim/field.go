package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"napisim/cmd/napisim/exit"
	"napisim/cmd/napisim/verdict"
	"napisim/reports/bisect"
	"napisim/reports/result"
	"napisim/scenarios"
	"napisim/scenarios/kerneldiff"
	"napisim/scenarios/spec"
)

// A field is where the combinations of a contest are run.
type field struct {
	*contest
	b      *bisecting
	method bisect.Method
	// build makes the scenario of a combination, execute runs jobs.
	build   func(bisect.Set) (*spec.Scenario, error)
	execute func([]scenarios.Job) ([]result.Run, error)
	// values is the metric by combination and seed, in the order of the combinations.
	values  map[bisect.Set]map[uint64]float64
	order   []bisect.Set
	refused map[bisect.Set]string
	groups  []bisect.Set // that move as one, each player for itself as a rule
	sample  [][]int      // orders of groups, if they are a sample
	runs    int
	digests map[bisect.Set]string
	metric  result.Metric // with the unit and the direction
	known   []string      // the metrics of the runs
}

func newField(a *app, b *bisecting, c *contest) *field {
	f := &field{
		contest: c, b: b, method: bisect.Choose(len(c.players), c.budget),
		values: map[bisect.Set]map[uint64]float64{}, refused: map[bisect.Set]string{}, digests: map[bisect.Set]string{},
		build:   func(s bisect.Set) (*spec.Scenario, error) { return a.build(b, c, s) },
		execute: func(jobs []scenarios.Job) ([]result.Run, error) { return a.execute(jobs, b.parallel) },
	}
	for i := range c.players {
		f.groups = append(f.groups, bisect.Set(0).With(i))
	}
	return f
}

// full is the combination that is the bad kernel.
func (f *field) full() bisect.Set { return bisect.Full(len(f.players)) }

// play runs what has to be run and reports on it. Beside the report there may be the
// error of an interruption; without a report the error says why there is none.
func (f *field) play() (*verdict.Report, error) {
	ended := f.measure([]bisect.Set{0, f.full()})
	if err := f.hopeless(ended); err != nil {
		return nil, err
	}
	if ended != nil || !bisect.Differs(f.game()) {
		return f.report(ended), ended
	}
	if f.method == bisect.Exhaustive {
		ended = f.measure(bisect.All(len(f.players)))
	} else {
		ended = f.screen()
	}
	if ended != nil && !isInterruption(ended) {
		return nil, ended
	}
	return f.report(ended), ended
}

// hopeless returns the error after which there is nothing to report: the ends could not
// be run, or have no such metric.
func (f *field) hopeless(ended error) error {
	if ended != nil && !isInterruption(ended) {
		return ended
	}
	if len(f.seedsOf(f.order)) > 0 {
		return nil
	}
	if ended != nil {
		return exit.With(exit.Interrupted, errors.New("interrupted before both kernels were run with one seed"))
	}
	return usage(f.b.cmd, "--metric: a run of %s does not have %s, but %s", f.b.name, f.b.metric, strings.Join(f.known, ", "))
}

// screen runs each difference alone, and then tells those apart that matter.
func (f *field) screen() error {
	n := len(f.players)
	if err := f.measure(bisect.OneAtATime(n)); err != nil {
		return err
	}
	f.groups = bisect.Groups(n, bisect.Movers(f.game()))
	fresh := slices.DeleteFunc(bisectSets(f.groups, f.budget), f.tried)
	left := f.budget - len(f.order)
	if fresh != nil && len(fresh) <= left {
		return f.measure(fresh)
	}
	f.method = bisect.SampledOrders
	m := len(f.groups)
	orders, sampled := bisect.SampleOrders(m, left, func(s bisect.Set) bool { return f.tried(bisect.Expand(s, f.groups)) })
	for i := range sampled {
		sampled[i] = bisect.Expand(sampled[i], f.groups)
	}
	err := f.measure(sampled)
	f.sample = slices.DeleteFunc(orders, func(order []int) bool { return !f.passable(order) })
	return err
}

// bisectSets returns all combinations of groups, nil if they are beyond any budget.
func bisectSets(groups []bisect.Set, budget int) []bisect.Set {
	if possible(len(groups)) > float64(2*budget) {
		return nil
	}
	return bisect.Combinations(groups)
}

func (f *field) tried(s bisect.Set) bool {
	return f.values[s] != nil || f.refused[s] != ""
}

// passable reports whether every combination on an order was run.
func (f *field) passable(order []int) bool {
	s := bisect.Set(0)
	for _, player := range order {
		s = s.With(player)
		if f.values[bisect.Expand(s, f.groups)] == nil {
			return false
		}
	}
	return true
}

// measure runs combinations that were not tried yet, seed by seed: when the user
// interrupts, most seeds have met all of them.
func (f *field) measure(sets []bisect.Set) error {
	var variants []variant
	for _, s := range sets {
		if f.tried(s) {
			continue
		}
		built, err := f.build(s)
		switch {
		case err != nil && isRefusal(err) && s != 0 && s != f.full():
			f.refused[s] = strings.ReplaceAll(err.Error(), "\n", "; ")
			continue
		case err != nil:
			return err
		}
		built.Runs = f.seeds
		f.values[s], f.digests[s] = map[uint64]float64{}, built.Digest()
		f.order = append(f.order, s)
		variants = append(variants, variant{strconv.FormatUint(uint64(s), 10), built})
	}
	if len(variants) == 0 {
		return nil
	}
	// In blocks, since the results of a hundred thousand runs fill the memory.
	for block := range slices.Chunk(jobs(variants), maxBlock) {
		runs, err := f.execute(block)
		f.collect(runs)
		if err != nil {
			return err
		}
	}
	return nil
}

// maxBlock is the number of runs whose results are kept at a time.
const maxBlock = 4096

// collect keeps of each run the metric alone.
func (f *field) collect(runs []result.Run) {
	f.runs += len(runs)
	for _, run := range runs {
		s, err := strconv.ParseUint(run.Variant, 10, 64)
		if err != nil {
			panic(err) // measure labels the runs
		}
		if m, ok := run.Metrics[f.b.metric]; ok {
			f.values[bisect.Set(s)][run.Seed], f.metric = m.Value, m
		}
		f.known = slices.SortedFunc(maps.Keys(run.Metrics), result.CompareNames)
	}
}

// seedsOf returns the seeds that all of some combinations have, in their order.
func (f *field) seedsOf(sets []bisect.Set) []uint64 {
	var common []uint64
	for n := range f.seeds {
		seed := f.first + uint64(n)
		has := func(s bisect.Set) bool { _, ok := f.values[s][seed]; return ok }
		if !slices.ContainsFunc(sets, func(s bisect.Set) bool { return !has(s) }) {
			common = append(common, seed)
		}
	}
	return common
}

// complete returns the combinations and the seeds of the game: all of both, or after an
// interruption the seeds that all combinations have, and the combinations that have any
// where there is no such seed.
func (f *field) complete() ([]bisect.Set, []uint64) {
	sets := f.order
	if seeds := f.seedsOf(sets); len(seeds) > 0 {
		return sets, seeds
	}
	sets = slices.DeleteFunc(slices.Clone(sets), func(s bisect.Set) bool { return len(f.values[s]) == 0 })
	for len(f.seedsOf(sets)) == 0 && len(sets) > 2 {
		sets = sets[:len(sets)-1] // the last were the least urgent
	}
	return sets, f.seedsOf(sets)
}

// game returns what was measured so far.
func (f *field) game() bisect.Game {
	sets, seeds := f.complete()
	g := bisect.Game{Players: len(f.players), Values: map[bisect.Set][]float64{}}
	for _, s := range sets {
		for _, seed := range seeds {
			g.Values[s] = append(g.Values[s], f.values[s][seed])
		}
	}
	return g
}

// report analyses the game.
func (f *field) report(ended error) *verdict.Report {
	g := f.game()
	sets, seeds := f.complete()
	d, _ := result.Lookup(f.b.metric)
	r := &verdict.Report{
		Schema: verdict.Schema, Tool: result.Tool{Name: "napisim", Version: version()},
		Scenario: shownName(f.b.name), Metric: d.Name, Unit: f.metric.Unit, Better: f.metric.Better,
		Good: verdict.End{Kernel: f.good.Name, Linux: f.good.Version, Digest: f.digests[0]},
		Bad:  verdict.End{Kernel: f.bad.Name, Linux: f.bad.Version, Digest: f.digests[f.full()]},
		Seed: seeds[0], Seeds: len(seeds), Method: f.method,
		Combinations: len(sets), Possible: possible(len(f.players)), Runs: f.runs,
		Differs: bisect.Differs(g), Partial: ended != nil,
	}
	r.Notes = append(r.Notes, f.notes...)
	for _, s := range slices.Sorted(maps.Keys(f.refused)) {
		r.LeftOut = append(r.LeftOut, verdict.LeftOut{Choices: f.choices(s), Reason: f.refused[s]})
	}
	if lost := f.seeds - len(seeds); lost > 0 && ended == nil {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s is undefined in some runs: %d of %d seeds are left out", r.Metric, lost, f.seeds))
	}
	if len(seeds) == 1 {
		r.Warnings = append(r.Warnings, "one seed says nothing about how much runs vary: verdicts take it as exact")
	}
	for _, group := range f.groups {
		r.Players = append(r.Players, f.player(group))
	}
	var a bisect.Analysis
	if len(sets) < len(f.order) {
		a = bisect.Analyze(g.Reduce(f.groups), nil).Undivided() // the few orders that there are may mislead
	} else {
		a = bisect.Analyze(g.Reduce(f.groups), f.sample)
	}
	r.Fill(a)
	r.Tidy()
	return r
}

// player describes a group of differences: as a rule one.
func (f *field) player(group bisect.Set) verdict.Player {
	var members []string
	var one kerneldiff.Difference
	for i, d := range f.players {
		if group.Has(i) {
			members, one = append(members, d.Name), d
		}
	}
	if len(members) > 1 {
		return verdict.Player{Name: fmt.Sprintf("the %d others%s", len(members), verdict.Together), Members: members, Good: "as " + f.good.Name, Bad: "as " + f.bad.Name}
	}
	return verdict.Player{
		Name: one.Name, Path: one.Path, Good: one.From, Bad: one.To,
		Functions: one.Functions, Commit: one.Commit(), Effect: one.Effect(),
	}
}

// shownName is what titles call a scenario.
func shownName(name string) string {
	if name == standardInput {
		return stdinName
	}
	return name
}
