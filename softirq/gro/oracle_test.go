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
	chain   bool // fraglist GRO: packets stay whole
	packets []model.SKB
}

// tells is the Sockets of a host on which the flow's number decides: every second flow
// has a socket, every fourth one that asked for merged datagrams.
type tells struct{}

func (tells) UDPSocket(flow model.FlowID) (found, gro bool) { return flow%2 == 0, flow%4 == 0 }
func (tells) TCPEstablished(flow model.FlowID) bool         { return flow%2 == 0 }

// sameFlow compares a packet with the first of the pile. Without it in its flow's
// pile a packet neither merges nor completes anything.
func (p pile) sameFlow(s model.SKB) bool {
	a, b := p.packets[0].Frame, s.Frame
	return a.Hash == b.Hash && a.Flow == b.Flow && a.Proto == b.Proto && a.IPv6 == b.IPv6
}

// sameIP reports whether the IP headers of all are those of one superframe.
func sameIP(cfg gro.Config, all []model.SKB) bool {
	first := all[0].Frame
	constant, counting, segs := all[0].Segs == 1 && (!first.NoDF || cfg.FixedIDWithoutDF), true, 0
	for _, x := range all {
		f := x.Frame
		if f.TTL != first.TTL || f.TOS != first.TOS || !f.IPv6 && f.NoDF != first.NoDF {
			return false
		}
		constant = constant && f.IPID == first.IPID
		counting = counting && f.IPID == first.IPID+uint16(segs)
		segs += x.Segs
	}
	return constant || counting || first.IPv6
}

// accepts reports whether the pile with s on top is still one superframe.
func (p pile) accepts(cfg gro.Config, s model.SKB) bool {
	all := append(slices.Clone(p.packets), s)
	first := all[0].Frame
	total, segs := 0, 0
	for _, x := range all {
		total += x.Payload
		segs += x.Segs
	}
	headers, limit := 20, cfg.MaxSize
	if first.IPv6 {
		headers, limit = 40, cfg.MaxSizeIPv6
	}
	if first.Proto == model.UDP {
		headers, limit = headers+8, min(limit, 65536)
	} else {
		headers += 32
	}
	if p.chain {
		total, limit = total+headers, 65536
	}
	if headers+total >= limit || s.Chained > 0 || !p.sameOwner(cfg, s) {
		return false
	}
	if first.Proto == model.UDP {
		return s.Segs == 1 && s.Payload <= int(first.Payload) && (cfg.UDP < gro.UDPTCPFragList || sameIP(cfg, all))
	}
	if p.chain && (segs > 64 || s.Frame.Flags != first.Flags) {
		return false
	}
	return p.acceptsTCP(cfg, all) && sameIP(cfg, all)
}

// acceptsTCP is what the TCP headers say.
func (p pile) acceptsTCP(cfg gro.Config, all []model.SKB) bool {
	first, s := all[0].Frame, all[len(all)-1]
	seq := first.Seq
	for _, x := range all {
		f := x.Frame
		if f.Seq != seq || f.Window != first.Window || f.Ack != first.Ack || f.TSVal != first.TSVal || f.TSEcr != first.TSEcr {
			return false
		}
		seq += uint64(x.Payload)
	}
	differ := (s.Frame.Flags ^ first.Flags) &^ (model.FIN | model.PSH)
	if !cfg.MatchCWR {
		differ &^= model.CWR
	}
	if differ != 0 || s.Frame.Flags&model.CWR != 0 {
		return false
	}
	if s.Segs > 1 {
		return cfg.GSO == gro.GSOMerge && s.Frame.Payload == first.Payload
	}
	return s.Payload >= 1 && s.Payload <= int(first.Payload)
}

// sameOwner reports whether the pages of s may join those of the pile.
func (p pile) sameOwner(cfg gro.Config, s model.SKB) bool {
	owner := model.PageReturner(nil)
	for _, x := range p.packets {
		if cfg.MatchRecycle && !p.chain || x.Pages > 0 {
			owner = x.Pool
			break
		}
	}
	owned := slices.ContainsFunc(p.packets, func(x model.SKB) bool { return x.Pages > 0 })
	strict := cfg.MatchRecycle && !p.chain || owned && s.Pages > 0
	return owner == s.Pool || !strict
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
		if last := len(room) - 1; !p.chain && n > 0 && room[last]+n <= cfg.MaxFrags {
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
		if s.Frame.Proto == model.TCP {
			s.Frame.Flags |= x.Frame.Flags & (model.FIN | model.PSH)
		}
		s.Arrivals = append(s.Arrivals, x.Arrivals...)
		if x.Pages > 0 {
			s.Pool = x.Pool
		}
	}
	s.Frags, s.Chained = room[0], len(room)-1
	s.FragList = p.chain && len(p.packets) > 1
	return s
}

func (o *oracle) bucket(s model.SKB) int { return int(s.Frame.Hash) % o.cfg.Buckets }

func (o *oracle) complete(i int) {
	s := o.piles[i].superframe(o.cfg)
	o.log = append(o.log, describe(&s))
	o.piles = slices.Delete(o.piles, i, i+1)
}

// chains reports whether the flow of s is chained, refuses whether it is neither chained
// nor merged, or s cannot be. Such a packet leaves its flow alone.
func (o *oracle) chains(s model.SKB) bool {
	found, wanted := tells{}.UDPSocket(s.Frame.Flow)
	if s.Frame.Proto == model.UDP {
		return o.cfg.FragList && !wanted
	}
	return o.cfg.FragList && o.cfg.UDP == gro.UDPTCPFragList && !found
}

func (o *oracle) refuses(s model.SKB) bool {
	if s.Segs > 1 && o.cfg.GSO == gro.GSOBypass || s.Chained > 0 && o.cfg.GSO == gro.GSOBypass {
		return true
	}
	if s.Frame.Proto == model.TCP {
		return false
	}
	found, wanted := tells{}.UDPSocket(s.Frame.Flow)
	asked := o.cfg.UDP > gro.UDPNone && wanted || o.cfg.UDPForward && !found || o.chains(s)
	headers := int32(14 + 20 + 8)
	if s.Frame.IPv6 {
		headers += 20
	}
	return !asked || s.Frame.NoCsum || s.Payload == 0 || s.Frame.Len > headers+s.Frame.Payload
}

// receive returns whether the packet is merged, held or normal.
func (o *oracle) receive(s model.SKB, jiffy int64) string {
	if o.refuses(s) {
		return "normal"
	}
	tcp := s.Frame.Proto == model.TCP
	pass := s.Segs > 1 && (!tcp || o.cfg.GSO != gro.GSOMerge) || s.Chained > 0
	i := slices.IndexFunc(o.piles, func(p pile) bool { return p.sameFlow(s) })
	if i >= 0 && o.piles[i].accepts(o.cfg, s) {
		o.piles[i].packets = append(o.piles[i].packets, s)
		mss := o.piles[i].packets[0].Frame.Payload
		if tcp && ends(s, mss) || !tcp && (s.Payload < int(mss) || len(o.piles[i].packets) == 64) {
			o.complete(i)
		}
		return "merged"
	}
	if i >= 0 {
		o.complete(i)
	}
	if pass || tcp && ends(s, 1) {
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
	o.piles = append(o.piles, pile{jiffy, o.chains(s), []model.SKB{s}})
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
	return fmt.Sprintf("flow %d seq %d flags %08b segs %d payload %d last %d truesize %d pages %d frags %d+%d list %v age %d pool %v: %v",
		s.Frame.Flow, s.Frame.Seq, s.Frame.Flags, s.Segs, s.Payload, s.LastSeg, s.Truesize,
		s.Pages, s.Frags, s.Chained, s.FragList, s.Age, s.Pool != nil, s.Arrivals)
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
				if s.Frame.Hash&16 != 0 || s.Frame.Proto != f.frame.Proto || o.refuses(*s) {
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
