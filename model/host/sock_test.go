package host

import (
	"testing"

	"napisim/model"
	"napisim/model/cpu"
)

// onCoreOne runs f on core 1 of a rig with two cores, and returns the rig at rest.
func onCoreOne(t *testing.T, f func(r *rig, c *cpu.Core)) *rig {
	t.Helper()
	s := onTwoCores()
	s.machine.Costs[model.StageSKBFree] = 70 * ns
	r := newRig(s)
	r.task(0, func(task *cpu.Task) { f(r, task.Core()) })
	r.run(t, ms)
	return r
}

// Who frees an skb gives all of its pages back, on the core where it is, once, and
// pays for its descriptor and those chained to it.
func TestFreeSKB(t *testing.T) {
	for _, c := range []struct {
		name        string
		pages       int
		chained     int
		pool, safe  bool
		returned    []string
		descriptors int64
	}{
		{name: "a page", pages: 1, pool: true, returned: []string{"cpu1 1 safe=false"}, descriptors: 1},
		{name: "in NAPI context", pages: 1, pool: true, safe: true, returned: []string{"cpu1 1 safe=true"}, descriptors: 1},
		{name: "superframe", pages: 17, pool: true, returned: []string{"cpu1 17 safe=false"}, descriptors: 1},
		{name: "chained", pages: 3, chained: 2, pool: true, returned: []string{"cpu1 3 safe=false"}, descriptors: 3},
		{name: "pages of nobody", pages: 0, descriptors: 1},
		{name: "no pages", pool: true, descriptors: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := onCoreOne(t, func(r *rig, core *cpu.Core) {
				s := r.skb(model.Frame{}, 2304)
				s.Pages, s.Chained = c.pages, c.chained
				r.pages.out += c.pages - 1
				if !c.pool {
					s.Pool = nil
				}
				r.env.FreeSKB(core, s, c.safe)
			})
			sameAll(t, "pages returned", r.pages.returned, c.returned)
			same(t, "descriptors paid for", r.spent(model.StageSKBFree), c.descriptors)
			same(t, "live skbs", r.skbs.Live(), 0)
		})
	}
}

// A dropped packet is freed outside of NAPI context and counts as all the segments
// that it holds.
func TestDrop(t *testing.T) {
	r := onCoreOne(t, func(r *rig, c *cpu.Core) {
		r.env.Drop(c, r.segments(1, 5, 0), model.DropTCPWindow)
		r.env.Drop(c, r.segments(1, 1, 0), model.DropUDPRcvbuf)
	})
	same(t, "segments beyond the window", r.losses[model.DropTCPWindow], 5)
	same(t, "datagrams refused", r.losses[model.DropUDPRcvbuf], 1)
	same(t, "losses", r.losses.Total(), 6)
	sameAll(t, "pages returned", r.pages.returned, []string{"cpu1 5 safe=false", "cpu1 1 safe=false"})
	same(t, "live skbs", r.skbs.Live(), 0)
	same(t, "segments freed", r.skbs.Freed(), 6)
}

// A checksum is summed once, by whoever needs it first, over the payload; never if the
// device has verified it.
func TestVerifyChecksum(t *testing.T) {
	for _, c := range []struct {
		none bool
		want int64
	}{{true, 2 * mss}, {false, 0}} {
		r := onCoreOne(t, func(r *rig, core *cpu.Core) {
			s := r.segments(1, 2, 0)
			s.CsumNone = c.none
			VerifyChecksum(core, s)
			VerifyChecksum(core, s)
			r.env.FreeSKB(core, s, false)
		})
		same(t, "bytes summed", r.spent(model.StageCsumByte), c.want)
	}
}

// The stack's way charges it once as well: UDP on the reader's core when it copies,
// TCP on that of the softirq.
func TestChecksumOfSockets(t *testing.T) {
	unverified := func(s *model.SKB) *model.SKB {
		s.CsumNone = true
		return s
	}
	t.Run("udp", func(t *testing.T) {
		r := newRig(onTwoCores())
		s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992})
		r.arrive(ms, s.Receive, func() *model.SKB { return unverified(r.skb(datagram(ms, 1000), 2304)) })
		r.task(0, Datagrams(s))
		r.run(t, 2*ms)
		same(t, "bytes summed by the softirq", r.m.Cores[0].Spent()[model.StageCsumByte], 0)
		same(t, "bytes summed by the reader", r.m.Cores[1].Spent()[model.StageCsumByte], 1000)
	})
	t.Run("tcp", func(t *testing.T) {
		r := newRig(onTwoCores())
		k := r.newConn(t, smallWindow())
		r.arrive(ms, k.Receive, func() *model.SKB { return unverified(r.segments(1, 2, ms)) })
		r.task(0, Stream(k.TCPSock, 1<<20))
		r.run(t, 2*ms)
		same(t, "bytes summed by the softirq", r.m.Cores[0].Spent()[model.StageCsumByte], 2*mss)
		same(t, "bytes summed by the reader", r.m.Cores[1].Spent()[model.StageCsumByte], 0)
	})
}

// A hog never leaves user mode, and what it burns is the scenario's time, not a stage's.
func TestHog(t *testing.T) {
	r := newRig(onOneCore())
	r.task(0, Hog)
	r.run(t, 10*ms)
	// Its start is an IPI 1 us later, 200 + 200 ns of interrupt and 1 us of switch; the
	// ticks at 4 and 8 ms take 400 ns each.
	same(t, "user time", r.m.Cores[0].Account()[cpu.User], 10*ms-us-1400*ns-2*400*ns)
}
