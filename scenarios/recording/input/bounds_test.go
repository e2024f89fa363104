package input

import (
	"path/filepath"
	"slices"
	"testing"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/ftrace"
)

// TestBoundsHold: where each frame has an event, the bursts found without these events
// have the same sizes and lie around the doorbells that the events show. Frames that
// come faster than the device may interrupt cannot be found so.
func TestBoundsHold(t *testing.T) {
	for _, meta := range sharedRuns(t) {
		r, err := recording.Load(filepath.Dir(meta))
		if err != nil {
			t.Fatal(err)
		}
		if r.EventNames["drv_xmit"] == 0 || r.Kind() == recording.KindSaturation || r.Rate.Every < 100_000 {
			continue
		}
		want := Of(r).Bursts
		r.Events = slices.DeleteFunc(r.Events, func(e ftrace.Event) bool { return e.Name == "drv_xmit" })
		delete(r.EventNames, "drv_xmit")
		got := Of(r).Bursts
		if len(got) != len(want) {
			t.Errorf("%s: %d bursts, want %d", r.ID, len(got), len(want))
			continue
		}
		out, how, worst := 0, map[string]int{}, int64(0)
		for i, b := range got {
			how[b.How]++
			// The doorbell follows the event of the last frame within a few us.
			w := want[i]
			worst = max(worst, max(w.At-b.At, b.At-w.At))
			if b.Frames != w.Frames || w.At > b.Latest || w.At+5_000 < b.Earliest {
				if out++; out <= 3 {
					t.Logf("%s: burst %d: %+v, want %+v", r.ID, i, b, w)
				}
			}
		}
		t.Logf("%s: %v, %d of %d out of bounds, worst %d ns", r.ID, how, out, len(got), worst)
		if out*20 > len(got) {
			t.Errorf("%s: %d of %d bursts out of bounds", r.ID, out, len(got))
		}
	}
}

// TestFirstFrameOnItsOwn: in every run of a packet generator on an Intel NIC with bursts
// the first frame goes alone.
func TestFirstFrameOnItsOwn(t *testing.T) {
	dirs, _ := filepath.Glob("../testdata/runs/*")
	seen := 0
	for _, dir := range dirs {
		r, err := recording.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		b := Of(r).Bursts
		if r.Rate.Burst < 2 || len(b) < 2 || r.NIC.Model == "virtio-net-pci" {
			continue
		}
		seen++
		if b[0].Frames != 1 || b[1].Frames != r.Rate.Burst-1 || b[1].At-b[0].At > int64(r.Rate.Burst)*2_000+100_000 || b[2].Frames != r.Rate.Burst {
			t.Errorf("%s: %+v", r.ID, b[:3])
		}
	}
	if seen < 20 {
		t.Errorf("%d recordings", seen)
	}
}
