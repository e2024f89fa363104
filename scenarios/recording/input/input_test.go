package input

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/observe"
)

// sharedRuns finds recordings that are too many to keep with the code.
func sharedRuns(t *testing.T) []string {
	t.Helper()
	for up := "../../../.."; len(up) < 30; up += "/.." {
		if runs, _ := filepath.Glob(filepath.Join(up, "shared/traces/runs/*/meta.yaml")); len(runs) > 0 {
			return runs
		}
	}
	t.Skip("no shared recordings")
	return nil
}

// TestInputOfAllRuns: what was offered is what is found, bounds hold, the file reads back.
func TestInputOfAllRuns(t *testing.T) {
	for i, meta := range sharedRuns(t) {
		if testing.Short() && i%10 != 0 {
			continue
		}
		dir := filepath.Dir(meta)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			r, err := recording.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			in := Of(r)
			check(t, r, in)
			file := filepath.Join(t.TempDir(), "input.yaml")
			if err := in.Write(file); err != nil {
				t.Fatal(err)
			}
			back, err := Read(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(in, back); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestInputOfTrimmedRuns: what a trimmed recording leaves out is not needed to find the bursts.
func TestInputOfTrimmedRuns(t *testing.T) {
	whole := map[string]string{}
	for _, meta := range sharedRuns(t) {
		whole[filepath.Base(filepath.Dir(meta))] = filepath.Dir(meta)
	}
	trimmed, _ := filepath.Glob("../testdata/runs/*")
	for _, dir := range trimmed {
		a, err := recording.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		b, err := recording.Load(whole[a.ID])
		if err != nil {
			t.Fatal(err)
		}
		in, want := Of(a), Of(b)
		if d := cmp.Diff(want.Tick, in.Tick); d != "" {
			t.Errorf("%s: %s", a.ID, d)
		}
		for _, list := range [][]Burst{in.Bursts, want.Bursts} {
			for i := range list {
				list[i].Latest = 0 // bounded by the next event, which may be one that was left out
			}
		}
		if d := cmp.Diff(want.Bursts, in.Bursts); d != "" {
			t.Errorf("%s: %s", a.ID, d)
		}
	}
}

// check holds an input against what the recording says of itself.
func check(t *testing.T, r *recording.Recording, in *Input) {
	t.Helper()
	how := map[string]int{}
	frames, first := 0, 0
	if len(in.Bursts) > 1 && r.Rate.Burst > 1 && in.Bursts[0].Frames == 1 {
		first = 1 // the first frame went on its own
	}
	for i, b := range in.Bursts {
		how[b.How]++
		frames += b.Frames
		if b.Earliest > b.At || b.At > b.Latest || i > 0 && b.At < in.Bursts[i-1].At {
			t.Errorf("burst %d: %+v", i, b)
		}
		if b.PID != in.Sender.PID {
			t.Errorf("burst %d of task %d, sender %d", i, b.PID, in.Sender.PID)
		}
		if i >= first+2 && r.Rate.Form == recording.Bursts && r.Rate.Burst > 0 && r.Rate.Every >= 1_000_000 {
			// pktgen keeps to its schedule; the second burst follows the first at once and the
			// sender may have to wait for the CPU.
			if late := b.At - in.Bursts[first].At - int64(i-first-1)*r.Rate.Every; late < -500_000 || late > 6_000_000 {
				t.Errorf("burst %d is %d us late: %+v", i, late/1000, b)
			}
		}
	}
	t.Log(in.Tick.Phase, len(in.Tick.Ticks), how, len(in.Timers), in.Sender, len(in.Frames), len(in.Slots), len(in.Softirqs), len(in.Segments))
	if strings.HasPrefix(in.Sender.Comm, "kpktgend") != (len(in.Bursts) > 0) || len(in.Bursts) > 0 && frames != observe.Of(r).Stats.Frames(r.RxDevice()) {
		t.Errorf("%d frames in %d bursts of %v, offered %d", frames, len(in.Bursts), in.Sender, r.Offered)
	}
	if r.Rate.Form == recording.Paced && r.Rate.Burst == 0 && len(in.Bursts) > 0 && len(in.Bursts) != r.Offered {
		t.Errorf("%d bursts, offered %d one by one", len(in.Bursts), r.Offered)
	}
	for i, s := range in.Slots {
		if s.Frames != r.Rate.Burst && s.Frames*10 > r.Rate.Burst && i > 1 {
			t.Errorf("slot %d: %+v, want %d frames", i, s, r.Rate.Burst)
		}
	}
	if r.Rate.Form == recording.Slots && in.Sender.Frames != r.Offered {
		t.Errorf("%v, offered %d", in.Sender, r.Offered)
	}
	for _, s := range in.Segments {
		if s.Own < 0 || s.Stolen < 0 || s.Own+s.Stolen != s.End-s.At {
			t.Errorf("%+v", s)
		}
	}
	off := 0
	for _, timer := range in.Timers {
		if timer.Raised == "TIMER" || timer.Raised == "RCU" {
			off++
		}
	}
	if off*10 > len(in.Tick.Ticks) {
		t.Errorf("%d of %d ticks off phase %d", off, len(in.Tick.Ticks), in.Tick.Phase)
	}
}
