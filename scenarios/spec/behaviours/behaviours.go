// Package behaviours describes where kernels differ: each behaviour is a file here, with
// what the kernel does for each value and which releases do it. A scenario chooses values by
// name; the functions that do it are in softirq and below.
package behaviours

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"napisim/scenarios/strict"
)

// A Behaviour is one thing that kernels do differently. A choice that spans several
// functions is one behaviour, so that no mixture can be named that never existed.
type Behaviour struct {
	// The name by which a scenario chooses, which is also the name of its file.
	Name string `yaml:"name" required:"true"`
	// What is decided.
	Doc string `yaml:"doc" required:"true"`
	// The functions of the kernel in which versions differ.
	Functions []string `yaml:"functions" required:"true"`
	// The ways to behave, in the order of the kernel's history; experiments come last.
	Values []Value `yaml:"values" required:"true"`
}

// A Value is one way to behave.
type Value struct {
	// The name that a scenario gives.
	Name string `yaml:"name" required:"true"`
	// What the kernel does.
	Doc string `yaml:"doc" required:"true"`
	// Which releases do it.
	Versions string `yaml:"versions" required:"true"`
	// The change that brought it; absent if it was always there or is not known.
	Commit string `yaml:"commit"`
	// What can be seen of the difference to the value before.
	Effect string `yaml:"effect"`
}

// files describe the behaviours, one each.
//
//go:embed *.yaml
var files embed.FS

// All returns the table of all behaviours, by name. It is shared: nobody may
// change it.
var All = sync.OnceValue(func() []Behaviour {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		panic(err)
	}
	var all []Behaviour
	for _, name := range names {
		b, err := read(name)
		if err != nil {
			panic(fmt.Sprintf("behaviours: %v", err))
		}
		all = append(all, b)
	}
	return all
})

func read(file string) (b Behaviour, err error) {
	text, err := files.ReadFile(file)
	if err != nil {
		return b, err
	}
	n, found := strict.Parse(file, text)
	if err := found.Err(); err != nil {
		return b, err
	}
	b, _, found = strict.Decode[Behaviour](n)
	if err := found.Err(); err != nil {
		return b, err
	}
	if stem := strings.TrimSuffix(path.Base(file), ".yaml"); b.Name != stem {
		return b, fmt.Errorf("%s: describes %s", file, b.Name)
	}
	return b, nil
}
