package tcp

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/model"
	"napisim/sim"
)

// The backlog limit by kernel version, with rcvbuf 200000 and sndbuf 87040. The
// test is on what is charged before, so one skb may overshoot.
func TestBacklogLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  BacklogRule
		limit int
	}{
		{"4.19 to 5.19", BacklogSndbuf, 200_000 + 87_040 + 65_536},
		{"6.1 to 6.9", BacklogHalfSndbuf, 200_000 + 43_520 + 65_536},
		{"since 6.12", BacklogDoubleRcvbuf, 400_000 + 43_520 + 65_536},
	} {
		s := newSocket(t, func(cfg *ReceiverConfig) { cfg.Backlog, cfg.RcvBuf = c.rule, 100_000 })
		if got := s.BacklogLimit(); got != c.limit {
			t.Errorf("%s: limit %d, want %d", c.name, got, c.limit)
		}
		s.give(0, 1)
		var list model.SKBList
		held := 0
		for i := 1; ; i++ {
			k := s.skb(float64(2*i), 1) // gaps, so that nothing is coalesced
			if v := s.AddBacklog(&list, k, &s.free); v == BacklogDropped {
				break
			} else if v != Backlogged {
				t.Fatalf("%s: outcome %d", c.name, v)
			}
			held++
		}
		if want := (c.limit-2304)/2304 + 1; held != want || list.Len() != want {
			t.Errorf("%s: %d skbs held, want %d", c.name, held, want)
		}
		st := s.Stats()
		if st.TCPBacklogDrop != 1 || st.Lost[model.DropTCPBacklog] != 1 || s.freed() != 1 {
			t.Errorf("%s: %+v", c.name, st)
		}
		// While the owner works the backlog off, all of it still counts.
		s.Receive(s.now, list.PopFront(), &s.free)
		if v := s.AddBacklog(&list, s.skb(1000, 1), &s.free); v != BacklogDropped {
			t.Errorf("%s: room again before the backlog is done", c.name)
		}
		for k := list.PopFront(); k != nil; k = list.PopFront() {
			s.Receive(s.now, k, &s.free)
		}
		s.BacklogDone()
		if v := s.AddBacklog(&list, s.skb(1000, 1), &s.free); v != Backlogged {
			t.Errorf("%s: no room after the backlog is done", c.name)
		}
		s.Receive(s.now, list.PopFront(), &s.free)
		s.freed()
	}
}

// Contiguous skbs with equal timestamps become one in the backlog, which is one
// pass through Receive and one ACK.
func TestBacklogCoalesce(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*model.SKB) // of the second skb
		want   BacklogVerdict
	}{
		{"contiguous", func(*model.SKB) {}, BacklogCoalesced},
		{"short last segment", func(k *model.SKB) { k.Payload, k.LastSeg = seg+100, 100 }, BacklogCoalesced},
		{"gap", func(k *model.SKB) { k.Frame.Seq++ }, Backlogged},
		{"timestamp", func(k *model.SKB) { k.Frame.TSVal++ }, Backlogged},
		{"echo", func(k *model.SKB) { k.Frame.TSEcr++ }, Backlogged},
		{"TOS", func(k *model.SKB) { k.Frame.TOS++ }, Backlogged},
		{"FIN", func(k *model.SKB) { k.Frame.Flags |= model.FIN }, Backlogged},
		{"no payload", func(k *model.SKB) { k.Payload, k.Frame.Payload, k.Segs = 0, 0, 1 }, Backlogged},
		{"frag_list", func(k *model.SKB) { k.Chained = 1 }, Backlogged},
		{"larger segments", func(k *model.SKB) { k.Frame.Payload++; k.Payload += 2 }, Backlogged},
		{"other pool", func(k *model.SKB) { k.Pool = noPool{} }, Backlogged},
	} {
		s := newSocket(t, nil)
		s.settle(200)
		var list model.SKBList
		s.now += 10
		a := s.skb(200, 3)
		s.now += 10
		b := s.skb(203, 2)
		c.change(b)
		payload := a.Payload + b.Payload
		s.AddBacklog(&list, a, &s.free)
		if got := s.AddBacklog(&list, b, &s.free); got != c.want {
			t.Errorf("%s: outcome %d, want %d", c.name, got, c.want)
		}
		if c.want == BacklogCoalesced {
			k := list.Front()
			if k.Segs != 5 || k.Payload != payload || k.Truesize != 2*2304+3*2048-256 || k.Pages != 5 || k.Frags != 4 || s.freed() != 1 {
				t.Errorf("%s: merged skb %+v", c.name, k)
			}
			if diff := cmp.Diff([]sim.Time{10, 10, 10, 20, 20}, k.Arrivals); diff != "" {
				t.Errorf("%s: arrivals %s", c.name, diff)
			}
			if s.backlog != k.Truesize || s.Stats().TCPBacklogCoalesce != 1 {
				t.Errorf("%s: backlog of %d, stats %+v", c.name, s.backlog, s.Stats())
			}
		}
		for k := list.PopFront(); k != nil; k = list.PopFront() {
			s.Receive(s.now, k, &s.free)
		}
		s.BacklogDone()
		s.freed()
	}
}

// A FIN ends the stream: it takes a number, wakes the reader and is acknowledged,
// but there is nothing to read of it.
func TestFIN(t *testing.T) {
	for _, bare := range []bool{true, false} {
		for _, ofo := range []bool{true, false} {
			s := newSocket(t, nil)
			fin := s.skb(1, 1)
			fin.Frame.Flags |= model.FIN
			if bare {
				fin.Payload, fin.Frame.Payload, fin.LastSeg = 0, 0, 0
			}
			end := fin.EndSeq()
			if !ofo {
				s.give(0, 1)
			}
			v := s.Receive(s.now, fin, &s.free)
			if ofo {
				v = s.give(0, 1)
			}
			if !v.AckNow || !v.DataReady || s.RcvNxt() != end {
				t.Errorf("bare %v, out of order %v: %+v, RCV.NXT %d", bare, ofo, v, s.RcvNxt())
			}
			want := int(end - FirstSeq - 1)
			if s.EOF() || s.Readable() != want {
				t.Errorf("bare %v: end of file %v, %d readable, want %d", bare, s.EOF(), s.Readable(), want)
			}
			if d := s.Read(s.now, 1<<20, &s.free); d.Bytes != want || !s.EOF() || s.Readable() != 0 {
				t.Errorf("bare %v: read %d, end of file %v", bare, d.Bytes, s.EOF())
			}
			// It comes once more.
			again := s.skb(1, 1)
			again.Payload, again.Frame.Payload = 0, 0
			again.Frame.Seq, again.Frame.Flags = end-1, again.Frame.Flags|model.FIN
			if v := s.Receive(s.now, again, &s.free); !v.AckNow || v.Dropped != 0 {
				t.Errorf("bare %v: again %+v", bare, v)
			}
			s.freed()
		}
	}
}

// Without a window scale the window moves in whole segments only.
func TestUnscaledWindow(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.Rmem = [3]int{4096, 65535, 65535}; c.RmemMax = 65535 })
	s.give(0, 1)
	first := s.buildAck()
	if first.Window%seg != 0 {
		t.Errorf("window %d is not a whole number of segments", first.Window)
	}
	for i := range 10 {
		s.give(float64(1+i), 1)
		if a := s.buildAck(); a.Window%seg != 0 && int(a.Window) != s.Window() {
			t.Errorf("window %d", a.Window)
		}
	}
}

// SO_RCVLOWAT holds the wakeup back, but not when waiting would close the window or
// fill the buffer.
func TestRcvLowat(t *testing.T) {
	s := newSocket(t, func(c *ReceiverConfig) { c.RcvLowat = 3 * seg })
	for i, want := range []bool{false, false, true, true} {
		if v := s.give(float64(i), 1); v.DataReady != want {
			t.Errorf("segment %d: wakeup %v", i, v.DataReady)
		}
	}
	s = newSocket(t, func(c *ReceiverConfig) { c.RcvLowat, c.RcvBuf = 1<<20, 30_000 })
	woken := 0
	for i := 0; s.Window() >= seg; i++ {
		if v := s.give(float64(i), 1); v.DataReady {
			woken++
		}
		s.buildAck()
	}
	if woken == 0 {
		t.Error("never woken although the window closed")
	}
}

// A configuration is told all its faults at once.
func TestValidate(t *testing.T) {
	rcv, snd := DefaultReceiverConfig(), DefaultSenderConfig()
	if f := append(rcv.Validate(), snd.Validate()...); f != nil {
		t.Errorf("defaults: %v", f)
	}
	bad := ReceiverConfig{
		MSS: 1, Rmem: [3]int{2, 1, 2 << 30}, RmemMax: -1, RcvBuf: -1, SndBuf: -1, ScalingRatio: 257,
		CompSACKs: -1, CompSACKDelay: -1, Backlog: 9, InitialRTT: -1,
	}
	if got := len(bad.Validate()); got != 13 {
		t.Errorf("%d faults: %v", got, bad.Validate())
	}
	worse := SenderConfig{
		MSS: 1 << 20, TSO: -1, Bytes: -1, WriteSize: -1, InitialWindow: -1, InitialRTT: -1, LimitOutput: -1,
	}
	if got := len(worse.Validate()); got != 9 {
		t.Errorf("%d faults: %v", got, worse.Validate())
	}
	for name, build := range map[string]func(){
		"receiver": func() { NewReceiver(bad, nil) },
		"sender":   func() { NewSender(nil, 0, worse, nil) },
	} {
		func() {
			defer func() {
				if r, ok := recover().(string); !ok || !strings.HasPrefix(r, "tcp: "+name) {
					t.Errorf("%s: %v", name, r)
				}
			}()
			build()
		}()
	}
}

// Time never goes back: a caller that owes time would queue data in the past.
func TestClock(t *testing.T) {
	s := newSocket(t, nil)
	s.now = 100
	s.Read(s.now, 1, &s.free)
	defer func() {
		if fault, ok := recover().(*sim.Fault); !ok || !strings.Contains(fault.Error(), "a debt was not paid") {
			t.Errorf("fault %v", fault)
		}
	}()
	s.CleanupRbuf(99, 0)
}
