package main

import (
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
		Short: "Explain a field of scenarios, a behaviour, a kernel or a metric",
		Long: "Explain a field of scenarios by its path, or a behaviour of kernels, a kernel preset or\n" +
			"a metric by its name; a preset may also be a file.\n\n" +
			"Names of interfaces, apps and traffic may be left out of a path, and so may its start\n" +
			"where the rest is clear. Without a PATH, explain the scenario as a whole.",
		Example: "  napisim explain nics.eth0.coalesce.rx-usecs\n" +
			"  napisim explain rx-usecs\n" +
			"  napisim explain kernel.behaviours.napi_schedule\n" +
			"  napisim explain v6.4\n" +
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

// ending returns the paths of fields that end in the given one.
func ending(path string) []string {
	return slices.DeleteFunc(spec.Paths(), func(full string) bool { return !strings.HasSuffix(full, "."+path) })
}

// unexplained adds to the error for an unknown field what else could have been meant.
func (a *app) unexplained(name string, err error) error {
	if strings.Contains(err.Error(), "did you mean") {
		return err
	}
	names := entryNames(a.loader.Presets())
	for _, b := range behaviours.All() {
		names = append(names, b.Name)
	}
	for _, d := range result.Definitions() {
		names = append(names, d.Name)
	}
	for _, path := range spec.Paths() {
		names = append(names, path[strings.LastIndexByte(path, '.')+1:])
	}
	return fmt.Errorf("there is no field, behaviour, kernel or metric %q%s", name, suggestion(faults.Nearest(name, names), ""))
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
