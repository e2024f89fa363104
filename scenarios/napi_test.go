package scenarios

import (
	"testing"

	"napisim/reports/result"
	"napisim/sim"
)

// metric returns a metric of a run.
func metricOf(t *testing.T, run result.Run, name string) float64 {
	t.Helper()
	v, ok := run.Metrics[name]
	if !ok {
		t.Fatalf("no metric %s", name)
	}
	return v.Value
}

// TestNAPISettings: what nics.X.napi does, on the kernels that have it, in all modes. The
// plain run of quickstart has an interrupt for every few frames; that of the lan966x is
// overloaded and has few.
func TestNAPISettings(t *testing.T) {
	alone(t)
	for _, c := range []struct {
		name, scenario string
		sets           []string
		irqs           float64 // the most, as a share of the plain run's
		softirqs       bool    // whether NET_RX runs at all
	}{
		{"deferred", "quickstart", []string{"kernel.preset=v5.8", "nics.eth0.napi.gro_flush_timeout=100000", "nics.eth0.napi.napi_defer_hard_irqs=2"}, 0.7, true},
		{"threaded", "quickstart", []string{"kernel.preset=v6.1", "nics.eth0.napi.threaded=enabled"}, 1.2, false},
		{"threaded elsewhere", "quickstart", []string{"kernel.preset=v6.12", "cpus=2", "nics.eth0.napi.threaded=enabled", "nics.eth0.napi.thread_cpu=1"}, 1.5, false},
		{"one NAPI for both directions", "lan966x-napi-schedule", []string{"kernel.preset=v6.12", "nics.eth0.napi.threaded=enabled"}, 100, false},
		{"busy", "quickstart", []string{"kernel.preset=v6.18", "cpus=2", "nics.eth0.napi.threaded=busy-poll", "nics.eth0.napi.thread_cpu=1"}, 0, false},
		{"lost schedules", "quickstart", []string{"kernel.preset=v4.8"}, 1.2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			plain := mustRun(t, short(t, c.scenario), Options{})
			s := short(t, c.scenario, c.sets...)
			run := mustRun(t, s, Options{})
			want := bytesOf(t, s, run)
			for _, o := range []Options{{Mode: sim.Eager}, {Mode: sim.Slow}, {TieSeed: 7}} {
				if got := bytesOf(t, s, mustRun(t, s, o)); got != want {
					t.Errorf("mode %d, ties by %d, differs from lazy: %s", o.Mode, o.TieSeed, firstDifference(want, got))
				}
			}
			if got, most := metricOf(t, run, "interrupts"), c.irqs*metricOf(t, plain, "interrupts"); got > most {
				t.Errorf("%g interrupts, want at most %g", got, most)
			}
			if got := metricOf(t, run, "softirqs") > 0; got != c.softirqs {
				t.Errorf("NET_RX runs: %v", got)
			}
			if got, least := metricOf(t, run, "goodput"), 0.4*metricOf(t, plain, "goodput"); got < least {
				t.Errorf("goodput %g, want at least %g", got, least)
			}
		})
	}
}
