package driver

import (
	"fmt"
	"slices"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/unit"
	"napisim/sim"
	"napisim/sim/trace"
)

// numbers returns n numbers from first on.
func numbers(first uint64, n int) (all []uint64) {
	for i := range uint64(n) {
		all = append(all, first+i)
	}
	return all
}

// A full transmit ring leaves segments to the qdisc, which keeps up to 1000 of them in
// their order; more are dropped. What is sent while it drains goes behind.
func TestQdiscBehindFullRing(t *testing.T) {
	for name, s := range map[string]setup{"lan966x": onLAN966x(), "generic": onGeneric()} {
		t.Run(name, func(t *testing.T) {
			s.machine.Cores = 2
			s.device.TXRing = 4
			s.wire.Rate = unit.Gbps // a segment of 66 bytes takes 90*8 = 720 ns
			inAllModes(t, s, func(t *testing.T, s setup) {
				r := newRig(s)
				r.m.Trace = trace.NewLog(0, 100*ms, 100_000)
				r.task(0, 10*us, func(c *cpu.Core) {
					c.BHDisable() // so that nothing is reclaimed meanwhile
					for n := range uint64(1010) {
						r.Xmit(c, &model.Segment{Frame: model.Frame{Seq: n, Len: model.TCPFrameLen(0)}})
					}
					same(t, "in the ring", r.tx.InFlight(), 4)
					same(t, "queued", r.qdisc.n, 1000)
					c.BHEnable()
				})
				// 1010*120 ns later the ring begins to drain, with at least 720 ns a segment.
				r.task(1, 500*us, func(c *cpu.Core) { r.xmit(c, 5000, 10) })
				r.task(1, 5*ms, func(c *cpu.Core) { r.xmit(c, 6000, 3) })
				r.run(t, 10*ms)
				same(t, "driver", r.Stats(), Stats{TXQueued: 1010, TXDropped: 6})
				same(t, "sent", r.sent, slices.Concat(numbers(0, 1004), numbers(5000, 10), numbers(6000, 3)))
				same(t, "left in the ring", r.tx.InFlight(), 0)
				same(t, "reclaimed", r.spent(model.StageTXCompletion), 1017)
				traced := int64(0)
				for _, e := range r.m.Trace.Events() {
					if e.Point == trace.NetDevXmit {
						traced++
						same(t, "number and length traced", [2]int64{e.A, e.B}, [2]int64{traced, 66})
					}
				}
				same(t, "traced", traced, 1017)
			})
		})
	}
}

// A segment is sent when that is paid for, and one that waits in the qdisc after the
// poll that makes room for it. A ring of one descriptor and two segments:
//
//	   0  the task is woken by an interrupt of 400 ns, and sends in 120
//	 520  the first is sent, and completed at once; its interrupt of 1000 ns comes
//	      while the task pays 120 for the second
//	1640  the second finds the ring full; the softirq runs: 1000 ns to the poll
//	2640  the first is reclaimed in 50, the second is sent in 120
//	2810
func TestXmitInstants(t *testing.T) {
	s := onGeneric()
	s.device.TXRing = 1
	inAllModes(t, s, func(t *testing.T, s setup) {
		r := newRig(s)
		r.task(0, 10*us, func(c *cpu.Core) { r.xmit(c, 0, 2) })
		for after, want := range map[sim.Time]int64{520*ns - 1: 0, 520 * ns: 1, 2810*ns - 1: 1, 2810 * ns: 2} {
			r.at(10*us+after, func() { same(t, fmt.Sprintf("sent after %v", after), r.out.Stats().Sent, want) })
		}
		r.at(10*us+1640*ns, func() { same(t, "queued", r.qdisc.n, 1) })
		r.run(t, ms)
		same(t, "received", r.sent, numbers(0, 2))
	})
}
