package model

import "napisim/sim"

// Constants of struct sk_buff on 64-bit machines, in bytes.
const (
	// SKBHead is the aligned size of the descriptor (sizeof(struct sk_buff) is 232).
	SKBHead = 256
	// SharedInfo is the aligned size of struct skb_shared_info with 17 fragments.
	SharedInfo = 320
	// MaxSKBFrags is MAX_SKB_FRAGS with 4 KiB pages.
	MaxSKBFrags = 17
)

// PageReturner takes back the pages of an skb that is freed. page_pool in nic/driver
// implements it.
type PageReturner interface {
	// ReturnPages gives n pages back. It is called on the core that frees the skb, which has looked and
	// decides between the direct and the ring path. safe tells that the free
	// happens in NAPI context (napi_consume_skb and GRO), as page_pool asks.
	ReturnPages(coreID, n int, safe bool)
}

// SKB mirrors struct sk_buff for received packets: the headers of its first
// segment, and for a GRO superframe what was merged into it.
//
// Ownership is exclusive: who holds the pointer frees it (SKBPool.Put) or hands it
// on, and does not touch it afterwards.
type SKB struct {
	// ID tells skbs apart in traces, where the kernel prints a hashed pointer. It is
	// that of the struct: a freed and reused skb has the same one, as in the kernel.
	ID int64
	// Dev is the name of the interface that received it.
	Dev string
	// Frame is the first segment. Flags collect the PSH and FIN of merged ones.
	Frame Frame
	// Segs is the number of segments merged into this skb; 1 for a plain packet.
	Segs int
	// Payload is the transport payload of all segments, in bytes.
	Payload int
	// LastSeg is the payload of the segment merged last, in bytes.
	LastSeg int
	// Truesize is what sockets charge: descriptors and data areas, in bytes.
	Truesize int
	// Pages is the number of receive pages that go back to Pool when freed.
	Pages int
	// Pool owns the pages; nil when they belong to the page allocator.
	Pool PageReturner
	// Frags, and Chained for skbs on the frag_list, count as in skb_shared_info.
	Frags, Chained int
	// FragList says that the segments of a superframe are chained whole (SKB_GSO_FRAGLIST):
	// who cannot use it as one takes it apart again.
	FragList bool
	// CsumNone says that nobody has verified the transport checksum yet (CHECKSUM_NONE):
	// the first to need it pays for it.
	CsumNone bool
	// Head is the size of the head's data area in bytes, skb_shared_info included, where
	// the headers lie in a buffer of their own. 0 says that the head is the receive page
	// (build_skb).
	Head int
	// HeadFreed says that the descriptor was freed when the skb was merged into the one
	// before it (skb_try_coalesce): only its pages are left.
	HeadFreed bool
	// NAPIID is the id of the NAPI that received the skb (skb_mark_napi_id), 0 for none.
	NAPIID int
	// AllocCPU is the core that allocated the descriptor (alloc_cpu, since v5.19).
	AllocCPU int
	// Age is the jiffy at which GRO began to hold this skb.
	Age int64
	// Arrivals are the wire arrivals of the segments, oldest first.
	Arrivals []sim.Time
	// Consumed is how much of Payload the application has read, in bytes.
	Consumed int
	// Stamp is the instant at which the skb was put on a queue shared with other
	// cores; a reader on another core takes only what is not in its future.
	Stamp sim.Time

	next *SKB
	live bool
}

// EndSeq returns the sequence number after the last payload byte (and FIN).
func (s *SKB) EndSeq() uint64 {
	end := s.Frame.Seq + uint64(s.Payload)
	if s.Frame.Flags&FIN != 0 {
		end++
	}
	return end
}

// Next returns the skb behind this one on the list that holds both.
func (s *SKB) Next() *SKB { return s.next }

// SKBList is a FIFO of skbs linked through themselves, like struct sk_buff_head.
// The zero value is an empty list.
type SKBList struct {
	head, tail *SKB
	n          int
}

// Len returns the number of skbs on the list.
func (l *SKBList) Len() int { return l.n }

// Front returns the oldest skb, or nil.
func (l *SKBList) Front() *SKB { return l.head }

// Back returns the newest skb, or nil.
func (l *SKBList) Back() *SKB { return l.tail }

// PushBack appends s, which must be on no list, and takes it over.
func (l *SKBList) PushBack(s *SKB) {
	s.next = nil
	if l.tail == nil {
		l.head = s
	} else {
		l.tail.next = s
	}
	l.tail = s
	l.n++
}

// PushFront prepends s, which must be on no list, and takes it over.
func (l *SKBList) PushFront(s *SKB) {
	s.next = l.head
	l.head = s
	if l.tail == nil {
		l.tail = s
	}
	l.n++
}

// PopFront removes the oldest skb and gives it to the caller; nil when empty.
func (l *SKBList) PopFront() *SKB {
	s := l.head
	if s == nil {
		return nil
	}
	l.head = s.next
	if l.head == nil {
		l.tail = nil
	}
	s.next = nil
	l.n--
	return s
}

// InsertAfter puts s behind p, or first when p is nil.
func (l *SKBList) InsertAfter(p, s *SKB) {
	switch p {
	case nil:
		l.PushFront(s)
	case l.tail:
		l.PushBack(s)
	default:
		s.next = p.next
		p.next = s
		l.n++
	}
}

// RemoveAfter unlinks the skb behind p (the first when p is nil) and gives it to
// the caller; nil when there is none.
func (l *SKBList) RemoveAfter(p *SKB) *SKB {
	if p == nil {
		return l.PopFront()
	}
	s := p.next
	if s == nil {
		return nil
	}
	p.next = s.next
	if l.tail == s {
		l.tail = p
	}
	s.next = nil
	l.n--
	return s
}

// Append moves all of other behind this list; other is empty afterwards.
func (l *SKBList) Append(other *SKBList) {
	if other.head == nil {
		return
	}
	if l.tail == nil {
		l.head = other.head
	} else {
		l.tail.next = other.head
	}
	l.tail = other.tail
	l.n += other.n
	*other = SKBList{}
}

// SKBPool recycles SKB structs inside the simulator so that steady state allocates
// nothing. It is not a model of the kernel's descriptor cache, whose cost is a
// Stage. It keeps the books of skbs: each segment that was given an skb is in a live
// one or was freed with one.
type SKBPool struct {
	free  SKBList
	all   []*SKB
	live  int
	freed int64
}

// Get returns a zeroed skb that the caller owns.
func (p *SKBPool) Get() *SKB {
	p.live++
	s := p.free.PopFront()
	if s == nil {
		s = &SKB{ID: int64(len(p.all) + 1), Arrivals: make([]sim.Time, 0, 1)}
		p.all = append(p.all, s)
	}
	s.live = true
	return s
}

// Put takes s back. Its pages must have been returned before.
func (p *SKBPool) Put(s *SKB) {
	if !s.live {
		panic("model: skb freed twice")
	}
	p.live--
	p.freed += int64(s.Segs)
	*s = SKB{ID: s.ID, Arrivals: s.Arrivals[:0]}
	p.free.PushBack(s)
}

// Live returns the number of skbs that somebody holds.
func (p *SKBPool) Live() int { return p.live }

// Freed returns the segments of all skbs freed so far.
func (p *SKBPool) Freed() int64 { return p.freed }

// Each calls f with every skb that somebody holds. It serves the books at the end
// of a run and takes time in proportion to all skbs ever live together.
func (p *SKBPool) Each(f func(*SKB)) {
	for _, s := range p.all {
		if s.live {
			f(s)
		}
	}
}
