package strict

import (
	"slices"

	"napisim/scenarios/faults"
)

// A Node is one value of a document together with its place. Nodes do not change
// once they are built: merging and setting build new ones that share what stays.
type Node struct {
	// Pos is where the value stands; of a mapping or list under a key, where the key does.
	Pos faults.Position

	kind    kind
	text    string  // of a scalar, as written
	items   []*Node // of a list
	entries []entry // of a mapping, in order; keys are unique
}

// An entry is a key of a mapping with its value.
type entry struct {
	key    string
	keyPos faults.Position
	value  *Node
}

// A kind is what YAML takes a value for.
type kind uint8

const (
	kindNull kind = iota
	kindText
	kindInteger
	kindFloat
	kindBool
	kindUntyped // a scalar from the command line, which has no quotes to tell 1 from "1"
	kindList
	kindMapping
)

// String returns the kind with its article, for messages.
func (k kind) String() string {
	return [...]string{"nothing", "text", "a whole number", "a number", "true or false", "a value", "a list", "a mapping"}[k]
}

// scalar reports whether the node is a single value.
func (n *Node) scalar() bool { return n.kind != kindNull && n.kind < kindList }

// IsMapping reports whether the node is a mapping.
func (n *Node) IsMapping() bool { return n.kind == kindMapping }

// Text returns the text of a single value; ok is false for every other node.
func (n *Node) Text() (text string, ok bool) {
	if n == nil || !n.scalar() {
		return "", false
	}
	return n.text, true
}

// Get returns the value under a key of a mapping, or nil.
func (n *Node) Get(key string) *Node {
	if i := n.find(key); i >= 0 {
		return n.entries[i].value
	}
	return nil
}

func (n *Node) find(key string) int {
	if n == nil {
		return -1
	}
	return slices.IndexFunc(n.entries, func(e entry) bool { return e.key == key })
}

// keys returns the keys of a mapping in their order.
func (n *Node) keys() []string {
	if n == nil {
		return nil
	}
	keys := make([]string, len(n.entries))
	for i, e := range n.entries {
		keys[i] = e.key
	}
	return keys
}

// Under returns a mapping with one entry.
func Under(key string, value *Node) *Node { return (*Node)(nil).With(key, value) }

// With returns a mapping like n, or a new one if n is nil or no mapping, with a value
// under a key. A key that exists keeps its place in the order.
func (n *Node) With(key string, value *Node) *Node {
	return n.with(entry{key: key, keyPos: value.Pos, value: value})
}

func (n *Node) with(e entry) *Node {
	m := &Node{Pos: e.keyPos, kind: kindMapping}
	if n != nil {
		m.Pos = n.Pos
		m.entries = slices.Clone(n.entries)
	}
	if i := m.find(e.key); i >= 0 {
		m.entries[i] = e
	} else {
		m.entries = append(m.entries, e)
	}
	return m
}

// Without returns a mapping like n that lacks a key.
func (n *Node) Without(key string) *Node {
	i := n.find(key)
	if i < 0 {
		return n
	}
	m := *n
	m.entries = slices.Delete(slices.Clone(n.entries), i, i+1)
	return &m
}
