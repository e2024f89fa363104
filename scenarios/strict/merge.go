package strict

import (
	"reflect"
	"slices"
)

// Merge lays a document over its base and returns what both say together, for a value
// of type T. Mappings merge key by key, everything else replaces what the base has; a
// null takes an entry of the base away. Fields that describe one document only
// (inherit:"no") are not taken over. Either node may be nil.
func Merge[T any](base, over *Node) *Node {
	return merge(shape{typ: reflect.TypeFor[T]()}, base, over)
}

func merge(s shape, base, over *Node) *Node {
	switch {
	case over == nil || over.kind == kindMapping && len(over.entries) == 0 && base != nil:
		return s.heritage(s.expand(base))
	case base == nil:
		return over
	case over.kind != kindMapping || s.form() != formStruct && s.form() != formMap:
		return over
	}
	base = s.heritage(s.expand(base))
	if base.kind != kindMapping || s.is("oneof") && !sameChoice(base, over) {
		return over
	}
	m := &Node{Pos: over.Pos, kind: kindMapping, entries: slices.Clone(base.entries)}
	index := map[string]int{}
	for i, e := range base.entries {
		index[e.key] = i
	}
	for _, e := range over.entries {
		i, there := index[e.key]
		switch {
		case !there:
			m.entries = append(m.entries, e)
		case e.value.kind == kindNull:
			m.entries[i].value = nil
		default:
			e.value = merge(s.under(e.key), m.entries[i].value, e.value)
			m.entries[i] = e
		}
	}
	m.entries = slices.DeleteFunc(m.entries, func(e entry) bool { return e.value == nil })
	return m
}

// under returns the shape under a key. An unknown key is kept for Decode to report; for
// merging it counts as a value that replaces.
func (s shape) under(key string) shape {
	if s.form() == formMap {
		return s.element()
	}
	if f, ok := s.field(key); ok {
		return f.shape
	}
	return shape{typ: reflect.TypeFor[string]()}
}

// heritage returns what a document takes over from a base.
func (s shape) heritage(base *Node) *Node {
	if base == nil || base.kind != kindMapping || s.form() != formStruct {
		return base
	}
	for _, f := range s.fields() {
		if f.tag.Get("inherit") == "no" {
			base = base.Without(f.key)
		}
	}
	return base
}

// sameChoice reports whether two mappings that each give one of several fields give
// the same one. Otherwise the later choice stands alone.
func sameChoice(a, b *Node) bool {
	return len(a.entries) == 1 && len(b.entries) == 1 && a.entries[0].key == b.entries[0].key
}
