package scenarios

import (
	"slices"
	"strings"
	"testing"

	"napisim/model/unit"
	"napisim/reports/result"
	"napisim/scenarios/spec"
)

// mean runs a scenario of the library for a few seeds and returns the mean of a
// metric over them.
func mean(t *testing.T, seconds unit.Duration, seeds int, name string, sets ...string) func(metric string) float64 {
	t.Helper()
	s := load(t, name, sets...)
	if seconds > 0 {
		s.Duration = seconds
	}
	runs, err := Batch{Parallel: 2}.RunAll(Jobs([]*spec.Scenario{s}, []string{""}, seeds))
	if err != nil {
		t.Fatal(err)
	}
	return func(metric string) float64 {
		t.Helper()
		var sum float64
		for _, r := range runs {
			m, ok := r.Metrics[metric]
			if !ok {
				t.Fatalf("%s: no metric %s", name, metric)
			}
			sum += m.Value
		}
		return sum / float64(len(runs))
	}
}

// effect marks a test of an effect as a long one: it runs whole scenarios for several
// seeds, tens of seconds of simulated time.
func effect(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("effects need whole scenarios")
	}
}

// The lan966x regression emerges: published are 529 against 396 Mbit/s, 1000 against
// 97000 interrupts in 10 s, 11 against 456 retransmits. The bounds are those within which
// the effect is the same one, not the spread of the model. The thread's other two
// kernels, one with the flag always cleared and one without the ksoftirqd rule, were
// like the new one (401 and 400 Mbit/s).
func TestLan966xRegressionEmerges(t *testing.T) {
	effect(t)
	const schedule = "kernel.behaviours.napi_schedule="
	for _, hz := range []string{"hz=100", "hz=250", "hz=1000"} {
		t.Run(hz, func(t *testing.T) {
			seeds := 4
			if hz == "hz=1000" {
				// Three runs in eight of the old kernel fall into the new one's rhythm there.
				seeds = 8
			}
			always := mean(t, 0, seeds, "lan966x-napi-schedule", hz, schedule+spec.AlwaysRaise)
			skip := mean(t, 0, 4, "lan966x-napi-schedule", hz, schedule+spec.SkipRaise)
			if r := skip("goodput") / always("goodput"); r < 0.65 || r > 0.90 {
				t.Errorf("goodput changes by a factor of %.3f, published 0.75", r)
			}
			if a, s := always("interrupts"), skip("interrupts"); s < 4000 || s < 3*a {
				t.Errorf("%.0f interrupts per second grow to %.0f", a, s)
			}
			if f := skip("frames_per_interrupt"); f < 2 || f > 12 {
				t.Errorf("%.1f frames per interrupt with the new behaviour, published 3.5", f)
			}
			clear := mean(t, 0, 4, "lan966x-napi-schedule", hz, schedule+spec.ClearAlways)
			if r := clear("goodput") / skip("goodput"); r < 0.97 || r > 1.03 {
				t.Errorf("clearing the flag always changes goodput by %.3f, published 1.01", r)
			}
		})
	}
}

// At the platform's HZ the contrast is as large as published, and most of the new
// behaviour's losses are repaired by retransmissions.
func TestLan966xContrast(t *testing.T) {
	effect(t)
	const schedule = "kernel.behaviours.napi_schedule="
	always := mean(t, 0, 4, "lan966x-napi-schedule", schedule+spec.AlwaysRaise)
	skip := mean(t, 0, 4, "lan966x-napi-schedule", schedule+spec.SkipRaise)
	inline := mean(t, 0, 4, "lan966x-napi-schedule", schedule+spec.SkipRaise, "kernel.behaviours.ksoftirqd=inline")
	if a, s := always("interrupts"), skip("interrupts"); s < 10*a {
		t.Errorf("%.0f interrupts per second grow to %.0f only", a, s)
	}
	if f := always("frames_per_interrupt"); f < 100 {
		t.Errorf("%.0f frames per interrupt with the old behaviour", f)
	}
	if a, s := always("retransmits"), skip("retransmits"); s < 5*a {
		t.Errorf("%.0f retransmits grow to %.0f only", a, s)
	}
	if r := inline("goodput") / skip("goodput"); r < 0.9 || r > 1.1 {
		t.Errorf("the ksoftirqd rule changes the new behaviour by %.3f, published 1.01", r)
	}
}

// Published: 900 kpps and half of the core for the reader with 4cd13c21b207, 2 kpps
// without; 718 kpps on the same core and 2.31 Mpps on another (the latter fitted).
func TestUDPFloodStarvesTheReader(t *testing.T) {
	effect(t)
	const payload = 18 * 8
	rate := func(sets ...string) float64 {
		return mean(t, 200*unit.Millisecond, 1, "udp-flood-one-core", sets...)("goodput") / payload
	}
	shared, inline, other := rate(), rate("kernel.behaviours.ksoftirqd=inline"), rate("apps.udp_sink.cpu=1")
	if shared < 500e3 || shared > 1300e3 {
		t.Errorf("%.0f datagrams per second with ksoftirqd sharing the core", shared)
	}
	if inline > shared/100 {
		t.Errorf("%.0f datagrams per second with softirqs inline, %.0f without", inline, shared)
	}
	if other < 2.2e6 || other > 2.4e6 {
		t.Errorf("%.0f datagrams per second on a core of its own: the fitted row is 2311296", other)
	}
}

// Every published row names a metric that the runs of its variant have.
func TestPublishedRowsMatchMetrics(t *testing.T) {
	alone(t)
	for _, name := range libraryNames(t) {
		for _, e := range load(t, name).Evidence {
			s := load(t, name, e.Assignments()...)
			if _, ok := result.Lookup(e.Metric); !ok {
				t.Errorf("%s: %s is no metric", name, e.Metric)
			}
			if rows := published(s); len(rows) == 0 {
				t.Errorf("%s: the row for %q does not apply to its own variant", name, e.Variant)
			}
		}
	}
}

// Every published row stands beside a result of a command that the notes give, or of the
// scenario as it is: a row for a value that no kernel has any more is lost silently.
func TestNotesShowPublishedRows(t *testing.T) {
	for _, name := range libraryNames(t) {
		shown := map[result.Published]bool{}
		for _, sets := range append(commandsOf(t, name), nil) {
			for _, row := range published(load(t, name, sets...)) {
				shown[row] = true
			}
		}
		for _, e := range load(t, name).Evidence {
			for _, row := range published(load(t, name, e.Assignments()...)) {
				if !shown[row] {
					t.Errorf("%s: no command of the notes shows the row of %s for %q", name, e.Metric, e.Variant)
				}
			}
		}
	}
}

// commandsOf returns the assignments of every variant of the comparisons that the notes
// of a scenario give.
func commandsOf(t *testing.T, name string) [][]string {
	t.Helper()
	var all [][]string
	for line := range strings.Lines(load(t, name).Notes) {
		args, ok := strings.CutPrefix(strings.TrimSpace(line), "napisim compare "+name+" ")
		if !ok {
			continue
		}
		variants := [][]string{nil}
		words := strings.Fields(args)
		for i := 0; i+1 < len(words); i += 2 {
			path, values, _ := strings.Cut(words[i+1], "=")
			var longer [][]string
			for _, v := range variants {
				for value := range strings.SplitSeq(values, ",") {
					longer = append(longer, append(slices.Clone(v), path+"="+value))
				}
			}
			variants = longer
		}
		all = append(all, variants...)
	}
	return all
}
