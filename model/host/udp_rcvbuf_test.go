package host

import (
	"testing"

	"napisim/model"
	"napisim/model/cpu"
)

// Vector U1 in the form of each version, with a buffer of 212992 bytes. What can be told
// apart: whether a full buffer takes one more, and whether the last one may overshoot.
func TestU1ByVersion(t *testing.T) {
	for _, c := range []struct {
		truesize int
		queued   map[string]int
	}{
		// 92*2304 = 211968 is below the buffer and 93*2304 = 214272 is above.
		{2304, map[string]int{"at_limit": 93, "above_limit_recheck": 93, "above_limit": 93, "strict": 92}},
		// 277*768 = 212736, and 278*768 = 213504 is above.
		{768, map[string]int{"at_limit": 278, "above_limit_recheck": 278, "above_limit": 278, "strict": 277}},
		// 4*53248 = 212992 fills the buffer exactly.
		{53248, map[string]int{"at_limit": 4, "above_limit_recheck": 5, "above_limit": 5, "strict": 4}},
		{212992, map[string]int{"at_limit": 1, "above_limit_recheck": 2, "above_limit": 2, "strict": 1}},
		// An empty socket takes what is larger than its buffer (pitfall 21).
		{300000, map[string]int{"at_limit": 1, "above_limit_recheck": 1, "above_limit": 1, "strict": 1}},
	} {
		for _, rule := range UDPRcvbufNames() {
			r := newRig(onOneCore())
			s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992, Rcvbuf: rule})
			r.datagrams(ms, s, c.queued[rule]+7, c.truesize)
			r.run(t, 4*ms)
			same(t, rule+": queued", s.Queued(), c.queued[rule])
			same(t, rule+": RcvbufErrors", s.Stats().RcvbufErrors, 7)
			same(t, rule+": receive memory", s.Stats().MaxRmem, c.queued[rule]*c.truesize)
		}
	}
}

// Pitfall 21: the test is on what is charged before, so a superframe of 17 half pages
// (2304 + 16*2048 = 35072) goes into a buffer that has one byte left; the strict rule of
// v6.18 refuses it.
func TestPitfall21SocketOvershoot(t *testing.T) {
	const super = 2304 + 16*2048
	for rule, want := range map[string]int{
		"at_limit": 2304 + super, "above_limit_recheck": 2304 + super, "above_limit": 2304 + super, "strict": 2304,
	} {
		r := newRig(onOneCore())
		s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 2305, Rcvbuf: rule})
		r.datagrams(ms, s, 1, 2304)
		r.datagrams(2*ms, s, 1, super)
		r.run(t, 4*ms)
		same(t, rule, s.Stats().MaxRmem, want)
	}
}

// Up to v4.9 the memory of a datagram is given back with its skb, after the copy; since
// then in batches of a quarter of the buffer, when it is dequeued.
func TestUDPMemoryGoesBackByVersion(t *testing.T) {
	for rule, want := range map[string][]int{
		"at_limit":            {3 * 2304, 2 * 2304, 2304, 0},
		"above_limit_recheck": {4 * 2304, 4 * 2304, 4 * 2304, 0},
		"strict":              {4 * 2304, 4 * 2304, 4 * 2304, 0},
	} {
		r := newRig(onOneCore())
		s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992, Rcvbuf: rule})
		r.datagrams(ms, s, 4, 2304)
		var got []int
		r.task(2*ms, func(task *cpu.Task) {
			for range 4 {
				s.Recv(task)
				got = append(got, s.rmem)
			}
		})
		r.run(t, 10*ms)
		sameAll(t, rule, got, want)
	}
}

// Since v4.10 a small payload that lies in a page moves into the head while more than
// half of the buffer is in use: truesize falls from 512 + 256 + 2048 = 2816 to 768, and
// the page goes home. A head of 512 bytes has 512 - 320 - 64 - 42 = 86 for payload.
func TestUDPCondense(t *testing.T) {
	const paged, dense = 512 + 256 + 2048, 512 + 256
	for _, c := range []struct {
		name    string
		rule    string
		payload int32
		want    int // truesize of one in the upper half
	}{
		{"v4.8", "at_limit", 86, paged},
		{"v6.1", "above_limit_recheck", 86, dense},
		{"v6.12", "above_limit", 86, dense},
		{"v6.18", "strict", 86, dense},
		{"one byte too long", "above_limit", 87, paged},
	} {
		r := newRig(onOneCore())
		s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 10 * paged, Rcvbuf: c.rule})
		one := func() *model.SKB {
			p := r.skb(datagram(ms, c.payload), paged)
			// A frame of at least 60 bytes: the headers are 42 of them.
			p.Frame.Len, p.Head, p.Frags = 42+c.payload, 512, 1
			return p
		}
		for range 7 {
			r.arrive(ms, s.Receive, one)
		}
		r.run(t, 2*ms)
		// Six make up more than half of ten: the seventh is condensed.
		same(t, c.name+": receive memory", s.rmem, 6*paged+c.want)
		same(t, c.name+": pages out", r.pages.out, map[int]int{paged: 7, dense: 6}[c.want])
	}
}

// With when_empty (v6.10 to v6.12) only the first of ten datagrams tells the epoll
// instance; the others find the receive queue filled.
func TestUDPWakeupByVersion(t *testing.T) {
	for rule, want := range map[string]int64{"every": 10, "when_empty": 1} {
		r := newRig(onOneCore())
		s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992, Wakeup: rule})
		ep := NewEpoll()
		ep.Add(s)
		r.datagrams(ms, s, 10, 2304)
		r.task(0, EventLoop(ep, 1<<16))
		r.run(t, 4*ms)
		same(t, rule+": callbacks", ep.Stats().Callbacks, want)
		same(t, rule+": read", s.Received().Reads, 10)
	}
}

// A configuration is told all its faults.
func TestUDPConfigValidate(t *testing.T) {
	bad := UDPConfig{Rcvbuf: "x", Wakeup: "y"}
	same(t, "faults", len(bad.Validate()), 2)
	good := UDPConfig{}
	same(t, "faults of the default", len(good.Validate()), 0)
}
