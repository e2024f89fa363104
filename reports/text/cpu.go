package text

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"napisim/reports/result"
)

// contextOrder is how top and mpstat order what a CPU does; other contexts follow
// by name, idle comes last.
var contextOrder = []string{"user", "system", "kernel", "task", "hardirq", "softirq", "ksoftirqd"}

// idleShare is the context of doing nothing, idleEnough from where on a core is
// not worth a line.
const (
	idleShare  = "idle"
	idleEnough = 0.9995
)

// cores writes the shares of each core, a column per context. Cores that idle are
// named in one line, or a large machine would fill the screen.
func (p *page) cores(v result.Variant) {
	shares := meanShares(v)
	contexts := contextsOf(shares)
	t := Table{Columns: []Column{{Name: "share of time", Right: true}}}
	for _, context := range contexts {
		t.Columns = append(t.Columns, Column{Name: context, Right: true})
	}
	var idle []string
	for _, cpu := range slices.Sorted(maps.Keys(shares)) {
		if shares[cpu][idleShare] >= idleEnough {
			idle = append(idle, fmt.Sprint(cpu))
			continue
		}
		row := []string{fmt.Sprintf("cpu %d", cpu)}
		for _, context := range contexts {
			row = append(row, fmt.Sprintf("%.1f %%", 100*shares[cpu][context]))
		}
		t.Rows = append(t.Rows, row)
	}
	p.table(t)
	if len(idle) > 0 {
		p.table(Table{Columns: []Column{{}, {Wrap: true}}, Rows: [][]string{{"idle throughout:", "cpu " + strings.Join(idle, ", ")}}})
	}
}

// meanShares averages the shares of each core over the runs.
func meanShares(v result.Variant) map[int]map[string]float64 {
	means := map[int]map[string]float64{}
	for _, run := range v.Runs {
		for _, core := range run.Cores {
			if means[core.CPU] == nil {
				means[core.CPU] = map[string]float64{}
			}
			for context, share := range core.Shares {
				means[core.CPU][context] += share / float64(len(v.Runs))
			}
		}
	}
	return means
}

func contextsOf(shares map[int]map[string]float64) []string {
	found := map[string]bool{}
	for _, core := range shares {
		for context := range core {
			found[context] = true
		}
	}
	rank := func(context string) int {
		if context == idleShare {
			return len(contextOrder) + 1
		}
		if i := slices.Index(contextOrder, context); i >= 0 {
			return i
		}
		return len(contextOrder)
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
}
