package strict

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"napisim/scenarios/faults"
)

// AnyName stands in a path for the name of an entry.
const AnyName = "<name>"

// A Field describes one field of a document type: what a user may write there and what
// it means. The root of a description is the document itself.
type Field struct {
	Key  string // the last part of the path
	Path string // from the root, with AnyName for free keys
	Doc  string // what the field means
	Type string // what is written there, in words

	Form    Form
	Pattern string   // of a quantity: a regular expression for its text
	Units   []string // of a quantity: what may follow the number
	Example string   // of a quantity
	Counts  string   // of a plain number: what it counts
	Bare    string   // the unit of a number without one, if that is allowed
	Values  []string // of an enumeration
	Len     int      // of a list of fixed length

	Default  string // as it is written
	Derived  string // what an absent field becomes, in words
	Min, Max string
	Why      string // the reason for the range
	Required bool
	Kinds    []string // the values of the sibling "kind" that give the field a meaning
	Kernel   string   // what the setting is called in Linux

	Shorthand string // of a mapping: the field that a single value stands for
	OneOf     bool   // of a mapping: exactly one field is given
	Fixed     bool   // not to be set from the command line

	Fields  []Field // of a mapping
	Element *Field  // of a mapping with free keys, or of a list
}

// A Form is the way in which a field is written.
type Form string

// The forms of fields.
const (
	Mapping  Form = "mapping"
	Names    Form = "names" // a mapping with free keys
	List     Form = "list"
	Quantity Form = "quantity"
	Text     Form = "text"
	Switch   Form = "switch"
	Integer  Form = "integer"
	Number   Form = "number"
)

// Describe returns the description of the document type T. Doc returns the comment of a
// field, given the names of its struct and of itself in Go.
func Describe[T any](doc func(owner, field string) string) Field {
	return describe(shape{typ: reflect.TypeFor[T]()}, "", doc)
}

func describe(s shape, path string, doc func(owner, field string) string) Field {
	f := Field{
		Key:       path[strings.LastIndexByte(path, '.')+1:],
		Path:      path,
		Type:      s.noun(),
		Counts:    s.tag.Get("unit"),
		Bare:      s.tag.Get("bare"),
		Values:    s.values(),
		Default:   s.tag.Get("default"),
		Derived:   s.tag.Get("derived"),
		Min:       s.tag.Get("min"),
		Max:       s.tag.Get("max"),
		Why:       s.tag.Get("why"),
		Required:  s.is("required"),
		Kernel:    s.tag.Get("kernel"),
		Shorthand: s.tag.Get("shorthand"),
		OneOf:     s.is("oneof"),
		Fixed:     s.tag.Get("set") == "no",
		Form: [...]Form{
			Mapping, Names, List, List, Quantity, Text, Switch, Integer, Integer, Number,
		}[s.form()],
	}
	if f.Values != nil {
		f.Type = "one of the values"
	}
	if g, ok := s.grammar(); ok {
		f.Type, f.Pattern, f.Units, f.Example = g.Quantity, g.Pattern(), g.Units(), g.Example
	}
	switch s.form() {
	case formStruct:
		for _, sub := range s.fields() {
			d := describe(sub.shape, join(path, sub.key), doc)
			d.Key, d.Kinds, d.Doc = sub.key, sub.kinds(), doc(s.typ.Name(), sub.name)
			f.Fields = append(f.Fields, d)
		}
	case formMap:
		element := describe(s.element(), join(path, AnyName), doc)
		f.Element = &element
	case formList, formArray:
		if s.form() == formArray {
			f.Len = s.typ.Len()
		}
		d := describe(s.element(), join(path, "0"), doc)
		f.Element = &d
	}
	return f
}

// Find returns the field at a path below f. Names and indices of elements may be
// written as they are, as AnyName, or left out: nics.eth0.mtu and nics.mtu are the same
// field. The fault says which part is unknown and what was probably meant.
func (f Field) Find(path string) (Field, *faults.Fault) {
	if path == "" {
		return f, nil
	}
	key, rest := match(path, f.keys())
	if key != "" {
		i := slices.IndexFunc(f.Fields, func(sub Field) bool { return sub.Key == key })
		return f.Fields[i].Find(rest)
	}
	first, rest, _ := strings.Cut(path, ".")
	if f.Element != nil && (f.Form != List || first == AnyName || isIndex(first)) {
		if key, _ := match(path, f.Element.keys()); key != "" {
			return f.Element.Find(path) // the name is left out
		}
		return f.Element.Find(rest)
	}
	if f.Element != nil {
		return f.Element.Find(path)
	}
	unknown := &faults.Fault{Path: join(f.Path, path), Text: "unknown field"}
	if unknown.Suggestion = faults.Nearest(first, f.keys()); unknown.Suggestion == "" {
		unknown.Suggestion = faults.Nearest(path, f.keys())
	}
	return Field{}, unknown
}

func isIndex(word string) bool { return strings.Trim(word, "0123456789") == "" }

func (f Field) keys() []string {
	keys := make([]string, len(f.Fields))
	for i, sub := range f.Fields {
		keys[i] = sub.Key
	}
	return keys
}

// Settable returns the paths below f that an assignment of the command line may name,
// in the order of the declaration: every single value, every list, and every mapping
// that has a short form or is given whole.
func (f Field) Settable() []string {
	if f.Fixed {
		return nil
	}
	var paths []string
	if f.Path != "" && (f.Form != Mapping || f.Shorthand != "" || f.OneOf) && (f.Form != Names) {
		paths = append(paths, f.Path)
	}
	for _, sub := range f.Fields {
		paths = append(paths, sub.Settable()...)
	}
	if f.Form == Names {
		paths = append(paths, f.Element.Settable()...)
	}
	return paths
}

// Explain returns the description as a few lines of text.
func (f Field) Explain() string {
	var b strings.Builder
	title := f.Type
	if f.Len > 0 {
		title = fmt.Sprintf("a list of %d values, each a %s", f.Len, f.Element.Type)
	}
	fmt.Fprintf(&b, "%s: %s\n", either(f.Path, "the whole file"), title)
	hang := margin
	for line := range strings.Lines(f.Doc) {
		wrap(&b, margin, hang, line)
		hang = margin + margin // a list of values, below what they are values of
	}
	row := func(name, value string) {
		if value != "" {
			wrap(&b, fmt.Sprintf("%s%-10s ", margin, name), fmt.Sprintf("%s%-10s ", margin, ""), value)
		}
	}
	quantity := f
	if f.Len > 0 {
		quantity = *f.Element
	}
	row("default", either(f.Default, f.Derived))
	if f.Required {
		row("default", "none: the field must be given")
	}
	row("range", quantity.limits())
	row("values", strings.Join(f.Values, ", "))
	row("units", strings.Join(quantity.Units, ", "))
	if quantity.Bare != "" {
		row("", "a number without unit counts "+quantity.Bare)
	}
	row("counts", f.Counts)
	row("only for", strings.Join(f.Kinds, ", "))
	row("in Linux", f.Kernel)
	if f.Shorthand != "" {
		row("short", "a single value stands for "+f.Shorthand)
	}
	if f.OneOf {
		row("fields", "exactly one of "+strings.Join(f.keys(), ", "))
	} else {
		row("fields", strings.Join(f.keys(), ", "))
	}
	if f.Form == Names || f.Form == List && f.Len == 0 {
		row("fields", strings.Join(f.Element.keys(), ", ")+" of each entry")
	}
	return b.String()
}

// margin is what stands before every line below the title.
const margin = "  "

// wrap writes a line of prose behind a label or margin, and goes on behind another one.
func wrap(b *strings.Builder, first, others, line string) {
	const width = 88
	b.WriteString(first)
	column, start := len(first), true
	for word := range strings.FieldsSeq(line) {
		switch {
		case start:
		case column+1+len(word) > width:
			b.WriteString("\n" + others)
			column = len(others)
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column, start = column+len(word), false
	}
	b.WriteString("\n")
}

// limits returns the range in words.
func (f Field) limits() string {
	switch {
	case f.Min != "" && f.Max != "":
		return f.Min + " to " + f.Max
	case f.Min != "":
		return "from " + f.Min
	case f.Max != "":
		return "to " + f.Max
	}
	return ""
}

// Replace returns the description with the field at a path replaced by what change
// makes of it. Keys of mappings only; a path that does not exist changes nothing.
func (f Field) Replace(path string, change func(Field) Field) Field {
	if path == "" {
		return change(f)
	}
	key, rest := match(path, f.keys())
	f.Fields = slices.Clone(f.Fields)
	for i, sub := range f.Fields {
		if sub.Key == key {
			f.Fields[i] = sub.Replace(rest, change)
		}
	}
	return f
}
