package guest

import (
	"testing"

	"napisim/nic/emulated"
	"napisim/sim"
)

// recording is an excerpt and what pktgen did in it.
type recording struct {
	name   string
	driver string
	device emulated.Config // zero for that of ofDriver
	burst  int
	delay  sim.Time
}

// recordings are those whose interrupts and polls the model has to show, each from both
// kernels. In all of them pktgen's delay counts from the third burst on.
var recordings = []recording{
	{"e1000-burst1", "e1000", emulated.Config{}, 1, ms},
	{"e1000-burst8", "e1000", emulated.Config{}, 8, 5 * ms},
	{"e1000-burst64", "e1000", emulated.Config{}, 64, 10 * ms},
	{"e1000-burst65", "e1000", emulated.Config{}, 65, 10 * ms},
	{"e1000-burst300", "e1000", emulated.Config{}, 300, 20 * ms},
	{"e1000-burst65-nomit", "e1000", emulated.Config{RXRing: 2048, TXRing: 2048, NoMitigation: true}, 65, 10 * ms},
	{"e1000-burst300-nomit", "e1000", emulated.Config{RXRing: 2048, TXRing: 2048, NoMitigation: true}, 300, 20 * ms},
	{"e1000-udp5k-nomit", "e1000", emulated.Config{RXRing: 2048, TXRing: 2048, NoMitigation: true}, 1, 200 * us},
	{"e1000e-burst1", "e1000e", emulated.Config{}, 1, ms},
	{"e1000e-burst8", "e1000e", emulated.Config{}, 8, 5 * ms},
	{"e1000e-burst64", "e1000e", emulated.Config{}, 64, 10 * ms},
	{"e1000e-burst65", "e1000e", emulated.Config{}, 65, 10 * ms},
	{"e1000e-burst300", "e1000e", emulated.Config{}, 300, 20 * ms},
	{"e1000-burst300-nosink-kp", "e1000", emulated.Config{}, 300, 50 * ms},
	{"e1000e-burst65-kp", "e1000e", emulated.Config{}, 65, 10 * ms},
	{"virtio-burst64", "virtio", emulated.Config{}, 64, 10 * ms},
	{"virtio-udp5k", "virtio", emulated.Config{}, 1, 200 * us},
	{"virtio-sat", "virtio", emulated.Config{}, 1, 0},
}

// TestRecordings replays pktgen and compares every interrupt and every poll with its
// work, in order, with what the real drivers did on the emulated devices.
func TestRecordings(t *testing.T) {
	for _, kernel := range []string{"k61", "k612"} {
		for _, rec := range recordings {
			t.Run(kernel+"-"+rec.name, func(t *testing.T) {
				want := excerpt(t, kernel+"-"+rec.name)
				got := rec.run(t, kernel)
				compare(t, want, got)
			})
		}
	}
}

// run lets pktgen do what it did for as long as the excerpt lasts, and a little more.
func (rec recording) run(t *testing.T, kernel string) []happening {
	s := ofDriver(kernel, rec.driver)
	if rec.device != (emulated.Config{}) {
		s.device = rec.device
	}
	r := newRig(s)
	starts := []sim.Time{ms}
	for at := ms; len(starts) < 120; at += rec.delay {
		starts = append(starts, at)
	}
	r.pktgen(rec.burst, starts)
	r.run(t, starts[len(starts)-1]+20*ms)
	return r.happenings()
}

// compare compares what happened, and shows both sides up to the first difference.
func compare(t *testing.T, want, got []happening) {
	t.Helper()
	if len(got) < len(want) || len(want) < 20 {
		t.Fatalf("%d events, recorded are %d", len(got), len(want))
	}
	for i := range want {
		if want[i].what == got[i].what {
			continue
		}
		for j := max(i-10, 0); j < min(i+10, len(want)); j++ {
			t.Logf("%10d %10d  %-22s %-22s", want[j].at/ns, (got[j].at-got[0].at)/ns, want[j].what, got[j].what)
		}
		t.Fatalf("event %d: recorded is %q, not %q", i, want[i].what, got[i].what)
	}
}

// TestModes runs the same bursts lazily, eagerly, through the queue and with shuffled
// ties: nothing may differ.
func TestModes(t *testing.T) {
	for _, name := range []string{"e1000", "e1000e", "virtio"} {
		for _, kernel := range []string{"k61", "k612"} {
			run := func(mode sim.Mode, shuffle uint64) (uint64, []happening) {
				s := ofDriver(kernel, name)
				s.mode, s.shuffle = mode, shuffle
				s.device.RXRing = 64 // frames are held back, too
				r := newRig(s)
				r.pktgen(100, []sim.Time{ms, ms, 3 * ms, 3*ms + 500*us, 5 * ms})
				r.run(t, 20*ms)
				if got := r.nb.rx.Taken(); got != 500 {
					t.Errorf("%d frames received of 500", got)
				}
				return r.m.Fingerprint.Sum(), r.happenings()
			}
			sum, want := run(sim.Lazy, 0)
			for i, other := range []struct {
				mode    sim.Mode
				shuffle uint64
			}{{sim.Eager, 0}, {sim.Slow, 0}, {sim.Lazy, 7}, {sim.Eager, 8}} {
				otherSum, got := run(other.mode, other.shuffle)
				if sum != otherSum || len(want) != len(got) {
					t.Errorf("%s %s: way %d differs", kernel, name, i)
				}
				for j := range min(len(want), len(got)) {
					if want[j] != got[j] {
						t.Errorf("%s %s: way %d: %v %q, not %v %q", kernel, name, i, got[j].at, got[j].what, want[j].at, want[j].what)
						break
					}
				}
			}
		}
	}
}
