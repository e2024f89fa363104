package vary

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Axis{
		"hz=100,250,1000":                 {"hz", []string{"100", "250", "1000"}},
		" a.b = x , y ":                   {"a.b", []string{"x", "y"}},
		"one=x":                           {"one", []string{"x"}},
		"t={cbr: 1, b: [2, 3]},{p: 4}":    {"t", []string{"{cbr: 1, b: [2, 3]}", "{p: 4}"}},
		"s='a,b',\"c,'d\"":                {"s", []string{"'a,b'", "\"c,'d\""}},
		"rmem=4096 1 2,4096 1 3":          {"rmem", []string{"4096 1 2", "4096 1 3"}},
		"kernel.behaviours.k=a=b,c":       {"kernel.behaviours.k", []string{"a=b", "c"}},
		"unbalanced=a],b":                 {"unbalanced", []string{"a]", "b"}},
		"utf8=\u00b5s,\u03bcs":            {"utf8", []string{"\u00b5s", "\u03bcs"}},
		"unclosed={a, b":                  {"unclosed", []string{"{a, b"}},
		"nics.eth0.rings.rx=64,512":       {"nics.eth0.rings.rx", []string{"64", "512"}},
		"sysctl.net.core.x=null,1":        {"sysctl.net.core.x", []string{"null", "1"}},
		"platform=cortex-a7-board,../p.y": {"platform", []string{"cortex-a7-board", "../p.y"}},
	} {
		got, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestParseFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":         "not of the form",
		"hz":       "not of the form",
		"=a,b":     "not of the form",
		"hz=":      "empty value",
		"hz=1,,2":  "empty value",
		"hz=1,2,":  "empty value",
		"hz=1,2,1": "twice",
		"seed=1,2": "seed cannot be varied",
		"runs=1,2": "runs cannot be varied",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestProduct(t *testing.T) {
	for _, test := range []struct {
		vary []string
		want []Point
	}{
		{[]string{"kernel.behaviours.napi_schedule=always_raise,clear_flag_always"}, []Point{
			{"always_raise", []string{"kernel.behaviours.napi_schedule=always_raise"}},
			{"clear_flag_always", []string{"kernel.behaviours.napi_schedule=clear_flag_always"}},
		}},
		{[]string{"hz=100,250"}, []Point{{"hz=100", []string{"hz=100"}}, {"hz=250", []string{"hz=250"}}}},
		{[]string{"a.x=p,q", "b.y=1,2"}, []Point{
			{"x=p,y=1", []string{"a.x=p", "b.y=1"}},
			{"x=p,y=2", []string{"a.x=p", "b.y=2"}},
			{"x=q,y=1", []string{"a.x=q", "b.y=1"}},
			{"x=q,y=2", []string{"a.x=q", "b.y=2"}},
		}},
		{[]string{"n.eth0.rx=1,2", "n.eth1.rx=3"}, []Point{
			{"eth0.rx=1,eth1.rx=3", []string{"n.eth0.rx=1", "n.eth1.rx=3"}},
			{"eth0.rx=2,eth1.rx=3", []string{"n.eth0.rx=2", "n.eth1.rx=3"}},
		}},
		{[]string{"rx=1,2", "n.rx=3"}, []Point{
			{"rx=1,n.rx=3", []string{"rx=1", "n.rx=3"}}, {"rx=2,n.rx=3", []string{"rx=2", "n.rx=3"}},
		}},
	} {
		got, err := product(t, test.vary)
		if err != nil {
			t.Errorf("%v: %v", test.vary, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v: %s", test.vary, diff)
		}
	}
}

func product(t *testing.T, vary []string) ([]Point, error) {
	t.Helper()
	var axes []Axis
	for _, text := range vary {
		a, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		axes = append(axes, a)
	}
	return Product(axes)
}

func TestProductFaults(t *testing.T) {
	many := "x=" + strings.Join(strings.Split("abcdefghijk", ""), ",")
	for _, test := range []struct {
		vary []string
		want string
	}{
		{nil, "one variant only"},
		{[]string{"a=x", "b=y"}, "one variant only"},
		{[]string{"a=x,y", "a=z"}, "a is varied twice"},
		{[]string{many, strings.Replace(many, "x", "y", 1)}, "more than 100 variants"},
	} {
		if _, err := product(t, test.vary); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v, want %q", test.vary, err, test.want)
		}
	}
}
