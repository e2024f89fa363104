package guest

import (
	"testing"

	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/nic/emulated"
	"napisim/sim"
)

// sending is one call of a random sender.
type sending struct {
	at    sim.Time
	n     int
	burst bool // of pktgen; otherwise a list of the stack
}

// sender sends what it is told from an interface, and retries what a full ring refuses.
// Its wakeups have a phase of their own, which fixes the order of two senders.
func (r *rig) sender(d *Netdev, phase sim.Phase, all []sending) {
	body := func(t *cpu.Task) {
		c := t.Core()
		segs := make([]model.Segment, 40)
		for i := range segs {
			segs[i].Frame = model.Frame{Proto: model.UDP, Len: 600, Payload: 558}
			if r.full {
				segs[i].Len, segs[i].Payload = 1514, 1472
			}
		}
		for _, s := range all {
			if s.burst {
				d.NewSKB()
			}
			for c.Look(); c.Now() < s.at; c.Look() {
				r.eng.Schedule(s.at, phase, do(t.WakeFromDevice), 0)
				t.Sleep()
			}
			for left := s.n; left > 0; {
				c.BHDisable()
				if s.burst {
					left -= d.Burst(c, udp(), left)
					c.Work(us)
				} else {
					d.XmitList(c, segs[:left])
					left = 0
				}
				c.BHEnable()
				c.CondResched() // as pktgen does, or ksoftirqd could starve
			}
		}
	}
	t := r.m.NewTask(r.m.Cores[0], "sender", cpu.TaskConfig{}, body)
	r.eng.Schedule(0, phase, do(t.WakeFromDevice), 0)
}

// TestRandom lets both interfaces send at random, with rings of random sizes: whatever
// the driver and the kernel, every frame arrives, nothing is left waiting, and all modes
// give the same.
func TestRandom(t *testing.T) {
	sendings := func(rt *rapid.T, name string, pktgen bool) (all []sending, frames int) {
		at := ms
		for range rapid.IntRange(1, 12).Draw(rt, name) {
			at += sim.Time(rapid.IntRange(0, 600).Draw(rt, "gap")) * us
			s := sending{at: at, n: rapid.IntRange(1, 40).Draw(rt, "n"), burst: pktgen && rapid.Bool().Draw(rt, "burst")}
			all, frames = append(all, s), frames+s.n
		}
		return all, frames
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := ofDriver(rapid.SampledFrom([]string{"k61", "k612"}).Draw(rt, "kernel"), rapid.SampledFrom(drivers).Draw(rt, "driver"))
		size := rapid.SampledFrom([]int{48, 64, 256})
		s.device = emulated.Config{RXRing: size.Draw(rt, "rx"), TXRing: size.Draw(rt, "tx"), NoMitigation: rapid.Bool().Draw(rt, "nomit")}
		s.device.TXDelay = sim.Time(rapid.SampledFrom([]int{0, 0, 3, 150}).Draw(rt, "delay")) * us
		s.config.FixedITR = rapid.Bool().Draw(rt, "itr")
		s.config.BQLMin = rapid.SampledFrom([]int{0, BQLMax}).Draw(rt, "bql")
		fromA, toB := sendings(rt, "na", true)
		fromB, toA := sendings(rt, "nb", false)
		run := func(mode sim.Mode, shuffle uint64) uint64 {
			s.mode, s.shuffle = mode, shuffle
			r := newRig(s)
			r.sender(r.na, phaseEnd-1, fromA)
			r.sender(r.nb, phaseEnd-2, fromB)
			r.run(rt, 100*ms)
			if r.nb.rx.Taken() != int64(toB) || r.na.rx.Taken() != int64(toA) {
				rt.Fatalf("%d frames of %d and %d of %d arrived", r.nb.rx.Taken(), toB, r.na.rx.Taken(), toA)
			}
			for _, d := range []*Netdev{r.na, r.nb} {
				if d.qdisc.n != 0 || len(d.completions) != 0 || d.tx.Waiting() != 0 || d.xmitStopped() && d.tx.InUse() == 0 {
					rt.Fatalf("%s: %d in the qdisc, %d to free, %d not sent, stopped %v", d.cfg.Name, d.qdisc.n, len(d.completions), d.tx.Waiting(), d.xmitStopped())
				}
			}
			return r.m.Fingerprint.Sum()
		}
		want := run(sim.Lazy, 0)
		for i, got := range []uint64{run(sim.Eager, 0), run(sim.Slow, 0), run(sim.Lazy, 5), run(sim.Eager, 6)} {
			if got != want {
				rt.Fatalf("mode %d differs", i)
			}
		}
	})
}
