package gro_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/model"
	"napisim/sim"
	"napisim/softirq/gro"
)

// oracle says what GRO does without any state but the packets themselves: it keeps
// every held packet whole, and decides by looking at all of them each time.
type oracle struct {
	cfg   gro.Config
	piles []pile // of all buckets, oldest first
	log   []string
}

// pile is one held superframe: its packets as they arrived, and the jiffy of the first.
type pile struct {
	born    int64
	packets []model.SKB
}

// sameFlow compares a packet with the first of the pile. Without it in its flow's
// pile a packet neither merges nor completes anything.
func (p pile) sameFlow(s model.SKB) bool {
	a, b := p.packets[0].Frame, s.Frame
	return a.Hash == b.Hash && a.Flow == b.Flow && a.Proto == b.Proto
}

// accepts reports whether the pile with s on top is still one superframe.
func (p pile) accepts(cfg gro.Config, s model.SKB) bool {
	all := append(slices.Clone(p.packets), s)
	first := all[0].Frame
	total, seq, segs := 0, first.Seq, 0
	constant, counting := all[0].Segs == 1, true
	for _, x := range all {
		f := x.Frame
		if f.Seq != seq || f.Window != first.Window || f.Ack != first.Ack ||
			f.TSVal != first.TSVal || f.TSEcr != first.TSEcr || f.TTL != first.TTL || f.TOS != first.TOS {
			return false
		}
		constant = constant && f.IPID == first.IPID
		counting = counting && f.IPID == first.IPID+uint16(segs)
		seq += uint64(x.Payload)
		total += x.Payload
		segs += x.Segs
	}
	differ := (s.Frame.Flags ^ first.Flags) &^ (model.FIN | model.PSH)
	if !cfg.MatchCWR {
		differ &^= model.CWR
	}
	if differ != 0 || s.Frame.Flags&model.CWR != 0 || !constant && !counting {
		return false
	}
	if s.Segs > 1 && (cfg.GSO != gro.GSOMerge || s.Frame.Payload != first.Payload) || s.Chained > 0 {
		return false
	}
	if s.Segs == 1 && (s.Payload < 1 || s.Payload > int(first.Payload)) {
		return false
	}
	owner := model.PageReturner(nil)
	for _, x := range p.packets {
		if cfg.MatchRecycle || x.Pages > 0 {
			owner = x.Pool
			break
		}
	}
	owned := slices.ContainsFunc(p.packets, func(x model.SKB) bool { return x.Pages > 0 })
	if owner != s.Pool && (cfg.MatchRecycle || owned && s.Pages > 0) {
		return false
	}
	return 20+32+total < cfg.MaxSize
}

// ends reports whether s is the last of a burst whose segments have size bytes.
func ends(s model.SKB, size int32) bool {
	full := s.Payload >= int(size)
	if s.Segs > 1 {
		full = s.Payload == s.Segs*int(s.Frame.Payload)
	}
	return !full || s.Frame.Flags&(model.FIN|model.SYN|model.RST|model.PSH|model.URG) != 0
}

// superframe adds a pile up. It lays the fragments out anew each time.
func (p pile) superframe(cfg gro.Config) model.SKB {
	s := p.packets[0]
	s.Age = p.born
	s.Arrivals = slices.Clone(s.Arrivals)
	room := []int{s.Frags} // fragments used, one element per descriptor
	for _, x := range p.packets[1:] {
		n, freed := 0, 0
		switch {
		case x.Pages > x.Frags:
			n, freed = x.Frags+1, 256
		case x.Frags > 0:
			n, freed = x.Frags, cfg.HeadTruesize
		}
		if last := len(room) - 1; n > 0 && room[last]+n <= cfg.MaxFrags {
			room[last] += n
		} else {
			room = append(room, x.Frags)
			freed = 0
		}
		s.Truesize += x.Truesize - freed
		s.Payload += x.Payload
		s.Segs += x.Segs
		s.Pages += x.Pages
		s.LastSeg = x.Payload - (x.Segs-1)*int(x.Frame.Payload)
		s.Frame.Flags |= x.Frame.Flags & (model.FIN | model.PSH)
		s.Arrivals = append(s.Arrivals, x.Arrivals...)
		if x.Pages > 0 {
			s.Pool = x.Pool
		}
	}
	s.Frags, s.Chained = room[0], len(room)-1
	return s
}

func (o *oracle) bucket(s model.SKB) int { return int(s.Frame.Hash) % o.cfg.Buckets }

func (o *oracle) complete(i int) {
	s := o.piles[i].superframe(o.cfg)
	o.log = append(o.log, describe(&s))
	o.piles = slices.Delete(o.piles, i, i+1)
}

// receive returns whether the packet is merged, held or normal.
func (o *oracle) receive(s model.SKB, jiffy int64) string {
	if s.Frame.Proto != model.TCP || s.Segs > 1 && o.cfg.GSO == gro.GSOBypass {
		return "normal"
	}
	pass := s.Segs > 1 && o.cfg.GSO != gro.GSOMerge || s.Chained > 0
	i := slices.IndexFunc(o.piles, func(p pile) bool { return p.sameFlow(s) })
	if i >= 0 && o.piles[i].accepts(o.cfg, s) {
		o.piles[i].packets = append(o.piles[i].packets, s)
		if ends(s, o.piles[i].packets[0].Frame.Payload) {
			o.complete(i)
		}
		return "merged"
	}
	if i >= 0 {
		o.complete(i)
	}
	if pass || ends(s, 1) {
		return "normal"
	}
	inBucket := func(p pile) bool { return o.bucket(p.packets[0]) == o.bucket(s) }
	n := 0
	for _, p := range o.piles {
		if inBucket(p) {
			n++
		}
	}
	if n == o.cfg.MaxSKBs {
		o.complete(slices.IndexFunc(o.piles, inBucket))
	}
	o.piles = append(o.piles, pile{jiffy, []model.SKB{s}})
	return "held"
}

func (o *oracle) flush(oldOnly bool, jiffy int64) {
	for bucket := range o.cfg.Buckets {
		for {
			i := slices.IndexFunc(o.piles, func(p pile) bool {
				return o.bucket(p.packets[0]) == bucket && (!oldOnly || p.born != jiffy)
			})
			if i < 0 {
				break
			}
			o.complete(i)
		}
	}
}

// describe writes down everything that GRO decides about a completed skb.
func describe(s *model.SKB) string {
	return fmt.Sprintf("flow %d seq %d flags %08b segs %d payload %d last %d truesize %d pages %d frags %d+%d age %d pool %v: %v",
		s.Frame.Flow, s.Frame.Seq, s.Frame.Flags, s.Segs, s.Payload, s.LastSeg, s.Truesize,
		s.Pages, s.Frags, s.Chained, s.Age, s.Pool != nil, s.Arrivals)
}

// recorder is the Completer of the table under test.
type recorder struct {
	log []string
	up  map[model.FlowID][]sim.Time // arrivals of a flow in the order of delivery
	sum ledger
}

// ledger is what must be the same before and after.
type ledger struct{ Segs, Payload, Pages, Truesize, Arrivals, SKBs int }

func (l *ledger) add(s *model.SKB) {
	l.Segs += s.Segs
	l.Payload += s.Payload
	l.Pages += s.Pages
	l.Truesize += s.Truesize
	l.Arrivals += len(s.Arrivals)
	l.SKBs++
}

func (r *recorder) Complete(s *model.SKB) {
	r.log = append(r.log, describe(s))
	r.deliver(s)
}

func (r *recorder) deliver(s *model.SKB) {
	r.up[s.Frame.Flow] = append(r.up[s.Frame.Flow], s.Arrivals...)
	r.sum.add(s)
}

// seldom is true for a sixth of the draws if calm is 1, a thirtieth if it is 2, and
// so on. It asks for the greatest number because rapid prefers small ones.
func seldom(t *rapid.T, calm int, label string) bool {
	for range calm {
		if rapid.IntRange(0, 5).Draw(t, label) != 5 {
			return false
		}
	}
	return true
}

// drawConfig varies all that a Config may say, with limits that are reached soon.
func drawConfig(t *rapid.T) gro.Config {
	return gro.Config{
		Buckets:      rapid.SampledFrom([]int{1, 2, 8}).Draw(t, "buckets"),
		MaxSKBs:      rapid.IntRange(1, 8).Draw(t, "max skbs"),
		MaxSize:      rapid.SampledFrom([]int{60, 500, 4000, 65536, 524280}).Draw(t, "max size"),
		MaxFrags:     rapid.SampledFrom([]int{17, 18, 45}).Draw(t, "max frags"),
		HeadTruesize: 1280,
		GSO:          gro.GSORule(rapid.IntRange(0, 2).Draw(t, "gso")),
		MatchRecycle: rapid.Bool().Draw(t, "match recycle"),
		MatchCWR:     rapid.Bool().Draw(t, "match cwr"),
	}
}

// sender is a flow that mostly behaves and sometimes does what ends a superframe.
type sender struct {
	*flow
	mss    int32
	idStep uint16
	copied bool // headers are copied into a head of 1 KiB, the payload stays in pages
	calm   int  // how seldom something is odd about a packet
}

func drawSenders(t *rapid.T, calm int) []*sender {
	senders := make([]*sender, rapid.IntRange(1, 12).Draw(t, "flows"))
	hashes := rapid.SampledFrom([]uint32{1, 3, 1 << 31}).Draw(t, "hashes")
	for i := range senders {
		f := newFlow(model.FlowID(i))
		f.frame.Hash = uint32(i) % hashes
		f.frame.IPID = 65530
		senders[i] = &sender{
			flow:   f,
			mss:    rapid.SampledFrom([]int32{1, 90, 100, mss}).Draw(t, "mss"),
			idStep: uint16(rapid.IntRange(0, 1).Draw(t, "id step")),
			copied: rapid.Bool().Draw(t, "copied"),
			calm:   calm,
		}
	}
	return senders
}

// oddities are what a sender does now and then, to this packet or from the next on.
var oddities = []func(f *sender, s *model.SKB){
	func(_ *sender, s *model.SKB) { s.Frame.Flags |= model.PSH },
	func(_ *sender, s *model.SKB) { s.Frame.Flags |= model.FIN },
	func(_ *sender, s *model.SKB) { s.Frame.Flags |= model.CWR },
	func(_ *sender, s *model.SKB) { s.Frame.Flags |= model.URG },
	func(_ *sender, s *model.SKB) { s.Frame.Flags |= model.SYN },
	func(_ *sender, s *model.SKB) { s.Frame.Flags |= model.RST },
	func(f *sender, _ *model.SKB) { f.frame.Flags ^= model.ECE },
	func(f *sender, _ *model.SKB) { f.frame.Window++ },
	func(f *sender, _ *model.SKB) { f.frame.Ack += 10 },
	func(f *sender, _ *model.SKB) { f.frame.TSVal++ },
	func(f *sender, _ *model.SKB) { f.frame.TSEcr++ },
	func(f *sender, _ *model.SKB) { f.frame.TTL ^= 1 },
	func(f *sender, _ *model.SKB) { f.frame.TOS ^= 3 },
	func(f *sender, _ *model.SKB) { f.frame.Seq += uint64(f.mss) },
	func(f *sender, _ *model.SKB) { f.frame.Seq -= uint64(f.mss) },
	func(f *sender, _ *model.SKB) { f.frame.IPID += 7 },
	func(f *sender, _ *model.SKB) { f.idStep ^= 1 },
	func(_ *sender, s *model.SKB) { s.Frame.Proto = model.UDP },
	func(_ *sender, s *model.SKB) { s.Pages, s.Frags, s.Pool, s.Truesize = 0, 0, nil, s.Payload+768 },
	func(_ *sender, s *model.SKB) { s.Pages, s.Frags, s.Truesize = 0, 0, s.Payload+768 },
	func(_ *sender, s *model.SKB) { s.Frags, s.Truesize = 1, 1280+2048 },
	func(_ *sender, s *model.SKB) { s.Frags, s.Pages, s.Truesize = 2, 2, 1280+2048 },
	func(_ *sender, s *model.SKB) { s.Frags, s.Pages, s.Truesize = 2, 3, 256+3*2048 },
	func(_ *sender, s *model.SKB) { s.Pool = nil },
	func(_ *sender, s *model.SKB) { s.Frame.Hash ^= 16 },
}

// draw is the next packet of the sender. Arrivals number the packets of all flows.
func (f *sender) draw(t *rapid.T, number sim.Time) *model.SKB {
	f.frame.Arrival = number
	if !seldom(t, f.calm, "odd") {
		return f.next(1, f.mss)
	}
	kind := rapid.IntRange(-6, len(oddities)-1).Draw(t, "kind")
	switch kind {
	case -6:
		return f.next(1, 0)
	case -5:
		return f.next(1, max(1, f.mss-1))
	case -4:
		return f.next(1, f.mss+1)
	}
	s := f.next(rapid.IntRange(1, 4).Draw(t, "segments"), f.mss)
	switch {
	case kind >= 0:
		oddities[kind](f, s)
	case s.Segs > 1 && kind == -3:
		s.Payload--
		s.LastSeg--
	case s.Segs > 1 && kind == -2:
		s.Chained = 1
	}
	return s
}

// next is the next packet of n segments.
func (f *sender) next(n int, size int32) *model.SKB {
	id := f.frame.IPID
	s := f.superframe(n, size, 0)
	s.LastSeg = int(size)
	if f.copied {
		s.Frags, s.Truesize = s.Pages, 1280+n*2048
	}
	f.frame.IPID = id + uint16(n)*f.idStep
	return s
}

// TestOracle runs random traffic through a Table and through the oracle. They must
// agree on the fate of every packet and on everything in every completed skb, and
// what goes in must come out.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		rec := &recorder{up: map[model.FlowID][]sim.Time{}}
		table, o := gro.New(cfg, rec), &oracle{cfg: cfg}
		calm := rapid.IntRange(1, 3).Draw(t, "calm")
		senders := drawSenders(t, calm)
		var in, freed ledger
		jiffy, number := int64(1000), sim.Time(0)
		overtaken := map[model.FlowID]bool{} // Linux promises no order there
		for range rapid.SampledFrom([]int{10, 100, 500}).Draw(t, "steps") {
			if seldom(t, calm, "flush") {
				jiffy += int64(rapid.IntRange(0, 1).Draw(t, "jiffies"))
				oldOnly := rapid.Bool().Draw(t, "old only")
				table.Flush(oldOnly, jiffy)
				o.flush(oldOnly, jiffy)
			} else {
				f := senders[rapid.IntRange(0, len(senders)-1).Draw(t, "sender")]
				s := f.draw(t, number)
				number += sim.Time(s.Segs)
				in.add(s)
				if s.Frame.Hash&16 != 0 || s.Frame.Proto == model.UDP || s.Segs > 1 && cfg.GSO == gro.GSOBypass {
					overtaken[s.Frame.Flow] = true
				}
				rec.log = append(rec.log, received(t, table, rec, &freed, s, jiffy, o))
			}
			if diff := cmp.Diff(o.log, rec.log); diff != "" {
				t.Fatalf("log differs (-oracle +table):\n%s", diff)
			}
			o.log, rec.log = o.log[:0], rec.log[:0]
			checkTable(t, table, o, cfg)
		}
		table.Flush(false, jiffy)
		if table.Held() != 0 {
			t.Fatalf("%d held after a flush of all", table.Held())
		}
		out := rec.sum
		out.Truesize += freed.Truesize
		out.SKBs += freed.SKBs
		if diff := cmp.Diff(in, out); diff != "" {
			t.Fatalf("not conserved (-in +out):\n%s", diff)
		}
		for id, arrivals := range rec.up {
			if !overtaken[id] && !slices.IsSorted(arrivals) {
				t.Fatalf("flow %d was reordered: %v", id, arrivals)
			}
		}
	})
}

// received passes one packet to both and returns the fate that the table gave it.
func received(t *rapid.T, table *gro.Table, rec *recorder, freed *ledger, s *model.SKB, jiffy int64, o *oracle) string {
	packet := *s
	packet.Arrivals = slices.Clone(s.Arrivals)
	o.log = append(o.log, o.receive(packet, jiffy))
	result := table.Receive(s, jiffy)
	switch result {
	case gro.Held:
		return "held"
	case gro.Normal:
		rec.deliver(s)
		return "normal"
	}
	freed.add(s)
	if s.Segs+s.Payload+s.Pages+len(s.Arrivals) != 0 || (s.Truesize == 0) != (result == gro.Merged) {
		t.Fatalf("%v left %+v", result, s)
	}
	return "merged"
}

// checkTable checks what holds after every step.
func checkTable(t *rapid.T, table *gro.Table, o *oracle, cfg gro.Config) {
	var held []string
	perBucket := make([]int, cfg.Buckets)
	for s := range table.All() {
		perBucket[int(s.Frame.Hash)%cfg.Buckets]++
		held = append(held, describe(s))
	}
	var want []string
	for bucket := range cfg.Buckets {
		for _, p := range o.piles {
			if s := p.superframe(cfg); o.bucket(s) == bucket {
				want = append(want, describe(&s))
			}
		}
	}
	if diff := cmp.Diff(want, held); diff != "" {
		t.Fatalf("held differ (-oracle +table):\n%s", diff)
	}
	for bucket, n := range perBucket {
		if got := table.Bitmask()>>bucket&1 != 0; got != (n > 0) {
			t.Fatalf("bucket %d holds %d, its bit is %v", bucket, n, got)
		}
	}
	if table.Held() != len(held) || slices.Max(perBucket) > cfg.MaxSKBs {
		t.Fatalf("Held is %d of %d, by bucket %v", table.Held(), len(held), perBucket)
	}
	st := table.Stats()
	var completed, passed int64
	for r := range gro.NumReasons {
		completed += st.Completed[r].Value()
		passed += st.Passed[r].Value()
	}
	if st.Completed[gro.FlushNone] != 0 || st.Passed[gro.FlushNone] != 0 {
		t.Fatal("counted without a reason")
	}
	if st.Results[gro.Held].Value() != completed+int64(len(held)) || st.Results[gro.Normal].Value() != passed {
		t.Fatalf("statistics do not add up: %+v", st)
	}
}
