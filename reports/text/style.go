package text

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

const (
	defaultWidth = 80
	minWidth     = 40 // narrower than this, wrapping helps nobody
	indent       = "  "
)

// Options say how to lay out a view. The zero value is 80 columns wide and
// without colour.
type Options struct {
	// Width is the number of columns to fit into, 0 for 80.
	Width int
	// Colour allows escape sequences. They only repeat what the text says.
	Colour bool
}

func (o Options) width() int {
	if o.Width == 0 {
		return defaultWidth
	}
	return max(o.Width, minWidth)
}

// The sequences are written here, since the table library decides about colour
// once for the whole process and from the environment.
const (
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	reset = "\x1b[0m"
)

// paint wraps text in an escape sequence if colour is asked for.
func (o Options) paint(sequence, text string) string {
	if !o.Colour || text == "" {
		return text
	}
	return sequence + text + reset
}

// A page collects the view.
type page struct {
	strings.Builder
	opts Options
}

// heading starts a section. The note, if any, follows the title in plain text.
func (p *page) heading(title, note string) {
	p.WriteString("\n")
	p.prose("", p.opts.paint(bold, title)+"  "+note)
}

// line writes indented text.
func (p *page) line(format string, args ...any) {
	p.prose(indent, fmt.Sprintf(format, args...))
}

// prose writes text that may wrap at words.
func (p *page) prose(margin, words string) {
	for line := range strings.SplitSeq(text.WrapSoft(words, p.opts.width()-len(margin)), "\n") {
		p.WriteString(strings.TrimRight(margin+line, " ") + "\n")
	}
}

// table writes an indented table, nothing if it has no rows.
func (p *page) table(t Table) {
	if len(t.Rows) == 0 {
		return
	}
	for _, line := range t.lines(p.opts.width()-len(indent), p.opts) {
		p.WriteString(strings.TrimRight(indent+line, " ") + "\n")
	}
}
