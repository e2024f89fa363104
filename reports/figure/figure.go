package figure

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"napisim/reports/result"
)

// A Row is one published figure of one variant, with what was simulated. Pointers are
// nil where a number does not exist.
type Row struct {
	Metric, Unit, Source, Variant string
	// Role tells the figures that costs were fitted to, which prove nothing.
	Role      result.Role
	Published float64
	// Simulated is a mean, Low and High bound its 95 % interval.
	Simulated, Low, High *float64
	// Base is the variant that the changes are relative to, "" if there is none. The
	// changes are factors; nil where the base is 0.
	Base                             string
	PublishedChange, SimulatedChange *float64
	// Agrees says whether both changes go the same way, nil if one is not known.
	Agrees *bool
}

// A Figure can be written in two formats, any number of times.
type Figure struct {
	title  string
	groups [][]Row // by metric and source
	steps  []Step  // of a waterfall, which has no groups
	note   string  // below a waterfall
}

// maxRows bounds the height of a figure, and so the memory that a PNG takes.
const maxRows = 200

// ErrNone is the error of a figure without rows.
var ErrNone = errors.New("no variant has published figures")

// Published returns the figure of rows under a title. Rows of one metric and source
// that follow each other share a block. There must be at least one row, and the numbers
// must be finite.
func Published(rows []Row, title string) (Figure, error) {
	switch n := len(rows); {
	case n == 0:
		return Figure{}, ErrNone
	case n > maxRows:
		return Figure{}, fmt.Errorf("%d published figures are too many to draw, at most %d", n, maxRows)
	}
	f := Figure{title: title}
	for i, r := range rows {
		for _, v := range []*float64{&r.Published, r.Simulated, r.Low, r.High, r.PublishedChange, r.SimulatedChange} {
			if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
				return Figure{}, fmt.Errorf("%s of %s: %v cannot be drawn", r.Metric, r.Variant, *v)
			}
		}
		if i == 0 || r.Metric != rows[i-1].Metric || r.Source != rows[i-1].Source {
			f.groups = append(f.groups, nil)
		}
		last := len(f.groups) - 1
		f.groups[last] = append(f.groups[last], r)
	}
	return f, nil
}

// WriteSVG writes the figure as SVG, 700 pixels wide.
func (f Figure) WriteSVG(w io.Writer) error {
	canvas := vgsvg.New(width, f.height())
	f.draw(canvas)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	// The fonts are named, not embedded, which would take half a megabyte. Whoever does
	// not have them gets one with the same widths or, at least, one without serifs.
	const named, instead = "font-family:Liberation Sans;", "font-family:Liberation Sans,Arial,Helvetica,sans-serif;"
	_, err := w.Write(bytes.ReplaceAll(b.Bytes(), []byte(named), []byte(instead)))
	return err
}

// dpi makes a PNG twice as wide as the SVG, for screens with small pixels.
const dpi = 192

// WritePNG writes the figure as PNG, 1400 pixels wide.
func (f Figure) WritePNG(w io.Writer) error {
	canvas := vgimg.NewWith(vgimg.UseWH(width, f.height()), vgimg.UseDPI(dpi))
	f.draw(canvas)
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

// rows returns the rows of all groups.
func (f Figure) rows() []Row { return slices.Concat(f.groups...) }

// source returns the source of all rows, "" if they have several.
func (f Figure) source() string {
	first := f.groups[0][0].Source
	for _, g := range f.groups {
		if g[0].Source != first {
			return ""
		}
	}
	return first
}

// fitted reports whether costs were fitted to some row.
func (f Figure) fitted() bool {
	return slices.ContainsFunc(f.rows(), func(r Row) bool { return r.Role == result.RoleFitted })
}
