package cost

import (
	"math"
	"path/filepath"
	"testing"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/input"
)

// fit returns the costs of a recording: one that is kept here, or of those of which only
// some are kept. Where there is neither the test is skipped.
func fit(t *testing.T, id string) *Costs {
	t.Helper()
	dirs := []string{filepath.Join("../testdata/runs", id)}
	for up := "../../../.."; len(up) < 30; up += "/.." {
		dirs = append(dirs, filepath.Join(up, "shared/traces/runs", id))
	}
	for _, dir := range dirs {
		if r, err := recording.Load(dir); err == nil {
			return Of(r, input.Of(r))
		}
	}
	t.Skip("no such recording here")
	return nil
}

// A published value and how far off a fit may be.
type published struct {
	id, name string
	want     float64
	share    float64
}

func compare(t *testing.T, all []published) {
	t.Helper()
	for _, c := range all {
		t.Run(c.id+"/"+c.name, func(t *testing.T) {
			v, ok := fit(t, c.id).Get(c.name)
			if !ok || math.Abs(v.NS-c.want) > c.share*c.want {
				t.Errorf("%.1f of %d (%d to %d), want %.1f", v.NS, v.N, v.Min, v.Max, c.want)
			}
		})
	}
}

// TestFact20Costs holds costs against those published with the recordings: the lines of the
// table of runs, and the rest of fact 20.
func TestFact20Costs(t *testing.T) {
	compare(t, []published{
		{"k61-e1000e-cost", "poll_per_frame nb", 4418.3, 0.001},
		{"k61-e1000e-cost", "poll_fixed nb", 1747.6, 0.001},
		{"k61-e1000-cost", "poll_per_frame nb", 4189, 0.001},
		{"k61-e1000-cost", "poll_fixed nb", 2820.8, 0.001},
		{"k612-e1000-cost", "poll_per_frame nb", 4040, 0.01},
		{"k61-backlog-burst300", "poll_per_frame (no_device)", 2896.5, 0.001},
		{"k61-e1000-burst300-kp", "poll_per_frame nb", 6300.7, 0.001},
		{"k61-e1000e-burst1000", "traced_event", 580, 0.02},  // 580 to 700, the least
		{"k61-e1000e-cost", "poll_empty nb", 1000, 0.15},     // 0.9 to 1.1 us
		{"k61-e1000e-cost", "irq_handler nb rx", 1250, 0.05}, // 1.2 to 1.3 us
	})
}

// TestR8FixedDistances holds the distances of lines against those of kernel-facts 19.2 item 8.
func TestR8FixedDistances(t *testing.T) {
	compare(t, []published{
		{"k61-e1000e-cost", "irq_exit_to_softirq", 802, 0.01},
		{"k612-e1000e-cost", "irq_exit_to_softirq", 815, 0.01},
		{"k61-e1000e-burst1000", "softirq_restart", 607, 0.01},
		{"k612-e1000e-burst1000", "softirq_restart", 624, 0.01},
		{"k61-e1000e-burst1000", "softirq_restart_ksoftirqd", 634, 0.015},
		{"k612-e1000e-burst1000", "softirq_restart_ksoftirqd", 650, 0.015},
		{"k61-e1000e-burst1000", "softirq_next_vector", 580, 0.02},
		{"k612-e1000e-burst1000", "softirq_next_vector", 596, 0.02},
		{"k61-e1000e-burst1000", "poll_to_exit", 655, 0.01},
		{"k612-e1000e-burst1000", "poll_to_exit", 670, 0.01},
		{"k61-e1000e-burst1000", "repoll_to_exit", 585, 0.01},
		{"k612-e1000e-burst1000", "repoll_to_exit", 606, 0.01},
		{"k61-e1000e-satburst64", "switch_to_ksoftirqd", 1005, 0.04},   // 972 to 1038
		{"k612-e1000e-satburst64", "switch_to_ksoftirqd", 1013, 0.015}, // 1004 to 1023
	})
}

// TestLine: a line through points that lie on one is that line.
func TestLine(t *testing.T) {
	c := &Costs{}
	l := straight{fixed: "a", slope: "b"}
	for x := range 5 {
		l.add(float64(x), int64(1000+20*x), x)
	}
	c.line(l)
	a, _ := c.Get("a")
	b, _ := c.Get("b")
	if math.Abs(a.NS-1000) > 1e-6 || math.Abs(b.NS-20) > 1e-6 || b.R2 < 0.999999 || b.N != 5 || len(b.Rows) != 5 {
		t.Error(a, b)
	}
}

// TestTwoGroups parts what is apart and leaves the rest together.
func TestTwoGroups(t *testing.T) {
	group := func(ns ...int64) (out []sample) {
		for _, n := range ns {
			out = append(out, sample{ns: n})
		}
		return out
	}
	if low, high := twoGroups(group(783, 634, 629, 789)); len(low) != 2 || len(high) != 2 {
		t.Error(low, high)
	}
	if low, high := twoGroups(group(634, 629, 640)); len(low) != 3 || len(high) != 0 {
		t.Error(low, high)
	}
}
