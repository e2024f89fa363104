package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"napisim/cmd/napisim/exit"
	"napisim/reports/result"
	"napisim/scenarios/faults"
	"napisim/scenarios/kerneldiff"
	"napisim/scenarios/spec"
	"napisim/scenarios/spec/behaviours"
)

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [PATH]",
		Short: "Explain a field of scenarios, or what has a name",
		Long: "Explain a field of scenarios by its path; by its name a behaviour of kernels, a kernel\n" +
			"preset, a scenario or platform of the library, a metric or a tracepoint. A preset may\n" +
			"also be a file.\n\n" +
			"Names of interfaces, apps and traffic may be left out of a path, and so may its start\n" +
			"where the rest is clear. Without a PATH, list the fields of a scenario.",
		Example: "  napisim explain nics.eth0.coalesce.rx-usecs\n" +
			"  napisim explain rx-usecs\n" +
			"  napisim explain kernel.behaviours.napi_schedule\n" +
			"  napisim explain v6.4\n" +
			"  napisim explain lan966x-napi-schedule\n" +
			"  napisim explain frames_per_interrupt",
		Args:              arguments(0, 1, "one PATH"),
		ValidArgsFunction: a.completeExplain,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path := ""
		if len(args) > 0 {
			path = args[0]
		}
		explanation, err := a.explain(path)
		if _, faulty := errors.AsType[faults.List](err); faulty {
			return err // of the file of a preset
		}
		if err != nil {
			return exit.With(exit.Usage, err)
		}
		a.out.WriteString(explanation)
		return nil
	}
	return cmd
}

// explain returns what is known under a name.
func (a *app) explain(name string) (string, error) {
	for _, b := range behaviours.All() {
		if name == b.Name || name == kerneldiff.BehavioursPath+b.Name {
			return a.explainBehaviour(b)
		}
	}
	if d, ok := result.Lookup(name); ok {
		return explainMetric(d), nil
	}
	if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" || slices.Contains(entryNames(a.loader.Presets()), name) {
		return a.explainPreset(name)
	}
	if known, text, err := a.explainEntry(name); known || err != nil {
		return text, err
	}
	if help := pointHelp[name]; help != "" {
		return fmt.Sprintf("%s: a tracepoint\n  %s\n", name, help), nil
	}
	f, err := spec.Explain(name)
	if err == nil {
		return f.Explain(), nil
	}
	switch paths := ending(name); len(paths) {
	case 0:
		return "", a.unexplained(name, err)
	case 1:
		return a.explain(paths[0])
	default:
		return "", fmt.Errorf("%s could be any of %s", name, strings.Join(paths, ", "))
	}
}

// explainEntry tells of a scenario what its author says about it, and of a platform what
// it is.
func (a *app) explainEntry(name string) (known bool, text string, err error) {
	p := a.prose()
	switch {
	case slices.Contains(entryNames(a.loader.Scenarios()), name):
		s, err := a.loader.Resolve(name, nil)
		if err != nil {
			return true, "", err
		}
		p.line("", name+": a scenario")
		p.line("  ", s.Summary)
		p.labelled("  ", "kernel", s.Kernel.Preset)
		p.labelled("  ", "platform", s.Platform.Name)
		p.WriteString("\n" + s.Notes)
		p.line("", "")
		p.published(s.Evidence)
		p.line("", fmt.Sprintf("napisim run %s --dry-run prints it with all defaults.", name))
	case slices.Contains(entryNames(a.loader.Platforms()), name):
		platform, err := a.loader.Platform(name)
		if err != nil {
			return true, "", err
		}
		p.line("", name+": a platform")
		p.line("  ", platform.Summary)
		kinds := map[spec.CostKind]int{}
		for _, c := range platform.Costs {
			kinds[c.Kind]++
		}
		for _, kind := range spec.CostKind("").Values() {
			if n := kinds[spec.CostKind(kind)]; n > 0 {
				p.labelled("  ", kind, count(n, "cost"))
			}
		}
	default:
		return false, "", nil
	}
	return true, p.String(), nil
}

// published lists for which variants of a scenario there are published figures.
func (p *prose) published(rows []spec.Evidence) {
	last := ""
	for i, e := range rows {
		if i == 0 {
			p.line("", "Published figures, which compare shows beside the variants that they belong to:")
		}
		if variant := cmp.Or(e.Variant, "the scenario as it stands"); variant != last {
			p.hang("  ", "    ", variant)
			last = variant
		}
		d, _ := result.Lookup(e.Metric)
		p.hang("    ", "      ", fmt.Sprintf("%s %s, %s, %s", e.Metric, result.Text(e.Metric, d.Unit, e.Value), e.Role, e.Source))
	}
	if len(rows) > 0 {
		p.line("", "")
	}
}

// ending returns the paths of fields that end in the given one, those that hold others
// included.
func ending(path string) []string {
	var all []string
	for _, full := range spec.Paths() {
		for end := len(full); end > 0; end = strings.LastIndexByte(full[:end], '.') {
			if part := full[:end]; strings.HasSuffix(part, "."+path) && !slices.Contains(all, part) {
				all = append(all, part)
			}
		}
	}
	return all
}

// unexplained adds to the error for an unknown field what else could have been meant.
func (a *app) unexplained(name string, err error) error {
	if strings.Contains(err.Error(), "did you mean") {
		return err
	}
	names := a.explained()
	for _, path := range spec.Paths() {
		for key := range strings.SplitSeq(path, ".") {
			names = append(names, key)
		}
	}
	return fmt.Errorf("there is no field, behaviour, kernel, scenario, platform, metric or tracepoint %q%s", name, suggestion(faults.Nearest(name, names), ""))
}

// explained returns the names that explain knows beside the paths of fields.
func (a *app) explained() []string {
	names := slices.Concat(entryNames(a.loader.Presets()), entryNames(a.loader.Scenarios()), entryNames(a.loader.Platforms()), pointNames())
	for _, b := range behaviours.All() {
		names = append(names, b.Name)
	}
	for _, d := range result.Definitions() {
		names = append(names, d.Name)
	}
	return names
}

func explainMetric(d result.Definition) string {
	unit := d.Unit
	if unit == "1" {
		unit = "1 (a ratio or a plain count)"
	}
	better := "neither direction is better as such"
	if d.Better != result.Neither {
		better = string(d.Better)
	}
	return fmt.Sprintf("%s: a metric\n  %s\n  %-10s %s\n  %-10s %s\n  %-10s %s\n",
		d.Name, d.Help, "unit", unit, "better", better, "shown with", d.Block)
}
