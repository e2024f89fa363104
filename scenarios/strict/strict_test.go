package strict_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/model/unit"
	"napisim/scenarios/faults"
	"napisim/scenarios/strict"
)

// House is a document type with one field of every form.
type House struct {
	Name   string             `yaml:"name" required:"true" inherit:"no"`
	Floors int                `yaml:"floors" default:"2" min:"1" max:"163" why:"none is higher" unit:"floors"`
	Seed   uint64             `yaml:"seed"`
	Height float64            `yaml:"height"`
	Lit    bool               `yaml:"lit" default:"on"`
	Colour Colour             `yaml:"colour" derived:"that of the street"`
	Door   Door               `yaml:"door" shorthand:"width" kernel:"door(8)"`
	Wait   unit.Duration      `yaml:"wait.for.it" bare:"ms" max:"1s"`
	Sizes  [2]unit.Bytes      `yaml:"sizes" default:"1 2" bare:"B" min:"1B"`
	Notes  []string           `yaml:"notes"`
	Rooms  map[string]Room    `yaml:"rooms"`
	Words  map[string]string  `yaml:"words"`
	Heat   Heat               `yaml:"heat" oneof:"true"`
	Base   string             `yaml:"base" set:"no"`
	Parts  []Room             `yaml:"parts"`
	Hidden map[string]float64 // has no key
}

type Colour string

func (Colour) Values() []string { return []string{"red", "green"} }

type Door struct {
	Width unit.Bytes `yaml:"width" default:"1kB"`
	Lock  string     `yaml:"lock"`
}

type Room struct {
	Kind string `yaml:"kind" required:"true"`
	Name string `yaml:"name"`
	Beds int    `yaml:"beds" default:"1" for:"bedroom,ward"`
	Oven string `yaml:"oven" required:"true" for:"kitchen"`
}

type Heat struct {
	Gas  unit.Ratio `yaml:"gas" min:"1%"`
	Wood int        `yaml:"wood" min:"1"`
	Sun  Sun        `yaml:"sun"`
}

type Sun struct {
	Panels int `yaml:"panels" default:"4"`
}

func parse(t testing.TB, text string) *strict.Node {
	t.Helper()
	n, found := strict.Parse("f", []byte(text))
	if err := found.Err(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

func decode(t testing.TB, n *strict.Node) House {
	t.Helper()
	h, _, found := strict.Decode[House](n)
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return h
}

// least is a house without faults, everything else at its default.
func least() House {
	return House{Name: "x", Floors: 2, Lit: true, Door: Door{Width: 1000}, Sizes: [2]unit.Bytes{1, 2}}
}

func TestDecode(t *testing.T) {
	tests := []struct {
		text string
		want func(*House)
	}{
		{"name: x", func(*House) {}},
		{`name: "1"`, func(h *House) { h.Name = "1" }},
		{"name: 2023-05-15", func(h *House) { h.Name = "2023-05-15" }},
		{"{name: x, floors: 163, seed: 18446744073709551615, height: -1.5e3}", func(h *House) {
			h.Floors, h.Seed, h.Height = 163, 1<<64-1, -1500
		}},
		{"{name: x, height: 3}", func(h *House) { h.Height = 3 }},
		{"{name: x, lit: off}", func(h *House) { h.Lit = false }},
		{"{name: x, lit: false}", func(h *House) { h.Lit = false }},
		{"{name: x, colour: green}", func(h *House) { h.Colour = "green" }},
		{"{name: x, door: 2kB}", func(h *House) { h.Door.Width = 2000 }},
		{"{name: x, door: {lock: y}}", func(h *House) { h.Door.Lock = "y" }},
		{"{name: x, wait.for.it: 20}", func(h *House) { h.Wait = 20 * unit.Millisecond }},
		{"{name: x, wait.for.it: 20us}", func(h *House) { h.Wait = 20 * unit.Microsecond }},
		{"{name: x, sizes: 3 1kB}", func(h *House) { h.Sizes = [2]unit.Bytes{3, 1000} }},
		{"{name: x, sizes: [3, 1kB]}", func(h *House) { h.Sizes = [2]unit.Bytes{3, 1000} }},
		{"{name: x, notes: [a, b]}", func(h *House) { h.Notes = []string{"a", "b"} }},
		{"{name: x, rooms: {a: {kind: bedroom}, b: {kind: hall}}}", func(h *House) {
			h.Rooms = map[string]Room{"a": {Kind: "bedroom", Beds: 1}, "b": {Kind: "hall"}}
		}},
		{"{name: x, words: {a: b}}", func(h *House) { h.Words = map[string]string{"a": "b"} }},
		{"{name: x, heat: {gas: 50%}}", func(h *House) { h.Heat.Gas = 50 * unit.Percent }},
		{"{name: x, heat: {sun: {}}}", func(h *House) { h.Heat.Sun.Panels = 4 }},
		{"{name: &n x, notes: [*n, *n]}", func(h *House) { h.Notes = []string{"x", "x"} }},
		{"{name: x, door: &d {lock: y}, <<: {floors: 3, name: z}}", func(h *House) { h.Door.Lock, h.Floors = "y", 3 }},
		{"{<<: [{floors: 3}, {floors: 4, seed: 5}], name: x}", func(h *House) { h.Floors, h.Seed = 3, 5 }},
	}
	for _, tt := range tests {
		want := least()
		tt.want(&want)
		if diff := cmp.Diff(want, decode(t, parse(t, tt.text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestDecodeFaults(t *testing.T) {
	tests := []struct{ text, want string }{
		{"{}", "f:1:1: name: is missing: expects text"},
		{"name:", "f:1:6: name: has no value: expects text"},
		{"[a]", "f:1:1: expects a mapping, found a list"},
		{"{name: [a]}", "f:1:2: name: expects text, found a list"},
		{"{name: true}", "f:1:8: name: expects text, found true or false: put true in quotes"},
		{"{name: x, flors: 1}", `f:1:11: flors: unknown field (did you mean "floors"?)`},
		{"{name: x, lock: 1}", `f:1:11: lock: unknown field (did you mean "door.lock"?)`},
		{"{name: x, panels: 1}", `f:1:11: panels: unknown field (did you mean "heat.sun.panels"?)`},
		{"{name: x, Hidden: 1}", "f:1:11: Hidden: unknown field"},
		{"{name: x, floors: 164}", "f:1:19: floors: 164 is more than 163: none is higher"},
		{"{name: x, floors: -9223372036854775809}", "f:1:19: floors: -9223372036854775809 is less than 1: none is higher"},
		{"{name: x, floors: 0x10}", `f:1:19: floors: expects a whole number, found "0x10"`},
		{"{name: x, floors: 010}", `f:1:19: floors: expects a whole number, found "010"`},
		{"{name: x, floors: 1.5}", `f:1:19: floors: expects a whole number, found "1.5"`},
		{"{name: x, seed: -1}", "f:1:17: seed: -1 is less than 0"},
		{"{name: x, seed: 18446744073709551616}", "f:1:17: seed: 18446744073709551616 is more than 18446744073709551615"},
		{"{name: x, height: .inf}", `f:1:19: height: expects a number, found ".inf"`},
		{"{name: x, height: 1e999}", "f:1:19: height: 1e999 is beyond every number that can be stored"},
		{`{name: x, height: "1"}`, `f:1:19: height: expects a number, found the text "1": take its quotes off`},
		{"{name: x, lit: No}", `f:1:16: lit: "No" is not on or off (did you mean "off"?)`},
		{"{name: x, colour: Red}", `f:1:19: colour: "Red" is not one of red, green (did you mean "red"?)`},
		{"{name: x, wait.for.it: 2000}", "f:1:24: wait.for.it: 2s is more than 1s"},
		{"{name: x, sizes: 0 1}", "f:1:18: sizes.0: 0B is less than 1B"},
		{"{name: x, sizes: [1]}", "f:1:11: sizes: needs 2 values, found 1"},
		{"{name: x, rooms: {a b: {kind: hall}}}", "f:1:19: rooms.a b: is not a name: use letters, digits, '-' and '_'"},
		{"{name: x, rooms: {a: {beds: 2}}}", "f:1:19: rooms.a.kind: is missing: expects text"},
		{"{name: x, rooms: {a: {kind: hall, beds: 2}}}", "f:1:35: rooms.a.beds: has no meaning for kind hall"},
		{"{name: x, rooms: {a: {kind: kitchen}}}", "f:1:19: rooms.a.oven: is missing: expects text"},
		{"{name: x, heat: {}}", "f:1:11: heat: needs one of gas, wood, sun"},
		{"{name: x, heat: {gas: 1%, wood: 2}}", "f:1:27: heat: has both gas and wood: give only one of gas, wood, sun"},
		{"{name: x, heat: {gas: 0%}}", "f:1:23: heat.gas: 0% is less than 1%"},
		{"{name: x, name: y}", "f:1:11: name: duplicate key, first at 1:2"},
		{"{name: x, ? [a] : b}", "f:1:13: a key must be a single word"},
		{"{name: x, notes: &a [*a]}", "f:1:22: notes.0: alias *a contains itself\nf:1:22: notes.0: has no value: expects text"},
		{"{name: !secret x}", "f:1:8: name: the tag !secret has no meaning here"},
		{"{name: x, <<: 3}", "f:1:15: << needs a mapping or a list of mappings, found a whole number"},
		{"# nothing", "f: is empty"},
		{"a: b: c", "f:1: is not YAML: mapping values are not allowed in this context"},
		{"name: x\n  b: c", "f:2: is not YAML: mapping values are not allowed in this context"},
		{"name: *x", "f: is not YAML: unknown anchor 'x' referenced"},
		{"name: x\n---\nname: y", "f:2:1: a second YAML document starts here; a file holds one"},
		{"name: x\n--- [", "f:2: is not YAML: did not find expected node content"},
	}
	for _, tt := range tests {
		n, found := strict.Parse("f", []byte(tt.text))
		if n != nil {
			_, _, more := strict.Decode[House](n)
			found = append(found, more...)
		}
		if err := found.Err(); err == nil || err.Error() != tt.want {
			t.Errorf("%s\ngot:\n%v\nwant:\n%s", tt.text, err, tt.want)
		}
	}
}

// TestPlaces: a key stands for the mapping or list under it, a single value for itself.
func TestPlaces(t *testing.T) {
	_, got, _ := strict.Decode[House](parse(t, "name: x\ndoor:\n  lock: y\nnotes:\n- a\n- b\n"))
	want := strict.Positions{}
	for path, at := range map[string][2]int{
		"": {1, 1}, "name": {1, 7}, "door": {2, 1}, "door.lock": {3, 9}, "notes": {4, 1}, "notes.0": {5, 3}, "notes.1": {6, 3},
	} {
		want[path] = faults.Position{File: "f", Line: at[0], Column: at[1]}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
	if !got.Has("door.lock") || got.Has("door.width") {
		t.Error("Has does not tell what is given from what is not")
	}
	located := got.Locate(faults.List{{Path: "door.width.x"}, {Path: "floors"}})
	if located[0].Line != 2 || located[1].Line != 1 {
		t.Errorf("absent fields are placed at lines %d and %d, want 2 and 1", located[0].Line, located[1].Line)
	}
}

// TestAliasBomb: a document that expands to 10^10 values is refused, and soon.
func TestAliasBomb(t *testing.T) {
	text := "a0: &a0 [x]\n"
	for i := 1; i <= 10; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	_, found := strict.Parse("f", []byte(text))
	if got, want := found.Error(), "f: has more than 100000 values, aliases expanded"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMerge(t *testing.T) {
	tests := []struct{ name, base, over, want string }{
		{"one over the other", "{floors: 3, seed: 1}", "{name: x, seed: 2}", "{name: x, floors: 3, seed: 2}"},
		{"what is not taken over", "{name: y, floors: 3}", "{seed: 1}", "{floors: 3, seed: 1}"},
		{"deep", "{door: {width: 5B, lock: y}}", "{door: {lock: z}}", "{door: {width: 5B, lock: z}}"},
		{"short under long", "{door: 5B}", "{door: {lock: z}}", "{door: {width: 5B, lock: z}}"},
		{"short over long", "{door: {width: 5B, lock: y}}", "{door: 6B}", "{door: {width: 6B}}"},
		{"lists replace", "{notes: [a, b]}", "{notes: [c]}", "{notes: [c]}"},
		{"entries by name", "{words: {a: x, b: y}}", "{words: {b: z, c: w}}", "{words: {a: x, b: z, c: w}}"},
		{"null takes away", "{words: {a: x, b: y}}", "{words: {b: null}}", "{words: {a: x}}"},
		{"the same choice", "{heat: {sun: {panels: 5}}}", "{heat: {sun: {}}}", "{heat: {sun: {panels: 5}}}"},
		{"another choice", "{heat: {gas: 5%}}", "{heat: {wood: 5}}", "{heat: {wood: 5}}"},
		{"nothing over", "{door: 5B}", "{}", "{door: 5B}"},
		{"a mapping over a list", "{words: [a]}", "{words: {a: b}}", "{words: {a: b}}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, _ := strict.Decode[House](strict.Merge[House](parse(t, tt.base), parse(t, tt.over)))
			want, _, _ := strict.Decode[House](parse(t, tt.want))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("null over nothing is kept for a fault", func(t *testing.T) {
		_, _, found := strict.Decode[House](strict.Merge[House](parse(t, "{}"), parse(t, "{name: x, seed: null}")))
		if got, want := found.Error(), "f:1:17: seed: has no value: expects a whole number"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("neither side changes", func(t *testing.T) {
		base, over := parse(t, "{words: {a: x}, heat: {gas: 5%}}"), parse(t, "{words: {a: null, b: y}, heat: {wood: 1}}")
		before := string(strict.Encode(base)) + string(strict.Encode(over))
		strict.Merge[House](base, over)
		if after := string(strict.Encode(base)) + string(strict.Encode(over)); after != before {
			t.Errorf("was:\n%s\nis:\n%s", before, after)
		}
	})
}

func TestSet(t *testing.T) {
	const start = "{name: x, door: 5B, notes: [a, b], rooms: {a: {kind: bedroom, beds: 2}}, heat: {gas: 5%}, " +
		"parts: [{kind: hall, name: first}, {kind: hall, name: second}]}"
	tests := []struct{ set, want, fault string }{
		{set: "floors=3", want: "{floors: 3}"},
		{set: "name=1", want: `{name: "1"}`},
		{set: "name=a: [b", want: `{name: "a: [b"}`},
		{set: "name=a=b", want: "{name: a=b}"},
		{set: "door=7B", want: "{door: {width: 7B}}"},
		{set: "door.lock=z", want: "{door: {width: 5B, lock: z}}"},
		{set: "wait.for.it=5", want: "{wait.for.it: 5ms}"},
		{set: "sizes=3 4", want: "{sizes: [3B, 4B]}"},
		{set: "sizes=[3, 4]", want: "{sizes: [3B, 4B]}"},
		{set: "notes.1=c", want: "{notes: [a, c]}"},
		{set: "rooms.a.beds=3", want: "{rooms: {a: {beds: 3}}}"},
		{set: "rooms.b={kind: hall}", want: "{rooms: {b: {kind: hall}}}"},
		{set: "words.new=v", want: "{words: {new: v}}"},
		{set: "rooms.a=null", want: "{rooms: {a: null}}"},
		{set: "heat.wood=3", want: "{heat: {wood: 3}}"},
		{set: "parts.second.kind=ward", want: "{parts: [{kind: hall, name: first}, {kind: ward, name: second, beds: 1}]}"},

		{set: "flors=3", fault: `--set #7: flors: unknown field (did you mean "floors"?)`},
		{set: "wait.for.its=3", fault: `--set #7: wait.for.its: unknown field (did you mean "wait.for.it"?)`},
		{set: "wait=3", fault: "--set #7: wait: unknown field"},
		{set: "rooms.b.beds=3", fault: `--set #7: rooms.b: there is no entry of this name (did you mean "a"?)`},
		{set: "parts.secon.kind=x", fault: `--set #7: parts.secon: there is no such element: the list has 2, counted from 0 (did you mean "second"?)`},
		{set: "parts.-1.kind=x", fault: "--set #7: parts.-1: there is no such element: the list has 2, counted from 0"},
		{set: "notes.0=null", fault: "--set #7: notes.0: an element cannot be taken away: give the whole list"},
		{set: "base=x", fault: "--set #7: base: cannot be set from the command line: it is read before"},
		{set: "floors.x=3", fault: `--set #7: floors: is a single value and has no "x"`},
		{set: "rooms={a", fault: "--set #7: rooms: is not YAML: did not find expected ',' or '}'"},
		{set: "floors", fault: `--set #7: "floors" is not of the form path=value`},
		{set: "floors= ", fault: "--set #7: floors: has no value; null takes a field away"},
		{set: "=1", fault: `--set #7: "=1" has no path before its '='`},
		{set: ".=1", fault: "--set #7: .: unknown field"},
	}
	for _, tt := range tests {
		root := parse(t, start)
		before := string(strict.Encode(root))
		got, found := strict.Set[House](root, 7, tt.set)
		if string(strict.Encode(root)) != before {
			t.Errorf("%s changed the document it was given", tt.set)
		}
		if tt.fault != "" {
			if err := found.Err(); err == nil || err.Error() != tt.fault {
				t.Errorf("%s\ngot:  %v\nwant: %s", tt.set, err, tt.fault)
			}
			continue
		}
		if err := found.Err(); err != nil {
			t.Errorf("%s: %v", tt.set, err)
			continue
		}
		want := decode(t, strict.Merge[House](root, named(t, tt.want)))
		if diff := cmp.Diff(want, decode(t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.set, diff)
		}
	}
}

// named gives a document the name that no base hands down.
func named(t *testing.T, text string) *strict.Node {
	t.Helper()
	n := parse(t, text)
	if n.Get("name") == nil {
		n = n.With("name", parse(t, "{name: x}").Get("name"))
	}
	return n
}

func TestSetPositions(t *testing.T) {
	n, _ := strict.Set[House](parse(t, "name: x"), 3, "rooms={a: {kind: kitchen, ovn: x}}")
	_, _, found := strict.Decode[House](n)
	const want = "--set #3: rooms.a.oven: is missing: expects text\n--set #3: rooms.a.ovn: unknown field (did you mean \"oven\"?)"
	if err := found.Err(); err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}

// houses draws houses without faults.
func houses() *rapid.Generator[House] {
	return rapid.Custom(func(t *rapid.T) House {
		name := rapid.StringMatching(`[A-Za-z0-9_-]{1,8}`)
		prose := rapid.OneOf(
			rapid.StringN(1, 30, -1),
			rapid.StringMatching(`[a:#' \n-]{1,20}`),
			rapid.SampledFrom([]string{"on", "null", "~", "1", "1.5", "[a", "a: b", "- a", " a ", "\n", "a\n", " a\nb\n\n", "\ta", "#", "<<", "é\u2028x", "!x", "2023-05-15", "\r\n", "'\"", "\x00", "\U0001f600"}),
		)
		h := House{
			Name:   prose.Draw(t, "name"),
			Floors: rapid.IntRange(1, 163).Draw(t, "floors"),
			Seed:   rapid.Uint64().Draw(t, "seed"),
			Height: rapid.Float64().Draw(t, "height"),
			Lit:    rapid.Bool().Draw(t, "lit"),
			Colour: rapid.SampledFrom([]Colour{"red", "green"}).Draw(t, "colour"),
			Door:   Door{Width: unit.Bytes(rapid.Int64Min(0).Draw(t, "width"))},
			Wait:   unit.Duration(rapid.Int64Range(0, int64(unit.Second)).Draw(t, "wait")),
			Sizes:  [2]unit.Bytes{unit.Bytes(rapid.Int64Min(1).Draw(t, "size")), 7},
			Notes:  rapid.SliceOfN(prose, 1, 3).Draw(t, "notes"),
			Words:  rapid.MapOfN(name, prose, 1, 3).Draw(t, "words"),
			Heat:   Heat{Wood: rapid.IntMin(1).Draw(t, "wood")},
			Parts:  []Room{{Kind: "kitchen", Oven: prose.Draw(t, "oven")}},
		}
		h.Rooms = rapid.MapOfN(name, rapid.Just(Room{Kind: "ward", Beds: 3}), 1, 3).Draw(t, "rooms")
		return h
	})
}

// TestRoundTrip: what Encode writes reads as the same value, and is written the same
// way again.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := houses().Draw(t, "house")
		if found := strict.Check(h); len(found) > 0 {
			t.Fatal(found)
		}
		text := strict.Encode(strict.Tree(h))
		n, found := strict.Parse("f", text)
		if err := found.Err(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		back, _, found := strict.Decode[House](n)
		if err := found.Err(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(h, back); diff != "" {
			t.Fatalf("(-written +read):\n%s\n%s", diff, text)
		}
		if again := strict.Encode(strict.Tree(back)); string(again) != string(text) {
			t.Fatalf("first:\n%s\nthen:\n%s", text, again)
		}
	})
}

func TestCheck(t *testing.T) {
	h := least()
	h.Colour = "red"
	if found := strict.Check(h); len(found) > 0 {
		t.Fatalf("a good house has faults:\n%v", found)
	}
	h.Name, h.Floors, h.Colour, h.Wait, h.Sizes[0] = "", 0, "rad", 2*unit.Second, 0
	h.Rooms = map[string]Room{"b c": {Kind: "hall", Beds: 1}, "a": {}}
	h.Heat = Heat{Gas: 1, Wood: 1}
	h.Parts = []Room{{Kind: "kitchen"}}
	const want = `colour: "rad" is not one of red, green (did you mean "red"?)
floors: 0 is less than 1: none is higher
heat: needs one of gas, wood, sun
heat.gas: 0.0001% is less than 1%
name: is missing: expects text
parts.0.oven: is missing: expects text
rooms.a.kind: is missing: expects text
rooms.b c: is not a name: use letters, digits, '-' and '_'
rooms.b c.beds: has no meaning for kind hall
sizes.0: 0B is less than 1B
wait.for.it: 2s is more than 1s`
	if err := strict.Check(h).Err(); err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}
