package gro_test

import (
	"testing"

	"napisim/model"
	"napisim/softirq/gro"
)

// TestMergeRules: two full segments are held, then comes a third that a rule is
// about. It is merged, or the held ones are completed for the reason that the rule
// is counted under.
func TestMergeRules(t *testing.T) {
	const merged, mergedEnds, held, normal = "GRO_MERGED_FREE", "ends", "GRO_HELD", "GRO_NORMAL"
	tests := []struct {
		name    string
		change  func(f *flow) // before the third
		payload int32
		flags   model.TCPFlags
		want    string // of the third
		why     string // of the completion, "" for none
	}{
		{"next in sequence", nil, mss, 0, merged, ""},
		{"shorter", nil, mss - 1, 0, mergedEnds, "short"},
		{"one byte", nil, 1, 0, mergedEnds, "short"},
		{"PSH", nil, mss, model.PSH, mergedEnds, "push"},
		{"FIN", nil, mss, model.FIN, mergedEnds, "push"},
		{"short and PSH", nil, 10, model.PSH, mergedEnds, "short"},
		{"longer", nil, mss + 1, 0, held, "longer"},
		{"no payload", nil, 0, 0, normal, "empty"},
		{"FIN alone", nil, 0, model.FIN, normal, "empty"},
		{"CWR", nil, mss, model.CWR, held, "flags"},
		{"ECE", nil, mss, model.ECE, held, "flags"},
		{"URG", nil, mss, model.URG, normal, "flags"},
		{"RST", nil, mss, model.RST, normal, "flags"},
		{"SYN", nil, mss, model.SYN, normal, "flags"},
		{"no ACK", func(f *flow) { f.frame.Flags = 0 }, mss, 0, held, "flags"},
		{"window", func(f *flow) { f.frame.Window += 128 }, mss, 0, held, "window"},
		{"ack", func(f *flow) { f.frame.Ack++ }, mss, 0, held, "ack"},
		{"TSVal", func(f *flow) { f.frame.TSVal++ }, mss, 0, held, "options"},
		{"TSEcr", func(f *flow) { f.frame.TSEcr++ }, mss, 0, held, "options"},
		{"TTL", func(f *flow) { f.frame.TTL-- }, mss, 0, held, "ttl"},
		{"TOS", func(f *flow) { f.frame.TOS = 3 }, mss, 0, held, "tos"},
		{"IP ID skips", func(f *flow) { f.frame.IPID++ }, mss, 0, held, "ip_id"},
		{"IP ID repeats", func(f *flow) { f.frame.IPID-- }, mss, 0, held, "ip_id"},
		{"IP ID of the first", func(f *flow) { f.frame.IPID -= 2 }, mss, 0, held, "ip_id"},
		{"gap", func(f *flow) { f.frame.Seq++ }, mss, 0, held, "sequence"},
		{"retransmission", func(f *flow) { f.frame.Seq -= mss }, mss, 0, held, "sequence"},
		{"gap and PSH", func(f *flow) { f.frame.Seq++ }, mss, model.PSH, normal, "sequence"},
		{"page allocator", func(f *flow) { f.owner = nil }, mss, 0, held, "recycle"},
		{"another pool", func(f *flow) { f.owner = new(otherPages) }, mss, 0, held, "recycle"},
		{"first test counts", func(f *flow) { f.frame.TTL--; f.frame.Ack++ }, mss, 0, held, "ack"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, f := newBench(gro.DefaultConfig()), newFlow(0)
			b.receive(f.send(mss, 0))
			b.receive(f.send(mss, 0))
			if tt.change != nil {
				tt.change(f)
			}
			s := f.send(tt.payload, tt.flags)
			flags := s.Frame.Flags
			b.receive(s)
			want := []string{"GRO_HELD", "GRO_MERGED_FREE"}
			switch tt.want {
			case merged:
				want = append(want, merged)
			case mergedEnds:
				want = append(want, "A*3", merged)
				if got := b.done[0].Frame.Flags; got != flags {
					t.Errorf("flags %b, want %b", got, flags)
				}
			default:
				want = append(want, "A*2", tt.want)
			}
			b.want(t, want...)
			completed := map[string]int64{}
			if tt.why != "" {
				completed[tt.why] = 1
			}
			b.wantCompleted(t, completed)
		})
	}
}

type otherPages struct{ _ int }

func (*otherPages) ReturnPages(int, int, bool) {}

// TestFirstPacket: what is held, and what passes, when nothing of the flow is held.
func TestFirstPacket(t *testing.T) {
	tests := []struct {
		name    string
		payload int32
		flags   model.TCPFlags
		want    gro.Result
		why     string
	}{
		{"full", mss, 0, gro.Held, ""},
		{"small", 1, 0, gro.Held, ""},
		{"ECE", mss, model.ECE, gro.Held, ""},
		{"CWR", mss, model.CWR, gro.Held, ""},
		{"pure ACK", 0, 0, gro.Normal, "empty"},
		{"SYN", 0, model.SYN, gro.Normal, "empty"},
		{"SYN with data", mss, model.SYN, gro.Normal, "push"},
		{"PSH", mss, model.PSH, gro.Normal, "push"},
		{"FIN", mss, model.FIN, gro.Normal, "push"},
		{"RST", mss, model.RST, gro.Normal, "push"},
		{"URG", mss, model.URG, gro.Normal, "push"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(gro.DefaultConfig())
			if got := b.receive(newFlow(0).send(tt.payload, tt.flags)); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
			passed := map[string]int64{}
			if tt.why != "" {
				passed[tt.why] = 1
			}
			b.wantPassed(t, passed)
		})
	}
}

// The second packet decides how the IP ID goes on.
func TestIPIDIsDecidedAtTheSecond(t *testing.T) {
	tests := []struct {
		name string
		ids  []uint16
		want []string
	}{
		{"counts", []uint16{7, 8, 9, 10}, []string{"GRO_HELD", "GRO_MERGED_FREE", "GRO_MERGED_FREE", "GRO_MERGED_FREE"}},
		{"wraps", []uint16{65534, 65535, 0, 1}, []string{"GRO_HELD", "GRO_MERGED_FREE", "GRO_MERGED_FREE", "GRO_MERGED_FREE"}},
		{"constant", []uint16{7, 7, 7, 7}, []string{"GRO_HELD", "GRO_MERGED_FREE", "GRO_MERGED_FREE", "GRO_MERGED_FREE"}},
		{"constant, then counts", []uint16{7, 7, 8}, []string{"GRO_HELD", "GRO_MERGED_FREE", "A*2", "GRO_HELD"}},
		{"constant, then by number", []uint16{7, 7, 9}, []string{"GRO_HELD", "GRO_MERGED_FREE", "A*2", "GRO_HELD"}},
		{"counts, then constant", []uint16{7, 8, 8}, []string{"GRO_HELD", "GRO_MERGED_FREE", "A*2", "GRO_HELD"}},
		{"decided anew", []uint16{7, 7, 8, 9}, []string{"GRO_HELD", "GRO_MERGED_FREE", "A*2", "GRO_HELD", "GRO_MERGED_FREE"}},
		{"random", []uint16{7, 700, 7000}, []string{"GRO_HELD", "A*1", "GRO_HELD", "A*1", "GRO_HELD"}},
		{"backwards", []uint16{7, 6}, []string{"GRO_HELD", "A*1", "GRO_HELD"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, f := newBench(gro.DefaultConfig()), newFlow(0)
			for _, id := range tt.ids {
				f.frame.IPID = id
				b.receive(f.send(mss, 0))
			}
			b.want(t, tt.want...)
		})
	}
}

// A held skb with CWR takes segments without it until v6.19; a segment with CWR
// never merges.
func TestCWR(t *testing.T) {
	for _, match := range []bool{false, true} {
		c := gro.DefaultConfig()
		c.MatchCWR = match
		b, f := newBench(c), newFlow(0)
		b.receive(f.send(mss, model.CWR))
		b.receive(f.send(mss, 0))
		b.receive(f.send(mss, model.CWR))
		if match {
			b.want(t, "GRO_HELD", "A*1", "GRO_HELD", "A*1", "GRO_HELD")
		} else {
			b.want(t, "GRO_HELD", "GRO_MERGED_FREE", "A*2", "GRO_HELD")
		}
	}
}

// Before v6.3 an skb without pages of its own joins one with pages of a pool, and
// the other way round; who owns the pages is not lost.
func TestRecycleBefore6_3(t *testing.T) {
	pool := &pages{}
	for _, pagesFirst := range []bool{false, true} {
		b, f := newBench(v5_12()), newFlow(0)
		for i := range 2 {
			s := f.send(100, 0)
			if s.Pool = pool; pagesFirst == (i == 1) {
				s.Pages, s.Pool, s.Truesize = 0, nil, 768
			}
			b.receive(s)
		}
		b.Flush(false, 0)
		if s := b.done[0]; len(b.done) != 1 || s.Pages != 1 || s.Pool != pool {
			t.Errorf("pages first %v: %d completed, %d pages, pool %v", pagesFirst, len(b.done), s.Pages, s.Pool)
		}
	}
	b, f := newBench(v5_12()), newFlow(0)
	b.receive(f.send(mss, 0))
	f.owner = new(otherPages)
	b.receive(f.send(mss, 0))
	b.wantCompleted(t, map[string]int64{"recycle": 1})
}

func TestSuperframesAsInput(t *testing.T) {
	type step struct {
		segs    int
		payload int32
	}
	tests := []struct {
		name  string
		rule  gro.GSORule
		steps []step
		want  []string
	}{
		{"bypass overtakes", gro.GSOBypass, []step{{1, mss}, {4, mss}, {1, mss}}, []string{"GRO_HELD", "GRO_NORMAL", "A*1", "GRO_HELD"}},
		{"flush", gro.GSOFlush, []step{{1, mss}, {4, mss}}, []string{"GRO_HELD", "A*1", "GRO_NORMAL"}},
		{"flush alone", gro.GSOFlush, []step{{4, mss}}, []string{"GRO_NORMAL"}},
		{"held", gro.GSOMerge, []step{{4, mss}, {1, mss}}, []string{"GRO_HELD", "GRO_MERGED_FREE"}},
		{"merged", gro.GSOMerge, []step{{1, mss}, {4, mss}, {3, mss}}, []string{"GRO_HELD", "GRO_MERGED_FREE", "GRO_MERGED_FREE"}},
		{"other size", gro.GSOMerge, []step{{1, mss}, {4, 1000}}, []string{"GRO_HELD", "A*1", "GRO_HELD"}},
		{"shorter segment ends", gro.GSOMerge, []step{{4, mss}, {1, 1000}}, []string{"GRO_HELD", "A*5", "GRO_MERGED_FREE"}},
		{"too big", gro.GSOMerge, []step{{30, mss}, {16, mss}}, []string{"GRO_HELD", "A*30", "GRO_HELD"}},
		{"just fits", gro.GSOMerge, []step{{16, mss}, {29, mss}}, []string{"GRO_HELD", "GRO_MERGED"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := gro.DefaultConfig()
			c.GSO = tt.rule
			b, f := newBench(c), newFlow(0)
			for _, s := range tt.steps {
				b.receive(f.superframe(s.segs, s.payload, 0))
			}
			b.want(t, tt.want...)
		})
	}
}

// A superframe whose last segment is short ends what it joins, and is never held.
func TestSuperframeWithShortEnd(t *testing.T) {
	for _, alone := range []bool{true, false} {
		b, f := newBench(gro.DefaultConfig()), newFlow(0)
		if !alone {
			b.receive(f.send(mss, 0))
		}
		s := f.superframe(3, mss, 0)
		s.Payload -= 100
		b.receive(s)
		if alone {
			b.want(t, "GRO_NORMAL")
			b.wantPassed(t, map[string]int64{"short": 1})
			continue
		}
		b.want(t, "GRO_HELD", "A*4", "GRO_MERGED_FREE")
		if got := b.done[0].LastSeg; got != mss-100 {
			t.Errorf("last segment %d", got)
		}
	}
}

// A packet that carries a frag_list passes in every version, after its flow.
func TestFragListPasses(t *testing.T) {
	b, f := newBench(gro.DefaultConfig()), newFlow(0)
	b.receive(f.send(mss, 0))
	s := f.superframe(2, mss, 0)
	s.Chained = 1
	b.receive(s)
	b.want(t, "GRO_HELD", "A*1", "GRO_NORMAL")
	b.wantCompleted(t, map[string]int64{"gso": 1})
	b.wantPassed(t, map[string]int64{"gso": 1})

	b, f = newBench(v4_8()), newFlow(0)
	b.receive(f.send(mss, 0))
	s = f.send(mss, 0)
	s.Chained = 1
	b.receive(s)
	b.want(t, "GRO_HELD", "GRO_NORMAL")
}

// IPv4 BIG TCP: since v6.3 gro_ipv4_max_size may exceed 65536.
func TestMaxSize(t *testing.T) {
	const headers = model.IPv4Header + model.TCPHeader
	for _, tt := range []struct{ max, segs int }{
		{headers + 3*mss, 2},
		{headers + 3*mss + 1, 3},
		{65536, 45},
		{131072, 90},
		{524280, 362},
	} {
		c := gro.DefaultConfig()
		c.MaxSize = tt.max
		b, f := newBench(c), newFlow(0)
		for len(b.done) == 0 {
			b.receive(f.send(mss, 0))
		}
		if got := b.done[0].Segs; got != tt.segs {
			t.Errorf("size %d: %d segments, want %d", tt.max, got, tt.segs)
		}
	}
}

// TestBuffers: how the driver builds its skbs decides what merging frees, what it
// charges, and how many segments fit one descriptor.
func TestBuffers(t *testing.T) {
	tests := []struct {
		name                   string
		truesize, pages, frags int
		maxFrags               int
		// of a superframe of 45 segments
		wantTruesize, wantFrags, wantChained int
	}{
		{"build_skb, half pages", 2304, 1, 0, 17, 2304 + 44*2048 + 2*256, 17, 2},
		{"build_skb, half pages, 45 fragments", 2304, 1, 0, 45, 2304 + 44*2048, 44, 0},
		{"copied head, half pages", 1280 + 2048, 1, 1, 17, 1280 + 45*2048 + 2*1280, 17, 2},
		{"copied head, two fragments", 1280 + 2048, 2, 2, 17, 1280 + 45*2048 + 5*1280, 16, 5},
		{"build_skb and a fragment", 2304 + 2048, 2, 1, 17, 256 + 45*4096 + 4*256, 17, 4},
		{"kmalloc head", 2304, 0, 0, 17, 45 * 2304, 0, 44},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := gro.DefaultConfig()
			c.MaxFrags = tt.maxFrags
			b, f := newBench(c), newFlow(0)
			freed, chained := 0, 0
			for range 45 {
				s := f.send(mss, 0)
				s.Truesize, s.Pages, s.Frags = tt.truesize, tt.pages, tt.frags
				switch b.Receive(s, 0) {
				case gro.MergedFree:
					freed += s.Truesize
				case gro.Merged:
					chained++
					if s.Truesize != 0 {
						t.Errorf("chained skb keeps %d B of truesize", s.Truesize)
					}
				}
			}
			b.Flush(false, 0)
			s := b.done[0]
			if s.Segs != 45 || s.Truesize != tt.wantTruesize || s.Frags != tt.wantFrags || s.Chained != tt.wantChained {
				t.Errorf("%d segments, truesize %d, want %d, frags %d, want %d, chained %d, want %d",
					s.Segs, s.Truesize, tt.wantTruesize, s.Frags, tt.wantFrags, s.Chained, tt.wantChained)
			}
			if chained != s.Chained || s.Pages != 45*tt.pages || s.Truesize+freed != 45*tt.truesize {
				t.Errorf("chained %d of %d, pages %d, truesize %d and %d freed", s.Chained, chained, s.Pages, s.Truesize, freed)
			}
		})
	}
}

// A small last segment that was copied into a kmalloc head is chained; since v6.3
// it is not taken at all by an skb with recycled pages.
func TestCopybreak(t *testing.T) {
	b, f := newBench(v5_12()), newFlow(0)
	b.receive(f.send(mss, 0))
	s := f.send(100, model.PSH)
	s.Pages, s.Truesize, s.Pool = 0, 768, nil
	b.receive(s)
	b.want(t, "GRO_HELD", "A*2", "GRO_MERGED")
	if d := b.done[0]; d.Truesize != 2304+768 || d.Chained != 1 || d.Pages != 1 {
		t.Errorf("truesize %d, chained %d, pages %d", d.Truesize, d.Chained, d.Pages)
	}

	b, f = newBench(gro.DefaultConfig()), newFlow(0)
	b.receive(f.send(mss, 0))
	s = f.send(100, model.PSH)
	s.Pages, s.Truesize, s.Pool = 0, 768, nil
	b.receive(s)
	b.want(t, "GRO_HELD", "A*1", "GRO_NORMAL")
}

func TestTruesizeBelowTheHead(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an skb smaller than its head was merged")
		}
	}()
	b, f := newBench(gro.DefaultConfig()), newFlow(0)
	b.receive(f.send(mss, 0))
	s := f.send(mss, 0)
	s.Truesize = 100
	b.receive(s)
}

// An emptied skb stands for nothing any more.
func TestMergedIsEmptied(t *testing.T) {
	b, f := newBench(gro.DefaultConfig()), newFlow(0)
	b.receive(f.send(mss, 0))
	s := f.send(mss, 0)
	if r := b.receive(s); r != gro.MergedFree {
		t.Fatal(r)
	}
	if s.Payload != 0 || s.Segs != 0 || s.LastSeg != 0 || s.Pages != 0 || s.Pool != nil || s.Frags != 0 || len(s.Arrivals) != 0 {
		t.Errorf("%+v", s)
	}
	if s.Truesize != model.SKBHead {
		t.Errorf("truesize %d: the descriptor of 256 B is what is freed", s.Truesize)
	}
}
