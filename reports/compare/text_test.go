package compare

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func view(t testing.TB, c *Comparison, colour bool) string {
	t.Helper()
	var b strings.Builder
	if err := c.WriteText(&b, colour); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func example(t testing.TB) *Comparison {
	return compared(t,
		variant("before", values{
			"goodput":      {527e6, 528e6, 529e6, 530e6, 531e6},
			"interrupts":   {700, 710, 690, 705, 695},
			"polls":        {1000, 1010, 1020, 1030, 1045},
			"retransmits":  {1, 2, 3, 4, 5},
			"time_squeeze": {0, 0, 0, 0, 0},
			"cpu_busy":     {1, 1, 1, 1, 1},
		}),
		variant("after", values{
			"goodput":      {395e6, 396.5e6, 396e6, 397e6, 398.5e6},
			"interrupts":   {97000, 97100, 96900, 97050, 96950},
			"polls":        {1500, 1511, 1520, 1529, 1540},
			"retransmits":  {2, 3, 4, 5, 6},
			"time_squeeze": {12, 12, 12, 12, 12},
			"cpu_busy":     {1, 1, 1, 1, 1},
		}))
}

// TestText pins the whole view. The differences of goodput are -132, -131.5, -133,
// -133 and -132.5 Mbit/s, on average -132.4 with s = √(1.7/4) = 0.6519; the interval
// is 2.7764·0.6519/√5 = 0.81. Of 529 that is -25.03 ± 0.15 %.
func TestText(t *testing.T) {
	const want = `metric        before              after               delta           p
goodput       529.0 ± 2.0 Mbit/s  396.6 ± 1.6 Mbit/s  -25.03 ± 0.15%  p<0.001 n=5  - worse
retransmits   3.0 ± 2.0 frames    4.0 ± 2.0 frames    ~               p=0.062 n=5  ¹
interrupts    700.0 ± 9.8 /s      97.000 ± 0.098 k/s  +13757 ± 13%    p<0.001 n=5  - worse
polls         1.021 ± 0.022 k/s   1.520 ± 0.019 k/s   +48.87 ± 0.29%  p<0.001 n=5  * changed
time_squeeze  0                   12                  from 0          p=0 n=5      - worse ²
cpu_busy      100 %               100 %               ~               p=1.000 n=5
¹ every seed moved by the same amount: sign test
² exact: no seed changes it

Means with 95 % intervals. Runs are paired by seed: paired t test.
Of 5 comparisons 0.25 expected below p=0.05 by chance. p is uncorrected; ~ and the marks follow p after Holm's correction for that many.
`
	if diff := cmp.Diff(want, view(t, example(t), false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestColourRepeatsTheMarks(t *testing.T) {
	c := example(t)
	plain, coloured := view(t, c, false), view(t, c, true)
	escape := regexp.MustCompile("\x1b\\[[0-9;]*m")
	if escape.MatchString(plain) || !escape.MatchString(coloured) {
		t.Error("colour comes if and only if it is asked for")
	}
	if diff := cmp.Diff(plain, escape.ReplaceAllString(coloured, "")); diff != "" {
		t.Errorf("(-plain +coloured):\n%s", diff)
	}
}

func TestTextWithoutTest(t *testing.T) {
	got := view(t, compared(t, variant("a", values{"goodput": {500e6}}), variant("b", values{"goodput": {400e6}})), false)
	const want = `metric   a           b           delta  p
goodput  500 Mbit/s  400 Mbit/s  -20%   n=1  ¹
` + `¹ one pair: no test

Means with 95 % intervals. Runs are paired by seed: paired t test.
! one run is not enough for a test: it says nothing about how much runs vary
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTextHasATableForEachVariant(t *testing.T) {
	v := values{"goodput": {1e6, 2e6, 3e6, 4e6, 5e6}}
	got := view(t, compared(t, variant("base", v), variant("one", v), variant("two", v)), false)
	if !strings.Contains(got, "metric   base") || strings.Count(got, "metric ") != 2 ||
		!strings.Contains(got, " one ") || !strings.Contains(got, " two ") {
		t.Errorf("got\n%s", got)
	}
}

func TestTextWithoutRows(t *testing.T) {
	c := compared(t, variant("a", values{"x": {1}}), variant("b", values{"y": {1}}))
	if got := view(t, c, false); !strings.HasPrefix(got, "no metric in common\n! not compared") {
		t.Errorf("got\n%s", got)
	}
}

func TestFootnotes(t *testing.T) {
	for i, want := range map[int]string{0: "¹", 8: "⁹", 9: "¹⁰", 22: "²³"} {
		if got := footnote(i); got != want {
			t.Errorf("footnote(%d) = %s, want %s", i, got, want)
		}
	}
}
