package strict

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"napisim/model/unit"
)

// A shape is what a value has to look like: a Go type and the tags of the field that
// holds it. An element of a list or a map has no tags.
type shape struct {
	typ reflect.Type
	tag reflect.StructTag
}

// A field is one key that a struct declares.
type field struct {
	shape
	key   string // in YAML
	name  string // in Go
	index int
}

// A form is how a shape is written.
type form uint8

const (
	formStruct form = iota
	formMap         // by name: any keys
	formList
	formArray // a list of fixed length
	formUnit  // a scalar that reads itself
	formString
	formBool
	formInt
	formUint
	formFloat
)

// unmarshaler and marshaler are what a type needs to read and write itself.
var (
	unmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	marshaler   = reflect.TypeFor[encoding.TextMarshaler]()
)

// form returns how the shape is written. A type that no document can have is a mistake
// of the program.
func (s shape) form() form {
	if reflect.PointerTo(s.typ).Implements(unmarshaler) && s.typ.Implements(marshaler) {
		return formUnit
	}
	switch s.typ.Kind() {
	case reflect.Struct:
		return formStruct
	case reflect.Map:
		return formMap
	case reflect.Slice:
		return formList
	case reflect.Array:
		return formArray
	case reflect.String:
		return formString
	case reflect.Bool:
		return formBool
	case reflect.Int, reflect.Int64:
		return formInt
	case reflect.Uint64:
		return formUint
	case reflect.Float64:
		return formFloat
	}
	panic("strict: no document has a value of type " + s.typ.String())
}

// scalar reports whether the shape is a single value.
func (s shape) scalar() bool { return s.form() >= formUnit }

// is reports whether a tag says yes.
func (s shape) is(key string) bool { return s.tag.Get(key) == "true" }

// fields returns the keys of a struct in their order.
func (s shape) fields() []field {
	var all []field
	for i := range s.typ.NumField() {
		f := s.typ.Field(i)
		if key := f.Tag.Get("yaml"); key != "" {
			all = append(all, field{shape: shape{f.Type, f.Tag}, key: key, name: f.Name, index: i})
		}
	}
	return all
}

// keys returns the names of the fields of a struct.
func (s shape) keys() []string {
	var keys []string
	for _, f := range s.fields() {
		keys = append(keys, f.key)
	}
	return keys
}

// field returns the field with a key.
func (s shape) field(key string) (field, bool) {
	all := s.fields()
	i := slices.IndexFunc(all, func(f field) bool { return f.key == key })
	if i < 0 {
		return field{}, false
	}
	return all[i], true
}

// element returns the shape of the elements of a map, a list or an array. The range and
// the bare unit of an array are meant for each of its values.
func (s shape) element() shape {
	e := shape{typ: s.typ.Elem()}
	if s.form() == formArray {
		for _, key := range []string{"min", "max", "why", "bare"} {
			e.tag += reflect.StructTag(fmt.Sprintf("%s:%q ", key, s.tag.Get(key)))
		}
	}
	return e
}

// kinds returns the values of the sibling "kind" for which the field has a meaning,
// nil for all.
func (f field) kinds() []string {
	if f.tag.Get("for") == "" {
		return nil
	}
	return strings.Split(f.tag.Get("for"), ",")
}

// means reports whether the field has a meaning beside the given kind.
func (f field) means(kind string) bool {
	kinds := f.kinds()
	return kinds == nil || slices.Contains(kinds, kind)
}

// kindOf returns the value of the field "kind" of a struct, "" if it has none.
func kindOf(v reflect.Value) string {
	if f, ok := (shape{typ: v.Type()}).field("kind"); ok && v.Field(f.index).Kind() == reflect.String {
		return v.Field(f.index).String()
	}
	return ""
}

// values returns the texts that an enumerated type takes, nil for every other type.
func (s shape) values() []string {
	if e, ok := reflect.TypeAssert[interface{ Values() []string }](reflect.Zero(s.typ)); ok {
		return e.Values()
	}
	return nil
}

// grammar returns how a quantity is written; ok is false for every other type.
func (s shape) grammar() (g unit.Grammar, ok bool) {
	if q, is := reflect.TypeAssert[interface{ Grammar() unit.Grammar }](reflect.Zero(s.typ)); is {
		return q.Grammar(), true
	}
	return unit.Grammar{}, false
}

// wants says what the shape accepts, for messages.
func (s shape) wants() string {
	if values := s.values(); values != nil {
		return "one of " + strings.Join(values, ", ")
	}
	if g, ok := s.grammar(); ok {
		return "a " + g.Quantity + " (for example " + g.Example + ")"
	}
	return s.noun()
}

// noun names the form of the shape.
func (s shape) noun() string {
	return [...]string{"a mapping", "a mapping", "a list", "a list", "a value", "text", "on or off", "a whole number", "a whole number", "a number"}[s.form()]
}

// expand writes out the short forms of a value: a single value for a mapping with one
// field, and a text with blanks for a list of fixed length, as sysctl prints it.
func (s shape) expand(n *Node) *Node {
	if n == nil || !n.scalar() {
		return n
	}
	switch s.form() {
	case formStruct:
		if key := s.tag.Get("shorthand"); key != "" {
			return &Node{Pos: n.Pos, kind: kindMapping, entries: []entry{{key, n.Pos, n}}}
		}
	case formArray:
		m := &Node{Pos: n.Pos, kind: kindList}
		for word := range strings.FieldsSeq(n.text) {
			m.items = append(m.items, &Node{Pos: n.Pos, kind: kindUntyped, text: word})
		}
		return m
	}
	return n
}

// Expand writes out the short forms of the fields of a document of type T, so that a
// reader finds a mapping where the type has one.
func Expand[T any](n *Node) *Node {
	s := shape{typ: reflect.TypeFor[T]()}
	for _, e := range n.entries {
		if f, ok := s.field(e.key); ok {
			e.value = f.expand(e.value)
			n = n.with(e)
		}
	}
	return n
}
