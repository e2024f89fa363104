package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"napisim/reports/result"
	"napisim/reports/result/quantity"
)

// Render writes a compact view of a document: a part for each of its variants.
func Render(w io.Writer, d *result.Document, o Options) error {
	p := &page{opts: o}
	variants := d.Variants()
	for i, v := range variants {
		if i > 0 {
			p.WriteString("\n")
		}
		p.variant(d, variants, v)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// variant writes everything about the runs of one variant. The other variants
// are only looked at for the direction of published differences.
func (p *page) variant(d *result.Document, all []result.Variant, v result.Variant) {
	p.title(d, v)
	p.runs(v)
	pooled, faults := pool(v)
	for _, block := range result.Blocks() {
		p.block(block, v, pooled)
	}
	p.losses(v)
	p.published(all, v)
	p.provenance(v)
	p.warnings(v, faults)
}

// title names what was run, so that the view can be traced to its inputs.
func (p *page) title(d *result.Document, v result.Variant) {
	parts := []string{p.opts.paint(bold, d.Scenario.Name)}
	if kernel := v.Runs[0].Kernel; kernel != "" {
		parts = append(parts, "kernel "+kernel)
	}
	if v.Label != "" {
		parts = append(parts, "variant "+v.Label)
	}
	seeds := "seed "
	if len(v.Runs) > 1 {
		seeds = "seeds "
	}
	parts = append(parts, seeds+seedRanges(v.Runs))
	p.prose("", strings.Join(parts, "  "))
	p.line("digest %s  by %s %s", d.Scenario.Digest, d.Tool.Name, d.Tool.Version)
	if len(v.Runs) > 1 {
		p.line("numbers are means over %d seeds ± their 95 %% interval", len(v.Runs))
	}
}

// runs lists the fingerprints: equal ones mean that two runs took the same steps.
func (p *page) runs(v result.Variant) {
	t := Table{Columns: []Column{
		{Name: "seed", Right: true}, {Name: "fingerprint"}, {Name: "simulated", Right: true}, {Name: "measured", Right: true},
	}}
	for _, run := range v.Runs {
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(run.Seed), run.Fingerprint,
			quantity.Format(run.SimulatedSeconds, "s"), quantity.Format(run.MeasuredSeconds, "s"),
		})
	}
	p.table(t)
}

// warnings lists what the runs and the view have to say against themselves, each
// thing once.
func (p *page) warnings(v result.Variant, faults []string) {
	count := map[string]int{}
	var order []string
	for _, run := range v.Runs {
		for _, warning := range run.Warnings {
			if count[warning] == 0 {
				order = append(order, warning)
			}
			count[warning]++
		}
	}
	t := Table{Columns: []Column{{}, {Wrap: true}}}
	for _, warning := range order {
		if n := count[warning]; n < len(v.Runs) {
			warning += fmt.Sprintf(" (%d of %d runs)", n, len(v.Runs))
		}
		t.Rows = append(t.Rows, []string{"!", warning})
	}
	for _, fault := range faults {
		t.Rows = append(t.Rows, []string{"!", fault})
	}
	if len(t.Rows) > 0 {
		p.heading("warnings", "")
		p.table(t)
	}
}

// seedRanges writes seeds in order, neighbours as a range: 1..10, 42.
func seedRanges(runs []result.Run) string {
	seeds := make([]uint64, len(runs))
	for i, run := range runs {
		seeds[i] = run.Seed
	}
	slices.Sort(seeds)
	var parts []string
	for i := 0; i < len(seeds); {
		j := i
		for j+1 < len(seeds) && seeds[j+1] == seeds[j]+1 {
			j++
		}
		switch j - i {
		case 0:
			parts = append(parts, fmt.Sprint(seeds[i]))
		case 1:
			parts = append(parts, fmt.Sprint(seeds[i]), fmt.Sprint(seeds[j]))
		default:
			parts = append(parts, fmt.Sprintf("%d..%d", seeds[i], seeds[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
