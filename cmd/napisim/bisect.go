package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"napisim/cmd/napisim/exit"
	"napisim/cmd/napisim/verdict"
	"napisim/reports/bisect"
	"napisim/reports/result"
	"napisim/reports/text"
	"napisim/scenarios/faults"
)

// Bounds of --max-runs. Without it a bisection may run so many combinations, and more
// where the differences are many.
const (
	maxBisectRuns         = 100_000
	defaultCombinations   = 100
	combinationsPerPlayer = 10
)

// bisecting is what the command line says about a bisection.
type bisecting struct {
	request
	cmd       *cobra.Command
	good, bad string
	metric    string
	maxRuns   number
	limited   bool // --max-runs was given
	parallel  *number
	format    *choice
	out       string
	figure    string // the file of --figure, "" for none
}

func (a *app) bisectCommand() *cobra.Command {
	b := bisecting{maxRuns: number{min: 1, max: maxBisectRuns, value: maxBisectRuns}}
	cmd := &cobra.Command{
		Use:   "bisect SCENARIO --good KERNEL --bad KERNEL --metric NAME",
		Short: "Find which difference of two kernels moves a metric",
		Long: "Find which of the differences between two kernels moves a metric, and by how much.\n\n" +
			"The differences are those of diff-kernels. Kernels that never existed are built from\n" +
			"them: every combination if --max-runs allows, otherwise each difference alone and then\n" +
			"the combinations of those that move the metric. All meet the same seeds. The change is\n" +
			"divided among the differences by their Shapley values, which sum to it: what each\n" +
			"adds on average over all orders in which the good kernel becomes the bad one.\n\n" +
			"What --set chooses holds in both kernels. So does what the scenario chooses, except\n" +
			"for the differences themselves. The command exits with 6 if the metric does not differ.",
		Example: "  napisim bisect lan966x-napi-schedule --good v6.3 --bad v6.4 --metric goodput --set duration=3s --runs 5\n" +
			"  napisim bisect udp-flood-one-core --good v6.4 --bad v6.5 --metric goodput --runs 3 -o json",
		Args:              arguments(1, 1, "a SCENARIO: a name of the library, a file, or - for standard input"),
		ValidArgsFunction: a.completeScenario,
	}
	b.setFlags(a, cmd)
	b.runsFlag(cmd, fmt.Sprintf("the number of seeds of each combination (default: that of the scenario if above 1, else %d)", defaultRuns))
	cmd.Flags().StringVar(&b.good, "good", "", "the `KERNEL` to start from: a preset or a file")
	cmd.Flags().StringVar(&b.bad, "bad", "", "the `KERNEL` in which the metric is another")
	cmd.Flags().StringVar(&b.metric, "metric", "", "the `NAME` of the metric that moved (napisim list metrics)")
	cmd.Flags().Var(&b.maxRuns, "max-runs", fmt.Sprintf("the most runs of all combinations together (default: %d combinations)", defaultCombinations))
	cmd.Flags().Lookup("max-runs").DefValue = ""
	b.parallel = parallelFlag(cmd)
	b.format = outputFlag(cmd, "text", "json", "md", "csv")
	cmd.Flags().StringVar(&b.out, "out", "", "also write bisect.json and bisect.txt into `DIR`")
	cmd.Flags().StringVar(&b.figure, "figure", "", "also draw the steps from good to bad into `FILE`, .svg or .png")
	complete(cmd, "good", a.completeKernel)
	complete(cmd, "bad", a.completeKernel)
	complete(cmd, "metric", completeMetric)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		b.cmd = cmd
		b.parsed(cmd, args[0])
		b.limited = cmd.Flags().Changed("max-runs")
		return a.bisect(&b)
	}
	return cmd
}

// bisect prepares, runs and shows a bisection.
func (a *app) bisect(b *bisecting) error {
	if err := errors.Join(checkFigure(b.cmd, b.figure), b.check()); err != nil {
		return err
	}
	c, err := a.contest(b)
	if err != nil {
		return err
	}
	dir, err := openDirectory(b.out)
	if err != nil {
		return err
	}
	f := newField(a, b, c)
	r, ended := f.play()
	if r == nil {
		dir.abandon()
		return ended
	}
	files, err := r.Files()
	if err == nil {
		err = dir.write(file{"bisect.txt", files.Text}, file{"bisect.json", files.JSON})
	}
	if b.figure != "" && len(r.Waterfall) > 0 {
		drawn, ferr := r.Figure()
		err = errors.Join(err, saveFigure(b.figure, drawn, ferr))
	}
	if !r.Differs && ended == nil {
		ended = exit.With(exit.NoChange, errors.New(strings.Join(r.Verdict, "\n")))
	}
	return errors.Join(err, a.showBisection(r, files, b.format), ended)
}

// check refuses what no scenario is needed to refuse.
func (b *bisecting) check() error {
	for _, f := range []struct{ flag, value string }{{"--good", b.good}, {"--bad", b.bad}, {"--metric", b.metric}} {
		if f.value == "" {
			return usage(b.cmd, "bisect needs %s", f.flag)
		}
	}
	for _, set := range b.sets {
		path, _, _ := strings.Cut(set, "=")
		switch path {
		case "kernel", presetPath:
			return usage(b.cmd, "--set %s: --good and --bad choose the kernels", set)
		case "kernel.behaviours", "sysctl":
			return usage(b.cmd, "--set %s: give each choice an assignment of its own, so that it is known to hold", set)
		}
	}
	if _, ok := result.Lookup(b.metric); ok {
		return nil
	}
	var names []string
	for _, d := range result.Definitions() {
		names = append(names, d.Name)
	}
	return usage(b.cmd, "--metric: there is no metric %q%s", b.metric, suggestion(faults.Nearest(b.metric, names), ""))
}

// budget returns how many combinations may be run, or why that is too few.
func (b *bisecting) budget(players, seeds int) (int, error) {
	if players > bisect.MaxPlayers {
		return 0, usage(b.cmd, "%d differences are more than can be told apart, %d: bisect between kernels that are nearer", players, bisect.MaxPlayers)
	}
	if !b.limited {
		return max(defaultCombinations, combinationsPerPlayer*players), nil
	}
	combinations := int(b.maxRuns.value) / seeds
	if least := bisect.Least(players); combinations < least {
		return 0, usage(b.cmd, "--max-runs: %s need %d combinations or more with %s each, %d runs: allow more, or give fewer --runs",
			count(players, "difference"), least, count(seeds, "seed"), least*seeds)
	}
	return combinations, nil
}

func (a *app) showBisection(r *verdict.Report, files verdict.Files, format *choice) error {
	switch format.value {
	case "json":
		a.out.Write(files.JSON)
		return nil
	case "csv":
		return r.Full().Write(&a.out, text.FormatCSV, text.Options{})
	case "md":
		var b bytes.Buffer
		err := r.WriteMarkdown(&b)
		a.out.Write(b.Bytes())
		return err
	}
	return r.WriteText(&a.out, a.style())
}

// possible is the number of combinations of so many differences.
func possible(players int) float64 { return math.Exp2(float64(players)) }
