package conform

import (
	"strconv"
	"testing"

	"napisim/scenarios/recording"
)

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
