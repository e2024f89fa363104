package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"napisim/cmd/napisim/exit"
	"napisim/reports/compare"
	"napisim/reports/result"
)

// An input is a stored result that the command line names.
type input struct {
	label string // "" if none was given
	path  string
}

// compareFiles compares stored results.
func (a *app) compareFiles(c *comparing, args []string) error {
	for _, name := range []string{"set", "kernel", "seed", "runs", "parallel"} {
		if c.cmd.Flags().Changed(name) {
			return usage(c.cmd, "--%s is for scenarios that are run: give --vary or several kernels, too", name)
		}
	}
	var inputs []input
	for _, arg := range args {
		in := parseInput(arg)
		if in.path != standardInput && (!exists(in.path) && len(args) == 1 || strings.HasSuffix(in.path, ".yaml")) {
			return usage(c.cmd, "what shall differ? Give --vary PATH=A,B or --kernel A,B for the scenario %s, or result files", arg)
		}
		inputs = append(inputs, in)
	}
	documents, err := a.readInputs(inputs)
	if err != nil {
		return err
	}
	dir, err := openDirectory(c.out)
	if err != nil {
		return err
	}
	o := outcome{variants: compare.Variants(documents...)}
	var names []string
	for _, d := range documents {
		name := d.Document.Scenario.Name
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		o.origins = append(o.origins, origin{d.Label, name, d.Document.Scenario.Digest})
	}
	o.title = fmt.Sprintf("%s  base %s", strings.Join(names, ", "), o.variants[0].Label)
	return a.finish(c, o, dir, nil)
}

// parseInput reads label=path. A file that exists under the whole name has no label.
func parseInput(arg string) input {
	label, path, ok := strings.Cut(arg, "=")
	if !ok || label == "" || path == "" || exists(arg) {
		return input{path: arg}
	}
	return input{label, path}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readInputs reads the documents and labels those that have no label: by the variant
// that they are of or the name of the file, by the whole path where that repeats.
func (a *app) readInputs(inputs []input) ([]compare.Labelled, error) {
	piped := 0
	var all []compare.Labelled
	for _, in := range inputs {
		if in.path == standardInput {
			piped++
		}
		if piped > 1 {
			return nil, exit.With(exit.Usage, errors.New("standard input can be read only once"))
		}
		d, err := a.readInput(in.path)
		if err != nil {
			return nil, err
		}
		label := in.label
		if label == "" {
			label = ownLabel(in.path, d)
		}
		all = append(all, compare.Labelled{Label: label, Document: d})
	}
	uses := map[string]int{}
	for _, d := range all {
		uses[d.Label]++
	}
	for i, in := range inputs {
		if uses[all[i].Label] > 1 && in.label == "" {
			all[i].Label = in.path
		}
	}
	return all, nil
}

// ownLabel returns what a document is called if the user does not say.
func ownLabel(path string, d *result.Document) string {
	if variants := d.Variants(); len(variants) == 1 && variants[0].Label != "" {
		return variants[0].Label
	}
	return shortName(path)
}

// shortName is the name of a file without directory and suffix.
func shortName(path string) string {
	if path == standardInput {
		return stdinName
	}
	return strings.TrimSuffix(filepath.Base(path), ".json")
}

// readInput reads one document.
func (a *app) readInput(path string) (*result.Document, error) {
	if path == standardInput {
		return result.Read(a.stdin, stdinName)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		within := filepath.Join(path, "result.json")
		hint := ""
		if exists(within) {
			hint = suggestion(within, "")
		}
		return nil, fmt.Errorf("%s: is a directory, not a file%s", path, hint)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return result.Read(f, path)
}
