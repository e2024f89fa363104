package host

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

// superframe is n datagrams of 1000 bytes, the last of another size, as GRO makes it:
// merged, or chained.
func (r *rig) superframe(at sim.Time, n, last int, chained bool) func() *model.SKB {
	return func() *model.SKB {
		s := r.skb(datagram(at, 1000), 2304)
		for i := range n - 1 {
			s.Arrivals = append(s.Arrivals, at-sim.Time(n-1-i))
			s.Pages++
			r.pages.out++
		}
		s.Segs, s.LastSeg, s.Payload = n, last, 1000*(n-1)+last
		s.Truesize += 2048 * (n - 1)
		if s.FragList = chained; chained {
			s.Chained, s.Truesize = n-1, n*2304
		}
		return s
	}
}

// A socket with UDP_GRO queues merged datagrams as one skb, which one read returns; it
// counts with its whole truesize, for one wakeup and one descriptor.
func TestUDPGROIsOneRead(t *testing.T) {
	r := newRig(onOneCore())
	s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992, GRO: true})
	var sizes []int
	r.task(0, func(task *cpu.Task) {
		for {
			sizes = append(sizes, s.Recv(task))
		}
	})
	r.arrive(ms, s.Receive, r.superframe(ms, 10, 300, false))
	r.run(t, 10*ms)
	sameAll(t, "reads", sizes, []int{9300})
	same(t, "datagrams queued", s.Stats().InDatagrams, 1)
	same(t, "receive memory", s.Stats().MaxRmem, 2304+9*2048)
	same(t, "packets", s.Received().Packets, 10)
	same(t, "reads counted", s.Received().Reads, 1)
	same(t, "bytes copied", r.spent(model.StageCopyByte), 9300)
	same(t, "udp_rcv", r.spent(model.StageUDPReceive), 1)
	same(t, "taken apart", r.spent(model.StageUDPSegment), 0)
	same(t, "live skbs", r.skbs.Live(), 0)
}

// Merged datagrams come apart at a socket that did not ask for them, chained ones at any:
// each is queued and read by itself, and nothing is lost or made on the way.
func TestUDPSuperframesComeApart(t *testing.T) {
	for _, c := range []struct {
		name         string
		chained, gro bool
		truesize     int
	}{
		{"merged, no UDP_GRO", false, false, 2304 + 9*2048},
		{"chained, no UDP_GRO", true, false, 10 * 2304},
		{"chained, UDP_GRO", true, true, 10 * 2304},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := onOneCore()
			r := newRig(s)
			sock := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992, GRO: c.gro})
			var sizes []int
			r.task(0, func(task *cpu.Task) {
				for {
					sizes = append(sizes, sock.Recv(task))
				}
			})
			r.arrive(ms, sock.Receive, r.superframe(ms, 10, 300, c.chained))
			r.run(t, 10*ms)
			sameAll(t, "reads", sizes, []int{1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 300})
			same(t, "datagrams queued", sock.Stats().InDatagrams, 10)
			same(t, "receive memory", sock.Stats().MaxRmem, c.truesize)
			same(t, "packets", sock.Received().Packets, 10)
			same(t, "taken apart", r.spent(model.StageUDPSegment), 10)
			same(t, "descriptors freed", r.spent(model.StageSKBFree), 10)
			same(t, "segments freed", r.skbs.Freed(), 10)
			same(t, "live skbs", r.skbs.Live(), 0)
		})
	}
}

// A full socket takes what fits of a superframe that comes apart, and drops the rest one
// by one; one that it takes as one it takes or drops as a whole.
func TestUDPSuperframeAtAFullSocket(t *testing.T) {
	for _, c := range []struct {
		gro          bool
		queued, lost int64
	}{{false, 3, 7}, {true, 1, 0}} {
		r := newRig(onOneCore())
		s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 2 * 2304, GRO: c.gro})
		r.arrive(ms, s.Receive, r.superframe(ms, 10, 1000, false))
		r.run(t, 2*ms)
		same(t, fmt.Sprintf("UDP_GRO %v: queued", c.gro), s.Stats().InDatagrams, c.queued)
		same(t, "lost", r.losses[model.DropUDPRcvbuf], c.lost)
	}
	r := newRig(onOneCore())
	s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 2 * 2304, GRO: true})
	r.arrive(ms, s.Receive, r.superframe(ms, 10, 1000, false), r.superframe(ms, 5, 1000, false))
	r.run(t, 2*ms)
	same(t, "lost as a whole", r.losses[model.DropUDPRcvbuf], 5)
	same(t, "RcvbufErrors", s.Stats().RcvbufErrors, 1)
}

// Taking apart conserves segments, bytes, memory, pages and arrivals, whatever they are.
func TestUDPSegmentsConserve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pool model.SKBPool
		env := &Env{SKBs: &pool}
		n := rapid.IntRange(1, 64).Draw(t, "n")
		size := rapid.IntRange(1, 1472).Draw(t, "size")
		s := pool.Get()
		s.Frame = datagram(0, int32(size))
		s.Segs, s.LastSeg = n, rapid.IntRange(1, size).Draw(t, "last")
		if n == 1 {
			s.LastSeg = size
		}
		s.Payload = (n-1)*size + s.LastSeg
		s.Pages, s.Truesize = rapid.IntRange(0, 2*n).Draw(t, "pages"), rapid.IntRange(n, n*5000).Draw(t, "truesize")
		s.Arrivals = s.Arrivals[:0]
		for i := range n {
			s.Arrivals = append(s.Arrivals, sim.Time(i))
		}
		payload, pages, truesize := s.Payload, s.Pages, s.Truesize
		list := udpRcvSegment(env, s)
		if list.Len() != n || pool.Live() != n {
			t.Fatalf("%d of %d datagrams, %d live", list.Len(), n, pool.Live())
		}
		i := 0
		for d := list.Front(); d != nil; d = d.Next() {
			if d.Segs != 1 || len(d.Arrivals) != 1 || d.Arrivals[0] != sim.Time(i) || d.Frame.Arrival != sim.Time(i) ||
				int(d.Frame.Payload) != d.Payload || d.Frame.Len != model.UDPFrameLen(int32(d.Payload)) || d.LastSeg != d.Payload || d.FragList || d.Chained != 0 {
				t.Fatalf("datagram %d: %+v", i, d)
			}
			payload, pages, truesize = payload-d.Payload, pages-d.Pages, truesize-d.Truesize
			i++
		}
		if payload != 0 || pages != 0 || truesize != 0 {
			t.Fatalf("missing: payload %d, pages %d, truesize %d", payload, pages, truesize)
		}
	})
}

// In steady state taking apart allocates nothing.
func TestUDPSegmentsAllocateNothing(t *testing.T) {
	var pool model.SKBPool
	env := &Env{SKBs: &pool}
	apart := func() {
		s := pool.Get()
		s.Frame = datagram(0, 1000)
		s.Segs, s.LastSeg, s.Payload, s.Truesize, s.Pages = 20, 1000, 20000, 20*2304, 20
		for i := range 20 {
			s.Arrivals = append(s.Arrivals, sim.Time(i))
		}
		list := udpRcvSegment(env, s)
		for d := list.PopFront(); d != nil; d = list.PopFront() {
			pool.Put(d)
		}
	}
	for range 100 {
		apart() // grows the slices of arrivals of every skb in turn
	}
	if n := testing.AllocsPerRun(100, apart); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
