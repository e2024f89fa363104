package figure

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
)

// A Step is one line of a waterfall: a level that stands on 0, or what leads from the
// level before to the next one.
type Step struct {
	// Name is to the left of the bar, Number to the right.
	Name, Number string
	// From is 0 for a level.
	From, To float64
	Level    bool
	// Half is half the width of the 95 % interval of the step, 0 or NaN for none.
	Half float64
	// Strong marks a step that matters.
	Strong bool
}

// Waterfall returns the figure of how one level becomes another in steps. The note below
// it says how to read it. There must be at least one step, and the numbers must be finite.
func Waterfall(steps []Step, title, note string) (Figure, error) {
	switch n := len(steps); {
	case n == 0:
		return Figure{}, ErrNone
	case n > maxRows:
		return Figure{}, fmt.Errorf("%d steps are too many to draw, at most %d", n, maxRows)
	}
	for _, s := range steps {
		for _, v := range []float64{s.From, s.To} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return Figure{}, fmt.Errorf("%s: %v cannot be drawn", s.Name, v)
			}
		}
	}
	return Figure{title: title, steps: steps, note: note}, nil
}

const stepHeight = 2 * barHeight

// stepsHeight is the height of what is between the title and the note.
func (f Figure) stepsHeight() vg.Length { return vg.Length(len(f.steps)) * (stepHeight + pairGap) }

// cascade draws the steps, from top to bottom.
func (b *brush) cascade(f Figure) {
	var label, number vg.Length
	s := scale{}
	for _, step := range f.steps {
		label, number = max(label, b.plain.Width(step.Name)), max(number, b.plain.Width(step.Number))
		s.low, s.high = min(s.low, step.From, step.To), max(s.high, step.From, step.To)
		if step.Half > 0 {
			s.low, s.high = min(s.low, step.To-step.Half), max(s.high, step.To+step.Half)
		}
	}
	if s.low == s.high {
		s.high = 1
	}
	b.bars = margin + min(label, widestLabel) + labelGap
	b.room = max(narrowest, width-margin-number-2*space-b.bars)
	for i, step := range f.steps {
		b.step(step, s)
		if i+1 < len(f.steps) { // where the next bar starts
			b.box(rule, b.bars+s.at(step.To, b.room)-0.25, b.y+stepHeight-1, 0.5, pairGap+2)
		}
		b.y += stepHeight + pairGap
	}
}

// step draws one bar with its name, its number and its interval.
func (b *brush) step(step Step, s scale) {
	const padding = 3
	from, to := b.bars+s.at(step.From, b.room), b.bars+s.at(step.To, b.room)
	var shade color.Color = pale
	font := b.plain
	switch {
	case step.Level:
		shade = blue
	case step.Strong:
		shade, font = red, b.strong
	}
	b.box(shade, min(from, to), b.y+padding, max(max(from, to)-min(from, to), 0.75), stepHeight-2*padding)
	if step.Half > 0 {
		const thick, serif = 1, 2.5
		low, high := b.bars+s.at(step.To-step.Half, b.room), b.bars+s.at(step.To+step.Half, b.room)
		middle := b.y + stepHeight/2
		b.box(ink, low, middle-thick/2., high-low, thick)
		b.box(ink, low-thick/2., middle-serif, thick, 2*serif)
		b.box(ink, high-thick/2., middle-serif, thick, 2*serif)
	}
	base := b.y + stepHeight/2 + 3
	b.text(font, ink, margin, base, fit(font, step.Name, widestLabel))
	b.textRight(font, ink, width-margin, base, step.Number)
}
