package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shareTolerance is how far the shares of a core may pass 1. They are rounded
// one by one.
const shareTolerance = 1e-6

// Validate returns an error that lists everything in d that cannot be true of a
// result, whichever program wrote it. Metrics may be undefined numbers here:
// Marshal leaves those out and says so.
func (d *Document) Validate() error {
	if faults := d.faults(); len(faults) > 0 {
		return joinFaults("result", faults)
	}
	return nil
}

func (d *Document) faults() []string {
	var c checker
	c.require(d.Schema == Schema, "schema: %q is not %q", d.Schema, Schema)
	c.require(len(d.Runs) > 0, "runs: is empty")
	type identity struct {
		variant string
		seed    uint64
	}
	first := map[identity]int{}
	for i, run := range d.Runs {
		at := fmt.Sprintf("runs[%d]", i)
		id := identity{run.Variant, run.Seed}
		if j, seen := first[id]; seen {
			c.require(false, "%s: seed %d of variant %q is already in runs[%d]", at, run.Seed, run.Variant, j)
		} else {
			first[id] = i
		}
		c.run(at, run)
	}
	return c.faults
}

// A checker collects faults; every one of them, since a user who repairs a file
// wants to do it once.
type checker struct{ faults []string }

func (c *checker) require(ok bool, format string, args ...any) {
	if !ok {
		c.faults = append(c.faults, fmt.Sprintf(format, args...))
	}
}

func (c *checker) run(at string, r Run) {
	c.require(r.Fingerprint != "" && strings.Trim(r.Fingerprint, "0123456789abcdefABCDEF") == "",
		"%s.fingerprint: %q is not a hexadecimal number", at, r.Fingerprint)
	c.require(r.MeasuredSeconds >= 0 && finite(r.SimulatedSeconds),
		"%s.measured_seconds: %v of %v simulated seconds is no duration", at, r.MeasuredSeconds, r.SimulatedSeconds)
	c.require(r.SimulatedSeconds >= r.MeasuredSeconds,
		"%s.simulated_seconds: %v is less than the measured %v", at, r.SimulatedSeconds, r.MeasuredSeconds)
	for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
		c.metric(at+".metrics."+name, r.Metrics[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.Histograms)) {
		c.histogram(at+".histograms."+name, r.Histograms[name])
	}
	for i, core := range r.Cores {
		c.core(fmt.Sprintf("%s.cores[%d]", at, i), core)
	}
	for i, loss := range r.Losses {
		where := fmt.Sprintf("%s.losses[%d]", at, i)
		c.require(loss.Place != "" && loss.Reason != "", "%s: a loss needs a place and a reason", where)
		c.require(loss.Count >= 0, "%s.count: %d is negative", where, loss.Count)
	}
	for i, p := range r.Provenance {
		where := fmt.Sprintf("%s.provenance[%d]", at, i)
		c.require(slices.Contains(Kinds(), p.Kind), "%s.kind: %q is none of %q", where, p.Kind, Kinds())
		c.require(p.Share >= 0 && p.Share <= 1+shareTolerance, "%s.share: %v is not a fraction", where, p.Share)
	}
	for i, p := range r.Published {
		where := fmt.Sprintf("%s.published[%d]", at, i)
		c.require(p.Source != "" && p.Metric != "", "%s: a published row needs a source and a metric", where)
		c.require(p.Role == RoleFitted || p.Role == RolePredicted,
			"%s.role: %q is neither %q nor %q", where, p.Role, RoleFitted, RolePredicted)
	}
}

func (c *checker) metric(at string, m Metric) {
	c.require(m.Unit != "", "%s.unit: is empty (1 stands for a ratio)", at)
	c.require(m.Better == Higher || m.Better == Lower || m.Better == Neither,
		"%s.better: %q is none of %q, %q and %q", at, m.Better, Higher, Lower, Neither)
}

// histogram checks the summary against itself and against the distribution.
func (c *checker) histogram(at string, h Histogram) {
	c.require(h.Unit != "", "%s.unit: is empty (1 stands for a ratio)", at)
	c.require(h.Scale >= 0, "%s.scale: %v is negative", at, h.Scale)
	c.require(h.Count >= 0, "%s.count: %d is negative", at, h.Count)
	c.require(h.P50 <= h.P90 && h.P90 <= h.P99 && h.P99 <= h.P999,
		"%s: percentiles %v, %v, %v, %v do not rise", at, h.P50, h.P90, h.P99, h.P999)
	if h.HDR == "" {
		return
	}
	decoded, err := h.Decode()
	if err != nil {
		c.require(false, "%s.hdr: %v", at, err)
		return
	}
	c.require(decoded.TotalCount() == h.Count, "%s: count is %d, but hdr holds %d values", at, h.Count, decoded.TotalCount())
}

func (c *checker) core(at string, core Core) {
	sum := 0.0
	for _, context := range slices.Sorted(maps.Keys(core.Shares)) {
		share := core.Shares[context]
		c.require(share >= 0 && share <= 1+shareTolerance, "%s.shares.%s: %v is not a fraction", at, context, share)
		sum += share
	}
	c.require(sum <= 1+shareTolerance, "%s.shares: add up to %v, more than the whole", at, sum)
}
