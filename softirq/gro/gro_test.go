package gro_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/model"
	"napisim/sim"
	"napisim/sim/metric"
	"napisim/softirq/gro"
)

// pages owns receive pages in tests.
type pages struct{}

func (*pages) ReturnPages(int, int, bool) {}

// v4_8 and v5_12 are the tables of those kernels.
func v4_8() gro.Config { return version("one_list", "none") }

func v5_12() gro.Config { return version("hash", "forward") }

func version(table, udp string) gro.Config {
	c, err := gro.ForVersion(table, udp)
	if err != nil {
		panic(err)
	}
	return c
}

// bench is a table that writes down what comes out of it, in order. It stands for
// the NAPI's poll: what is completed or normal would go to gro_normal_one.
type bench struct {
	*gro.Table
	jiffy int64
	done  []*model.SKB
	log   []string
}

func newBench(c gro.Config) *bench {
	b := &bench{}
	b.Table = gro.New(c, b)
	return b
}

// Complete notes a completed skb: its flow and the number of its segments.
func (b *bench) Complete(s *model.SKB) {
	b.done = append(b.done, s)
	b.log = append(b.log, fmt.Sprintf("%c*%d", 'A'+rune(s.Frame.Flow), s.Segs))
}

// receive passes one packet to the table and notes the result.
func (b *bench) receive(s *model.SKB) gro.Result {
	r := b.Receive(s, b.jiffy)
	b.log = append(b.log, r.String())
	return r
}

// flow makes the packets of one TCP sender.
type flow struct {
	frame model.Frame // of the next packet
	owner model.PageReturner
}

// newFlow is a flow whose hash puts it into the bucket of its number.
func newFlow(id model.FlowID) *flow {
	return &flow{owner: &pages{}, frame: model.Frame{
		Flow: id, Hash: uint32(id), Proto: model.TCP, Flags: model.ACK,
		Seq: 1, Ack: 1, Window: 65536, TSVal: 1000, TSEcr: 500, TTL: 64,
	}}
}

// send is the next packet of the flow in a buffer of half a page, as build_skb
// makes it.
func (f *flow) send(payload int32, flags model.TCPFlags) *model.SKB {
	s := &model.SKB{
		Frame: f.frame, Segs: 1, Payload: int(payload), LastSeg: int(payload),
		Truesize: 2048 + model.SKBHead, Pages: 1, Pool: f.owner,
		Arrivals: []sim.Time{f.frame.Arrival},
	}
	s.Frame.Payload = payload
	s.Frame.Len = max(model.MinFrame, int32(model.EthernetHeader+s.Frame.Headers())+payload)
	s.Frame.Flags |= flags
	f.frame.Seq += uint64(payload)
	f.frame.IPID++
	f.frame.Arrival++
	return s
}

// superframe is a packet of n full segments, as a virtual machine's NIC passes on.
func (f *flow) superframe(n int, payload int32, flags model.TCPFlags) *model.SKB {
	s := f.send(payload, flags)
	for range n - 1 {
		next := f.send(payload, 0)
		s.Segs++
		s.Payload += next.Payload
		s.Truesize += next.Truesize - model.SKBHead
		s.Pages++
		s.Frags++
		s.Arrivals = append(s.Arrivals, next.Arrivals...)
	}
	return s
}

const mss = 1448

// want compares what the bench has noted so far.
func (b *bench) want(t *testing.T, log ...string) {
	t.Helper()
	if diff := cmp.Diff(log, b.log); diff != "" {
		t.Errorf("log differs (-want +got):\n%s", diff)
	}
}

// reasons returns the counters of a kind that are not zero, by name.
func reasons(c [gro.NumReasons]metric.Counter) map[string]int64 {
	m := map[string]int64{}
	for r := range gro.NumReasons {
		if n := c[r].Value(); n != 0 {
			m[r.String()] = n
		}
	}
	return m
}

func (b *bench) wantCompleted(t *testing.T, want map[string]int64) {
	t.Helper()
	if diff := cmp.Diff(want, reasons(b.Stats().Completed)); diff != "" {
		t.Errorf("completed differs (-want +got):\n%s", diff)
	}
}

func (b *bench) wantPassed(t *testing.T, want map[string]int64) {
	t.Helper()
	if diff := cmp.Diff(want, reasons(b.Stats().Passed)); diff != "" {
		t.Errorf("passed differs (-want +got):\n%s", diff)
	}
}

func repeat(s string, n int) []string { return slices.Repeat([]string{s}, n) }

// In the vectors G1 to G10 "delivered" means given to Complete: since v5.5 the
// caller appends such an skb to rx_list and adds its segments to the counter, and
// the stack sees it when the batch is full or the poll ends (correction C7).

func TestG1SuperframeOf45IsTheLargest(t *testing.T) {
	b, f := newBench(gro.DefaultConfig()), newFlow(0)
	for range 46 {
		b.receive(f.send(mss, 0))
	}
	// 18 segments fit one skb: its head and 17 fragments. The 19th and the 37th are
	// chained and take the next 17.
	want := slices.Concat(
		[]string{"GRO_HELD"}, repeat("GRO_MERGED_FREE", 17),
		[]string{"GRO_MERGED"}, repeat("GRO_MERGED_FREE", 17),
		[]string{"GRO_MERGED"}, repeat("GRO_MERGED_FREE", 8),
		[]string{"A*45", "GRO_HELD"})
	b.want(t, want...)
	b.wantCompleted(t, map[string]int64{"too_big": 1})
	s := b.done[0]
	if s.Payload != 45*mss || s.Pages != 45 || s.Frags != 17 || s.Chained != 2 || len(s.Arrivals) != 45 {
		t.Errorf("superframe has payload %d, pages %d, frags %d, chained %d, %d arrivals",
			s.Payload, s.Pages, s.Frags, s.Chained, len(s.Arrivals))
	}
	// Two of the merged descriptors live on.
	if want := 2304 + 44*2048 + 2*256; s.Truesize != want {
		t.Errorf("truesize %d, want %d", s.Truesize, want)
	}
}

func TestG2PushEnds(t *testing.T) {
	b, f := newBench(gro.DefaultConfig()), newFlow(0)
	for range 9 {
		b.receive(f.send(mss, 0))
	}
	b.receive(f.send(mss, model.PSH))
	b.want(t, slices.Concat([]string{"GRO_HELD"}, repeat("GRO_MERGED_FREE", 8), []string{"A*10", "GRO_MERGED_FREE"})...)
	b.wantCompleted(t, map[string]int64{"push": 1})
	if s := b.done[0]; s.Frame.Flags != model.ACK|model.PSH || s.Truesize != 2304+9*2048 {
		t.Errorf("flags %b, truesize %d", s.Frame.Flags, s.Truesize)
	}
	if b.Held() != 0 {
		t.Errorf("%d held", b.Held())
	}
}

func TestG3LonePushIsNormal(t *testing.T) {
	b, f := newBench(gro.DefaultConfig()), newFlow(0)
	b.receive(f.send(200, model.PSH))
	b.want(t, "GRO_NORMAL")
	b.wantPassed(t, map[string]int64{"push": 1})
}

func TestG4ShortSegmentEnds(t *testing.T) {
	b, f := newBench(gro.DefaultConfig()), newFlow(0)
	for range 3 {
		b.receive(f.send(mss, 0))
	}
	b.receive(f.send(500, 0))
	// C7: 4 segments go to the list and, with fewer than 8, wait there for the end
	// of the poll.
	b.want(t, "GRO_HELD", "GRO_MERGED_FREE", "GRO_MERGED_FREE", "A*4", "GRO_MERGED_FREE")
	b.wantCompleted(t, map[string]int64{"short": 1})
	if s := b.done[0]; s.LastSeg != 500 || s.Payload != 3*mss+500 {
		t.Errorf("last segment %d, payload %d", s.LastSeg, s.Payload)
	}
}

func TestG5PureAckCompletesAndPasses(t *testing.T) {
	b, f := newBench(gro.DefaultConfig()), newFlow(0)
	for range 3 {
		b.receive(f.send(mss, 0))
	}
	b.receive(f.send(0, 0))
	// C7: superframe and ACK wait in the list in this order.
	b.want(t, "GRO_HELD", "GRO_MERGED_FREE", "GRO_MERGED_FREE", "A*3", "GRO_NORMAL")
	b.wantCompleted(t, map[string]int64{"empty": 1})
	b.wantPassed(t, map[string]int64{"empty": 1})
}

func TestG6NewTimestampEnds(t *testing.T) {
	b, f := newBench(gro.DefaultConfig()), newFlow(0)
	for range 7 {
		b.receive(f.send(mss, 0))
	}
	f.frame.TSVal++
	b.receive(f.send(mss, 0))
	// C7: the superframe of 7 waits in the list, the 8th is held.
	b.want(t, slices.Concat([]string{"GRO_HELD"}, repeat("GRO_MERGED_FREE", 6), []string{"A*7", "GRO_HELD"})...)
	b.wantCompleted(t, map[string]int64{"options": 1})
}

func TestG7NinthFlowCompletesTheFirst(t *testing.T) {
	b := newBench(gro.DefaultConfig())
	for id := range 9 {
		f := newFlow(model.FlowID(id))
		f.frame.Hash = 0
		b.receive(f.send(mss, 0))
	}
	// C7: one segment goes to the list.
	b.want(t, append(repeat("GRO_HELD", 8), "A*1", "GRO_HELD")...)
	b.wantCompleted(t, map[string]int64{"overflow": 1})
	if b.Held() != 8 {
		t.Errorf("%d held, want 8", b.Held())
	}
}

// TestG8SegmentsForTheBatchCounter: the list and its counter are the caller's. What
// it needs is the order, and the number of segments that v5.11 and later add.
func TestG8SegmentsForTheBatchCounter(t *testing.T) {
	b, f, g := newBench(v5_12()), newFlow(0), newFlow(1)
	for range 7 {
		b.receive(g.send(0, 0))
	}
	for range 45 {
		b.receive(f.send(mss, 0))
	}
	b.Flush(false, b.jiffy)
	if got := b.log[:7]; !slices.Equal(got, repeat("GRO_NORMAL", 7)) {
		t.Errorf("first results: %v", got)
	}
	if got := b.log[len(b.log)-1]; got != "A*45" {
		t.Errorf("last: %s", got)
	}
}

// TestG9CompletionFollowsNormal: v5.4.0 keeps the NORMAL packet in a list while the
// completed superframe goes up at once and overtakes it. The table itself keeps the
// order: the reordering is the caller's, and so is the fix.
func TestG9CompletionFollowsNormal(t *testing.T) {
	b, f := newBench(v5_12()), newFlow(0)
	b.receive(f.send(mss, model.URG))
	b.receive(f.send(mss, 0))
	b.receive(f.send(mss, model.PSH))
	b.want(t, "GRO_NORMAL", "GRO_HELD", "A*2", "GRO_MERGED_FREE")
}

// TestG10PollOf64SharedByFourFlows: at HZ=250 everything is flushed after a poll
// that used its weight, so four interleaved flows get 16 segments each.
func TestG10PollOf64SharedByFourFlows(t *testing.T) {
	b := newBench(v4_8())
	flows := []*flow{newFlow(0), newFlow(1), newFlow(2), newFlow(3)}
	for range 2 {
		for i := range 64 {
			b.receive(flows[i%4].send(mss, 0))
		}
		b.log = nil
		b.Flush(false, b.jiffy)
		b.want(t, "A*16", "B*16", "C*16", "D*16")
		if b.Held() != 0 {
			t.Errorf("%d held after the flush", b.Held())
		}
	}
	b.wantCompleted(t, map[string]int64{"flush": 8})
}

// With HZ >= 1000 only old skbs are flushed. Merging does not make an skb younger.
func TestFlushOldOnly(t *testing.T) {
	b, f, g, h := newBench(v4_8()), newFlow(0), newFlow(1), newFlow(2)
	b.receive(f.send(mss, 0))
	b.receive(g.send(mss, 0))
	b.jiffy++
	b.receive(f.send(mss, 0))
	b.receive(h.send(mss, 0))
	b.log = nil
	b.Flush(true, b.jiffy)
	b.want(t, "A*2", "B*1")
	b.wantCompleted(t, map[string]int64{"age": 2})
	b.Flush(true, b.jiffy)
	if b.Held() != 1 {
		t.Errorf("%d held, want the one of this jiffy", b.Held())
	}
	b.jiffy++
	b.Flush(true, b.jiffy)
	b.want(t, "A*2", "B*1", "C*1")
}

// Pitfall 13: with gro_flush_timeout a superframe is kept across completions. Since v5.0 a
// completion flushes what is old (up to v4.19 nothing); merging does not make it younger, so
// that the first completion in the next jiffy ends it.
func TestPitfall13HeldAcrossCompletions(t *testing.T) {
	b, f := newBench(v5_12()), newFlow(0)
	for range 3 { // polls of one jiffy
		b.receive(f.send(mss, 0))
		b.Flush(true, b.jiffy)
	}
	b.jiffy++
	b.receive(f.send(mss, 0))
	b.Flush(true, b.jiffy)
	b.want(t, "GRO_HELD", "GRO_MERGED_FREE", "GRO_MERGED_FREE", "GRO_MERGED_FREE", "A*4")
	b.wantCompleted(t, map[string]int64{"age": 1})
}

// Buckets are flushed in their order, not in that of arrival, and inside a bucket
// the oldest comes first. All yields the same order.
func TestFlushOrder(t *testing.T) {
	b := newBench(gro.DefaultConfig())
	for _, id := range []model.FlowID{15, 1, 7, 9, 0} {
		b.receive(newFlow(id).send(mss, 0))
	}
	var all []*model.SKB
	for s := range b.All() {
		all = append(all, s)
	}
	for range b.All() {
		break
	}
	b.log = nil
	b.Flush(false, b.jiffy)
	b.want(t, "A*1", "B*1", "J*1", "P*1", "H*1")
	if !slices.Equal(all, b.done) {
		t.Error("All differs from the order of Flush")
	}
	b.Flush(false, b.jiffy)
	if len(b.done) != 5 {
		t.Errorf("%d completed, want 5", len(b.done))
	}
}

// The index of the highest bucket and the width of the bitmask belong together.
func TestEveryBucketIsFlushed(t *testing.T) {
	c := gro.DefaultConfig()
	c.Buckets = 64
	b := newBench(c)
	for id := range 64 {
		b.receive(newFlow(model.FlowID(id)).send(mss, 0))
	}
	b.Flush(false, b.jiffy)
	if len(b.done) != 64 || b.Held() != 0 {
		t.Errorf("%d completed, %d held", len(b.done), b.Held())
	}
}

// A NIC that reports no hash puts every flow into one bucket; flows still do not mix.
func TestNoHash(t *testing.T) {
	b, f, g := newBench(gro.DefaultConfig()), newFlow(0), newFlow(1)
	f.frame.Hash, g.frame.Hash = 0, 0
	for range 3 {
		b.receive(f.send(mss, 0))
		b.receive(g.send(mss, 0))
	}
	b.log = nil
	b.Flush(false, b.jiffy)
	b.want(t, "A*3", "B*3")
}

// A flow whose hash changes, for example because the NIC reports none for a while,
// is two flows for GRO, also inside one bucket.
func TestChangedHash(t *testing.T) {
	b, f := newBench(gro.DefaultConfig()), newFlow(0)
	b.receive(f.send(mss, 0))
	f.frame.Hash = 8
	b.receive(f.send(mss, 0))
	b.want(t, "GRO_HELD", "GRO_HELD")
}

func TestUDPIsNormal(t *testing.T) {
	b, f := newBench(gro.DefaultConfig()), newFlow(0)
	b.receive(f.send(mss, 0))
	f.frame.Proto = model.UDP
	b.receive(f.send(mss, 0))
	b.want(t, "GRO_HELD", "GRO_NORMAL")
	b.wantPassed(t, map[string]int64{"protocol": 1})
	f.frame.Proto = 200
	if r := b.Receive(f.send(mss, 0), 0); r != gro.Normal {
		t.Errorf("a protocol without a number: %v", r)
	}
}

// The overflowing skb must be gone before the new one is counted, also when the
// new one's own flow was completed first and made room.
func TestCompletionMakesRoom(t *testing.T) {
	c := gro.DefaultConfig()
	c.MaxSKBs, c.Buckets = 2, 1
	b, f, g := newBench(c), newFlow(0), newFlow(1)
	b.receive(f.send(mss, 0))
	b.receive(g.send(mss, 0))
	g.frame.Seq += 10
	b.receive(g.send(mss, 0))
	b.want(t, "GRO_HELD", "GRO_HELD", "B*1", "GRO_HELD")
	b.wantCompleted(t, map[string]int64{"sequence": 1})
}

// Superframes are completed skbs of at least two segments, whatever they came as.
func TestStats(t *testing.T) {
	b := newBench(gro.DefaultConfig())
	one, two, three := newFlow(0), newFlow(1), newFlow(2)
	b.receive(one.send(mss, 0))
	b.receive(two.send(mss, 0))
	b.receive(two.send(mss, 0))
	b.receive(three.superframe(3, mss, 0))
	b.receive(three.superframe(4, mss, 0))
	b.Flush(false, b.jiffy)
	st := b.Stats()
	want := gro.Stats{Merged: 1 + 4, Superframes: 2, Segments: 2 + 7}
	want.Results[gro.Held] = 3
	want.Results[gro.MergedFree] = 2
	want.Completed[gro.FlushAll] = 3
	if diff := cmp.Diff(&want, st); diff != "" {
		t.Errorf("statistics differ (-want +got):\n%s", diff)
	}
}

func TestSegmentsAreRequired(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an skb without segments was taken")
		}
	}()
	newBench(gro.DefaultConfig()).Receive(&model.SKB{}, 0)
}
