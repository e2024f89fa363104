package host

import (
	"slices"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
	"napisim/sim/trace"
)

func datagram(at sim.Time, payload int32) model.Frame {
	return model.Frame{Arrival: at, Payload: payload, Len: model.UDPFrameLen(payload), Proto: model.UDP}
}

// datagrams lets n datagrams arrive together.
func (r *rig) datagrams(at sim.Time, s *UDPSock, n, truesize int) {
	one := func() *model.SKB { return r.skb(datagram(at, 1000), truesize) }
	r.arrive(at, s.Receive, slices.Repeat([]func() *model.SKB{one}, n)...)
}

// Vector U1: receive memory is tested before a datagram is added. With 2304 bytes
// each, 92 make 211968, the 93rd goes above 212992, and the 94th is dropped.
func TestU1ReceiveBuffer(t *testing.T) {
	for _, c := range []struct {
		truesize, queued int
	}{
		{2304, 93},  // half a page with its descriptor: 92*2304 = 211968
		{768, 278},  // a small packet: 277*768 = 212736
		{4352, 49},  // a page with its descriptor: 48*4352 = 208896
		{53248, 5},  // 4*53248 = 212992 is not above the buffer
		{53249, 4},  // 4*53249 = 212996 is
		{212992, 2}, // an empty socket takes anything ...
		{300000, 1}, // ... also what is larger than its buffer
	} {
		r := newRig(onOneCore())
		r.m.Trace = trace.NewLog(0, sim.Never, 1000)
		s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992})
		r.datagrams(ms, s, c.queued, c.truesize)
		r.at(2*ms, func() { same(t, "lost of those that fit", r.losses.Total(), 0) })
		r.datagrams(3*ms, s, 7, c.truesize)
		r.run(t, 4*ms)
		st := s.Stats()
		same(t, "queued", s.Queued(), c.queued)
		same(t, "InDatagrams", st.InDatagrams, int64(c.queued))
		same(t, "RcvbufErrors", st.RcvbufErrors, 7)
		same(t, "losses for this reason", r.losses[model.DropUDPRcvbuf], 7)
		same(t, "greatest receive memory", st.MaxRmem, c.queued*c.truesize)
		same(t, "pages in the socket", r.pages.out, c.queued)
		traced := 0
		for _, e := range r.m.Trace.Events() {
			if e.Point == trace.KfreeSKB && e.S == "__udp_enqueue_schedule_skb" && e.T == "SOCKET_RCVBUFF" {
				traced++
			}
		}
		same(t, "kfree_skb", traced, 7)
	}
}

// The memory of datagrams goes back when they are dequeued: in batches of at least a
// quarter of the buffer, or when the reader's own list is empty. 24 datagrams of 2304
// bytes are the first to reach 53248.
func TestUDPMemoryGoesBackInQuarters(t *testing.T) {
	r := newRig(onOneCore())
	s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992})
	r.datagrams(ms, s, 93, 2304)
	r.datagrams(9*ms, s, 1, 2304)
	var got []int
	r.task(2*ms, func(task *cpu.Task) {
		for range 93 {
			s.Recv(task)
			got = append(got, s.rmem)
		}
	})
	r.run(t, 10*ms)
	var want []int
	for n := 1; n <= 93; n++ {
		want = append(want, (93-n/24*24)*2304)
	}
	want[92] = 0 // nothing is left
	sameAll(t, "receive memory after each read", got, want)
	same(t, "greatest receive memory", s.Stats().MaxRmem, 93*2304)
}

// What the reader has dequeued counts until it goes back: a full socket stays full
// for 24 reads, although nothing waits in its receive queue.
func TestUDPFullSocketWhileRead(t *testing.T) {
	r := newRig(onTwoCores())
	s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992})
	r.datagrams(ms, s, 93, 2304)
	read := 0
	r.task(2*ms, func(task *cpu.Task) {
		for {
			s.Recv(task)
			read++
			if read == 23 {
				same(t, "receive queue", s.queue.Len(), 0)
				r.datagrams(task.Core().Now()+1, s, 1, 2304) // is refused
			}
			if read == 24 {
				r.datagrams(task.Core().Now()+1, s, 1, 2304) // 69*2304 = 158976: is queued
			}
			task.Core().Work(10 * us) // until the device is done
		}
	})
	r.run(t, 10*ms)
	same(t, "refused", s.Stats().RcvbufErrors, 1)
	same(t, "read", read, 94)
}

// On the occasion of a batch the reader takes over what waits, and comes back for it
// only then.
func TestUDPReaderTakesOverWithMemory(t *testing.T) {
	r := newRig(onTwoCores())
	s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 4 * 2304}) // a quarter is one datagram
	r.datagrams(ms, s, 2, 2304)
	r.task(2*ms, func(task *cpu.Task) {
		s.Recv(task)
		same(t, "receive memory", s.rmem, 2304)
		task.Core().Work(100 * us)
		task.Core().Look()
		same(t, "arrived meanwhile", s.queue.Len(), 2)
		s.Recv(task)
		same(t, "left in the receive queue", s.queue.Len(), 0)
		same(t, "on the reader's list", s.reading.Len(), 2)
	})
	r.datagrams(2*ms+50*us, s, 2, 2304)
	r.run(t, 10*ms)
	same(t, "waiting", s.Queued(), 2)
}

// Latency ends with the copy. From the last bit on the wire that is, on one core:
// interrupt 900 ns, udp_rcv 100, wakeup 300, switch 1000, skb 50, copy 1000. A reader on
// another core costs an IPI: 400 ns to send, 1 us on its way, 400 ns of interrupt.
func TestUDPLatency(t *testing.T) {
	for name, c := range map[string]struct {
		s    setup
		want sim.Time
	}{
		"one core":  {onOneCore(), 3350 * ns},
		"two cores": {onTwoCores(), 5150 * ns},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(c.s)
			s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992})
			r.task(0, Datagrams(s))
			for n := range sim.Time(3) {
				r.datagrams((n+1)*ms, s, 1, 2304)
			}
			r.run(t, 10*ms)
			got := s.Received()
			same(t, "packets", got.Packets, 3)
			same(t, "reads", got.Reads, 3)
			same(t, "bytes", got.Bytes, 3000)
			same(t, "least latency", sim.Time(got.Latency.Min()), c.want)
			same(t, "greatest latency", sim.Time(got.Latency.Max()), c.want)
			same(t, "live skbs", r.skbs.Live(), 0)
		})
	}
}

// A reader that is awake, or on its way, is not woken again: of ten datagrams that
// come together the first pays for the wakeup.
func TestUDPWakeupIsPaidOnce(t *testing.T) {
	for name, s := range map[string]setup{"one core": onOneCore(), "two cores": onTwoCores()} {
		t.Run(name, func(t *testing.T) {
			s.machine.IPILatency = 50 * us
			r := newRig(s)
			sock := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992})
			task := r.task(0, Datagrams(sock))
			r.datagrams(ms, sock, 10, 2304)
			r.run(t, 10*ms)
			same(t, "wakeups paid for", r.spent(model.StageSockWakeup), 1)
			same(t, "wakeups of the reader", task.Stats().Wakeups, 2) // and its start
			same(t, "datagrams read", sock.Received().Reads, 10)
			// A recvmsg that finds nothing takes nothing off the queue.
			same(t, "skbs taken off", r.spent(model.StageRecvSKB), 10)
		})
	}
}
