package spec

import (
	"fmt"
	"slices"
	"strings"

	"napisim/scenarios/spec/behaviours"
	"napisim/scenarios/strict"
)

//go:generate go test -run ^TestFieldDocs$ . -update

// Describe returns the description of a scenario file: every field with its meaning, its
// range and its name in Linux.
func Describe() strict.Field {
	root := strict.Describe[Scenario](func(owner, field string) string { return fieldDocs[owner+"."+field] })
	root.Doc = "A scenario: a machine, a kernel, what is sent to it and who reads it."
	return root.Replace("kernel.behaviours", describeBehaviours)
}

// describeBehaviours gives a mapping with free keys the keys of the table.
func describeBehaviours(f strict.Field) strict.Field {
	f.Form, f.Type, f.Element = strict.Mapping, "a mapping", nil
	for _, b := range behaviours.All() {
		doc := []string{b.Doc}
		for _, v := range b.Values {
			doc = append(doc, fmt.Sprintf("%s: %s (%s)", v.Name, v.Doc, v.Versions))
		}
		f.Fields = append(f.Fields, strict.Field{
			Key:     b.Name,
			Path:    f.Path + "." + b.Name,
			Doc:     strings.Join(doc, "\n"),
			Type:    "one of the values",
			Form:    strict.Text,
			Values:  names(b.Values, valueName),
			Derived: "that of kernel.preset",
		})
	}
	return f
}

// Explain returns the description of the field at a path. The names of entries may be
// written as they are, as strict.AnyName, or left out.
func Explain(path string) (strict.Field, error) {
	f, fault := Describe().Find(path)
	if fault != nil {
		return strict.Field{}, fmt.Errorf("%v", *fault)
	}
	return f, nil
}

// Paths returns every path that an assignment of the command line may name, with
// strict.AnyName for the names of entries.
func Paths() []string {
	return slices.DeleteFunc(Describe().Settable(), func(path string) bool {
		return strings.HasPrefix(path, "evidence") // prose beside the experiment, not a part of it
	})
}
