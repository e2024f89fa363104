package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxFaults bounds how many faults of one document are listed. A file of the
// wrong kind would otherwise fill the screen.
const maxFaults = 10

// Read reads one document from r, to its end. Errors start with name, the name
// of the file or whatever the caller calls the stream, and list every fault
// with the path of the value: missing fields, wrong types, values that cannot
// be. A document of another schema version is refused as such.
func Read(r io.Reader, name string) (*Document, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	tree, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := checkSchema(tree); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if faults := checkShape(tree); len(faults) > 0 {
		return nil, joinFaults(name, faults)
	}
	d := new(Document)
	if err := json.Unmarshal(data, d); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if faults := d.faults(); len(faults) > 0 {
		return nil, joinFaults(name, faults)
	}
	return d, nil
}

// parse turns JSON into maps, slices and json.Numbers, for checks that a
// decoder into structs cannot make: a field that is missing is not a zero.
func parse(data []byte) (map[string]any, error) {
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) == 0 {
		return nil, errors.New("is empty, expected a result document")
	}
	if trimmed[0] != '{' {
		return nil, fmt.Errorf("is not a result document: expected a JSON object, found %q", firstWords(trimmed))
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		return nil, positioned(data, err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		line, column := position(data, decoder.InputOffset())
		return nil, fmt.Errorf("%d:%d: more text after the end of the document", line, column)
	}
	return tree, nil
}

// firstWords shortens text that was found instead of a document.
func firstWords(text []byte) string {
	const limit = 20
	line, _, _ := strings.Cut(string(text), "\n")
	if runes := []rune(line); len(runes) > limit {
		return string(runes[:limit]) + "..."
	}
	return line
}

// positioned adds line and column to a JSON error.
func positioned(data []byte, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("is cut short: the JSON text ends inside the document")
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		line, column := position(data, syntax.Offset)
		return fmt.Errorf("%d:%d: is not JSON: %w", line, column, err)
	}
	return err
}

// position returns the line and column, from 1, of the last byte read at an
// offset of the decoder.
func position(data []byte, offset int64) (line, column int) {
	before := data[:max(0, min(offset-1, int64(len(data))))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// checkSchema compares the version of a document with the one that this
// package reads, before anything else of it is believed.
func checkSchema(tree map[string]any) error {
	found, ok := tree["schema"].(string)
	if !ok {
		return fmt.Errorf("has no schema version, expected schema: %q", Schema)
	}
	if found == Schema {
		return nil
	}
	kind, _, _ := strings.Cut(Schema, "/")
	if strings.HasPrefix(found, kind+"/") {
		return fmt.Errorf("schema is %q, but this napisim reads %q: write the result again with this version", found, Schema)
	}
	return fmt.Errorf("schema is %q, expected a result document, %q", found, Schema)
}

// joinFaults makes one error of many, a line for each.
func joinFaults(name string, faults []string) error {
	var errs []error
	for i, fault := range faults {
		if i == maxFaults && len(faults) > maxFaults+1 {
			errs = append(errs, fmt.Errorf("%s: and %d more faults", name, len(faults)-maxFaults))
			break
		}
		errs = append(errs, fmt.Errorf("%s: %s", name, fault))
	}
	return errors.Join(errs...)
}
