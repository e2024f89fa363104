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

// TestRecordedSender replays a process that sends a datagram each 200 us by the stack,
// through an interface with the default limits. Each is freed in the hard interrupt of
// na, which has to leave that to NET_TX. The first datagrams are late by what the
// sender's first system calls take.
func TestRecordedSender(t *testing.T) {
	for kernel, third := range map[string]sim.Time{"k61": 314 * us, "k612": 282 * us} {
		t.Run(kernel, func(t *testing.T) {
			s := ofDriver(kernel, "e1000e")
			s.device = emulated.Config{RXRing: 256, TXRing: 256}
			s.config.BQLMin = 0
			r := newRig(s)
			starts := []sim.Time{ms, ms + 65*us}
			for len(starts) < 60 {
				starts = append(starts, ms+third+sim.Time(len(starts)-2)*200*us)
			}
			r.udpsend(starts)
			r.run(t, 20*ms)
			compare(t, excerpt(t, kernel+"-e1000e-udp5k"), r.happenings())
		})
	}
}

// TestFirstInterval: the recordings of an e1000e with default moderation all begin with
// 249.2 to 249.4 us from the first interrupt's handler to the next, which is the rate of
// a link that is not up, and have 128 us afterwards. Those without moderation, and those
// of an e1000, begin with 128 us.
func TestFirstInterval(t *testing.T) {
	for _, test := range []struct {
		driver, what string
		fixed        bool
		want         sim.Time
	}{{"e1000e", "irq nb-rx-0", false, 249856 * ns}, {"e1000e", "irq nb-rx-0", true, 128 * us}, {"e1000", "irq nb", false, 128 * us}} {
		s := ofDriver("k612", test.driver)
		s.config.FixedITR = test.fixed
		r := newRig(s)
		r.pktgen(1, []sim.Time{ms, ms, 3 * ms, 3 * ms})
		r.run(t, 10*ms)
		var at []sim.Time
		for _, h := range r.happenings() {
			if h.what == test.what {
				at = append(at, h.at)
			}
		}
		if at[1]-at[0] != test.want || at[3]-at[2] != 128*us {
			t.Errorf("%s, fixed %v: interrupts at %v", test.driver, test.fixed, at)
		}
	}
}

// TestBulkInterrupts: ten full frames each 100 us are bulk (more than 10000 bytes, more
// than 1200 each), so 4000 interrupts a second, 976 * 256 ns = 249.856 us apart. The
// recordings of bulk transfers have 250 us beside 128 us: the latter before the class
// changes, and on an e1000e, whose repeated interrupts split the frames into more than
// 35 and fewer, again and again.
func TestBulkInterrupts(t *testing.T) {
	for _, test := range []struct {
		driver, rx string
		steady     bool
	}{{"e1000", "irq nb", true}, {"e1000e", "irq nb-rx-0", false}} {
		s := ofDriver("k612", test.driver)
		s.config.FixedITR = false
		r := newRig(s)
		var list []sending
		for i := range sim.Time(100) {
			list = append(list, sending{at: ms + i*100*us, n: 10})
		}
		r.full = true
		r.sender(r.na, phaseEnd-1, list)
		r.run(t, 20*ms)
		last, gaps, bulk := sim.Time(0), 0, 0
		for _, h := range r.happenings() {
			if h.what != test.rx {
				continue
			}
			gap := h.at - last
			last = h.at
			gaps++
			if gap == 249856*ns {
				bulk++
			}
			if test.steady && gaps > 4 && gap < 249856*ns {
				t.Errorf("%s: %v between two", test.rx, gap)
			}
		}
		if bulk < 5 || test.steady && bulk < gaps*3/4 {
			t.Errorf("%s: %d of %d at the rate of bulk traffic", test.rx, bulk, gaps)
		}
	}
}
