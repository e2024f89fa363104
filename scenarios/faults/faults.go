package faults

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Position is a place in a file, or an assignment of the command line.
type Position struct {
	File string `json:"file,omitempty"`
	// Line and Column count from 1; 0 means that the place within is not known.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Set is the number of a --set assignment, from 1; the rest is then empty.
	Set int `json:"set,omitempty"`
}

// String returns the position as compilers write it, which editors can jump to.
func (p Position) String() string {
	switch {
	case p.Set > 0:
		return "--set #" + strconv.Itoa(p.Set)
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// compare orders positions by file, line and column; assignments come last, as they
// are applied last.
func (p Position) compare(q Position) int {
	return cmp.Or(
		cmp.Compare(p.Set, q.Set),
		cmp.Compare(p.File, q.File),
		cmp.Compare(p.Line, q.Line),
		cmp.Compare(p.Column, q.Column),
	)
}

// A Fault is one thing that is wrong.
type Fault struct {
	Position
	// Path is the field, from the root of the document: "nics.eth0.rings.rx". It is
	// empty for a fault of the document itself.
	Path string `json:"path,omitempty"`
	// Text says what is wrong, as the end of a sentence that starts with the path.
	Text string `json:"text"`
	// Suggestion is what was probably meant, or empty.
	Suggestion string `json:"suggestion,omitempty"`
}

// String returns the fault in one line: file:line:col: path: text (did you mean "x"?).
func (f Fault) String() string {
	var b strings.Builder
	for _, part := range []string{f.Position.String(), f.Path} {
		if part != "" {
			b.WriteString(part + ": ")
		}
	}
	b.WriteString(f.Text)
	if f.Suggestion != "" {
		b.WriteString(" (did you mean " + strconv.Quote(f.Suggestion) + "?)")
	}
	return b.String()
}

func (f Fault) compare(g Fault) int {
	return cmp.Or(
		f.Position.compare(g.Position),
		cmp.Compare(f.Path, g.Path),
		cmp.Compare(f.Text, g.Text),
		cmp.Compare(f.Suggestion, g.Suggestion),
	)
}

// A List is an error that holds every fault that was found.
type List []Fault

// Error returns the faults, one per line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, f := range l {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Err returns the faults sorted by position and without repetitions, or nil if there
// are none.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	sorted := slices.Clone(l)
	slices.SortFunc(sorted, Fault.compare)
	return slices.Compact(sorted)
}

// And returns l with those of the later faults that l does not explain already. A
// later fault is taken for a consequence when its field has a fault in l or is part of
// one that has: a ring whose size could not be read must not also be called too small.
func (l List) And(later List) List {
	all := slices.Clone(l)
	for _, f := range later {
		if !slices.ContainsFunc(l, func(cause Fault) bool { return within(f.Path, cause.Path) }) {
			all = append(all, f)
		}
	}
	return all
}

// within reports whether a path is that of a field or lies below it. No field is meant
// by an empty path.
func within(path, field string) bool {
	rest, ok := strings.CutPrefix(path, field)
	return ok && field != "" && (rest == "" || rest[0] == '.')
}
