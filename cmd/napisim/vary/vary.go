// Package vary turns what --vary says into the variants of a comparison: every
// combination of the values of all paths.
package vary

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An Axis is one path of a scenario and the values that it takes in turn.
type Axis struct {
	Path   string
	Values []string
}

// A Point is one combination of values. Sets are the assignments that make the
// variant, one for each axis; Label tells it from the others.
type Point struct {
	Label string
	Sets  []string
}

// maxPoints bounds the product: beyond it somebody has mistyped, or wants a sweep and
// not a table.
const maxPoints = 100

// fixed are the paths that a comparison needs for itself.
var fixed = map[string]string{
	"seed": "the seeds are what runs of a variant differ in",
	"runs": "every variant gets the same number of runs",
}

// Parse reads "path=a,b,c". A comma within brackets, braces or quotes belongs to the
// value.
func Parse(text string) (Axis, error) {
	path, list, ok := strings.Cut(text, "=")
	path = strings.TrimSpace(path)
	if !ok || path == "" {
		return Axis{}, fmt.Errorf("%q is not of the form path=a,b", text)
	}
	if why := fixed[path]; why != "" {
		return Axis{}, fmt.Errorf("%s cannot be varied: %s", path, why)
	}
	a := Axis{Path: path, Values: split(list)}
	for i, v := range a.Values {
		if v == "" {
			return Axis{}, fmt.Errorf("%q has an empty value", text)
		}
		if slices.Contains(a.Values[:i], v) {
			return Axis{}, fmt.Errorf("%q has the value %s twice", text, v)
		}
	}
	return a, nil
}

// split cuts a list at the commas that are not within something.
func split(list string) []string {
	var values []string
	depth, quote, start := 0, rune(0), 0
	for i, r := range list {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '[' || r == '{':
			depth++
		case r == ']' || r == '}':
			depth--
		case r == ',' && depth <= 0:
			values = append(values, strings.TrimSpace(list[start:i]))
			start = i + 1
		}
	}
	return append(values, strings.TrimSpace(list[start:]))
}

// Product returns every combination, the last axis changing fastest. The first point
// has the first value of each axis and is the base of the comparison.
func Product(axes []Axis) ([]Point, error) {
	points := []Point{{}}
	seen := map[string]bool{}
	for _, a := range axes {
		if seen[a.Path] {
			return nil, fmt.Errorf("%s is varied twice: give all its values at once", a.Path)
		}
		seen[a.Path] = true
		var next []Point
		for _, p := range points {
			for _, v := range a.Values {
				sets := append(slices.Clone(p.Sets), a.Path+"="+v)
				next = append(next, Point{Sets: sets})
			}
		}
		if points = next; len(points) > maxPoints {
			return nil, fmt.Errorf("these values combine to more than %d variants", maxPoints)
		}
	}
	if len(points) < 2 {
		return nil, errors.New("there is one variant only: give at least two values, as in path=a,b")
	}
	label(points, axes)
	return points, nil
}

// label names the points. The values of a single axis speak for themselves, unless
// they are bare numbers; those of several are preceded by as much of their path as
// tells the axes apart.
func label(points []Point, axes []Axis) {
	names := make([]string, len(axes))
	for i, a := range axes {
		names[i] = shortest(a.Path, axes)
	}
	plain := len(axes) == 1 && !startsWithDigit(axes[0].Values)
	for i := range points {
		var parts []string
		for j, set := range points[i].Sets {
			value := set[len(axes[j].Path)+1:]
			if !plain {
				value = names[j] + "=" + value
			}
			parts = append(parts, value)
		}
		points[i].Label = strings.Join(parts, ",")
	}
}

func startsWithDigit(values []string) bool {
	for _, v := range values {
		if strings.ContainsRune("0123456789+-.", rune(v[0])) {
			return true
		}
	}
	return false
}

// shortest returns the last keys of a path, as few as no other axis ends in.
func shortest(path string, axes []Axis) string {
	for end := strings.LastIndexByte(path, '.'); end >= 0; end = strings.LastIndexByte(path[:end], '.') {
		tail := path[end:]
		others := 0
		for _, a := range axes {
			if strings.HasSuffix("."+a.Path, tail) {
				others++
			}
		}
		if others == 1 {
			return tail[1:]
		}
	}
	return path
}
