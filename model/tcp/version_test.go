package tcp

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/model"
	"napisim/sim"
)

// This file holds what differs between versions, chosen by name.

// choose returns a change that makes a socket behave as the values of behaviours say.
func choose(t *testing.T, pairs ...string) func(*ReceiverConfig) {
	return func(c *ReceiverConfig) {
		for i := 0; i < len(pairs); i += 2 {
			if err := c.Choose(pairs[i], pairs[i+1]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Each behaviour has its values in the order of history, and nothing else can be chosen.
func TestChoose(t *testing.T) {
	got := map[string]int{}
	for _, b := range Behaviours() {
		for _, v := range BehaviourValues(b) {
			c := DefaultReceiverConfig()
			if err := c.Choose(b, v); err != nil || len(c.Validate()) > 0 {
				t.Errorf("%s=%s: %v %v", b, v, err, c.Validate())
			}
			got[b]++
		}
	}
	if diff := cmp.Diff(map[string]int{
		"tcp_win_scaling": 3, "tcp_backlog_limit": 3, "tcp_backlog_coalesce": 2, "tcp_backlog_ack": 2,
		"tcp_sack_compression": 3, "tcp_drs": 3, "tcp_ack_now": 2, "tcp_grow_window": 2,
	}, got); diff != "" {
		t.Error(diff)
	}
	c := DefaultReceiverConfig()
	if err := c.Choose("tcp_drs", "never"); err == nil {
		t.Error("an unknown value is accepted")
	}
}

// The window of an empty socket by version: up to 6.5 what tcp_adv_win_scale leaves of
// the buffer, since 6.6 65/256 of it, since 6.10 one half. A segment of the clamp is kept
// back.
func TestWindowFromSpaceByVersion(t *testing.T) {
	const space = 1 << 20
	for _, c := range []struct {
		rule string
		adv  int
		want int64
	}{
		{"adv_win_scale", 1, space / 2},
		{"adv_win_scale", 2, space * 3 / 4},
		{"adv_win_scale", 0, space},
		{"adv_win_scale", -2, space / 4},
		{"ratio_65", 2, space / 256 * 65},
		{"ratio_128", 2, space / 2},
	} {
		name := fmt.Sprint(c.rule, " ", c.adv)
		s := newSocket(t, func(cfg *ReceiverConfig) {
			cfg.AdvWinScale = c.adv
			choose(t, "tcp_win_scaling", c.rule)(cfg)
		})
		if s.winFromSpace(space) != c.want || s.clamp != c.want-seg {
			t.Errorf("%s: window of %d, clamp %d, want %d", name, s.winFromSpace(space), s.clamp, c.want)
		}
		// The inverse gives a space whose window is not smaller, up to rounding.
		if got := s.winFromSpace(int(s.spaceFromWin(c.want))); got > c.want || got < c.want-1 {
			t.Errorf("%s: there and back %d of %d", name, got, c.want)
		}
	}
}

// The initial buffer by version, and the first window that it makes: 87380/2 is 30 whole
// segments, 131072/2 is 65535 and so 45 of them, 131072*65/256 is 22.
func TestInitialWindowByVersion(t *testing.T) {
	for _, c := range []struct {
		rmem int
		rule string
		want int
	}{
		{87380, "adv_win_scale", 43690 / seg * seg},
		{131072, "adv_win_scale", 65535 / seg * seg},
		{131072, "ratio_65", 33280 / seg * seg},
		{131072, "ratio_128", 65535 / seg * seg},
	} {
		s := newSocket(t, func(cfg *ReceiverConfig) {
			cfg.Rmem[1] = c.rmem
			choose(t, "tcp_win_scaling", c.rule)(cfg)
		})
		if got := s.Window(); got != c.want {
			t.Errorf("%d %s: window %d, want %d", c.rmem, c.rule, got, c.want)
		}
	}
}

// SACK compression by version. Of the duplicate ACKs for 5 segments behind a gap: all go
// out up to 4.18, none in 4.19, three since 4.20; the rest waits for 5 % of the round trip.
func TestSACKCompressionByVersion(t *testing.T) {
	for rule, want := range map[string]int{"never": 5, "from_first": 0, "after_three": 3} {
		s := newSocket(t, choose(t, "tcp_sack_compression", rule))
		s.settle(200)
		s.rtt.rtt = 10 * sim.Millisecond
		sent := 0
		for i := range 5 {
			if s.give(float64(210+i), 1).AckNow {
				sent++
				s.buildAck()
			}
		}
		if sent != want {
			t.Errorf("%s: %d ACKs, want %d", rule, sent, want)
		}
		deadline := sim.Never
		if want < 5 {
			deadline = s.now + 500*sim.Microsecond
		}
		if got := s.CompSACKDeadline(); got != deadline {
			t.Errorf("%s: timer at %v, want %v", rule, got, deadline)
		}
	}
}

// Autotuning by version, after a round trip in which 70 segments came and 70 or 40 of
// them were read, with 10 before: rcvwin = 2*copied + 16 MSS, and since 4.19
// 2*rcvwin*(copied-10)/10 more. Since 6.17 what waits to be read does not count.
func TestAutotuningByVersion(t *testing.T) {
	for _, c := range []struct {
		rule   string
		read   int
		copied int
	}{
		{"reader", 70, 70},
		{"growth", 70, 70},
		{"growth_less_unread", 70, 70},
		{"reader", 40, 40},
		{"growth", 40, 40},
		{"growth_less_unread", 40, 10},
	} {
		s := newSocket(t, func(cfg *ReceiverConfig) {
			cfg.Rmem[1], cfg.InitialRTT = 200_000, 10*sim.Millisecond
			choose(t, "tcp_drs", c.rule)(cfg)
		})
		for i := range 70 {
			s.give(float64(i), 1)
			if i < c.read {
				s.Read(s.now, 1<<20, &s.free)
			}
			s.buildAck()
		}
		s.now = s.RTT()
		s.Read(s.now, 0, &s.free)
		win := (2*c.copied + 16) * seg
		if c.rule != "reader" {
			win += 2 * win * (c.copied - 10) / 10
		}
		want := max(200_000, 2*win)
		if c.copied == 10 {
			want = 200_000 // not more than before
		}
		if got := s.Rcvbuf(); got != want {
			t.Errorf("%s, %d read: rcvbuf %d, want %d", c.rule, c.read, got, want)
		}
	}
}

// Up to 4.18 a second full segment waits for the reader if the window would be smaller;
// since 4.19 it is acknowledged at once if everything before it has been read. Nothing is
// read here before it, so that also since 4.19 SO_RCVLOWAT has to be above what waits.
func TestAckNowByVersion(t *testing.T) {
	for _, c := range []struct {
		rule  string
		lowat int
		want  bool
	}{
		{"window", 1, false},
		{"window", 3 * seg, false},
		{"window_or_drained", 1, false},
		{"window_or_drained", 3 * seg, true},
	} {
		s := newSocket(t, func(cfg *ReceiverConfig) {
			cfg.RcvLowat = c.lowat
			choose(t, "tcp_ack_now", c.rule)(cfg)
		})
		s.settle(200)
		s.rcvWnd += 100 * seg // announced once, and more than the socket would now
		s.give(200, 1)
		if got := s.give(201, 1).AckNow; got != c.want {
			t.Errorf("%s, lowat %d: ACK %v", c.rule, c.lowat, got)
		}
	}
}

// Vector T1 in every version: one segment waits for 40 ms, the second is acknowledged at
// once, and a superframe with one ACK.
func TestT1ByVersion(t *testing.T) {
	for _, rule := range []string{"window", "window_or_drained"} {
		s := newSocket(t, choose(t, "tcp_ack_now", rule))
		s.settle(200)
		if s.give(200, 1).AckNow || s.DelAckDeadline() != s.now+40*sim.Millisecond {
			t.Errorf("%s: one segment: deadline %v", rule, s.DelAckDeadline())
		}
		if v := s.give(201, 1); !v.AckNow || !v.AckMayWait {
			t.Errorf("%s: the second: %+v", rule, v)
		}
		s.buildAck()
		s.Read(s.now, 1<<20, &s.free)
		if v := s.give(202, 10); !v.AckNow {
			t.Errorf("%s: a superframe: %+v", rule, v)
		}
		s.buildAck()
	}
}

// Up to 4.20 contiguous skbs stay apart in the backlog.
func TestBacklogCoalesceByVersion(t *testing.T) {
	for rule, want := range map[string]BacklogVerdict{"never": Backlogged, "contiguous": BacklogCoalesced} {
		s := newSocket(t, choose(t, "tcp_backlog_coalesce", rule))
		list, free := s.free, s.free
		s.AddBacklog(&list, s.skb(0, 1), &free)
		if got := s.AddBacklog(&list, s.skb(1, 1), &free); got != want {
			t.Errorf("%s: outcome %d, want %d", rule, got, want)
		}
		for k := list.PopFront(); k != nil; k = list.PopFront() {
			s.Receive(s.now, k, &s.free)
		}
		s.BacklogDone()
		s.free.Append(&free)
		s.freed()
	}
}

// truesize_adjust in every version: a segment of 376 bytes in a fragment behind a head of
// 1024 is charged 256 + 1024 + 376 = 1656 bytes. Half of them are window: 828, of which
// tcp_grow_window tries 414, 207 and so on against a half, a quarter and so on of the window
// of the largest buffer (3 MiB). 414 is too much, and 207 counts up to 768 KiB only. Without
// the head it is 188, which is not more than the payload.
func TestGrowWindowByVersion(t *testing.T) {
	for _, c := range []struct {
		rule     string
		ssthresh int64
		head     int
		grows    int64
	}{
		{"truesize", 768 << 10, 1024, 2 * 1448},
		{"truesize", 1 << 20, 1024, 0},
		{"truesize_less_head", 768 << 10, 1024, 2 * 1448},
		{"truesize_less_head", 1 << 20, 1024, 2 * 1448},
		{"truesize_less_head", 1 << 20, 0, 0}, // the head is the receive page, with the payload
	} {
		s := newSocket(t, choose(t, "tcp_grow_window", c.rule))
		s.rcvbuf, s.clamp, s.ssthresh, s.ack.quick = 6<<20, 3<<20, c.ssthresh, 4
		s.ack.rcvMSS = 1448
		s.growWindow(&model.SKB{Payload: 376, Truesize: 256 + 1024 + 376, Head: c.head, Frags: 1})
		if got := s.ssthresh - c.ssthresh; got != c.grows || (s.ack.quick == 5) != (c.grows > 0) {
			t.Errorf("%s from %d, head %d: grows by %d, want %d; quick %d", c.rule, c.ssthresh, c.head, got, c.grows, s.ack.quick)
		}
	}
}
