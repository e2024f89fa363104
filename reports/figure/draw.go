package figure

import (
	"image/color"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/vg"

	"napisim/reports/result"
)

// Sizes in points; 525 of them are 700 pixels.
const (
	width  vg.Length = 525
	margin vg.Length = 14
	inner            = width - 2*margin

	titleHeight   vg.Length = 22
	legendHeight  vg.Length = 17
	headingHeight vg.Length = 24
	barHeight     vg.Length = 9.5
	pairHeight              = 2 * barHeight
	pairGap       vg.Length = 5 // below each pair of bars
	groupGap      vg.Length = 4 // below each group
	noteHeight    vg.Length = 18

	widestLabel  vg.Length = 150
	widestSource vg.Length = 150
	narrowest    vg.Length = 60 // of the room for bars
	space        vg.Length = 5  // between things side by side
	labelGap     vg.Length = 14 // enough for a font an eighth wider than ours
)

// The shades differ in lightness first.
var (
	white = color.Gray{255}
	ink   = color.Gray{25}
	grey  = color.Gray{95}  // text that matters less
	rule  = color.Gray{215} // lines between groups
	pale  = color.Gray{200} // what was published
	blue  = color.NRGBA{R: 44, G: 104, B: 168, A: 255}
	red   = color.NRGBA{R: 176, G: 24, B: 24, A: 255}
)

// height returns how high the figure is.
func (f Figure) height() vg.Length {
	if f.steps != nil {
		return 2*margin + titleHeight + f.stepsHeight() + noteHeight
	}
	h := 2*margin + titleHeight + legendHeight + noteHeight
	for _, g := range f.groups {
		h += headingHeight + vg.Length(len(g))*(pairHeight+pairGap) + groupGap
	}
	return h
}

// A brush draws on a canvas from top to bottom.
type brush struct {
	vg.Canvas
	top vg.Length // of the canvas
	y   vg.Length // from the top: where the next thing starts

	title, heading, strong, plain font.Face

	bars vg.Length // where bars start
	room vg.Length // and how long the longest may be
}

func (f Figure) draw(c vg.Canvas) {
	b := &brush{
		Canvas: c, top: f.height(), y: margin,
		title: face("LiberationSans-Bold", 12), heading: face("LiberationSans-Bold", 10),
		strong: face("LiberationSans-Bold", 8.5), plain: face("LiberationSans-Regular", 8.5),
	}
	b.box(white, 0, 0, width, b.top)
	b.text(b.title, ink, margin, b.y+10, fit(b.title, f.title, inner))
	b.y += titleHeight
	if f.steps != nil {
		b.cascade(f)
		b.text(b.plain, grey, margin, b.y+12, fit(b.plain, f.note, inner))
		return
	}
	b.columns(f.rows())
	b.legend(f)
	for _, g := range f.groups {
		b.group(g, f.source() == "")
	}
	b.text(b.plain, grey, margin, b.y+12, f.reading())
}

// face returns a font of the collection that comes with gonum/plot.
func face(name string, size vg.Length) font.Face {
	for _, f := range liberation.Collection() {
		if f.Name() == name {
			f.Font.Size = size
			return f
		}
	}
	panic("figure: there is no font " + name)
}

// columns decides how wide the labels are, and what is left for bars.
func (b *brush) columns(rows []Row) {
	var label, number vg.Length
	changes := b.plain.Width(changeHeader)
	for _, r := range rows {
		label = max(label, b.plain.Width(r.Variant))
		if r.Role == result.RoleFitted {
			label = max(label, b.plain.Width(fittedNote))
		}
		number = max(number, b.plain.Width(published(r)), b.plain.Width(simulated(r)))
		changes = max(changes, b.plain.Width(change(r, r.PublishedChange)), b.strong.Width(verdict(r)))
	}
	b.bars = margin + min(label, widestLabel) + labelGap
	b.room = max(narrowest, width-margin-changes-number-4*space-b.bars)
}

const (
	changeHeader = "change"
	fittedNote   = "fitted, proves nothing" // under the label of a fitted row
)

// legend says what the bars are.
func (b *brush) legend(f Figure) {
	const square, gap = 8, 18
	x, base := margin, b.y+8
	entry := func(fill, edge color.Color, text string) {
		b.box(edge, x, b.y+0.5, square, square)
		b.box(fill, x+1, b.y+1.5, square-2, square-2)
		x += square + space
		b.text(b.plain, ink, x, base, text)
		x += b.plain.Width(text) + gap
	}
	name := "published"
	if s := f.source(); s != "" {
		name += ", " + fit(b.plain, s, widestSource)
	}
	entry(pale, pale, name)
	entry(blue, blue, "simulated, 95 % interval")
	if f.fitted() {
		entry(white, blue, "simulated, fitted")
	}
	b.textRight(b.plain, grey, width-margin, base, changeHeader)
	b.y += legendHeight
}

// group draws one metric.
func (b *brush) group(rows []Row, source bool) {
	b.box(rule, margin, b.y, inner, 0.75)
	name := fit(b.heading, rows[0].Metric, inner/2)
	b.text(b.heading, ink, margin, b.y+15, name)
	if source {
		x := margin + b.heading.Width(name) + 2*space
		b.text(b.plain, grey, x, b.y+15, fit(b.plain, rows[0].Source, width-margin-x))
	}
	b.y += headingHeight
	s := scaleOf(rows)
	zero := b.bars + s.at(0, b.room)
	b.box(grey, zero-0.75, b.y-2, 0.75, vg.Length(len(rows))*(pairHeight+pairGap)-pairGap+4)
	for _, r := range rows {
		b.pair(r, s)
		b.y += pairHeight + pairGap
	}
	b.y += groupGap
}

// pair draws the two bars of a row, what they are of, and what changed.
func (b *brush) pair(r Row, s scale) {
	upper, lower := b.y+barHeight-2, b.y+pairHeight-2 // where text stands
	middle := (upper + lower) / 2
	label := fit(b.plain, r.Variant, widestLabel)
	right := b.bars - labelGap
	fitted := r.Role == result.RoleFitted
	if fitted {
		b.textRight(b.plain, ink, right, upper, label)
		b.textRight(b.plain, grey, right, lower, fittedNote)
	} else {
		b.textRight(b.plain, ink, right, middle, label)
	}

	end := b.bar(pale, s, b.y, r.Published)
	b.text(b.plain, grey, end+space, upper, published(r))
	if r.Simulated == nil {
		b.text(b.plain, grey, b.bars+s.at(0, b.room)+space, lower, simulated(r))
	} else {
		b.text(b.plain, ink, b.simulated(r, s, fitted)+space, lower, simulated(r))
	}

	right = width - margin
	if r.Base != "" && r.Variant == r.Base {
		b.textRight(b.plain, grey, right, middle, "base")
		return
	}
	b.textRight(b.plain, grey, right, upper, change(r, r.PublishedChange))
	shade := color.Color(ink)
	if wrong(r) {
		shade = red
	}
	b.textRight(b.strong, shade, right, lower, verdict(r))
}

// simulated draws the lower bar with its interval and returns where both end.
func (b *brush) simulated(r Row, s scale, fitted bool) vg.Length {
	y := b.y + barHeight
	end := b.bar(blue, s, y, *r.Simulated)
	if zero := b.bars + s.at(0, b.room); fitted && end-zero > 2 {
		b.box(white, zero, y+1.5, end-zero-1, barHeight-3)
	}
	if r.Low == nil || r.High == nil || *r.Low == *r.High {
		return end
	}
	const thick, serif = 1, 2.5
	from, to := b.bars+s.at(max(*r.Low, s.low), b.room), b.bars+s.at(*r.High, b.room)
	middle := y + barHeight/2
	b.box(ink, from, middle-thick/2., to-from, thick)
	b.box(ink, to-thick/2., middle-serif, thick, 2*serif)
	if *r.Low >= s.low {
		b.box(ink, from-thick/2., middle-serif, thick, 2*serif)
	}
	return max(end, to)
}

// bar draws a bar from 0 to a value and returns its right end.
func (b *brush) bar(shade color.Color, s scale, y vg.Length, value float64) vg.Length {
	zero, end := b.bars+s.at(0, b.room), b.bars+s.at(value, b.room)
	left, right := min(zero, end), max(zero, end)
	b.box(shade, left, y+0.5, right-left, barHeight-1)
	return right
}

// box fills a rectangle whose upper left corner is x, y from the top.
func (b *brush) box(shade color.Color, x, y, w, h vg.Length) {
	b.SetColor(shade)
	b.Fill(vg.Rectangle{Min: vg.Point{X: x, Y: b.top - y - h}, Max: vg.Point{X: x + w, Y: b.top - y}}.Path())
}

// text writes from x on, on a base line y from the top.
func (b *brush) text(f font.Face, shade color.Color, x, y vg.Length, text string) {
	b.SetColor(shade)
	b.FillString(f, vg.Point{X: x, Y: b.top - y}, text)
}

// textRight is text that ends at x.
func (b *brush) textRight(f font.Face, shade color.Color, x, y vg.Length, text string) {
	if text != "" {
		b.text(f, shade, x-f.Width(text), y, text)
	}
}

// A scale is the range of a metric, 0 included.
type scale struct{ low, high float64 }

// scaleOf returns the range of rows. Where an interval crosses 0 while no value does, it
// is cut there.
func scaleOf(rows []Row) scale {
	var s scale
	include := func(v float64) { s.low, s.high = min(s.low, v), max(s.high, v) }
	for _, r := range rows {
		include(r.Published)
		if r.Simulated != nil {
			include(*r.Simulated)
		}
		if r.High != nil {
			include(*r.High)
		}
	}
	if s.low == s.high {
		s.high = 1
	}
	return s
}

// at returns how far right a value lies in some room.
func (s scale) at(value float64, room vg.Length) vg.Length {
	return room * vg.Length((value-s.low)/(s.high-s.low))
}
