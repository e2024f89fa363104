package text_test

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/reports/text"
)

var items = []text.Item{
	{"always_raise", "raise NET_RX on each schedule"},
	{"skip|pipe", `says "no", or not`},
	{"empty", ""},
}

func write(t testing.TB, table text.Table, f text.Format, o text.Options) string {
	t.Helper()
	var b strings.Builder
	if err := table.Write(&b, f, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestListFormats(t *testing.T) {
	tests := map[text.Format]string{
		text.FormatText: `name          description
always_raise  raise NET_RX on each schedule
skip|pipe     says "no", or not
empty
`,
		text.FormatMarkdown: `| name | description |
| --- | --- |
| always_raise | raise NET_RX on each schedule |
| skip\|pipe | says "no", or not |
| empty |  |
`,
		text.FormatCSV: `name,description
always_raise,raise NET_RX on each schedule
skip|pipe,"says ""no"", or not"
empty,
`,
	}
	for format, want := range tests {
		if diff := cmp.Diff(want, write(t, text.List(items), format, text.Options{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

func TestTextWrapsDescriptions(t *testing.T) {
	table := text.List([]text.Item{{"name-of-it", "a description that is longer than the line of a narrow terminal"}})
	const want = `name        description
name-of-it  a description that is longer
            than the line of a narrow
            terminal
`
	if diff := cmp.Diff(want, write(t, table, text.FormatText, text.Options{Width: 42})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := write(t, table, text.FormatMarkdown, text.Options{Width: 42}); strings.Count(got, "\n") != 3 {
		t.Errorf("markdown was wrapped:\n%s", got)
	}
}

// TestWideTableIsCut repeats the first column in front of those that did not fit.
func TestWideTableIsCut(t *testing.T) {
	table := text.Table{Columns: []text.Column{{Name: "cpu"}}}
	row := []string{"0"}
	for _, name := range []string{"aaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbb", "ccccccccccccccc", "ddddddddddddddd"} {
		table.Columns = append(table.Columns, text.Column{Name: name, Right: true})
		row = append(row, strings.ToUpper(name[:1]))
	}
	table.Rows = [][]string{row}
	const want = `cpu  aaaaaaaaaaaaaaa  bbbbbbbbbbbbbbb
0                  A                B

cpu  ccccccccccccccc  ddddddddddddddd
0                  C                D
`
	if diff := cmp.Diff(want, write(t, table, text.FormatText, text.Options{Width: 40})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseFormat(t *testing.T) {
	for name, want := range map[string]text.Format{
		"text": text.FormatText, "markdown": text.FormatMarkdown, "md": text.FormatMarkdown, "csv": text.FormatCSV,
	} {
		if got, err := text.ParseFormat(name); err != nil || got != want {
			t.Errorf("ParseFormat(%q) = %q, %v", name, got, err)
		}
	}
	if _, err := text.ParseFormat("html"); err == nil {
		t.Error("html was taken")
	}
	if err := (text.Table{}).Write(new(strings.Builder), "html", text.Options{}); err == nil {
		t.Error("html was written")
	}
}

// TestCSVProperty reads any cells back with another implementation of CSV.
func TestCSVProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringMatching(`[a-z ,"'=+|-]{0,12}`)
		var list []text.Item
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			list = append(list, text.Item{Name: "n" + cell.Draw(t, "name"), Description: cell.Draw(t, "description")})
		}
		var b strings.Builder
		if err := text.List(list).Write(&b, text.FormatCSV, text.Options{}); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for i, item := range list {
			if diff := cmp.Diff([]string{item.Name, item.Description}, rows[i+1]); diff != "" {
				t.Fatalf("row %d (-want +got):\n%s", i, diff)
			}
		}
	})
}
