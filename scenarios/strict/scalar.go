package strict

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"napisim/model/unit"
	"napisim/scenarios/faults"
)

// plainInteger and plainNumber are the numbers that are read. YAML has more forms (0x1f,
// 0o17, 1_000, .inf); a leading zero means octal to some readers and nothing to others.
var (
	plainInteger = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	plainNumber  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

// scalar decodes a single value.
func (d *decoder) scalar(s shape, n *Node, v reflect.Value, path string) {
	problem := s.read(n, v)
	if problem == nil {
		problem = s.outside(v)
	}
	if problem == nil {
		return
	}
	problem.Position, problem.Path = n.Pos, path
	d.faults = append(d.faults, *problem)
	// Whatever is compared with this field later should not suffer for its fault.
	v.SetZero()
	if text := s.tag.Get("default"); text != "" {
		_ = s.read(&Node{kind: kindUntyped, text: text}, v) // absent has shown that it is good
	}
}

// read decodes a single value into v; the fault it returns has no place yet.
func (s shape) read(n *Node, v reflect.Value) *faults.Fault {
	switch s.form() {
	case formUnit:
		return s.readUnit(n, v)
	case formString:
		return s.readString(n, v)
	case formBool:
		return s.readBool(n, v)
	case formInt, formUint:
		return s.readInteger(n, v)
	default:
		return s.readFloat(n, v)
	}
}

// readUnit leaves the text to the type.
func (s shape) readUnit(n *Node, v reflect.Value) *faults.Fault {
	text := n.text
	if bare := s.tag.Get("bare"); bare != "" && plainInteger.MatchString(text) {
		text += bare
	}
	err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	var quantity *unit.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &quantity):
		return &faults.Fault{Text: strconv.Quote(quantity.Text) + " " + quantity.Reason, Suggestion: quantity.Suggestion}
	}
	return &faults.Fault{Text: err.Error()}
}

func (s shape) readString(n *Node, v reflect.Value) *faults.Fault {
	if values := s.values(); values != nil {
		if !slices.Contains(values, n.text) {
			return &faults.Fault{
				Text:       fmt.Sprintf("%q is not %s", n.text, s.wants()),
				Suggestion: faults.Nearest(n.text, values),
			}
		}
	} else if n.kind != kindText && n.kind != kindUntyped {
		return &faults.Fault{Text: fmt.Sprintf("expects text, found %v: put %s in quotes", n.kind, n.text)}
	}
	v.SetString(n.text)
	return nil
}

// readBool takes the spellings of ethtool and of YAML.
func (s shape) readBool(n *Node, v reflect.Value) *faults.Fault {
	switch n.text {
	case "on", "true":
		v.SetBool(true)
	case "off", "false":
		v.SetBool(false)
	default:
		f := &faults.Fault{Text: fmt.Sprintf("%q is not on or off", n.text)}
		switch strings.ToLower(n.text) {
		case "on", "true", "yes", "y", "1", "enabled":
			f.Suggestion = "on"
		case "off", "false", "no", "n", "0", "disabled":
			f.Suggestion = "off"
		}
		return f
	}
	return nil
}

// readInteger decodes an integer. One that does not even fit 64 bits is out of range
// like every other one, so that 2^80 and 2^40 descriptors get the same answer.
func (s shape) readInteger(n *Node, v reflect.Value) *faults.Fault {
	if n.kind == kindText || !plainInteger.MatchString(n.text) {
		return s.noNumber(n)
	}
	if values := s.values(); values != nil && !slices.Contains(values, n.text) {
		return &faults.Fault{Text: fmt.Sprintf("%s is not %s", n.text, s.wants())}
	}
	negative := strings.HasPrefix(n.text, "-")
	if s.form() == formUint {
		u, err := strconv.ParseUint(n.text, 10, 64)
		switch {
		case negative:
			return s.below(n.text, "0")
		case err != nil:
			return s.above(n.text, strconv.FormatUint(math.MaxUint64, 10))
		}
		v.SetUint(u)
		return nil
	}
	i, err := strconv.ParseInt(n.text, 10, 64)
	switch {
	case err != nil && negative:
		return s.below(n.text, either(s.tag.Get("min"), strconv.Itoa(math.MinInt64)))
	case err != nil:
		return s.above(n.text, either(s.tag.Get("max"), strconv.Itoa(math.MaxInt64)))
	}
	v.SetInt(i)
	return nil
}

func (s shape) readFloat(n *Node, v reflect.Value) *faults.Fault {
	if n.kind == kindText || !plainNumber.MatchString(n.text) {
		return s.noNumber(n)
	}
	x, err := strconv.ParseFloat(n.text, 64)
	if err != nil {
		return &faults.Fault{Text: n.text + " is beyond every number that can be stored"}
	}
	v.SetFloat(x)
	return nil
}

// noNumber is the fault for a text where a number is expected.
func (s shape) noNumber(n *Node) *faults.Fault {
	f := &faults.Fault{Text: fmt.Sprintf("expects %s, found %q", s.wants(), n.text)}
	if n.kind == kindText && plainNumber.MatchString(n.text) {
		f.Text = fmt.Sprintf("expects %s, found the text %q: take its quotes off", s.wants(), n.text)
		return f
	}
	if plain := strings.NewReplacer("_", "", ",", "").Replace(n.text); plainInteger.MatchString(plain) {
		f.Suggestion = plain
	}
	return f
}

// outside returns a fault if a value lies outside the range of its field.
func (s shape) outside(v reflect.Value) *faults.Fault {
	if low := s.tag.Get("min"); low != "" && v.Int() < s.bound(low) {
		return s.below(written(v), low)
	}
	if high := s.tag.Get("max"); high != "" && v.Int() > s.bound(high) {
		return s.above(written(v), high)
	}
	return nil
}

// bound reads an end of the range. One that cannot be read is a mistake of the program.
func (s shape) bound(text string) int64 {
	v := reflect.New(s.typ).Elem()
	if f := (shape{typ: s.typ}).read(&Node{kind: kindUntyped, text: text}, v); f != nil {
		panic("strict: bad range: " + f.Text)
	}
	return v.Int()
}

func (s shape) below(value, low string) *faults.Fault {
	return &faults.Fault{Text: value + " is less than " + low + s.because()}
}

func (s shape) above(value, high string) *faults.Fault {
	return &faults.Fault{Text: value + " is more than " + high + s.because()}
}

// because gives the reason for the range, if there is one.
func (s shape) because() string {
	if why := s.tag.Get("why"); why != "" {
		return ": " + why
	}
	return ""
}

func either(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}

// written returns the text that stands for a single value in a document.
func written(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case fmt.Stringer:
		return x.String()
	case bool:
		if x {
			return "on"
		}
		return "off"
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}
