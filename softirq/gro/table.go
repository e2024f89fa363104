package gro

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"napisim/model"
)

// Completer takes completed skbs: the end of napi_gro_complete, which hands them
// to gro_normal_one (v5.5 and later) or to netif_receive_skb_internal.
//
// Complete is called by Receive and Flush, so in the NAPI's poll, and before the
// packet that caused it is held or returned as Normal. It owns the skb from then
// on. It may spend simulated time and run the stack, but must not call the Table.
type Completer interface {
	Complete(s *model.SKB)
}

// groCB is struct napi_gro_cb: what GRO notes about one skb besides its headers.
type groCB struct {
	skb *model.SKB
	// lastFrags is nr_frags of the skb that takes the next page fragment: of skb
	// itself, or of the one chained last (NAPI_GRO_CB(p)->last).
	lastFrags int
	// sameFlow of a held skb says that the packet at hand may belong to it; of that
	// packet, that it was merged.
	sameFlow bool
	// fixedID says that the IP ID stays constant (ip_fixedid; before v6.10 the same
	// was told by is_atomic).
	fixedID bool
	// fragList says that packets are chained to it, or that it is to be chained (is_flist).
	fragList bool
	// free says that the payload was moved and the descriptor is free.
	free bool
	// flush of a held skb is why it has to be completed, of a packet why it must not
	// be held.
	flush Reason
}

// groList is struct gro_list: the skbs of one bucket. The kernel adds at the head
// and takes the oldest from the tail; here the oldest is first, and the number of
// elements is the kernel's count.
type groList struct{ held []groCB }

// remove unlinks the i-th skb and returns what was noted about it.
func (l *groList) remove(i int) groCB {
	p := l.held[i]
	l.held = slices.Delete(l.held, i, i+1)
	return p
}

// Table is the GRO state of one NAPI. It belongs to whoever polls that NAPI.
type Table struct {
	cfg       Config
	completer Completer
	lists     []groList
	bitmask   uint64 // gro_bitmask: buckets that hold something
	held      int
	stats     Stats
	skb       groCB // of the packet at hand; a local variable would be allocated
}

// New returns an empty table that gives completed skbs to c. It panics if the
// configuration has a fault: Validate finds it first.
func New(cfg Config, c Completer) *Table {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	t := &Table{cfg: cfg, completer: c, lists: make([]groList, cfg.Buckets)}
	for i := range t.lists {
		t.lists[i].held = make([]groCB, 0, cfg.MaxSKBs)
	}
	return t
}

// Stats returns the counters, to read them or to register them with a metric.Set.
func (t *Table) Stats() *Stats { return &t.stats }

// Held returns the number of held skbs. It is not zero if and only if the kernel's
// gro_bitmask is not.
func (t *Table) Held() int { return t.held }

// All yields the held skbs in the order in which Flush would complete them. They
// still belong to the table: it is for those who check that nothing is lost.
func (t *Table) All() iter.Seq[*model.SKB] {
	return func(yield func(*model.SKB) bool) {
		for i := range t.lists {
			for j := range t.lists[i].held {
				if !yield(t.lists[i].held[j].skb) {
					return
				}
			}
		}
	}
}

// Receive is dev_gro_receive (all versions). The NAPI's poll calls it for each packet, through
// napi_gro_receive or napi_gro_frags, with the current jiffy. The packet is one
// segment, or a superframe of Segs segments of Frame.Payload bytes each, the last
// of which may be shorter.
//
// Its buffer is told from the numbers that the driver gave: Pages > Frags is a head
// in a page fragment (build_skb), Frags > 0 otherwise a head with copied headers
// and the payload in page fragments, neither a kmalloc head that holds all.
//
// The result says who owns s afterwards. Held: the table, until Complete is called
// with it. Normal: still the caller. Merged and MergedFree: the caller too, but s is
// emptied: all it stood for moved to the superframe, and only the struct is to be
// put back into its pool. The descriptor that the struct models is free with
// MergedFree, while with Merged it lives on in the superframe, which counts it in
// Chained and Truesize; whoever frees the superframe frees 1 + Chained descriptors.
func (t *Table) Receive(s *model.SKB, jiffy int64) Result {
	if s.Segs < 1 {
		panic(fmt.Sprintf("gro: flow %d at %v: skb with %d segments", s.Frame.Flow, s.Frame.Arrival, s.Segs))
	}
	bucket := s.Frame.Hash & uint32(len(t.lists)-1)
	list := &t.lists[bucket]
	result := t.devGROReceive(list, s, jiffy)
	if len(list.held) > 0 {
		t.bitmask |= 1 << bucket
	} else {
		t.bitmask &^= 1 << bucket
	}
	t.stats.Results[result].Inc()
	return result
}

// devGROReceive is dev_gro_receive from the choice of the bucket to its update of
// gro_bitmask.
func (t *Table) devGROReceive(list *groList, s *model.SKB, jiffy int64) Result {
	super := s.Segs > 1 || s.Chained > 0
	if super && t.cfg.GSO == GSOBypass {
		return t.normal(FlushGSO)
	}
	groListPrepare(list, s)

	skb := &t.skb
	*skb = groCB{skb: s}
	// Only a frag_list keeps kernels since v6.3 from merging a superframe of TCP.
	if s.Chained > 0 || super && (t.cfg.GSO == GSOFlush || s.Frame.Proto != model.TCP) {
		skb.flush = FlushGSO
	}
	pp := t.inetGROReceive(list, skb)

	result := Merged
	if skb.free {
		result = MergedFree
	}
	if pp >= 0 {
		t.napiGROComplete(list.remove(pp))
	}
	if skb.sameFlow {
		return result
	}
	if skb.flush != FlushNone {
		return t.normal(skb.flush)
	}
	if len(list.held) >= t.cfg.MaxSKBs {
		t.groFlushOldest(list)
	}
	s.Age = jiffy
	skb.lastFrags = s.Frags
	list.held = append(list.held, *skb)
	t.held++
	return Held
}

// normal counts a packet that is not aggregated.
func (t *Table) normal(why Reason) Result {
	t.stats.Passed[why].Inc()
	return Normal
}

// groListPrepare is gro_list_prepare (all versions): it marks the held skbs that may belong to the
// flow of s. Device, VLAN tag and MAC header are those of the flow in the model, so
// the hash that the NIC reported is what is left to compare; a flow whose hash
// changes is two flows.
func groListPrepare(list *groList, s *model.SKB) {
	for i := range list.held {
		p := &list.held[i]
		p.sameFlow = p.skb.Frame.Hash == s.Frame.Hash
	}
}

// groFlushOldest is gro_flush_oldest (all versions, up to v4.18 within dev_gro_receive): it
// makes room for one more skb.
func (t *Table) groFlushOldest(list *groList) {
	oldest := list.remove(0)
	oldest.flush = FlushOverflow
	t.napiGROComplete(oldest)
}

// napiGROComplete is napi_gro_complete (gro_complete since v6.17). The skb is off
// its list already.
func (t *Table) napiGROComplete(p groCB) {
	s := p.skb
	t.held--
	t.stats.Completed[p.flush].Inc()
	if s.Segs > 1 {
		t.stats.Superframes.Inc()
		t.stats.Segments.Add(int64(s.Segs))
	}
	t.completer.Complete(s)
}

// Flush is napi_gro_flush (all versions): it completes the held skbs bucket by bucket, oldest
// first; with oldOnly those only that are held since another jiffy. It is called by
// napi_poll after a poll that used its weight (oldOnly if HZ >= 1000), by
// napi_complete_done and by the busy-poll loop.
func (t *Table) Flush(oldOnly bool, jiffy int64) {
	for mask := t.bitmask; mask != 0; mask &= mask - 1 {
		t.napiGROFlushChain(bits.TrailingZeros64(mask), oldOnly, jiffy)
	}
}

// napiGROFlushChain is __napi_gro_flush_chain (v4.19): Flush for one bucket.
func (t *Table) napiGROFlushChain(index int, oldOnly bool, jiffy int64) {
	why := FlushAll
	if oldOnly {
		why = FlushAge
	}
	list := &t.lists[index]
	for len(list.held) > 0 {
		if oldOnly && list.held[0].skb.Age == jiffy {
			return
		}
		oldest := list.remove(0)
		oldest.flush = why
		t.napiGROComplete(oldest)
	}
	t.bitmask &^= 1 << index
}
