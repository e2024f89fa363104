package conform

import (
	"path/filepath"
	"strconv"
	"testing"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/match"
)

// TestProcesses holds what connections between two processes were reproduced to: all steps
// of the recordings that the costs come from and of some others, and most of those whose
// steps hang on the phase of a moderation timer. It may become more.
func TestProcesses(t *testing.T) {
	for _, test := range []struct {
		id     string
		match  string
		equal  int // items, at least
		within bool
	}{
		{"k61-e1000-tcp-gro-nomit", match.Full, 420, true},
		{"k612-virtio-tcp-gro", match.Full, 445, true},
		{"k61-e1000-tcprr1-nomit", match.Full, 4253, true},
		{"k61-virtio-tcp-gro", match.Partial, 520, true},
		{"k612-e1000-tcp-gro-nomit", match.Partial, 440, true},
		{"k61-e1000e-tcprr1-itr", match.Partial, 2050, true},
		{"k61-e1000e-tcp-gro", "", 440, false},
		{"k612-e1000e-tcp-gro", "", 360, false},
	} {
		r, err := recording.Load(filepath.Join("../recording/testdata/runs", test.id))
		if err != nil {
			t.Fatal(err)
		}
		got := Compare(r)
		switch {
		case got.Reason != "":
			t.Errorf("%s: %s", test.id, got.Reason)
		case got.Equal < test.equal, test.match != "" && got.Match.Match != test.match, test.within && !got.Within:
			t.Errorf("%s: %s, %d of %d items, numbers within tolerance %v; not %s, %d, %v",
				test.id, got.Match.Match, got.Equal, got.Compared, got.Within, test.match, test.equal, test.within)
		}
	}
}

// TestOtherProcesses: what the harness can do besides runs through: many connections, and
// datagrams. There are no recordings of it beside the code; the counts are those of the
// programs.
func TestOtherProcesses(t *testing.T) {
	for _, test := range []struct {
		proto         string
		conns, trans  int
		toServer, got int // frames that polls find at least, of the receiver and the sender
	}{
		{"udp", 1, 50, 50, 50},
		{"tcp", 3, 60, 60 + 2*3, 60 + 3},
	} {
		r, err := recording.Load("../recording/testdata/runs/k61-e1000-tcprr1-nomit")
		if err != nil {
			t.Fatal(err)
		}
		r.Sender.Fields = map[string]string{"proto": test.proto, "conns": strconv.Itoa(test.conns), "trans": strconv.Itoa(test.trans)}
		_, o, err := Both(r)
		if err != nil {
			t.Fatal(err)
		}
		if nb, na := o.Stats.Frames("nb"), o.Stats.Frames("na"); nb < test.toServer || na < test.got || nb > 2*test.toServer {
			t.Errorf("%s: %d and %d frames, not at least %d and %d", test.proto, nb, na, test.toServer, test.got)
		}
	}
}
