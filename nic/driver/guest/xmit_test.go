package guest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/nic/emulated"
	"napisim/sim"
	"napisim/sim/trace"
)

// quiet is a setup whose byte queue limits are off, so that only rings decide.
func quiet(driver string, cfg emulated.Config) setup {
	s := ofDriver("k612", driver)
	s.config.BQL = false
	s.device = cfg
	return s
}

func rings(n int) emulated.Config { return emulated.Config{RXRing: n, TXRing: n} }

var drivers = []string{"e1000", "e1000e", "virtio"}

// TestBurstRingsOnce: pktgen's burst has one doorbell, if byte queue limits do not stop
// the queue. In a first burst their limit is zero. Then each frame of an e1000 has one,
// as its sent frames are freed in a softirq; an e1000e frees the first in the hard
// interrupt that it causes, which opens the limit for the others; and the driver of a
// virtio device counts all of a batch before it asks.
func TestBurstRingsOnce(t *testing.T) {
	for _, test := range []struct {
		driver string
		bql    bool
		want   int64
	}{
		{"e1000", false, 1},
		{"e1000e", false, 1},
		{"virtio", false, 1},
		{"e1000", true, 65},
		{"e1000e", true, 2},
		{"virtio", true, 1},
	} {
		s := quiet(test.driver, rings(256))
		s.config.BQL = test.bql
		r := newRig(s)
		r.pktgen(65, []sim.Time{ms, 5 * ms})
		r.run(t, 10*ms)
		want := test.want + 1 // the second burst
		if got := r.na.Stats().Doorbells; got != want || r.nb.rx.Taken() != 130 {
			t.Errorf("%s, limits %v: %d doorbells, not %d; %d frames", test.driver, test.bql, got, want, r.nb.rx.Taken())
		}
	}
}

// TestBurstFullRing: a ring of 32 takes frames until fewer descriptors are left than
// an skb may need: 32 - 19 + 1 on an e1000 and a virtio device, 32 - 22 + 1 on an
// e1000e. The last of them has the doorbell, though more were to come.
func TestBurstFullRing(t *testing.T) {
	for _, test := range []struct {
		driver string
		want   int
	}{{"e1000", 14}, {"e1000e", 11}, {"virtio", 14}} {
		r := newRig(quiet(test.driver, rings(32)))
		sent, again, frames := 0, 0, 0
		r.task(ms, func(tk *cpu.Task) {
			c := tk.Core()
			c.BHDisable()
			c.IRQDisable()
			sent = r.na.Burst(c, udp(), 20)
			again = r.na.Burst(c, udp(), 20)
			frames = r.nb.rx.Filled()
			if !r.na.Stopped() {
				t.Errorf("%s: the queue is not stopped", test.driver)
			}
			c.IRQEnable()
			c.BHEnable()
		})
		r.run(t, 5*ms)
		if sent != test.want || again != 0 || frames != test.want {
			t.Errorf("%s: %d sent, then %d; %d arrived; not %d, 0, %[5]d", test.driver, sent, again, frames, test.want)
		}
		if r.na.Stopped() && test.driver == "virtio" {
			t.Errorf("%s: the queue was not started again", test.driver)
		}
	}
}

// TestQdisc: what a stopped queue refuses leaves in order, by the NET_TX softirq that
// the freeing of descriptors or bytes raises, and without a further call.
func TestQdisc(t *testing.T) {
	for _, driver := range drivers {
		for _, bql := range []bool{false, true} {
			s := quiet(driver, rings(128))
			s.config.BQL, s.config.BQLMin = bql, 0
			r := newRig(s)
			n := 500
			segs := make([]model.Segment, 20)
			r.task(ms, func(tk *cpu.Task) {
				c := tk.Core()
				for i := 0; i < n; i += len(segs) {
					for j := range segs {
						segs[j].Frame = model.Frame{Seq: uint64(i + j), Len: 1514, Payload: 1448, Proto: model.TCP}
					}
					c.BHDisable()
					r.na.XmitList(c, segs)
					c.BHEnable()
				}
			})
			r.run(t, 100*ms)
			if got := r.nb.rx.Taken(); got != int64(n) || r.na.qdisc.n != 0 || r.na.Stats().TXDropped != 0 {
				t.Errorf("%s, limits %v: %d frames of %d, %d in the qdisc, %+v", driver, bql, got, n, r.na.qdisc.n, r.na.Stats())
			}
			last := int64(0)
			for _, e := range r.m.Trace.Events() {
				if e.Point == trace.NetDevXmit {
					if e.S != "na" || e.A != last+1 || e.B != 1514 {
						t.Fatalf("%s: net_dev_xmit of %d after %d", driver, e.A, last)
					}
					last = e.A
				}
			}
			if last != int64(n) {
				t.Errorf("%s: %d transmissions traced", driver, last)
			}
		}
	}
}

// TestQdiscOverflow: the qdisc takes 1000.
func TestQdiscOverflow(t *testing.T) {
	r := newRig(quiet("e1000", rings(32)))
	r.task(ms, func(tk *cpu.Task) {
		c := tk.Core()
		c.BHDisable()
		c.IRQDisable()
		for range 1100 {
			r.na.Xmit(c, udp())
		}
		c.IRQEnable()
		c.BHEnable()
	})
	r.run(t, 100*ms)
	// 14 to the ring, 1000 to the qdisc.
	if got := r.na.Stats(); got.TXQueued != 1000 || got.TXDropped != 86 {
		t.Errorf("%+v", got)
	}
}

// TestXmitOrder: segments of Xmit, XmitList and XmitTSO arrive in the order of the calls.
func TestXmitOrder(t *testing.T) {
	for _, driver := range drivers {
		r := newRig(quiet(driver, rings(256)))
		var got []uint64
		r.task(ms, func(tk *cpu.Task) {
			c := tk.Core()
			tcp := func(seq uint64) model.Segment {
				return model.Segment{Frame: model.Frame{Seq: seq, Len: 1514, Payload: 1448, Proto: model.TCP}}
			}
			one := tcp(0)
			c.BHDisable()
			r.na.Xmit(c, &one)
			r.na.XmitList(c, []model.Segment{tcp(1448), tcp(2896)})
			if driver == "e1000" {
				big := tcp(4344)
				big.Payload, big.Len = 2000, 2066
				r.na.XmitTSO(c, &big, 1448)
			}
			for r.nb.rx.Filled() > 0 {
				got = append(got, r.nb.rx.Take().Seq)
			}
			r.stack.skipped = int64(len(got))
			c.BHEnable()
		})
		r.run(t, 5*ms)
		want := []uint64{0, 1448, 2896}
		if driver == "e1000" {
			want = append(want, 4344, 5792)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", driver, diff)
		}
	}
}

// TestVirtioStopsLate: a queue that stops when the device has used more than a callback
// would wait for polls by itself; no callback would ever come.
func TestVirtioStopsLate(t *testing.T) {
	s := ofDriver("k61", "virtio")
	s.device = emulated.Config{RXRing: 48, TXRing: 48, TXDelay: 3 * us}
	r := newRig(s)
	list := func(sizes ...int) (all []sending) {
		for _, n := range sizes {
			all = append(all, sending{at: ms, n: n})
		}
		return all
	}
	r.sender(r.na, phaseEnd-1, list(1, 1, 1))
	r.sender(r.nb, phaseEnd-2, list(1, 1, 1, 1, 1, 1, 3, 23, 1, 7))
	r.run(t, 50*ms)
	if r.na.rx.Taken() != 40 || r.nb.qdisc.n != 0 {
		t.Errorf("%d frames of 40, %d in the qdisc", r.na.rx.Taken(), r.nb.qdisc.n)
	}
}
