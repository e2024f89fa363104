package strict

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"napisim/scenarios/faults"
)

// Positions says where each value that a document gives stands, by path. A path that
// is not there was filled in with its default.
type Positions map[string]faults.Position

// Has reports whether the document gives a value for a path.
func (p Positions) Has(path string) bool {
	_, ok := p[path]
	return ok
}

// Locate fills in the positions of faults that know only their path. What the document
// does not give is placed at the nearest part around it that it does.
func (p Positions) Locate(found faults.List) faults.List {
	located := make(faults.List, len(found))
	for i, f := range found {
		located[i] = f
		located[i].Position = p.near(f.Path)
	}
	return located
}

func (p Positions) near(path string) faults.Position {
	for path != "" {
		if pos, ok := p[path]; ok {
			return pos
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return p[""]
}

// Decode reads a document into a T, whose defaults it fills in, and returns where each
// value stands together with every fault of form, range and spelling. The value is as
// complete as the faults allow.
func Decode[T any](n *Node) (T, Positions, faults.List) {
	var into T
	d := decoder{positions: Positions{}}
	d.value(shape{typ: reflect.TypeFor[T]()}, n, reflect.ValueOf(&into).Elem(), "")
	return into, d.positions, d.faults
}

// A decoder collects what a walk finds.
type decoder struct {
	positions Positions
	faults    faults.List
}

func (d *decoder) fault(pos faults.Position, path, format string, args ...any) *faults.Fault {
	d.faults = append(d.faults, faults.Fault{Position: pos, Path: path, Text: fmt.Sprintf(format, args...)})
	return &d.faults[len(d.faults)-1]
}

// value decodes one node into v, which has the type of s.
func (d *decoder) value(s shape, n *Node, v reflect.Value, path string) {
	d.positions[path] = n.Pos
	n = s.expand(n)
	if n.kind == kindNull {
		d.fault(n.Pos, path, "has no value: expects %s", s.wants())
		return
	}
	fits := n.scalar()
	switch s.form() {
	case formStruct, formMap:
		fits = n.kind == kindMapping
	case formList, formArray:
		fits = n.kind == kindList
	}
	if !fits {
		d.fault(n.Pos, path, "expects %s, found %v", s.wants(), n.kind)
		return
	}
	switch s.form() {
	case formStruct:
		d.structure(s, n, v, path)
	case formMap:
		d.byName(s, n, v, path)
	case formList, formArray:
		d.list(s, n, v, path)
	default:
		d.scalar(s, n, v, path)
	}
}

// structure decodes a mapping into a struct, first what is given, then what is not.
func (d *decoder) structure(s shape, n *Node, v reflect.Value, path string) {
	known := s.keys()
	for _, e := range n.entries {
		f, ok := s.field(e.key)
		if !ok {
			d.unknown(s, e, path, known)
			continue
		}
		d.value(f.shape, e.value, v.Field(f.index), join(path, e.key))
	}
	if s.is("oneof") {
		d.choice(n, path, known)
		return
	}
	kind := kindOf(v)
	for _, f := range s.fields() {
		given := n.find(f.key)
		switch {
		case given < 0 && f.means(kind):
			d.absent(f, n, v.Field(f.index), join(path, f.key))
		case given >= 0 && kind != "" && !f.means(kind):
			d.fault(n.entries[given].keyPos, join(path, f.key), "has no meaning for kind %s", kind)
		}
	}
}

// absent gives a field that the document leaves out its default.
func (d *decoder) absent(f field, n *Node, v reflect.Value, path string) {
	text := f.tag.Get("default")
	switch {
	case text != "":
		quiet := decoder{positions: Positions{}}
		quiet.value(f.shape, &Node{kind: kindUntyped, text: text}, v, path)
		if len(quiet.faults) > 0 {
			panic("strict: bad default: " + quiet.faults.Error())
		}
	case f.is("required"):
		d.fault(n.Pos, path, "is missing: expects %s", f.wants())
	case f.form() == formStruct && !f.is("oneof"):
		// Its own fields may have defaults, or be required. It has no position.
		d.value(f.shape, &Node{Pos: n.Pos, kind: kindMapping}, v, path)
		delete(d.positions, path)
	}
}

// choice checks that a mapping gives exactly one of the known fields.
func (d *decoder) choice(n *Node, path string, known []string) {
	var given []entry
	for _, e := range n.entries {
		if slices.Contains(known, e.key) {
			given = append(given, e)
		}
	}
	switch {
	case len(n.entries) == 0:
		d.fault(n.Pos, path, "needs one of %s", strings.Join(known, ", "))
	case len(given) > 1:
		d.fault(given[1].keyPos, path, "has both %s and %s: give only one of %s",
			given[0].key, given[1].key, strings.Join(known, ", "))
	}
}

// unknown reports a key that the struct does not declare.
func (d *decoder) unknown(s shape, e entry, path string, known []string) {
	f := d.fault(e.keyPos, join(path, e.key), "unknown field")
	if f.Suggestion = faults.Nearest(e.key, known); f.Suggestion == "" {
		f.Suggestion = s.deeper(e.key)
	}
}

// deeper returns the path from a struct to the only place below it with exactly this
// key, or "": a right name on the wrong level is a common slip.
func (s shape) deeper(key string) string {
	found := ""
	for _, f := range s.fields() {
		if f.form() != formStruct {
			continue
		}
		below := f.deeper(key)
		if _, ok := f.field(key); ok {
			below = key
		}
		if below != "" && found != "" {
			return ""
		}
		if below != "" {
			found = join(f.key, below)
		}
	}
	return found
}

// byName decodes a mapping with free keys into a map.
func (d *decoder) byName(s shape, n *Node, v reflect.Value, path string) {
	if len(n.entries) == 0 && s.is("required") {
		d.fault(n.Pos, path, "needs at least one entry")
	}
	v.Set(reflect.MakeMapWithSize(s.typ, len(n.entries)))
	for _, e := range n.entries {
		if !plainName.MatchString(e.key) {
			d.fault(e.keyPos, join(path, e.key), "is not a name: use letters, digits, '-' and '_'")
			continue
		}
		element := reflect.New(s.typ.Elem()).Elem()
		d.value(s.element(), e.value, element, join(path, e.key))
		v.SetMapIndex(reflect.ValueOf(e.key).Convert(s.typ.Key()), element)
	}
}

// plainName is what a key may look like that is part of a path: a dot would end it.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// list decodes a list into a slice or an array.
func (d *decoder) list(s shape, n *Node, v reflect.Value, path string) {
	if s.form() == formArray {
		if len(n.items) != s.typ.Len() {
			d.fault(n.Pos, path, "needs %d values, found %d", s.typ.Len(), len(n.items))
			return
		}
	} else {
		v.Set(reflect.MakeSlice(s.typ, len(n.items), len(n.items)))
	}
	element := s.element()
	for i, item := range n.items {
		d.value(element, item, v.Index(i), join(path, strconv.Itoa(i)))
	}
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
