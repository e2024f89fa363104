package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"napisim/cmd/napisim/beside"
	"napisim/cmd/napisim/exit"
	"napisim/reports/compare"
	"napisim/reports/figure"
	"napisim/reports/result"
	"napisim/reports/text"
)

// A comparison is what compare shows: the table of all metrics, the published figures
// beside it, and what the rules of --fail-on say. Its JSON is that of the table with
// some more fields.
type comparison struct {
	*compare.Comparison
	Tool  result.Tool `json:"tool"`
	Title string      `json:"title"`
	// Origins are the scenarios that the variants come from.
	Origins   []origin     `json:"origins"`
	Published []beside.Row `json:"published"`
	// Gate is nil without rules.
	Gate  *compare.Gate `json:"gate"`
	rules []compare.Rule
}

// An origin names the scenario of a variant, or of a stored result with several.
type origin struct {
	Label    string `json:"label"`
	Scenario string `json:"scenario"`
	Digest   string `json:"digest"`
}

// An outcome is what was run or read for a comparison.
type outcome struct {
	title    string
	origins  []origin
	variants []result.Variant
}

func (a *app) compareCommand() *cobra.Command {
	var c comparing
	cmd := &cobra.Command{
		Use:   "compare {SCENARIO --vary PATH=A,B | SCENARIO --kernel A,B | [LABEL=]FILE...}",
		Short: "Compare variants of a scenario, or stored results",
		Long: "Compare variants of a scenario, or results that were stored with run.\n\n" +
			"The first variant is the base. All variants are run with the same seeds and so meet\n" +
			"the same traffic, which makes small differences visible. The table shows means with\n" +
			"their 95 % interval, the change, and how likely it is by chance. Where the scenario\n" +
			"has published figures they stand beside the simulated ones.\n\n" +
			"A FILE is a result in JSON, or - for standard input.",
		Example: "  napisim compare quickstart --kernel v6.3,v6.4\n" +
			"  napisim compare quickstart --vary hz=100,1000 --vary preempt=none,full --out out\n" +
			"  napisim compare before=a.json after=b.json --fail-on 'goodput worse 2%'",
		Args:              arguments(1, -1, "a SCENARIO and --vary, or result files"),
		ValidArgsFunction: a.completeScenario,
	}
	c.flags(a, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.cmd = cmd
		if err := errors.Join(c.parseRules(), checkFigure(cmd, c.figure)); err != nil {
			return err
		}
		c.splitKernels()
		if len(c.vary) > 0 || len(c.kernels) > 0 {
			return a.compareVariants(&c, args)
		}
		return a.compareFiles(&c, args)
	}
	return cmd
}

// comparing is what the command line says about a comparison.
type comparing struct {
	request
	cmd      *cobra.Command
	vary     []string
	kernels  []string // of --kernel, if it names several: the first axis
	failOn   []string
	rules    []compare.Rule // what failOn says
	parallel *number
	format   *choice
	out      string
	figure   string // the file of --figure, "" for none
}

func (c *comparing) flags(a *app, cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&c.vary, "vary", nil, "`PATH=A,B` to take the values of in turn (repeatable: every combination)")
	c.request.flags(a, cmd)
	cmd.Flags().Lookup("kernel").Usage = "the kernel preset, or several to compare: `NAME,...` is short for --vary kernel.preset=NAME,..."
	c.runsFlag(cmd, fmt.Sprintf("the number of runs of each variant (default: that of the scenario if above 1, else %d)", defaultRuns))
	c.parallel = parallelFlag(cmd)
	c.format = outputFlag(cmd, "text", "json", "csv")
	cmd.Flags().StringVar(&c.out, "out", "", "also write the comparison, and a result for each variant, into `DIR`")
	cmd.Flags().StringVar(&c.figure, "figure", "", "also draw the published figures beside the simulated ones into `FILE`, .svg or .png")
	cmd.Flags().StringArrayVar(&c.failOn, "fail-on", nil, "`RULE` that makes the command exit with 5, such as 'goodput worse 2%' (repeatable)")
	complete(cmd, "vary", a.completeVary)
	complete(cmd, "fail-on", completeRule)
}

// splitKernels makes an axis of several kernels; a single one is that of all variants.
func (c *comparing) splitKernels() {
	if strings.Contains(c.kernel, ",") {
		c.kernels, c.kernel = strings.Split(c.kernel, ","), ""
	}
}

// parseRules reads the rules of --fail-on.
func (c *comparing) parseRules() error {
	for _, text := range c.failOn {
		rule, err := compare.ParseRule(text)
		if err != nil {
			return usage(c.cmd, "--fail-on: %v", err)
		}
		c.rules = append(c.rules, rule)
	}
	return nil
}

// checkFigure refuses a file that cannot become a figure before anything is run.
func checkFigure(cmd *cobra.Command, path string) error {
	if path == "" || figureWriter(path) != nil {
		return nil
	}
	return usage(cmd, "--figure: %q ends neither in .svg nor in .png", path)
}

// figureWriter returns what writes a figure in the format that a file's name asks for,
// nil if there is no such format.
func figureWriter(path string) func(figure.Figure, io.Writer) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".svg":
		return figure.Figure.WriteSVG
	case ".png":
		return figure.Figure.WritePNG
	}
	return nil
}

// drawFigure writes the file of --figure.
func (c *comparing) drawFigure(table *comparison) error {
	if c.figure == "" {
		return nil
	}
	var rows []figure.Row
	for _, r := range table.Published {
		rows = append(rows, figure.Row{
			Metric: r.Metric, Unit: r.Unit, Source: r.Source, Variant: r.Variant, Role: r.Role,
			Published: r.Published, Simulated: r.Simulated, Low: r.Low, High: r.High,
			Base: r.Base, PublishedChange: r.PublishedChange, SimulatedChange: r.SimulatedChange, Agrees: r.Agrees,
		})
	}
	drawn, err := figure.Published(rows, strings.ReplaceAll(table.Title, "  ", ", "))
	if errors.Is(err, figure.ErrNone) {
		err = fmt.Errorf("%w (napisim explain NAME lists those of a scenario of the library)", err)
	}
	return saveFigure(c.figure, drawn, err)
}

// saveFigure writes a figure, unless there was an error in drawing it, and the
// directories that it is to be in.
func saveFigure(path string, drawn figure.Figure, err error) error {
	if err != nil {
		return fmt.Errorf("--figure: %w", err)
	}
	var b bytes.Buffer
	if err := figureWriter(path)(drawn, &b); err != nil {
		return fmt.Errorf("--figure: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("--figure: %w", err)
	}
	return result.ReplaceFile(path, b.Bytes())
}

// compareTo holds variants against the first of them and applies the rules.
func compareTo(o outcome, rules []compare.Rule) (*comparison, error) {
	table, err := compare.Compare(o.variants, compare.Options{})
	if err != nil {
		return nil, err
	}
	c := &comparison{
		Comparison: table, Tool: result.Tool{Name: "napisim", Version: version()},
		Title: o.title, Origins: o.origins, Published: beside.Rows(o.variants), rules: rules,
	}
	if c.Published == nil {
		c.Published = []beside.Row{} // a list in JSON, too
	}
	if len(rules) == 0 {
		return c, nil
	}
	gate, err := compare.Evaluate(table, rules)
	if err != nil {
		return c, exit.With(exit.Usage, err)
	}
	c.Gate = &gate
	return c, nil
}

// show writes a comparison in a format. The error is that of the gate, if it found
// something.
func (a *app) show(c *comparison, format *choice) error {
	var err error
	switch format.value {
	case "json":
		err = c.writeJSON(&a.out)
	case "csv":
		err = c.writeCSV(&a.out)
	default:
		err = c.writeText(&a.out, a.style().Colour)
	}
	return errors.Join(err, c.verdict())
}

// verdict returns an error if a rule was broken.
func (c *comparison) verdict() error {
	if c.Gate == nil || !c.Gate.Regression {
		return nil
	}
	var lines []string
	for _, f := range c.Gate.Findings {
		lines = append(lines, f.String())
	}
	lines = append(lines, count(len(lines), "regression"))
	return exit.With(exit.Regression, errors.New(strings.Join(lines, "\n")))
}

func (c *comparison) writeText(w io.Writer, colour bool) error {
	if _, err := fmt.Fprintf(w, "%s\n\n", c.Title); err != nil {
		return err
	}
	if err := c.WriteText(w, colour); err != nil {
		return err
	}
	if len(c.Published) > 0 {
		fmt.Fprintln(w)
	}
	if err := beside.WriteText(w, c.Published, colour); err != nil {
		return err
	}
	if c.Gate == nil {
		return nil
	}
	fmt.Fprintln(w)
	for _, rule := range c.rules {
		verdict := "passed"
		for _, f := range c.Gate.Findings {
			if f.Rule == rule.String() {
				verdict = "BROKEN"
			}
		}
		fmt.Fprintf(w, "rule %q: %s\n", rule, verdict)
	}
	for _, warning := range c.Gate.Warnings {
		fmt.Fprintf(w, "! %s\n", warning)
	}
	return nil
}

func (c *comparison) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(c)
}

func (c *comparison) writeCSV(w io.Writer) error {
	header, records := c.Records()
	t := text.Table{Rows: records}
	for _, name := range header {
		t.Columns = append(t.Columns, text.Column{Name: name})
	}
	return t.Write(w, text.FormatCSV, text.Options{})
}

// comparisonFile is the name of the comparison in the directory of --out.
const comparisonFile = "compare.json"

// files returns the comparison as --out writes it.
func (c *comparison) files() ([]file, error) {
	var plain, data bytes.Buffer
	if err := errors.Join(c.writeText(&plain, false), c.writeJSON(&data)); err != nil {
		return nil, err
	}
	return []file{{"compare.txt", plain.Bytes()}, {comparisonFile, data.Bytes()}}, nil
}
