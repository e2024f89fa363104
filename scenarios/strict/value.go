package strict

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"napisim/scenarios/faults"
)

// Check returns what the tags of T forbid in a value that did not come from Decode:
// missing fields, values out of range, unknown words. The faults know paths, no
// positions.
func Check[T any](value T) faults.List {
	c := checker{}
	c.value(shape{typ: reflect.TypeFor[T]()}, reflect.ValueOf(value), "")
	return c.faults
}

// A checker collects what a walk over a value finds.
type checker struct {
	faults faults.List
}

func (c *checker) fault(path, format string, args ...any) {
	c.faults = append(c.faults, faults.Fault{Path: path, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) value(s shape, v reflect.Value, path string) {
	switch s.form() {
	case formStruct:
		c.structure(s, v, path)
	case formMap:
		for _, key := range sortedKeys(v) {
			if !plainName.MatchString(key) {
				c.fault(join(path, key), "is not a name: use letters, digits, '-' and '_'")
			}
			c.value(s.element(), v.MapIndex(reflect.ValueOf(key).Convert(s.typ.Key())), join(path, key))
		}
	case formList, formArray:
		element := s.element()
		for i := range v.Len() {
			c.value(element, v.Index(i), join(path, strconv.Itoa(i)))
		}
	default:
		c.scalar(s, v, path)
	}
}

func (c *checker) structure(s shape, v reflect.Value, path string) {
	kind, given := kindOf(v), 0
	for _, f := range s.fields() {
		x, at := v.Field(f.index), join(path, f.key)
		switch {
		case !f.means(kind):
			if !x.IsZero() {
				c.fault(at, "has no meaning for kind %s", kind)
			}
		case f.is("required") && empty(x):
			c.fault(at, "is missing: expects %s", f.wants())
		case s.stands(f, x):
			given++
			c.value(f.shape, x, at)
		}
	}
	if s.is("oneof") && given != 1 {
		c.fault(path, "needs one of %s", strings.Join(s.keys(), ", "))
	}
}

func (c *checker) scalar(s shape, v reflect.Value, path string) {
	if values := s.values(); values != nil && !slices.Contains(values, written(v)) {
		c.faults = append(c.faults, faults.Fault{
			Path:       path,
			Text:       fmt.Sprintf("%q is not %s", written(v), s.wants()),
			Suggestion: faults.Nearest(written(v), values),
		})
		return
	}
	if f := s.outside(v); f != nil {
		f.Path = path
		c.faults = append(c.faults, *f)
	}
}

// stands reports whether a field of a struct has a value: a zero without default means
// that the document did not give it.
func (s shape) stands(f field, v reflect.Value) bool {
	if !v.IsZero() || s.is("oneof") {
		return !v.IsZero()
	}
	return f.tag.Get("default") != "" || f.tag.Get("derived") != "" || f.is("required") || f.form() == formStruct && !f.is("oneof")
}

// empty reports whether a required field was left out.
func empty(v reflect.Value) bool {
	if v.Kind() == reflect.Map {
		return v.Len() == 0
	}
	return v.Kind() == reflect.String && v.IsZero() || v.Kind() == reflect.Struct && v.IsZero()
}

// sortedKeys returns the keys of a map of names in order.
func sortedKeys(v reflect.Value) []string {
	var keys []string
	for _, key := range v.MapKeys() {
		keys = append(keys, key.String())
	}
	slices.Sort(keys)
	return keys
}

// Tree returns the document that says what a value says, with every default written
// out: fields in the order of their declaration, entries of maps in the order of their
// names, quantities in their canonical text.
func Tree[T any](value T) *Node {
	return tree(shape{typ: reflect.TypeFor[T]()}, reflect.ValueOf(value))
}

func tree(s shape, v reflect.Value) *Node {
	switch s.form() {
	case formStruct:
		m := &Node{kind: kindMapping}
		kind := kindOf(v)
		for _, f := range s.fields() {
			if x := v.Field(f.index); f.means(kind) && s.stands(f, x) {
				m.add(f.key, tree(f.shape, x))
			}
		}
		return m
	case formMap:
		m := &Node{kind: kindMapping}
		for _, key := range sortedKeys(v) {
			m.add(key, tree(s.element(), v.MapIndex(reflect.ValueOf(key).Convert(s.typ.Key()))))
		}
		return m
	case formList, formArray:
		l := &Node{kind: kindList}
		for i := range v.Len() {
			l.items = append(l.items, tree(s.element(), v.Index(i)))
		}
		return l
	}
	return &Node{kind: s.plain(), text: written(v)}
}

// add appends an entry to a mapping that is being built. One that says nothing is left
// out, so that a struct of absent fields is absent itself.
func (n *Node) add(key string, value *Node) {
	if value.kind == kindMapping && len(value.entries) == 0 {
		return
	}
	n.entries = append(n.entries, entry{key: key, value: value})
}

// plain returns what YAML takes a written value of the shape for.
func (s shape) plain() kind {
	switch s.form() {
	case formInt, formUint:
		return kindInteger
	case formFloat:
		return kindFloat
	}
	return kindText
}
