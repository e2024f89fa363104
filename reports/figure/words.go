package figure

import (
	"fmt"
	"strings"
	"unicode"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"

	"napisim/reports/result"
	"napisim/reports/result/quantity"
)

// published writes the number of a published bar.
func published(r Row) string { return result.Text(r.Metric, r.Unit, r.Published) }

// simulated writes the number of a simulated bar.
func simulated(r Row) string {
	if r.Simulated == nil {
		return "not simulated"
	}
	return result.TextWithin(r.Metric, r.Unit, *r.Simulated, r.High)
}

// change writes a change against the base, "" where nothing is known.
func change(r Row, by *float64) string {
	switch {
	case by == nil && r.Agrees != nil:
		return "from 0"
	case by == nil:
		return ""
	}
	return factor(*by)
}

// verdict writes the simulated change, and whether it goes the wrong way.
func verdict(r Row) string {
	text := change(r, r.SimulatedChange)
	if wrong(r) {
		text += " wrong way"
	}
	return text
}

// wrong reports whether a change is known to go another way than the published one.
func wrong(r Row) bool { return r.Agrees != nil && !*r.Agrees }

// factor writes a factor. One of thousands comes from a base of almost nothing, and its
// digits would say no more.
func factor(f float64) string {
	const immense = 1000
	switch {
	case f > immense:
		return fmt.Sprintf("> × %d", immense)
	case f > 0.1 && f < 10:
		return fmt.Sprintf("× %.2f", f)
	}
	return "× " + quantity.Format(f, "1")
}

// reading says how to read the figure and what it is worth.
func (f Figure) reading() string {
	if f.fitted() {
		return "Each metric has its own scale from 0. Costs were chosen to meet the fitted figures, which therefore prove nothing."
	}
	return "Each metric has its own scale from 0. No cost was chosen to meet these figures."
}

// fit returns a text that is no wider than most, cut and with an ellipsis if need be.
// What cannot be printed would make an SVG that no one can read.
func fit(face font.Face, text string, most vg.Length) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	if face.Width(text) <= most {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && face.Width(string(runes)+"…") > most {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}
