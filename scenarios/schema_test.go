package scenarios

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"gopkg.in/yaml.v3"

	"napisim/scenarios/spec"
	"napisim/scenarios/strict"
)

var update = flag.Bool("update", false, "write schema.json anew")

// TestSchema keeps schema.json equal to what the types say.
func TestSchema(t *testing.T) {
	want, err := json.MarshalIndent(schemaOf(spec.Describe()), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return // what is embedded is still the old one
	}
	if !bytes.Equal(want, Schema()) {
		t.Error("schema.json is not what the types say: run go generate")
	}
}

// schemaOf returns the schema of a whole document.
func schemaOf(root strict.Field) *jsonschema.Schema {
	s := fieldSchema(root)
	s.Schema = "http://json-schema.org/draft-07/schema#"
	s.Title = "napisim scenario"
	// What a file leaves out may come from its base.
	var required []string
	for _, f := range root.Fields {
		if f.Required && f.Key != "napisim" {
			required = append(required, f.Key)
		}
	}
	s.Required = []string{"napisim"}
	s.AnyOf = []*jsonschema.Schema{{Required: []string{"base"}}, {Required: required}}
	return s
}

// fieldSchema returns the schema of one field. It is wider than the decoder, which
// knows bases, kinds and ranges of quantities: it is there for editors.
func fieldSchema(f strict.Field) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	switch f.Form {
	case strict.Mapping:
		s = objectSchema(f)
	case strict.Names:
		// An entry of null takes that of a base away.
		element := &jsonschema.Schema{AnyOf: []*jsonschema.Schema{fieldSchema(*f.Element), {Type: "null"}}}
		s = &jsonschema.Schema{
			Type:                 "object",
			PropertyNames:        &jsonschema.Schema{Pattern: "^[A-Za-z0-9_-]+$"},
			AdditionalProperties: element,
		}
	case strict.List:
		s = listSchema(f)
	case strict.Quantity:
		s = &jsonschema.Schema{Type: "string", Pattern: f.Pattern}
		if f.Bare != "" {
			s = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "integer", Minimum: number("0")}, s}}
		}
	case strict.Text:
		s.Type = "string"
		s.Enum = texts(f.Values)
	case strict.Switch:
		// Readers of YAML 1.1 take on and off for truth values, those of 1.2 for texts.
		s.Enum = []any{"on", "off", true, false}
	case strict.Integer:
		s.Type = "integer"
		s.Minimum, s.Maximum = number(f.Min), number(f.Max)
		for _, v := range f.Values {
			s.Enum = append(s.Enum, json.Number(v))
		}
	case strict.Number:
		s.Type = "number"
	}
	s.Description = f.Doc
	if f.Default != "" {
		s.Default = json.RawMessage(strconv.Quote(f.Default))
		if f.Form == strict.Integer {
			s.Default = json.RawMessage(f.Default)
		}
	}
	return s
}

// objectSchema returns the schema of a mapping with known keys.
func objectSchema(f strict.Field) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type:                 "object",
		Properties:           map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for _, sub := range f.Fields {
		s.Properties[sub.Key] = fieldSchema(sub)
		s.PropertyOrder = append(s.PropertyOrder, sub.Key)
	}
	if f.OneOf {
		one := 1
		s.MinProperties, s.MaxProperties = &one, &one
	}
	if f.Shorthand != "" {
		short, _ := f.Find(f.Shorthand)
		s = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{fieldSchema(short), s}}
	}
	return s
}

// listSchema returns the schema of a list, and of the text of sysctl for one of fixed
// length.
func listSchema(f strict.Field) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "array", Items: fieldSchema(*f.Element)}
	if f.Len > 0 {
		s.MinItems, s.MaxItems = &f.Len, &f.Len
		s = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "string"}}}
	}
	return s
}

func texts(values []string) []any {
	var all []any
	for _, v := range values {
		all = append(all, v)
	}
	return all
}

// number returns a bound, nil for none.
func number(text string) *float64 {
	if text == "" {
		return nil
	}
	var x float64
	if err := json.Unmarshal([]byte(text), &x); err != nil {
		return nil
	}
	return &x
}

// scenarioSchema returns the shipped schema, ready to validate.
func scenarioSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// document reads a YAML file as an editor does, with no types but those of JSON.
func document(t *testing.T, text []byte) any {
	t.Helper()
	var raw, v any
	if err := yaml.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestLibraryFitsSchema validates every scenario of the library and of the test data.
func TestLibraryFitsSchema(t *testing.T) {
	s := scenarioSchema(t)
	paths, err := fs.Glob(files, "library/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob("spec/testdata/valid/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(examples) == 0 {
		t.Fatal("no scenario in the test data")
	}
	for _, path := range append(paths, examples...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(document(t, text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSchemaRefuses: the schema is no rubber stamp.
func TestSchemaRefuses(t *testing.T) {
	s := scenarioSchema(t)
	for _, text := range []string{
		"napisim: 2\nbase: x",
		"base: x",
		"napisim: 1",
		"{napisim: 1, base: x, cpu: 1}",
		"{napisim: 1, base: x, cpus: 0}",
		"{napisim: 1, base: x, hz: 50}",
		"{napisim: 1, base: x, duration: 10}",
		"{napisim: 1, base: x, duration: 10 s}",
		"{napisim: 1, base: x, nics: {eth0: {rings: {rx: 1099511627776}}}}",
		"{napisim: 1, base: x, nics: {eth0: {features: {gro: maybe}}}}",
		"{napisim: 1, base: x, nics: {eth.0: {mtu: 1500}}}",
		"{napisim: 1, base: x, sysctl: {net.core.netdev_budjet: 300}}",
		"{napisim: 1, base: x, kernel: {behaviours: {napi_schedule: never}}}",
		"{napisim: 1, base: x, traffic: {t: {arrivals: {cbr: 1Mpps, poisson: 1Mpps}}}}",
	} {
		if err := s.Validate(document(t, []byte(text))); err == nil {
			t.Errorf("the schema accepts %s", text)
		}
	}
}
