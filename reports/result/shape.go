package result

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// checkShape holds a parsed document against the struct types of this package,
// so that the types stay the only description of the format. It returns a line
// for every field that is missing or of the wrong type, in a stable order.
func checkShape(tree map[string]any) []string {
	var c shapeChecker
	c.check("", tree, reflect.TypeFor[Document]())
	return c.faults
}

type shapeChecker struct{ faults []string }

func (c *shapeChecker) fault(path, format string, args ...any) {
	if path == "" {
		path = "document"
	}
	c.faults = append(c.faults, path+": "+fmt.Sprintf(format, args...))
}

// check compares one value with the type that it has to decode into.
func (c *shapeChecker) check(path string, value any, want reflect.Type) {
	switch want.Kind() {
	case reflect.Struct:
		if object, ok := c.object(path, value); ok {
			c.checkFields(path, object, want)
		}
	case reflect.Map:
		if object, ok := c.object(path, value); ok {
			for _, key := range slices.Sorted(maps.Keys(object)) {
				c.check(join(path, key), object[key], want.Elem())
			}
		}
	case reflect.Slice:
		list, ok := value.([]any)
		if !ok {
			c.fault(path, "expected a list, found %s", describe(value))
			return
		}
		for i, element := range list {
			c.check(fmt.Sprintf("%s[%d]", path, i), element, want.Elem())
		}
	case reflect.String:
		if _, ok := value.(string); !ok {
			c.fault(path, "expected a text, found %s", describe(value))
		}
	default:
		c.checkNumber(path, value, want)
	}
}

func (c *shapeChecker) object(path string, value any) (map[string]any, bool) {
	object, ok := value.(map[string]any)
	if !ok {
		c.fault(path, "expected an object, found %s", describe(value))
	}
	return object, ok
}

// checkFields asks for every field of a struct that is not marked omitempty.
// Fields that the struct does not have are left alone.
func (c *shapeChecker) checkFields(path string, object map[string]any, want reflect.Type) {
	for field := range want.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		value, present := object[name]
		switch {
		case present:
			c.check(join(path, name), value, field.Type)
		case options != "omitempty":
			c.fault(join(path, name), "is missing")
		}
	}
}

// checkNumber decodes a number for good: that alone tells whether it fits.
func (c *shapeChecker) checkNumber(path string, value any, want reflect.Type) {
	number, ok := value.(json.Number)
	if !ok {
		c.fault(path, "expected a number, found %s", describe(value))
		return
	}
	if err := json.Unmarshal([]byte(number), reflect.New(want).Interface()); err != nil {
		c.fault(path, "%s is not in the range of %s", number, numberName(want))
	}
}

func numberName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Uint64:
		return "whole numbers from 0 to 2^64-1"
	case reflect.Float64:
		return "64-bit floating point"
	default:
		return "64-bit whole numbers"
	}
}

func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprint(v)
	case string:
		return fmt.Sprintf("the text %q", firstWords([]byte(v)))
	case json.Number:
		return "the number " + v.String()
	case []any:
		return "a list"
	default:
		return "an object"
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
