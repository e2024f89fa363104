package text

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"napisim/reports/result"
	"napisim/reports/result/quantity"
)

// losses writes where frames were lost, the worst place first. It always writes
// something: that nothing was lost is a result, too.
func (p *page) losses(v result.Variant) {
	type key struct{ place, reason, counter string }
	count := map[key]int64{}
	var total int64
	for _, run := range v.Runs {
		for _, loss := range run.Losses {
			if loss.Count > 0 {
				count[key{loss.Place, loss.Reason, loss.Counter}] += loss.Count
				total += loss.Count
			}
		}
	}
	const title = "where frames were lost"
	if total == 0 {
		p.heading(title, "")
		p.line("nothing was lost")
		return
	}
	keys := slices.SortedFunc(maps.Keys(count), func(a, b key) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a.place, b.place),
			strings.Compare(a.reason, b.reason), strings.Compare(a.counter, b.counter))
	})
	note := quantity.Format(float64(total), "frames")
	if len(v.Runs) > 1 {
		note += fmt.Sprintf(" in %d runs", len(v.Runs))
	}
	p.heading(title, note)
	t := Table{Columns: []Column{
		{Name: "place", Wrap: true},
		{Name: "frames", Right: true},
		{Name: "share", Right: true},
		{Name: "reason", Wrap: true},
		{Name: "Linux counter"},
	}}
	for _, k := range keys {
		t.Rows = append(t.Rows, []string{
			k.place, p.opts.paint(red, quantity.Format(float64(count[k]), "1")),
			quantity.Percent(float64(count[k]) / float64(total)), k.reason, cmp.Or(k.counter, "none"),
		})
	}
	p.table(t)
}
