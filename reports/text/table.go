package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A Format is a way to write a table.
type Format string

// The formats of a table.
const (
	FormatText     Format = "text"
	FormatMarkdown Format = "markdown"
	FormatCSV      Format = "csv"
)

// ParseFormat returns the format of a name; md stands for markdown.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case FormatText, FormatMarkdown, FormatCSV:
		return f, nil
	case "md":
		return FormatMarkdown, nil
	}
	return "", fmt.Errorf("unknown table format %q: expected %s, %s or %s", name, FormatText, FormatMarkdown, FormatCSV)
}

// A Table is rows of text under named columns.
type Table struct {
	Columns []Column
	Rows    [][]string
}

// A Column heads the cells below it. Right aligns them to the right, as numbers
// are. Wrap lets a text view break them at words when the line is too long.
type Column struct {
	Name  string
	Right bool
	Wrap  bool
}

// An Item is something that a list names and describes.
type Item struct {
	Name        string
	Description string
}

// List returns the table of a list of items.
func List(items []Item) Table {
	t := Table{Columns: []Column{{Name: "name"}, {Name: "description", Wrap: true}}}
	for _, item := range items {
		t.Rows = append(t.Rows, []string{item.Name, item.Description})
	}
	return t
}

// Write writes the table. Options matter to the text format only: the others are
// read by programs, which want whole cells.
func (t Table) Write(w io.Writer, f Format, o Options) error {
	var out string
	switch f {
	case FormatMarkdown:
		out = t.writer().RenderMarkdown()
	case FormatCSV:
		out = t.writer().RenderCSV()
	case FormatText:
		out = strings.Join(t.lines(o.width(), o), "\n")
	default:
		return fmt.Errorf("unknown table format %q", f)
	}
	_, err := io.WriteString(w, out+"\n")
	return err
}

const (
	columnGap = "  "
	minWrap   = 12 // the narrowest column that words still fit into
)

// writer hands the table to the library, without borders and with two spaces
// between columns.
func (t Table) writer() table.Writer {
	w := table.NewWriter()
	w.SetStyle(table.Style{Box: table.BoxStyle{PaddingRight: columnGap}})
	if slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Name != "" }) {
		header := table.Row{}
		for _, c := range t.Columns {
			header = append(header, c.Name)
		}
		w.AppendHeader(header)
	}
	for _, cells := range t.Rows {
		row := table.Row{}
		for _, cell := range cells {
			row = append(row, cell)
		}
		w.AppendRow(row)
	}
	w.SetColumnConfigs(t.configs(t.widths()))
	return w
}

func (t Table) configs(widths []int) []table.ColumnConfig {
	configs := make([]table.ColumnConfig, len(t.Columns))
	for i, c := range t.Columns {
		configs[i] = table.ColumnConfig{Number: i + 1, WidthMax: widths[i], WidthMaxEnforcer: text.WrapSoft}
		if c.Right {
			configs[i].Align, configs[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	return configs
}

// widths returns how wide each column is if nothing wraps.
func (t Table) widths() []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = text.StringWidthWithoutEscSequences(c.Name)
		for _, row := range t.Rows {
			widths[i] = max(widths[i], text.StringWidthWithoutEscSequences(row[i]))
		}
	}
	return widths
}

func totalWidth(widths []int) int {
	total := len(columnGap) * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	return total
}

// lines lays the table out in so many columns of the terminal. Columns that may
// wrap give way first, the widest before the others. If that is not enough the
// table is cut into several, each of which repeats the first column.
func (t Table) lines(width int, o Options) []string {
	widths := t.widths()
	for totalWidth(widths) > width {
		widest := -1
		for i, c := range t.Columns {
			if c.Wrap && widths[i] > minWrap && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return t.cut(width, o)
		}
		widths[widest]--
	}
	return t.render(widths, o)
}

// cut splits the columns over several tables. A table of two columns is left as
// wide as it is.
func (t Table) cut(width int, o Options) []string {
	widths := t.widths()
	n := 2
	for n < len(widths) && totalWidth(widths[:n+1]) <= width {
		n++
	}
	if n >= len(widths) {
		return t.render(widths, o)
	}
	first, rest := t.columns(0, 1, n), t.columns(0, n, len(widths))
	return append(append(first.lines(width, o), ""), rest.lines(width, o)...)
}

// columns returns a table of one column and a range of others.
func (t Table) columns(key, from, to int) Table {
	part := Table{Columns: append([]Column{t.Columns[key]}, t.Columns[from:to]...)}
	for _, row := range t.Rows {
		part.Rows = append(part.Rows, append([]string{row[key]}, row[from:to]...))
	}
	return part
}

func (t Table) render(widths []int, o Options) []string {
	if o.Colour {
		// A copy, since the caller's table may be written again without colour.
		t.Columns = slices.Clone(t.Columns)
		for i := range t.Columns {
			t.Columns[i].Name = o.paint(bold, t.Columns[i].Name)
		}
	}
	w := t.writer()
	w.SetColumnConfigs(t.configs(widths))
	lines := strings.Split(w.Render(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}
