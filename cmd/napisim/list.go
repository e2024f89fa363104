package main

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"napisim/cmd/napisim/exit"
	"napisim/reports/result"
	"napisim/reports/text"
	"napisim/scenarios"
	"napisim/scenarios/faults"
	"napisim/scenarios/kerneldiff"
	"napisim/scenarios/spec"
	"napisim/scenarios/spec/behaviours"
)

// A catalogue is something that can be listed.
type catalogue struct {
	name, help string
	rows       func(a *app) ([]string, [][]string, error)
	// show writes the text for people, if that is no table of the rows.
	show func(a *app) error
}

// catalogues returns what can be listed, in the order in which it is offered.
func catalogues() []catalogue {
	return []catalogue{
		{"scenarios", "the scenarios of the library", shelf(spec.Loader.Scenarios), nil},
		{"kernels", "the kernel presets, for --kernel", (*app).listKernels, nil},
		{"behaviours", "where kernels differ, for kernel.behaviours", (*app).listBehaviours, (*app).showBehaviours},
		{"platforms", "the machines, for platform", shelf(spec.Loader.Platforms), nil},
		{"metrics", "what a run measures, for --fail-on", (*app).listMetrics, nil},
		{"points", "the tracepoints, for trace --points", (*app).listPoints, nil},
	}
}

func (a *app) listCommand() *cobra.Command {
	var names []string
	for _, c := range catalogues() {
		names = append(names, c.name)
	}
	cmd := &cobra.Command{
		Use:       "list [" + strings.Join(names, "|") + "]",
		Short:     "List scenarios, kernels, behaviours, platforms, metrics or tracepoints",
		Long:      "List what can be named on the command line and in scenarios. Without an argument, list\nwhat can be listed.",
		Example:   "  napisim list scenarios\n  napisim list metrics -o md",
		Args:      arguments(0, 1, "one of "+strings.Join(names, ", ")),
		ValidArgs: names,
	}
	format := outputFlag(cmd, "text", "json", "md", "csv")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			var rows [][]string
			for _, c := range catalogues() {
				rows = append(rows, []string{c.name, c.help})
			}
			return a.writeList([]string{"name", "description"}, rows, format)
		}
		for _, c := range catalogues() {
			if c.name != args[0] {
				continue
			}
			if c.show != nil && format.value == "text" {
				return c.show(a)
			}
			header, rows, err := c.rows(a)
			if err != nil {
				return err
			}
			return a.writeList(header, rows, format)
		}
		return usage(cmd, "cannot list %q, but %s%s", args[0], strings.Join(names, ", "), suggestion(faults.Nearest(args[0], names), ""))
	}
	return cmd
}

// writeList writes rows under their header. In JSON each row is an object.
func (a *app) writeList(header []string, rows [][]string, format *choice) error {
	if format.value == "json" {
		list := []map[string]string{}
		for _, row := range rows {
			object := map[string]string{}
			for i, cell := range row {
				object[header[i]] = cell
			}
			list = append(list, object)
		}
		encoder := json.NewEncoder(&a.out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(list)
	}
	f, err := text.ParseFormat(format.value)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	t := text.Table{Rows: rows}
	for i, name := range header {
		t.Columns = append(t.Columns, text.Column{Name: name, Wrap: i == len(header)-1})
	}
	return t.Write(&a.out, f, a.style())
}

// shelf lists a part of the library.
func shelf(entries func(spec.Loader) ([]spec.Entry, error)) func(*app) ([]string, [][]string, error) {
	return func(a *app) ([]string, [][]string, error) {
		all, err := entries(a.loader)
		var rows [][]string
		for _, e := range all {
			rows = append(rows, []string{e.Name, e.Summary})
		}
		return []string{"name", "description"}, rows, err
	}
}

// listKernels lists the presets with the version of Linux that they were read from.
func (a *app) listKernels() ([]string, [][]string, error) {
	entries, err := a.loader.Presets()
	var rows [][]string
	for _, e := range entries {
		rows = append(rows, []string{e.Name, e.Version, e.Summary})
	}
	return []string{"name", "linux", "description"}, rows, err
}

// listBehaviours lists every value of every behaviour with the presets that have it.
func (a *app) listBehaviours() ([]string, [][]string, error) {
	presets, err := kerneldiff.History(a.loader)
	if err != nil {
		return nil, nil, err
	}
	var rows [][]string
	for _, b := range behaviours.All() {
		for _, v := range b.Values {
			rows = append(rows, []string{b.Name, v.Name, kerneldiff.Having(presets, b.Name, v.Name), v.Doc})
		}
	}
	return []string{"behaviour", "value", "presets", "description"}, rows, nil
}

// showBehaviours is listBehaviours for people, who find what the values do in explain: a
// line says what a behaviour is, and one below it who has which value.
func (a *app) showBehaviours() error {
	_, rows, err := a.listBehaviours()
	if err != nil {
		return err
	}
	const unbroken = "~" // stands for a space at which a line is not to end
	p := a.prose()
	for _, b := range behaviours.All() {
		var values []string
		for _, row := range rows {
			if row[0] == b.Name {
				values = append(values, row[1]+unbroken+"("+strings.ReplaceAll(cmp.Or(row[2], "no preset"), " ", unbroken)+")")
			}
		}
		p.hang("", "    ", b.Name+": "+b.Doc)
		p.line("  ", strings.Join(values, ", "))
	}
	p.line("", "")
	p.line("", `"napisim explain NAME" tells what each value does, and by which commit it came.`)
	a.out.WriteString(strings.ReplaceAll(p.String(), unbroken, " "))
	return nil
}

func (a *app) listMetrics() ([]string, [][]string, error) {
	var rows [][]string
	for _, d := range result.Definitions() {
		rows = append(rows, []string{d.Name, d.Unit, direction(d.Better), d.Help})
	}
	return []string{"name", "unit", "better", "description"}, rows, nil
}

// direction writes which way a metric is better.
func direction(b result.Better) string {
	if b == result.Neither {
		return "-"
	}
	return string(b)
}

func (a *app) listPoints() ([]string, [][]string, error) {
	var rows [][]string
	for _, name := range pointNames() {
		rows = append(rows, []string{name, pointHelp[name]})
	}
	return []string{"name", "description"}, rows, nil
}

// pointNames returns the names of the tracepoints.
func pointNames() []string {
	var names []string
	for _, p := range scenarios.TracePoints() {
		names = append(names, p.String())
	}
	return names
}

// pointHelp says when the kernel passes each of its tracepoints.
var pointHelp = map[string]string{
	"irq_handler_entry":      "a hardirq handler starts",
	"irq_handler_exit":       "a hardirq handler has returned",
	"softirq_raise":          "a softirq is marked as pending",
	"softirq_entry":          "the softirq loop calls the handler of a vector",
	"softirq_exit":           "that handler has returned",
	"napi_poll":              "a NAPI was polled, with the work it did",
	"netif_receive_skb":      "a packet is handed to the stack",
	"net_dev_xmit":           "a packet was handed to the driver",
	"napi_gro_receive_entry": "a packet enters GRO",
	"napi_gro_receive_exit":  "what GRO made of a packet: 0, 1 merged, 2 held, 3 normal",
	"kfree_skb":              "a packet is dropped, with the reason",
	"sched_switch":           "a CPU switches tasks",
	"sched_wakeup":           "a task became runnable",
	"rx_missed":              "frames found no free descriptor; no point of the kernel, which cannot see it",
}
