package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"napisim/cmd/napisim/exit"
	"napisim/reports/text"
	"napisim/scenarios/conform"
)

func (a *app) conformCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "conform DIR|FILE...",
		Short: "Compare the model with recordings of real kernels",
		Long: "Simulate what recordings of real kernels show, and compare the two event by event:\n" +
			"device interrupts, raises of NET_RX with their context, passes of net_rx_action, and\n" +
			"polls with device, work and budget.\n\n" +
			"A DIR is one recording (trace.txt.gz with meta.yaml beside it) or holds a directory\n" +
			"for each; a FILE is a trace. Who ran a pass, ksoftirqd or whoever was interrupted, is\n" +
			"scored apart: it differs between runs of the same kernel. Recordings of overload and\n" +
			"closed loops are also compared by their numbers, within 15 %.",
		Example: "  napisim conform recordings\n" +
			"  napisim conform recordings/k612-e1000e-burst64 --trace simulated\n" +
			"  napisim conform recordings -o json",
		Args: arguments(1, -1, "at least one DIR or FILE"),
	}
	format := outputFlag(cmd, "text", "json", "md", "csv")
	var o conform.Options
	cmd.Flags().StringVar(&o.Inputs, "input", "", "write what went into each simulation to `DIR`/ID.input.yaml")
	cmd.Flags().StringVar(&o.Costs, "costs", "", "write what each step cost on the recorded machine to `DIR`/ID.costs.json")
	cmd.Flags().StringVar(&o.Traces, "trace", "", "write the trace of each simulation to `DIR`/ID.trace.txt")
	cmd.RunE = func(_ *cobra.Command, args []string) error { return a.conform(args, o, format) }
	return cmd
}

// conform compares every recording under the paths, in the order of their names.
func (a *app) conform(paths []string, o conform.Options, format *choice) error {
	for _, dir := range []string{o.Inputs, o.Costs, o.Traces} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // reports are no secret
			return err
		}
	}
	var all []conform.Result
	var failed []error
	for _, path := range paths {
		recordings, err := recordingsIn(path)
		if err != nil {
			return err
		}
		for _, file := range recordings {
			if err := a.ctx.Err(); err != nil {
				failed = append(failed, exit.With(exit.Interrupted, errors.New("interrupted")))
				break
			}
			r, err := conform.File(file, o)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			all = append(all, r)
		}
	}
	if len(all) > 0 || len(failed) == 0 {
		if err := a.writeConform(all, format); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// recordingsIn returns the recordings at a path: itself, or the directories in it that are some.
func recordingsIn(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() || isRecording(path) {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path) // by name
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if sub := filepath.Join(path, e.Name()); e.IsDir() && isRecording(sub) {
			found = append(found, sub)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no recording: neither a trace.txt or trace.txt.gz nor directories with one", path)
	}
	return found, nil
}

func isRecording(dir string) bool {
	for _, name := range []string{"trace.txt.gz", "trace.txt", "meta.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// writeConform writes the results: a line for each, and where it first differs.
func (a *app) writeConform(all []conform.Result, format *choice) error {
	sum := conform.Summarize(all)
	if format.value == "json" {
		encoder := json.NewEncoder(&a.out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(struct {
			Recordings []conform.Result `json:"recordings"`
			Summary    conform.Summary  `json:"summary"`
		}{all, sum})
	}
	f, err := text.ParseFormat(format.value)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	t := text.Table{Columns: []text.Column{
		{Name: "recording"},
		{Name: "kind"},
		{Name: "match"},
		{Name: "equal", Right: true},
		{Name: "compared", Right: true},
		{Name: "who ran it", Right: true},
		{Name: "numbers", Right: true},
	}}
	for i := range all {
		t.Rows = append(t.Rows, conformRow(&all[i]))
	}
	if err := t.Write(&a.out, f, a.style()); err != nil || f != text.FormatText {
		return err
	}
	a.divergences(all)
	fmt.Fprintf(&a.out, "\n%s\n", sum)
	return nil
}

// conformRow is the line of a recording.
func conformRow(r *conform.Result) []string {
	who, numbers := "-", "-"
	if r.Split.Compared > 0 {
		who = fmt.Sprintf("%d/%d", r.Split.Equal, r.Split.Compared)
	}
	if n := len(r.Quantities); n > 0 {
		ok := 0
		for _, q := range r.Quantities {
			if q.OK {
				ok++
			}
		}
		numbers = fmt.Sprintf("%d/%d", ok, n)
	}
	return []string{r.ID, string(r.Kind), r.Match.Match, fmt.Sprint(r.Equal), fmt.Sprint(r.Compared), who, numbers}
}

// divergences tells of each recording that does not match in full why, and where it first
// differs.
func (a *app) divergences(all []conform.Result) {
	for i := range all {
		r := &all[i]
		d := r.FirstDivergence
		switch {
		case r.Reason != "":
			fmt.Fprintf(&a.out, "\n%s: %s\n", r.ID, r.Reason)
		case d != nil:
			fmt.Fprintf(&a.out, "\n%s: first differs at item %d (= both, r recorded, s simulated)\n  %s\n",
				r.ID, d.Index+1, strings.Join(d.Context, "\n  "))
		}
		if r.Known != "" {
			fmt.Fprintf(&a.out, "  known: %s\n", r.Known)
		}
		for _, q := range r.Quantities {
			if !q.OK {
				fmt.Fprintf(&a.out, "  %s: recorded %.6g, simulated %.6g\n", q.Name, q.Recorded, q.Simulated)
			}
		}
	}
}
