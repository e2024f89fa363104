package unit

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Grammar says how a quantity is written. The parser and the formatter obey it, a
// JSON schema takes its pattern from it, and a user is shown its units.
type Grammar struct {
	// Quantity is what is measured, for messages: "duration".
	Quantity string
	// Quantum is the smallest step that a value can take: "1 ps".
	Quantum string
	// Example is a text of this quantity that a user may take as a pattern.
	Example string

	scales []scale
	zero   string // the symbol that zero is written with
	whole  bool   // write whole counts only: 1536 is 1536B, not 1.536kB
	trap   string // what a wrong unit of this quantity usually confuses
	// spellings maps a wrong unit in lower case to the right one, for hints only.
	spellings map[string]string
}

// A scale is one unit: its symbol and its length in quanta.
type scale struct {
	symbol string
	quanta uint64
	alias  bool // read, but never written
}

// Units returns the symbols that may follow a number, smallest unit first, without
// those that only repeat another.
func (g Grammar) Units() []string {
	var symbols []string
	for _, s := range g.scales {
		if !s.alias {
			symbols = append(symbols, s.symbol)
		}
	}
	return symbols
}

// Pattern returns an anchored regular expression for the texts of the quantity. It
// is wider than the parser by the values that are too large or too fine.
func (g Grammar) Pattern() string {
	var symbols []string
	for _, s := range g.scales {
		symbols = append(symbols, regexp.QuoteMeta(s.symbol))
	}
	return `^[0-9]+(\.[0-9]+)?(` + strings.Join(symbols, "|") + `)$`
}

// scale returns the unit with exactly this symbol.
func (g Grammar) scale(symbol string) (scale, bool) {
	i := slices.IndexFunc(g.scales, func(s scale) bool { return s.symbol == symbol })
	if i < 0 {
		return scale{}, false
	}
	return g.scales[i], true
}

// nearest returns the symbol that a wrong one was probably meant to be, or "".
func (g Grammar) nearest(wrong string) string {
	for _, s := range g.scales {
		if strings.EqualFold(s.symbol, wrong) {
			return s.symbol
		}
	}
	return g.spellings[strings.ToLower(wrong)]
}

// An Error says why a text is not a value of a quantity.
type Error struct {
	// Text is what was written.
	Text string
	// Reason continues a sentence that starts with the text: "needs a unit".
	Reason string
	// Suggestion is the whole text as it was probably meant, or empty.
	Suggestion string
}

// Error returns the text, the reason and the suggestion in one line.
func (e *Error) Error() string {
	message := strconv.Quote(e.Text) + " " + e.Reason
	if e.Suggestion != "" {
		message += " (did you mean " + strconv.Quote(e.Suggestion) + "?)"
	}
	return message
}
