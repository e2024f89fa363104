package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"napisim/reports/result"
	"napisim/scenarios/spec"
	"napisim/scenarios/strict"
)

// complete registers what the shell offers as the value of a flag.
func complete(cmd *cobra.Command, flag string, values func(cmd *cobra.Command, args []string, typed string) []string) {
	offer := func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		offered := values(cmd, args, typed)
		for _, v := range offered {
			if strings.HasSuffix(v, "=") {
				return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, offer); err != nil {
		panic(err) // the flag is not there: a slip in this package
	}
}

// completeScenario offers the scenarios of the library; the shell adds files where no
// name fits.
func (a *app) completeScenario(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return described(a.loader.Scenarios()), cobra.ShellCompDirectiveDefault
}

// completeKernel offers presets; after a comma, for compare, further ones.
func (a *app) completeKernel(_ *cobra.Command, _ []string, typed string) []string {
	comma := strings.LastIndexByte(typed, ',')
	if comma < 0 {
		return described(a.loader.Presets())
	}
	var lists []string
	for _, name := range entryNames(a.loader.Presets()) {
		if !slices.Contains(strings.Split(typed, ","), name) {
			lists = append(lists, typed[:comma+1]+name)
		}
	}
	return lists
}

// completeKernels offers the presets that were not typed yet.
func (a *app) completeKernels(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	offered := slices.DeleteFunc(described(a.loader.Presets()), func(line string) bool {
		name, _, _ := strings.Cut(line, "\t")
		return slices.Contains(args, name)
	})
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return offered, cobra.ShellCompDirectiveDefault
}

// described returns entries in the form in which shells show descriptions.
func described(entries []spec.Entry, err error) []string {
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name+"\t"+e.Summary)
	}
	return names
}

func completePoints(_ *cobra.Command, _ []string, typed string) []string {
	head := typed[:strings.LastIndexByte(typed, ',')+1]
	var names []string
	for _, name := range pointNames() {
		names = append(names, head+name)
	}
	return names
}

func completeRule(*cobra.Command, []string, string) []string {
	var rules []string
	for _, d := range result.Definitions() {
		how := " worse"
		if d.Better == result.Neither {
			how = " changed"
		}
		rules = append(rules, d.Name+how)
	}
	return rules
}

func completeMetric(*cobra.Command, []string, string) []string {
	var names []string
	for _, d := range result.Definitions() {
		names = append(names, d.Name+"\t"+d.Help)
	}
	return names
}

func (a *app) completeExplain(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return append(spec.Paths(), a.explained()...), cobra.ShellCompDirectiveNoFileComp
}

// completeSet offers paths up to the "=", and then the values of a field that has few.
func (a *app) completeSet(_ *cobra.Command, args []string, typed string) []string {
	path, value, chosen := strings.Cut(typed, "=")
	if !chosen {
		return a.settable(args)
	}
	return a.values(path, value)
}

// completeVary is completeSet for a list of values.
func (a *app) completeVary(cmd *cobra.Command, args []string, typed string) []string {
	comma := strings.LastIndexByte(typed, ',')
	if comma < 0 {
		return a.completeSet(cmd, args, typed)
	}
	path, _, _ := strings.Cut(typed, "=")
	var lists []string
	for _, one := range a.values(path, "") {
		if value := strings.TrimPrefix(one, path+"="); !slices.Contains(strings.Split(typed[len(path)+1:], ","), value) {
			lists = append(lists, typed[:comma+1]+value)
		}
	}
	return lists
}

// values returns the assignments of each value that a field can have, if they are few.
func (a *app) values(path, _ string) []string {
	var all []string
	switch path {
	case "kernel", "kernel.preset":
		all = entryNames(a.loader.Presets())
	case "platform":
		all = entryNames(a.loader.Platforms())
	default:
		f, err := spec.Explain(path)
		if err != nil {
			return nil
		}
		all = f.Values
		if f.Form == strict.Switch {
			all = []string{"on", "off"}
		}
	}
	var assignments []string
	for _, v := range all {
		assignments = append(assignments, path+"="+v)
	}
	return assignments
}

func entryNames(entries []spec.Entry, err error) []string {
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names
}

// anyName is the first place in a path where a scenario decides what it is called.
var anyName = regexp.MustCompile(`^(.*?)\.` + regexp.QuoteMeta(strict.AnyName) + `(\..*|$)`)

// settable returns the paths that --set takes, followed by "=", with the names of the
// scenario that was typed before; without one, they are left to the user.
func (a *app) settable(args []string) []string {
	named := map[string][]string{}
	if len(args) > 0 && args[0] != standardInput {
		if s, err := a.loader.Resolve(args[0], nil); err == nil {
			named["nics"], named["apps"], named["traffic"] = keys(s.NICs), keys(s.Apps), keys(s.Traffic)
			named["platform.costs"] = keys(s.Platform.Costs)
		}
	}
	var paths []string
	for _, path := range spec.Paths() {
		m := anyName.FindStringSubmatch(path)
		if m == nil {
			paths = append(paths, path+"=")
			continue
		}
		for _, name := range named[m[1]] {
			paths = append(paths, m[1]+"."+name+m[2]+"=")
		}
	}
	return paths
}

func keys[T any](m map[string]T) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
