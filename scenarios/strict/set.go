package strict

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"napisim/scenarios/faults"
)

// Set applies an assignment of the command line, "path=value", to a document of type T
// and returns the new document. Number is the assignment's place in the order, for
// positions. The parts of a path are joined by dots; a key with dots of its own, such
// as net.core.netdev_budget, is found because the longest key that fits is taken. An
// element of a list is named by its index or by its field "name". The value null takes
// a field away. On a fault the document is returned as it was.
func Set[T any](root *Node, number int, assignment string) (*Node, faults.List) {
	s := setter{pos: faults.Position{Set: number}}
	path, value, ok := strings.Cut(assignment, "=")
	switch {
	case !ok:
		s.fault("", "%q is not of the form path=value", assignment)
	case path == "":
		s.fault("", "%q has no path before its '='", assignment)
	case strings.TrimSpace(value) == "":
		s.fault(path, "has no value; null takes a field away")
	default:
		s.value = value
		if changed := s.assign(shape{typ: reflect.TypeFor[T]()}, root, place{rest: path}); len(s.faults) == 0 {
			return changed, nil
		}
	}
	return root, s.faults
}

// A setter carries one assignment down a document.
type setter struct {
	pos    faults.Position
	value  string
	faults faults.List
}

// A place is a point on the way down.
type place struct {
	done string // the path to here
	rest string // the path from here
	// partial says that the document does not show all that is there yet, because this
	// part of it names a base that is still to be merged under it.
	partial bool
}

func (s *setter) fault(path, format string, args ...any) *faults.Fault {
	s.faults = append(s.faults, faults.Fault{Position: s.pos, Path: path, Text: fmt.Sprintf(format, args...)})
	return &s.faults[len(s.faults)-1]
}

// assign returns what stands at a place after the assignment, nil for nothing.
func (s *setter) assign(sh shape, n *Node, at place) *Node {
	if at.rest == "" {
		return s.parse(sh, at.done)
	}
	n = sh.expand(n)
	switch sh.form() {
	case formStruct:
		return s.structure(sh, n, at)
	case formMap:
		return s.byName(sh, n, at)
	case formList, formArray:
		return s.list(sh, n, at)
	}
	s.fault(at.done, "is a single value and has no %q", at.rest)
	return n
}

func (s *setter) structure(sh shape, n *Node, at place) *Node {
	key, rest := match(at.rest, sh.keys())
	if key == "" {
		first, _, _ := strings.Cut(at.rest, ".")
		f := s.fault(join(at.done, at.rest), "unknown field")
		if f.Suggestion = faults.Nearest(first, sh.keys()); f.Suggestion == "" {
			f.Suggestion = faults.Nearest(at.rest, sh.keys())
		}
		return n
	}
	f, _ := sh.field(key)
	if f.tag.Get("set") == "no" {
		s.fault(join(at.done, key), "cannot be set from the command line: it is read before")
		return n
	}
	if sh.is("oneof") && n.find(key) < 0 {
		n = nil // another choice takes the place of the first
	}
	below := place{done: join(at.done, key), rest: rest, partial: n.find("base") >= 0}
	return s.put(n, key, s.assign(f.shape, n.Get(key), below))
}

func (s *setter) byName(sh shape, n *Node, at place) *Node {
	key, rest := match(at.rest, n.keys())
	if key == "" {
		key, rest, _ = strings.Cut(at.rest, ".")
		// A new entry has to be given whole; a part of one is more likely a slip.
		if rest != "" && !at.partial {
			f := s.fault(join(at.done, key), "there is no entry of this name")
			f.Suggestion = faults.Nearest(key, n.keys())
			return n
		}
	}
	return s.put(n, key, s.assign(sh.element(), n.Get(key), place{done: join(at.done, key), rest: rest}))
}

func (s *setter) list(sh shape, n *Node, at place) *Node {
	word, rest, _ := strings.Cut(at.rest, ".")
	i := -1
	var names []string
	if n != nil {
		for j, item := range n.items {
			name, _ := item.Get("name").Text()
			if names = append(names, name); name == word && word != "" || strconv.Itoa(j) == word {
				i = j
			}
		}
	}
	if i < 0 {
		f := s.fault(join(at.done, word), "there is no such element: the list has %d, counted from 0", len(names))
		f.Suggestion = faults.Nearest(word, names)
		return n
	}
	changed := s.assign(sh.element(), n.items[i], place{done: join(at.done, word), rest: rest})
	if changed == nil {
		s.fault(join(at.done, word), "an element cannot be taken away: give the whole list")
		return n
	}
	l := &Node{Pos: n.Pos, kind: kindList, items: append([]*Node(nil), n.items...)}
	l.items[i] = changed
	return l
}

// put returns a mapping with a value under a key, or without the key for no value.
func (s *setter) put(n *Node, key string, value *Node) *Node {
	if value == nil {
		if n = n.Without(key); n != nil {
			m := *n
			m.Pos = s.pos // if the key is missed, this is why
			n = &m
		}
		return n
	}
	return n.with(entry{key: key, keyPos: s.pos, value: value})
}

// match returns the longest key that a path starts with, and what follows it.
func match(path string, keys []string) (key, rest string) {
	for _, k := range keys {
		if tail, ok := strings.CutPrefix(path, k); ok && len(k) > len(key) && (tail == "" || tail[0] == '.') {
			key, rest = k, strings.TrimPrefix(tail, ".")
		}
	}
	return key, rest
}

// parse returns the node for the value, nil for null. Where a mapping or a list is
// expected the value is YAML, such as {cbr: 2Mpps}; a single value is taken as it is.
func (s *setter) parse(sh shape, path string) *Node {
	if s.value == "null" || s.value == "~" {
		return nil
	}
	if sh.scalar() {
		return &Node{Pos: s.pos, kind: kindUntyped, text: s.value}
	}
	n, found := Parse("", []byte(s.value))
	for _, f := range found {
		s.fault(path, "%s", f.Text)
	}
	if n == nil {
		return nil
	}
	n = n.moved(s.pos)
	if n.scalar() {
		n.kind = kindUntyped
	}
	return n
}

// moved returns the node as if all of it stood at one position.
func (n *Node) moved(pos faults.Position) *Node {
	m := *n
	m.Pos = pos
	m.items, m.entries = nil, nil
	for _, item := range n.items {
		m.items = append(m.items, item.moved(pos))
	}
	for _, e := range n.entries {
		m.entries = append(m.entries, entry{e.key, pos, e.value.moved(pos)})
	}
	return &m
}
