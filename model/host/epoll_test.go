package host

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/tcp"
	"napisim/sim"
)

// An Epoll returns the sockets that are readable, in the order in which they became so;
// one that still has data stays (level-triggered), one that was emptied does not.
func TestEpollWait(t *testing.T) {
	r := newRig(onOneCore())
	ep := NewEpoll()
	var socks []*UDPSock
	for range 3 {
		s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992})
		ep.Add(s)
		socks = append(socks, s)
	}
	r.datagrams(ms, socks[2], 2, 2304)
	r.datagrams(2*ms, socks[0], 1, 2304)
	var got []string
	r.task(3*ms, func(task *cpu.Task) {
		for range 3 {
			line := ""
			for _, e := range ep.Wait(task, 2) {
				for i, s := range socks {
					if e == Pollable(s) {
						line += fmt.Sprint(i)
					}
				}
				e.TryRead(task, 0)
			}
			got = append(got, line)
		}
	})
	r.datagrams(5*ms, socks[1], 1, 2304)
	r.run(t, 10*ms)
	// Socket 0 is asked again and found empty; after 2 has been emptied only 1 wakes.
	sameAll(t, "events", got, []string{"20", "2", "1"})
	same(t, "waits", ep.Stats().Waits, 3)
	same(t, "callbacks", ep.Stats().Callbacks, 4)
}

// EAGAIN is no data and costs no copy.
func TestTryRecv(t *testing.T) {
	r := newRig(onOneCore())
	s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992})
	k := r.newConn(t, tcp.DefaultReceiverConfig())
	r.task(0, func(task *cpu.Task) {
		if _, ok := s.TryRecv(task); ok {
			t.Error("a datagram from an empty socket")
		}
		if _, ok := k.TryRecv(task, 1000); ok {
			t.Error("bytes from an empty socket")
		}
	})
	r.run(t, ms)
	same(t, "copied", r.spent(model.StageCopyByte), 0)
	same(t, "reads", s.Reads+k.Reads, 0)
}

// The NAPI id of a packet reaches its socket, and with the callback the Epoll.
func TestNAPIID(t *testing.T) {
	r := newRig(onOneCore())
	s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992})
	ep := NewEpoll()
	ep.Add(s)
	r.arrive(ms, s.Receive, func() *model.SKB {
		p := r.skb(datagram(ms, 100), 2304)
		p.NAPIID = 8193
		return p
	}, func() *model.SKB { return r.skb(datagram(ms, 100), 2304) })
	r.run(t, 2*ms)
	same(t, "sk_napi_id", s.NAPIID(), 8193)
	same(t, "ep->napi_id", ep.NAPIID(), 8193)
}

// No event is lost: whatever arrives on sockets of both kinds is read by a loop around
// epoll_wait, in all modes and wherever it runs.
func TestEventLoopReadsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		arrivals := drawArrivals(t, 40)
		wakeup := rapid.SampledFrom(UDPWakeupNames()).Draw(t, "udp_wakeup")
		rule := rapid.SampledFrom(UDPRcvbufNames()).Draw(t, "udp_rcvbuf")
		var bursts, which []int
		for range arrivals {
			bursts = append(bursts, rapid.IntRange(1, 5).Draw(t, "burst"))
			which = append(which, rapid.IntRange(0, 1).Draw(t, "socket"))
		}
		modesAgree(t, s, func(s setup) string {
			r := newRig(s)
			ep := NewEpoll()
			var udp [2]*UDPSock
			for i := range udp {
				udp[i] = NewUDPSock(&r.env, UDPConfig{RcvBuf: 10_000, Rcvbuf: rule, Wakeup: wakeup})
				ep.Add(udp[i])
			}
			r.task(0, EventLoop(ep, 4000))
			for i, at := range arrivals {
				r.datagrams(at+sim.Time(i), udp[which[i]], bursts[i], 2304)
			}
			r.run(t, rest)
			text := ""
			for _, u := range udp {
				st := u.Stats()
				if u.Queued() != 0 || u.rmem != 0 || u.Received().Reads != st.InDatagrams {
					t.Fatalf("%d datagrams left, %d bytes charged, %+v", u.Queued(), u.rmem, st)
				}
				text += r.story(u.Received()) + fmt.Sprintf("%+v", st)
			}
			return text + fmt.Sprintf("%+v", ep.Stats())
		})
	})
}

// The same for a TCP connection.
func TestEventLoopReadsStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		cfg := tcp.DefaultReceiverConfig()
		cfg.CompSACKs = 0
		arrivals := drawArrivals(t, 30)
		var bursts []int
		for range arrivals {
			bursts = append(bursts, rapid.SampledFrom([]int{1, 1, 2, 5, 17}).Draw(t, "burst"))
		}
		size := rapid.SampledFrom([]int{700, mss, 1 << 20}).Draw(t, "size")
		swap := rapid.Bool().Draw(t, "swap")
		modesAgree(t, s, func(s setup) string {
			r := newRig(s)
			k := r.newConn(t, cfg)
			ep := NewEpoll()
			ep.Add(k.TCPSock)
			r.task(0, EventLoop(ep, size))
			k.stream(arrivals, bursts, swap)
			r.run(t, rest)
			return k.checkStream(t, int64(mss*sum(bursts))) + fmt.Sprintf("%+v", ep.Stats())
		})
	})
}
