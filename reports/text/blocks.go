package text

import (
	"maps"
	"slices"
	"strings"

	"napisim/reports/result"
	"napisim/reports/result/quantity"
)

// A pooled is one histogram of a variant, over all its runs.
type pooled struct {
	name string
	result.Histogram
}

// pool merges the histograms of the runs by name. What cannot be merged comes
// back as a line for the warnings.
func pool(v result.Variant) (histograms []pooled, faults []string) {
	parts := map[string][]result.Histogram{}
	for _, run := range v.Runs {
		for name, h := range run.Histograms {
			parts[name] = append(parts[name], h)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(parts), result.CompareNames) {
		if len(parts[name]) == 1 {
			histograms = append(histograms, pooled{name, parts[name][0]})
			continue
		}
		merged, err := result.Merge(parts[name]...)
		if err != nil {
			faults = append(faults, "histogram "+name+" is not shown: "+err.Error())
			continue
		}
		histograms = append(histograms, pooled{name, merged})
	}
	return histograms, faults
}

// blockOf says where a histogram is shown: beside the metric of its name, and
// anything in seconds with the latencies.
func (h pooled) blockOf() result.Block {
	if h.Unit == "s" {
		return result.BlockLatency
	}
	d, _ := result.Lookup(h.name)
	return d.Block
}

// block writes the metrics of one block, then its distributions. A block without
// either is left out.
func (p *page) block(block result.Block, v result.Variant, histograms []pooled) {
	histograms = slices.DeleteFunc(slices.Clone(histograms), func(h pooled) bool { return h.blockOf() != block })
	var names []string
	for _, name := range v.MetricNames() {
		if d, _ := result.Lookup(name); d.Block == block && !repeats(name, v, histograms) {
			names = append(names, name)
		}
	}
	cores := block == result.BlockCPU && slices.ContainsFunc(v.Runs, func(r result.Run) bool { return len(r.Cores) > 0 })
	if len(names)+len(histograms) == 0 && !cores {
		return
	}
	p.heading(string(block), "")
	p.table(metricTable(v, names, p.opts.width()-len(indent)))
	p.table(distributions(histograms, len(v.Runs)))
	if cores {
		p.cores(v)
	}
}

// repeats reports whether a metric says again what the latency histogram of the
// only run already says.
func repeats(metric string, v result.Variant, histograms []pooled) bool {
	summary, isLatency := strings.CutPrefix(metric, "latency_")
	return len(v.Runs) == 1 && isLatency &&
		slices.Contains([]string{"mean", "p50", "p90", "p99", "p999", "max"}, summary) &&
		slices.ContainsFunc(histograms, func(h pooled) bool { return h.name == "latency" })
}

// metricTable lists metrics, side by side in two columns if they fit.
func metricTable(v result.Variant, names []string, width int) Table {
	one := []Column{{}, {Right: true}, {}}
	var rows [][]string
	for _, name := range names {
		number, unit := metricText(v, name)
		rows = append(rows, []string{name, number, unit})
	}
	single := Table{Columns: one, Rows: rows}
	if len(rows) < 4 {
		return single
	}
	half := (len(rows) + 1) / 2
	double := Table{Columns: slices.Concat(one, []Column{{}}, one)}
	for i := range half {
		right := []string{"", "", ""}
		if i+half < len(rows) {
			right = rows[i+half]
		}
		double.Rows = append(double.Rows, slices.Concat(rows[i], []string{""}, right))
	}
	if totalWidth(double.widths()) > width {
		return single
	}
	return double
}

// metricText returns the mean of a metric over the runs, with its interval if
// there are several.
func metricText(v result.Variant, name string) (number, unit string) {
	for _, run := range v.Runs {
		if m, ok := run.Metrics[name]; ok {
			unit = m.Unit
			break
		}
	}
	s := result.Summarize(v.Values(name))
	factor, unit := result.Shown(name, unit)
	if s.N == 1 {
		return quantity.Split(factor*s.Mean, unit)
	}
	return quantity.Interval(factor*s.Mean, factor*s.Half, unit)
}

// distributions lists histograms with their percentiles. Only times are scaled one
// by one; any other unit is named once.
func distributions(histograms []pooled, runs int) Table {
	title := "distribution"
	if runs > 1 {
		title = "pooled"
	}
	t := Table{Columns: []Column{{Name: title}, {Name: "count", Right: true}}}
	for _, name := range []string{"mean", "p50", "p90", "p99", "p99.9", "max"} {
		t.Columns = append(t.Columns, Column{Name: name, Right: true})
	}
	for _, h := range histograms {
		name, unit := h.name, h.Unit
		if unit != "s" && unit != "1" {
			name, unit = name+", "+unit, "1"
		}
		row := []string{name, quantity.Format(float64(h.Count), "1")}
		for _, value := range []float64{h.Mean, h.P50, h.P90, h.P99, h.P999, h.Max} {
			row = append(row, quantity.Format(value, unit))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
