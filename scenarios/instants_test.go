package scenarios

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/sim"
)

// sampler reads every counter of a run again and again, as somebody outside would.
type sampler struct {
	sys   *System
	every sim.Time
	seen  []map[string]int64
	fault error // the first in the books of the run
}

// Fire implements sim.Handler.
func (m *sampler) Fire(uint64) {
	eng := m.sys.eng
	now := map[string]int64{}
	for _, r := range m.sys.set.Read(eng.Now()) {
		switch {
		case r.Histogram != nil:
			now[r.Name] = r.Histogram.Count()
		default:
			now[r.Name] = r.Count
		}
	}
	for reason, n := range m.sys.losses() {
		now[fmt.Sprintf("loss %d", reason)] = n
	}
	m.seen = append(m.seen, now)
	m.sys.settle()
	if m.fault == nil {
		m.fault = m.sys.Check()
	}
	eng.Schedule(eng.Now()+m.every, phaseMarks, m, 0)
}

// Counters are read at the end of the warm-up and of the run, which may fall between a cost
// and the code behind it, also in an interrupt that came in between. What counts at any other
// instant than its own gives an eager run other results than a lazy one, by one, rarely. The
// books of the run are right at any instant as well.
func TestCountersAgreeAtAnyInstant(t *testing.T) {
	alone(t)
	for _, sets := range [][]string{
		{"quickstart", "kernel=v4.8", "cpus=2", "apps.reader.cpu=1", "hz=1000"},
		{"quickstart", "kernel=v6.5", "cpus=2", "apps.reader.cpu=1", "hz=1000", "nics.eth0.driver=generic", "nics.eth0.irq.rx=1"},
		{"tcp-10g-two-cores", "kernel=v5.11", "nics.eth0.gro_frags=on"},
		{"tcp-10g-two-cores", "kernel.behaviours.skb_cache=two_arrays"},
		{"udp-flood-one-core"},
		{"udp-flood-one-core", "kernel.behaviours.skb_cache=unified"},
		{"xdp-drop"},
		{"tun-receive"},
		{"lan966x-napi-schedule"},
	} {
		t.Run(sets[0], func(t *testing.T) {
			s := load(t, sets[0], append(sets[1:], "duration=4ms", "warmup=0ms")...)
			var lazy []map[string]int64
			for _, mode := range []sim.Mode{sim.Lazy, sim.Eager} {
				sys, err := Build(s, s.Seed, Options{Mode: mode})
				if err != nil {
					t.Fatal(err)
				}
				m := &sampler{sys: sys, every: 1009 * sim.Nanosecond}
				sys.eng.Schedule(sim.Millisecond/2, phaseMarks, m, 0)
				err = sys.Run(Options{Mode: mode})
				sys.Close()
				if err = errors.Join(err, m.fault); err != nil {
					t.Fatal(err)
				}
				if mode == sim.Lazy {
					lazy = m.seen
					continue
				}
				for i, want := range lazy {
					if diff := cmp.Diff(want, m.seen[i]); diff != "" {
						t.Fatalf("sample %d (-lazy +eager):\n%s", i, diff)
					}
				}
			}
		})
	}
}
