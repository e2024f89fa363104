package scenarios

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"napisim/model/unit"
	"napisim/reports/result"
	"napisim/scenarios/spec"
	"napisim/sim"
)

// load resolves a scenario of the library, cut to a length that a test can afford.
// The length keeps several ticks at HZ 100 and the start of every connection.
func load(t testing.TB, name string, sets ...string) *spec.Scenario {
	t.Helper()
	s, err := Default().Resolve(name, sets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func short(t testing.TB, name string, sets ...string) *spec.Scenario {
	t.Helper()
	s := load(t, name, sets...)
	s.Duration = min(s.Duration, 150*unit.Millisecond)
	if name == "xdp-drop" || name == "udp-flood-one-core" {
		s.Duration = 40 * unit.Millisecond // millions of frames a second
	}
	s.Warmup = s.Duration / 4
	return s
}

func bytesOf(t testing.TB, s *spec.Scenario, runs ...result.Run) string {
	t.Helper()
	doc := NewDocument(s, runs, "test")
	b, err := result.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func mustRun(t testing.TB, s *spec.Scenario, o Options) result.Run {
	t.Helper()
	run, err := Run(s, s.Seed, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// Every scenario of the library gives the same bytes whether debts are paid when
// somebody looks, at once, or always through the queue. Run checks the books.
func TestModesAgree(t *testing.T) {
	alone(t)
	for _, name := range libraryNames(t) {
		for _, schedule := range []string{spec.AlwaysRaise, spec.SkipRaise} {
			t.Run(name+"/"+schedule, func(t *testing.T) {
				s := short(t, name, "kernel.behaviours.napi_schedule="+schedule)
				want := bytesOf(t, s, mustRun(t, s, Options{Mode: sim.Lazy}))
				for _, o := range []Options{{Mode: sim.Eager}, {Mode: sim.Slow}, {TieSeed: 7}} {
					if got := bytesOf(t, s, mustRun(t, s, o)); got != want {
						t.Errorf("mode %d, ties by %d, differs from lazy: %s", o.Mode, o.TieSeed, firstDifference(want, got))
					}
				}
			})
		}
	}
}

func firstDifference(a, b string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("...%q against ...%q", a[max(0, i-60):min(len(a), i+40)], b[max(0, i-60):min(len(b), i+40)])
		}
	}
	return "one is longer"
}

func libraryNames(t testing.TB) []string {
	t.Helper()
	entries, err := Default().Scenarios()
	if err != nil || len(entries) < 4 {
		t.Fatalf("library has %d scenarios: %v", len(entries), err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names
}

// The number of runs at a time changes nothing, and no run leaves a goroutine.
func TestParallelRunsGiveTheSameBytes(t *testing.T) {
	before := runtime.NumGoroutine()
	s := short(t, "quickstart")
	var docs []string
	for _, j := range []int{1, 2, 4} {
		runs, err := Batch{Parallel: j}.RunAll(Jobs([]*spec.Scenario{s}, []string{""}, 4))
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, bytesOf(t, s, runs...))
	}
	if docs[0] != docs[1] || docs[0] != docs[2] {
		t.Error("-j changes the result")
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// Seeds differ, or there would be nothing to average over.
func TestSeedsDiffer(t *testing.T) {
	s := short(t, "quickstart")
	a := mustRun(t, s, Options{})
	s.Seed++
	if b := mustRun(t, s, Options{}); a.Fingerprint == b.Fingerprint {
		t.Error("two seeds gave the same run")
	}
}

// An interrupted run says so, and a batch keeps what was finished before.
func TestInterruptKeepsFinishedRuns(t *testing.T) {
	s := short(t, "quickstart")
	batch := Batch{Parallel: 1, Observe: func(i int) Options {
		return Options{Progress: func(now sim.Time) bool { return i == 0 || now < sim.Time(s.Duration)/2 }}
	}}
	runs, err := batch.RunAll(Jobs([]*spec.Scenario{s}, []string{""}, 3))
	if !errors.Is(err, ErrInterrupted) || len(runs) != 1 {
		t.Errorf("%d runs, error %v", len(runs), err)
	}
}

// Whatever a scenario says, its books balance and its modes agree.
func TestBooksOfRandomScenarios(t *testing.T) {
	alone(t)
	rapid.Check(t, func(r *rapid.T) {
		sets := []string{
			"duration=" + rapid.SampledFrom([]string{"3ms", "11ms", "30ms"}).Draw(r, "duration"),
			"warmup=1ms", "cpus=2",
			"seed=" + fmt.Sprint(rapid.IntRange(1, 1000).Draw(r, "seed")),
			"hz=" + rapid.SampledFrom([]string{"100", "250", "1000"}).Draw(r, "hz"),
			"preempt=" + rapid.SampledFrom([]string{"none", "voluntary", "full"}).Draw(r, "preempt"),
			"kernel.preset=" + rapid.SampledFrom([]string{"v4.8", "v4.19", "v5.4", "v5.12", "v6.1", "v6.3", "v6.4", "v6.5", "v6.6", "v6.12", "v6.18"}).Draw(r, "preset"),
			"nics.eth0.driver=" + rapid.SampledFrom([]string{"generic", "lan966x"}).Draw(r, "driver"),
			"nics.eth0.link.rate=" + rapid.SampledFrom([]string{"100Mbps", "1Gbps", "10Gbps"}).Draw(r, "rate"),
			"nics.eth0.rings.rx=" + fmt.Sprint(rapid.SampledFrom([]int{1, 8, 64, 512}).Draw(r, "rx")),
			"nics.eth0.rings.tx=" + fmt.Sprint(rapid.SampledFrom([]int{1, 4, 512}).Draw(r, "tx")),
			"nics.eth0.coalesce.rx-usecs=" + fmt.Sprint(rapid.SampledFrom([]int{0, 5, 50}).Draw(r, "rx-usecs")),
			"nics.eth0.features.gro=" + rapid.SampledFrom([]string{"on", "off"}).Draw(r, "gro"),
			"nics.eth0.irq.rx=" + fmt.Sprint(rapid.IntRange(0, 1).Draw(r, "irq")),
			"nics.eth0.page_pool.size=" + fmt.Sprint(rapid.SampledFrom([]int{16, 512}).Draw(r, "pool")),
			"apps.reader.cpu=" + fmt.Sprint(rapid.IntRange(0, 1).Draw(r, "cpu")),
			"apps.reader.wait=" + rapid.SampledFrom([]string{"recv", "epoll"}).Draw(r, "wait"),
			"traffic.stream.flows=" + fmt.Sprint(rapid.IntRange(1, 5).Draw(r, "flows")),
		}
		s, err := Default().Resolve("quickstart", sets)
		if err != nil {
			r.Fatal(err)
		}
		var want string
		for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
			run, err := Run(s, s.Seed, Options{Mode: mode})
			if err != nil {
				r.Fatal(err)
			}
			got := bytesOf(t, s, run)
			if want == "" {
				want = got
			}
			if got != want {
				r.Fatalf("mode %d differs from lazy: %s", mode, firstDifference(want, got))
			}
		}
	})
}

// The timer of held-back ACKs expires on one core while the reader on the other asks whether
// it is armed: it is, from its start to the softirq, also while the interrupt is paid for.
func TestExpiringSoftTimerIsArmed(t *testing.T) {
	s := load(t, "quickstart", "duration=3ms", "warmup=1ms", "cpus=2", "seed=25", "hz=100", "preempt=none",
		"kernel.preset=v4.19", "nics.eth0.driver=lan966x", "nics.eth0.link.rate=10Gbps", "nics.eth0.rings.rx=64",
		"nics.eth0.coalesce.rx-usecs=50", "nics.eth0.features.gro=off", "nics.eth0.page_pool.size=512",
		"apps.reader.cpu=1", "traffic.stream.flows=3")
	var want string
	for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
		got := bytesOf(t, s, mustRun(t, s, Options{Mode: mode}))
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("mode %d differs from lazy: %s", mode, firstDifference(want, got))
		}
	}
}

// BenchmarkScenario runs each scenario of the library for a whole second of
// simulated time, or its own length, and reports how much faster than real time that is.
func BenchmarkScenario(b *testing.B) {
	for _, name := range libraryNames(b) {
		b.Run(name, func(b *testing.B) {
			s := load(b, name)
			s.Duration = min(s.Duration, unit.Second)
			s.Warmup = min(s.Warmup, s.Duration/2)
			b.ReportAllocs()
			for b.Loop() {
				mustRun(b, s, Options{})
			}
			simulated := float64(b.N) * float64(s.Duration) / float64(unit.Second)
			b.ReportMetric(simulated/b.Elapsed().Seconds(), "simsec/s")
		})
	}
}
