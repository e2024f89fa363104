package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"napisim/scenarios/faults"
)

// maxNodes bounds a document after its aliases are expanded: ten aliases of ten
// aliases of ten lists are three short lines and a million values.
const maxNodes = 100_000

// Parse reads a text that holds exactly one YAML document. File is its name in the
// positions. Anchors, aliases and merge keys are resolved. The node is nil when there
// is nothing to go on with.
func Parse(file string, text []byte) (*Node, faults.List) {
	at := faults.Position{File: file}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, faults.List{{Position: at, Text: "is empty"}}
	} else if err != nil {
		return nil, faults.List{syntax(file, text, err)}
	}
	var next yaml.Node
	if err := decoder.Decode(&next); err == nil {
		at.Line, at.Column = next.Line, next.Column
		return nil, faults.List{{Position: at, Text: "a second YAML document starts here; a file holds one"}}
	} else if !errors.Is(err, io.EOF) {
		return nil, faults.List{syntax(file, text, err)}
	}
	c := converter{file: file, open: map[*yaml.Node]bool{}}
	root := c.convert(document.Content[0], "")
	if c.count > maxNodes {
		return nil, faults.List{{Position: at, Text: fmt.Sprintf("has more than %d values, aliases expanded", maxNodes)}}
	}
	if root.kind == kindNull {
		return nil, append(c.faults, faults.Fault{Position: at, Text: "is empty"})
	}
	return root, c.faults
}

var (
	syntaxError = regexp.MustCompile(`^yaml: (?:line (\d+): )?((?s).*)$`)
	// parserError matches what comes from the parser of yaml.v3 and not from its scanner:
	// one counts lines from 0, the other from 1, and neither names the first.
	parserError = regexp.MustCompile(`^(did not find expected (<|node|'-'|key|',')|found (undefined|duplicate %|incompatible))`)
	// unplaced matches what yaml.v3 knows no line for.
	unplaced = regexp.MustCompile(`UTF-|Unicode|control characters|unknown anchor`)
)

// syntax turns an error of the YAML parser into a fault. It knows lines, not columns.
func syntax(file string, text []byte, err error) faults.Fault {
	at, reason := faults.Position{File: file}, err.Error()
	if m := syntaxError.FindStringSubmatch(reason); m != nil {
		at.Line, _ = strconv.Atoi(m[1]) // no line: 0
		reason = m[2]
	}
	switch {
	case parserError.MatchString(reason):
		at.Line = min(at.Line+1, 1+bytes.Count(text, []byte("\n"))) // the end is a line behind
	case at.Line == 0 && !unplaced.MatchString(reason):
		at.Line = 1
	}
	return faults.Fault{Position: at, Text: "is not YAML: " + reason}
}

// A converter builds Nodes from the nodes of yaml.v3.
type converter struct {
	file   string
	count  int
	open   map[*yaml.Node]bool // anchored nodes whose conversion is under way
	faults faults.List
}

func (c *converter) position(y *yaml.Node) faults.Position {
	return faults.Position{File: c.file, Line: y.Line, Column: y.Column}
}

func (c *converter) fault(y *yaml.Node, path, format string, args ...any) {
	c.faults = append(c.faults, faults.Fault{Position: c.position(y), Path: path, Text: fmt.Sprintf(format, args...)})
}

// convert returns the node for y, which stands at a path. Behind maxNodes it stops
// descending.
func (c *converter) convert(y *yaml.Node, path string) *Node {
	n := &Node{Pos: c.position(y)}
	if c.count++; c.count > maxNodes {
		return n
	}
	switch y.Kind {
	case yaml.AliasNode:
		if c.open[y.Alias] {
			c.fault(y, path, "alias *%s contains itself", y.Value)
			return n
		}
		return c.convert(y.Alias, path)
	case yaml.MappingNode:
		n.kind = kindMapping
		c.open[y] = true
		c.mapping(n, y, path)
		delete(c.open, y)
	case yaml.SequenceNode:
		n.kind = kindList
		c.open[y] = true
		for i, item := range y.Content {
			n.items = append(n.items, c.convert(item, join(path, strconv.Itoa(i))))
		}
		delete(c.open, y)
	default:
		n.kind, n.text = c.scalar(y, path), y.Value
	}
	return n
}

func (c *converter) scalar(y *yaml.Node, path string) kind {
	switch tag := y.ShortTag(); tag {
	case "!!null":
		return kindNull
	case "!!int":
		return kindInteger
	case "!!float":
		return kindFloat
	case "!!bool":
		return kindBool
	case "!!str", "!!timestamp", "!!merge": // the last two only look special
		if y.Style == 0 && plainNumber.MatchString(y.Value) {
			return kindFloat // beyond what yaml.v3 can store, but nobody meant a text
		}
		return kindText
	default:
		c.fault(y, path, "the tag %s has no meaning here", tag)
		return kindText
	}
}

// mapping fills n with the entries of y. What a merge key brings in comes behind the
// entries of the mapping itself, which win.
func (c *converter) mapping(n *Node, y *yaml.Node, path string) {
	seen := map[string]faults.Position{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			c.fault(key, path, "a key must be a single word")
			continue
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		at := join(path, key.Value)
		if first, again := seen[key.Value]; again {
			c.fault(key, at, "duplicate key, first at %d:%d", first.Line, first.Column)
			continue
		}
		e := entry{key: key.Value, keyPos: c.position(key), value: c.convert(value, at)}
		if e.value.kind >= kindList && value.Kind != yaml.AliasNode {
			e.value.Pos = e.keyPos // a block starts on the next line, where nobody would look
		}
		seen[e.key] = e.keyPos
		n.entries = append(n.entries, e)
	}
	for _, y := range merged {
		for _, e := range c.merged(y, path) {
			if _, there := seen[e.key]; !there {
				seen[e.key] = e.keyPos
				n.entries = append(n.entries, e)
			}
		}
	}
}

// merged returns what a merge key names: the entries of a mapping, or of a list of them.
func (c *converter) merged(y *yaml.Node, path string) []entry {
	from := c.convert(y, path)
	sources := []*Node{from}
	if from.kind == kindList {
		sources = from.items
	}
	var entries []entry
	for _, source := range sources {
		if source.kind != kindMapping {
			c.fault(y, path, "<< needs a mapping or a list of mappings, found %v", source.kind)
			return nil
		}
		entries = append(entries, source.entries...)
	}
	return entries
}

// Encode returns a document as YAML text. The same document gives the same bytes.
func Encode(n *Node) []byte {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(n.yaml()); err != nil {
		panic("strict: a node that YAML cannot hold: " + err.Error())
	}
	return b.Bytes()
}

// yaml returns the node that yaml.v3 writes.
func (n *Node) yaml() *yaml.Node {
	switch n.kind {
	case kindMapping:
		y := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, e := range n.entries {
			key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: e.key}
			y.Content = append(y.Content, key, e.value.yaml())
		}
		return y
	case kindList:
		y := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		flat := true
		for _, item := range n.items {
			y.Content = append(y.Content, item.yaml())
			flat = flat && item.scalar()
		}
		if flat {
			y.Style = yaml.FlowStyle // three numbers are read as one line
		}
		return y
	}
	y := &yaml.Node{Kind: yaml.ScalarNode, Value: n.text}
	if n.kind == kindText {
		y.SetString(strings.ToValidUTF8(n.text, "\uFFFD")) // quotes what reads as something else
		if !block.MatchString(y.Value) {
			y.Style = yaml.DoubleQuotedStyle
		}
	}
	return y
}

// block matches texts that survive in a plain or literal scalar: lines of visible words,
// the first without indentation, and none with a blank at its end. yaml.v3 writes some
// others so that it reads them differently.
var block = regexp.MustCompile(strings.ReplaceAll(`^W( +W)*(\n+ *W( +W)*)*\n?$`, "W", `[^\pC\pZ]+`))
