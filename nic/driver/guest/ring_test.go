package guest

import (
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

// TestTail: how many descriptors of 256 each driver shows its device at the start. An
// e1000 keeps one back and names the last ready one (254); an e1000e writes its tail
// before every 16th (240); a virtio device gets all.
func TestTail(t *testing.T) {
	for driver, want := range map[string]int{"e1000": 254, "e1000e": 240, "virtio": 256} {
		r := newRig(quiet(driver, rings(256)))
		if got := r.nb.rx.Free(); got != want {
			t.Errorf("%s: %d descriptors, not %d", driver, got, want)
		}
		r.run(t, ms)
	}
}

// TestSmallRing: bursts that do not fit are received completely, by rings of any size.
func TestSmallRing(t *testing.T) {
	for _, driver := range drivers {
		for _, size := range []int{48, 64, 80, 256} {
			s := quiet(driver, rings(2048))
			s.device.RXRing = size
			r := newRig(s)
			r.pktgen(300, []sim.Time{ms, 10 * ms, 20 * ms})
			r.run(t, 50*ms)
			if got := r.nb.rx.Taken(); got != 900 {
				t.Errorf("%s, ring of %d: %d frames of 900", driver, size, got)
			}
			if r.nb.rx.Filled() != 0 || r.nb.port.Held() != 0 {
				t.Errorf("%s, ring of %d: frames are left", driver, size)
			}
		}
	}
}

// TestTruesize: frames up to 256 bytes are copied to small skbs.
func TestTruesize(t *testing.T) {
	for _, test := range []struct {
		driver string
		len    int32
		want   int
	}{
		{"e1000", 60, 1280}, {"e1000", 256, 1280}, {"e1000", 257, 2176}, {"e1000e", 1514, 2176}, {"virtio", 60, 1280}, {"virtio", 1514, 2816},
	} {
		r := newRig(quiet(test.driver, rings(64)))
		r.stack.truesize = -1
		r.task(ms, func(tk *cpu.Task) {
			c := tk.Core()
			c.BHDisable()
			r.na.Burst(c, &model.Segment{Frame: model.Frame{Len: test.len}}, 1)
			c.BHEnable()
		})
		r.run(t, 5*ms)
		if got := r.stack.truesize; got != test.want {
			t.Errorf("%s: a frame of %d has truesize %d, not %d", test.driver, test.len, got, test.want)
		}
	}
}

// TestNoAllocations: a steady state allocates nothing per packet.
func TestNoAllocations(t *testing.T) {
	for _, driver := range drivers {
		s := ofDriver("k612", driver)
		r := newRig(s)
		r.m.Trace = nil
		starts := []sim.Time{}
		for i := range sim.Time(200) {
			starts = append(starts, ms+i*ms)
		}
		r.pktgen(64, starts)
		var before, after uint64
		r.at(20*ms, func() { before = mallocs() })
		r.at(190*ms, func() { after = mallocs() })
		r.run(t, 250*ms)
		if got := float64(after-before) / (170 * 64); got > 0.05 {
			t.Errorf("%s: %.3f allocations per frame", driver, got)
		}
	}
}

func TestValidate(t *testing.T) {
	good := ofDriver("k61", "e1000").config
	good.Name = "nb"
	if faults := good.Validate(); len(faults) != 0 {
		t.Errorf("%v", faults)
	}
	bad := Config{BQLMin: -1}
	if faults := bad.Validate(); len(faults) != 2 {
		t.Errorf("%v", faults)
	}
}
