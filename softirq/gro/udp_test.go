package gro_test

import (
	"slices"
	"testing"

	"napisim/model"
	"napisim/softirq/gro"
)

// host is the Sockets of a host with one UDP socket, of flow 0, that asked for merged
// datagrams if it says so, and one of flow 1 that did not.
type host struct{ gro, tcp bool }

func (h host) UDPSocket(flow model.FlowID) (found, gro bool) {
	return h.gro && flow < 2, h.gro && flow == 0
}
func (h host) TCPEstablished(model.FlowID) bool { return h.tcp }

func newUDPFlow(id model.FlowID) *flow {
	f := newFlow(id)
	f.frame.Proto, f.frame.Flags, f.frame.TSVal, f.frame.TSEcr, f.frame.Window = model.UDP, 0, 0, 0, 0
	return f
}

func newUDPBench(udp string) *bench {
	c := version("hash", udp)
	c.Sockets = host{gro: true}
	return newBench(c)
}

// At most 64 datagrams make one skb, and it stays below 65536 bytes: 28 + 44*1472 =
// 64796 does, 28 + 45*1472 = 66268 would not.
func TestUDPGROLimits(t *testing.T) {
	for _, c := range []struct {
		size, most int
		why        string
		next       string // where the one after them goes
	}{{1000, 64, "count", "GRO_HELD"}, {18, 64, "count", "GRO_HELD"}, {1472, 44, "too_big", "GRO_HELD"}} {
		b, f := newUDPBench("socket"), newUDPFlow(0)
		for range c.most + 1 {
			b.receive(f.send(int32(c.size), 0))
		}
		if len(b.done) != 1 || b.done[0].Segs != c.most || b.done[0].Payload != c.most*c.size || b.done[0].FragList {
			t.Errorf("size %d: %d completed", c.size, len(b.done))
		}
		b.wantCompleted(t, map[string]int64{c.why: 1})
		if got := b.log[len(b.log)-1]; got != c.next {
			t.Errorf("size %d: the next one is %s", c.size, got)
		}
	}
}

// TestUDPGRORules: two datagrams of 1000 bytes, and then a third that a rule is about.
func TestUDPGRORules(t *testing.T) {
	for _, c := range []struct {
		name   string
		udp    string
		change func(f *flow)
		size   int32
		want   []string
		why    string
	}{
		{"equal", "socket", nil, 1000, []string{"GRO_MERGED_FREE"}, ""},
		{"shorter ends", "socket", nil, 999, []string{"A*3", "GRO_MERGED_FREE"}, "short"},
		{"longer flushes", "socket", nil, 1001, []string{"A*2", "GRO_HELD"}, "longer"},
		{"empty passes and overtakes", "socket", nil, 0, []string{"GRO_NORMAL"}, ""},
		{"padded passes and overtakes", "socket", nil, 17, []string{"GRO_NORMAL"}, ""},
		{"no checksum passes and overtakes", "socket", func(f *flow) { f.frame.NoCsum = true }, 1000, []string{"GRO_NORMAL"}, ""},
		{"TTL up to 6.9", "forward", func(f *flow) { f.frame.TTL-- }, 1000, []string{"GRO_MERGED_FREE"}, ""},
		{"IP ID up to 6.9", "forward", func(f *flow) { f.frame.IPID += 5 }, 1000, []string{"GRO_MERGED_FREE"}, ""},
		{"TTL since 6.10", "tcp_frag_list", func(f *flow) { f.frame.TTL-- }, 1000, []string{"A*2", "GRO_HELD"}, "ttl"},
		{"IP ID since 6.10", "tcp_frag_list", func(f *flow) { f.frame.IPID += 5 }, 1000, []string{"A*2", "GRO_HELD"}, "ip_id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, f := newUDPBench(c.udp), newUDPFlow(0)
			b.receive(f.send(1000, 0))
			b.receive(f.send(1000, 0))
			if c.change != nil {
				c.change(f)
			}
			b.receive(f.send(c.size, 0))
			b.want(t, append([]string{"GRO_HELD", "GRO_MERGED_FREE"}, c.want...)...)
			if c.why != "" {
				b.wantCompleted(t, map[string]int64{c.why: 1})
			}
		})
	}
}

// Who gets aggregated datagrams, by version, feature and socket: flow 0 has a socket with
// UDP_GRO, flow 1 one without, flow 2 none, as what is forwarded.
func TestUDPGROByVersion(t *testing.T) {
	const no, merged, chained = "GRO_NORMAL", "GRO_MERGED_FREE", "GRO_MERGED"
	for _, c := range []struct {
		udp           string
		list, forward bool
		want          [3]string
	}{
		{"none", false, false, [3]string{no, no, no}},
		{"socket", false, false, [3]string{merged, no, no}},
		{"frag_list", false, false, [3]string{merged, no, no}},
		{"frag_list", true, false, [3]string{merged, chained, chained}},
		{"forward", false, true, [3]string{merged, no, merged}},
		{"forward", true, true, [3]string{merged, chained, chained}},
		{"tcp_frag_list", true, false, [3]string{merged, chained, chained}},
	} {
		cfg := version("hash", c.udp)
		cfg.Sockets, cfg.FragList, cfg.UDPForward = host{gro: true}, c.list, c.forward
		for id, want := range c.want {
			b, f := newBench(cfg), newUDPFlow(model.FlowID(id))
			b.receive(f.send(1000, 0))
			b.receive(f.send(1000, 0))
			if got := b.log[1]; got != want {
				t.Errorf("udp_gro %s, list %v, forwarding %v, flow %d: %s, want %s", c.udp, c.list, c.forward, id, got, want)
			}
			b.Flush(false, 0)
			if want != no && (len(b.done) != 1 || b.done[0].FragList != (want == chained)) {
				t.Errorf("udp_gro %s, flow %d: completed %+v", c.udp, id, b.done)
			}
		}
	}
}

// As long as no socket of the host has asked for merged datagrams the kernel does not
// look for sockets: rx-udp-gro-forwarding then merges what is for local sockets, too.
func TestUDPForwardingWithoutLookup(t *testing.T) {
	cfg := version("hash", "forward")
	cfg.Sockets, cfg.UDPForward = host{}, true
	b, f := newBench(cfg), newUDPFlow(1)
	b.receive(f.send(1000, 0))
	b.receive(f.send(1000, 0))
	b.want(t, "GRO_HELD", "GRO_MERGED_FREE")
}

// Chained datagrams keep their descriptors and what they are charged. Limit 64, and the
// headers of both count: 44*1472 + 56 = 64824 stays below 65536, 45*1472 + 56 = 66296
// does not.
func TestUDPFragList(t *testing.T) {
	for _, c := range []struct{ size, most int }{{1000, 64}, {1472, 44}} {
		cfg := version("hash", "frag_list")
		cfg.FragList = true
		b, f := newBench(cfg), newUDPFlow(2)
		for range c.most + 1 {
			b.receive(f.send(int32(c.size), 0))
		}
		want := append([]string{"GRO_HELD"}, repeat("GRO_MERGED", c.most-1)...)
		if c.most == 64 {
			want = slices.Insert(want, 63, "C*64")
		} else {
			want = append(want, "C*44")
		}
		b.want(t, append(want, "GRO_HELD")...)
		if s := b.done[0]; s.Chained != c.most-1 || s.Truesize != c.most*2304 || s.Frags != 0 || !s.FragList || s.Pages != c.most {
			t.Errorf("%+v", s)
		}
	}
}

// A socket that asks for merged datagrams while a chain is held ends the chain; the
// datagram itself is neither chained nor merged.
func TestUDPFragListMeetsUDPGRO(t *testing.T) {
	cfg := version("hash", "frag_list")
	sockets := &host{}
	cfg.FragList, cfg.Sockets = true, sockets
	b, f := newBench(cfg), newUDPFlow(0)
	b.receive(f.send(1000, 0))
	b.receive(f.send(1000, 0))
	sockets.gro = true
	b.receive(f.send(1000, 0))
	b.want(t, "GRO_HELD", "GRO_MERGED", "A*2", "GRO_NORMAL")
	b.wantCompleted(t, map[string]int64{"frag_list": 1})
}

// Fraglist GRO of TCP, v6.10: what no local connection takes is chained. Flags have to be
// equal, so that a PSH is not chained but follows its superframe; a short segment is
// chained and ends it; 64 are the most.
func TestTCPFragList(t *testing.T) {
	newList := func(local bool) *bench {
		cfg := version("hash_merge_gso", "tcp_frag_list")
		cfg.FragList, cfg.Sockets = true, host{tcp: local}
		return newBench(cfg)
	}
	b, f := newList(false), newFlow(0)
	b.receive(f.send(mss, 0))
	b.receive(f.send(mss, 0))
	b.receive(f.send(mss, model.PSH))
	b.want(t, "GRO_HELD", "GRO_MERGED", "A*2", "GRO_NORMAL")
	b.wantCompleted(t, map[string]int64{"flags": 1})

	b, f = newList(false), newFlow(0)
	b.receive(f.send(mss, 0))
	b.receive(f.send(mss-1, 0))
	b.want(t, "GRO_HELD", "A*2", "GRO_MERGED")
}

func TestTCPFragListLimitAndLocal(t *testing.T) {
	cfg := version("hash_merge_gso", "tcp_frag_list")
	cfg.FragList = true
	b, f := newBench(cfg), newFlow(0)
	for range 65 {
		b.receive(f.send(1000, 0))
	}
	b.want(t, slices.Concat([]string{"GRO_HELD"}, repeat("GRO_MERGED", 63), []string{"A*64", "GRO_HELD"})...)
	b.wantCompleted(t, map[string]int64{"count": 1})

	cfg.Sockets = host{tcp: true}
	b, f = newBench(cfg), newFlow(0)
	b.receive(f.send(mss, 0))
	b.receive(f.send(mss, model.PSH))
	b.want(t, "GRO_HELD", "A*2", "GRO_MERGED_FREE")
}

// IPv6 has its own limit (BIG TCP), and no IP ID. 40 + 32 + n*1428 < 185000: n = 129.
func TestIPv6(t *testing.T) {
	cfg := version("hash", "forward")
	if err := cfg.SetSizes("big_tcp_ipv6", 185000, 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ipv6 bool
		segs int
	}{{true, 129}, {false, 45}} { // 20 + 32 + 45*1428 = 64312
		b, f := newBench(cfg), newFlow(0)
		f.frame.IPv6 = c.ipv6
		for len(b.done) == 0 {
			f.frame.IPID += map[bool]uint16{true: 7}[c.ipv6]
			b.receive(f.send(1428, 0))
		}
		if got := b.done[0].Segs; got != c.segs {
			t.Errorf("IPv6 %v: %d segments, want %d", c.ipv6, got, c.segs)
		}
	}
	// Datagrams stay below 65536 whatever the setting: 48 + 45*1452 = 65388.
	cfg.Sockets = host{gro: true}
	b, f := newBench(cfg), newUDPFlow(0)
	f.frame.IPv6 = true
	for len(b.done) == 0 {
		b.receive(f.send(1452, 0))
	}
	if got := b.done[0].Segs; got != 45 {
		t.Errorf("UDP over IPv6: %d datagrams", got)
	}
}

// Without DF an IP ID has to count up to v6.18; a change of DF always ends a superframe.
func TestIPIDWithoutDF(t *testing.T) {
	for _, c := range []struct {
		table string
		want  string
	}{{"hash", "A*1"}, {"hash_merge_gso", "A*1"}, {"hash_match_cwr", "GRO_MERGED_FREE"}} {
		b, f := newBench(version(c.table, "none")), newFlow(0)
		f.frame.NoDF = true
		b.receive(f.send(mss, 0))
		f.frame.IPID--
		b.receive(f.send(mss, 0))
		if got := b.log[1]; got != c.want {
			t.Errorf("%s: constant ID without DF: %s, want %s", c.table, got, c.want)
		}
	}
	b, f := newBench(gro.DefaultConfig()), newFlow(0)
	b.receive(f.send(mss, 0))
	f.frame.NoDF = true
	b.receive(f.send(mss, 0))
	b.wantCompleted(t, map[string]int64{"df": 1})
}
