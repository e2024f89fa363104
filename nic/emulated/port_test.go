package emulated

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/model"
	"napisim/sim"
)

// TestHeldFrames: a ring of 4 holds 4 frames; the others wait in the hub, in order, and
// arrive as descriptors are posted, with their own causes and the instant of that.
func TestHeldFrames(t *testing.T) {
	s := newScript()
	na, nb := s.pair(rings(4))
	na.Mask(0, e1000All)
	na.tx = TXRing{size: 8, slots: make([]model.Frame, 8), info: make([]Sent, 8), mss: make([]int32, 8)}
	for i := range uint64(7) {
		na.TX().Post(&model.Frame{Seq: i, Len: 60}, 0)
	}
	s.at(1*us, func(now sim.Time) { na.Doorbell(now) })
	var seqs []uint64
	var arrivals []sim.Time
	take := func() {
		f := nb.RX().Take()
		seqs, arrivals = append(seqs, f.Seq), append(arrivals, f.Arrival/us)
	}
	s.at(2*us, func(now sim.Time) {
		if nb.Held() != 3 || nb.RX().Filled() != 4 || na.TX().Done() != 7 {
			t.Errorf("%d held, %d filled, %d done", nb.Held(), nb.RX().Filled(), na.TX().Done())
		}
		take()
		take()
		handler(nb)(now)
		nb.RX().Refill(now, 2)
		if nb.ReadICR(now) != CauseRXT0 || nb.Held() != 1 {
			t.Errorf("frames that were held back set no cause")
		}
	})
	s.at(3*us, func(now sim.Time) {
		for range 4 {
			take()
		}
		nb.RX().Refill(now, 1)
		take()
		if err := nb.Check(); err != nil {
			t.Error(err)
		}
	})
	s.run(t, "1000 nb")
	if diff := cmp.Diff([]uint64{0, 1, 2, 3, 4, 5, 6}, seqs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]sim.Time{1, 1, 1, 1, 2, 2, 3}, arrivals); diff != "" {
		t.Error(diff)
	}
}

// TestTSO: the device cuts a payload of 3000 into 1448, 1448 and 104, and only the last
// has the sender's PSH. One of 2896 leads to an empty third segment: this is how 740
// segments became 753 in the recording of a bulk transfer.
func TestTSO(t *testing.T) {
	for _, test := range []struct {
		payload  int32
		want     []int32
		segments int // as the driver counts
	}{
		{1448, []int32{1448}, 1},
		{1449, []int32{1448, 1}, 2},
		{3000, []int32{1448, 1448, 104}, 3},
		{2896, []int32{1448, 1448, 0}, 2},
	} {
		s := newScript()
		na, nb := s.pair(rings(8))
		f := model.Frame{Proto: model.TCP, Seq: 100, IPID: 7, Flags: model.PSH | model.ACK, Payload: test.payload, Len: 66 + test.payload}
		na.TX().Post(&f, 1448)
		na.Doorbell(0)
		var got []int32
		seq := uint64(100)
		for i := 0; nb.RX().Filled() > 0; i++ {
			g := *nb.RX().Take()
			last := nb.RX().Filled() == 0
			if g.Seq != seq || g.IPID != uint16(7+i) || g.Len != max(66+g.Payload, 60) {
				t.Errorf("segment %d of %d: %+v", i, test.payload, g)
			}
			if psh := g.Flags&model.PSH != 0; psh != last && test.payload != 2896 {
				t.Errorf("segment %d of %d: PSH %v", i, test.payload, psh)
			}
			seq += uint64(g.Payload)
			got = append(got, g.Payload)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("payload %d:\n%s", test.payload, diff)
		}
		want := Sent{Segments: test.segments, Bytes: int(test.payload) + 66*test.segments, Len: int(f.Len)}
		if sent := na.TX().Reap(); sent != want {
			t.Errorf("payload %d: %+v, not %+v", test.payload, sent, want)
		}
		s.run(t, "0 nb", "0 na")
	}
}

// TestRandomPorts compares the rings and the hub with lists.
func TestRandomPorts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{RXRing: rapid.IntRange(1, 9).Draw(rt, "rx"), TXRing: rapid.IntRange(1, 9).Draw(rt, "tx")}
		s := newScript()
		defer s.eng.Close()
		na, nb := s.pair(cfg)
		var hub []uint64 // sent and not taken, in order
		posted, sent, reaped, next, free := 0, 0, 0, uint64(0), cfg.RXRing
		inRing := 0
		settle := func() {
			for inRing < len(hub) && free > 0 {
				inRing++
				free--
			}
		}
		awaiting := 0
		rt.Repeat(map[string]func(*rapid.T){
			"post": func(rt *rapid.T) {
				ok := na.TX().Post(&model.Frame{Seq: next, Len: 60}, 0)
				if want := posted-reaped < cfg.TXRing; ok != want {
					rt.Fatalf("post: %v, not %v", ok, want)
				}
				if ok {
					posted++
					next++
				}
			},
			"doorbell": func(*rapid.T) {
				na.Doorbell(0)
				for ; sent < posted; sent++ {
					hub = append(hub, uint64(sent))
				}
				settle()
			},
			"reap": func(rt *rapid.T) {
				if na.TX().Done() != sent-reaped {
					rt.Fatalf("%d done, not %d", na.TX().Done(), sent-reaped)
				}
				if sent > reaped {
					na.TX().Reap()
					reaped++
				}
			},
			"take": func(rt *rapid.T) {
				if inRing == 0 {
					rt.Skip()
				}
				if got := nb.RX().Take().Seq; got != hub[0] {
					rt.Fatalf("took %d, not %d", got, hub[0])
				}
				hub = hub[1:]
				inRing--
				awaiting++
			},
			"refill": func(rt *rapid.T) {
				n := rapid.IntRange(0, awaiting).Draw(rt, "n")
				nb.RX().Refill(0, n)
				awaiting -= n
				free += n
				settle()
			},
			"": func(rt *rapid.T) {
				if nb.RX().Filled() != inRing || nb.Held() != len(hub)-inRing || nb.RX().Free() != free || nb.RX().Awaiting() != awaiting {
					rt.Fatalf("%d filled, %d held, %d free, %d awaiting; expected %d, %d, %d, %d",
						nb.RX().Filled(), nb.Held(), nb.RX().Free(), nb.RX().Awaiting(), inRing, len(hub)-inRing, free, awaiting)
				}
				for _, p := range []*Port{na.Port, nb.Port} {
					if err := p.Check(); err != nil {
						rt.Fatal(err)
					}
				}
			},
		})
	})
}

// TestCheckFinds: the books notice what is missing.
func TestCheckFinds(t *testing.T) {
	for name, spoil := range map[string]func(na, nb *E1000){
		"a lost frame":      func(_, nb *E1000) { nb.rx.filled--; nb.rx.taken = min(nb.rx.taken, nb.rx.filled) },
		"a doubled frame":   func(_, nb *E1000) { nb.arrived++ },
		"a held frame":      func(_, nb *E1000) { nb.held.push(&model.Frame{}); nb.arrived++; nb.peer.tx.wire++ },
		"a taken frame":     func(_, nb *E1000) { nb.rx.taken = nb.rx.filled + 1 },
		"too many posted":   func(_, nb *E1000) { nb.rx.posted += 9 },
		"a descriptor sent": func(_, nb *E1000) { nb.tx.sent++ },
	} {
		s := newScript()
		na, nb := s.pair(rings(8))
		post(na.Port, 3)
		na.Doorbell(0)
		if err := nb.Check(); err != nil {
			t.Fatal(err)
		}
		spoil(na, nb)
		if nb.Check() == nil {
			t.Errorf("%s goes unnoticed", name)
		}
	}
}

func TestValidate(t *testing.T) {
	good := Config{RXRing: 256, TXRing: 256}
	if faults := good.Validate(); len(faults) != 0 {
		t.Errorf("%v", faults)
	}
	bad := Config{RXRing: 0, TXRing: MaxRing + 1, TXDelay: -1}
	if faults := bad.Validate(); len(faults) != 3 {
		t.Errorf("%v", faults)
	}
}
