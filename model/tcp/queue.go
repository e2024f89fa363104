package tcp

import (
	"napisim/model"
	"napisim/sim"
)

// entry is an skb on one of the receiver's queues.
//
// Where Linux merges an skb into the one before it (tcp_try_coalesce), the model
// leaves both as they are, because each holds the arrivals of its own segments.
// It marks the second as joined and charges what the merged skb would: a joined
// skb is freed together with those it is joined to, when all have been read.
type entry struct {
	s *model.SKB
	// joined tells that Linux would have merged s into the skb before it.
	joined bool
	// done tells that s has been read, and only waits for those joined to it.
	done bool
	// closed tells that nothing can be merged behind s: it has a frag_list.
	closed bool
	// frags is the number of page fragments of the merged skb, up to and with s.
	frags int
}

func newEntry(s *model.SKB) entry {
	return entry{s: s, frags: s.Frags, closed: s.Chained > 0}
}

func (e *entry) end() uint64 { return e.s.EndSeq() }

// linear reports whether the payload of the first segment sits in the head, as
// build_skb leaves it, rather than in page fragments only.
func linear(s *model.SKB) bool { return s.Frags+s.Chained < s.Segs }

// pagedHead is the truesize of the head of an skb whose payload is in pages: a
// descriptor and the 512 bytes of a header buffer.
const pagedHead = model.SKBHead + 512

// join merges e into the entry before it if skb_try_coalesce would: contiguous, no
// frag_list, the same owner of the pages, and not more than MaxSKBFrags fragments.
// paged is the truesize of the head of an skb whose payload is in pages.
// It returns by how much the truesize falls; the head of e is what is saved.
func (e *entry) join(before *entry, paged int) (saved int, ok bool) {
	s, b := e.s, before.s
	if before.closed || e.closed || b.Frame.Flags&model.FIN != 0 ||
		(b.Pool == nil) != (s.Pool == nil) || before.end() != s.Frame.Seq {
		return 0, false
	}
	frags := before.frags + e.frags
	saved = paged
	if s.Head > 0 {
		saved = model.SKBHead + s.Head
	}
	if linear(s) {
		frags++ // the stolen head becomes a fragment
		saved = model.SKBHead
	}
	if frags > model.MaxSKBFrags || s.Truesize <= saved {
		return 0, false
	}
	e.joined, e.frags, s.HeadFreed = true, frags, true
	return saved, true
}

// endedBy returns how many wire segments of s end within its first n bytes. All
// segments of a superframe but the last have the size of the first: GRO sees to it.
func endedBy(s *model.SKB, n int) int {
	switch {
	case n >= s.Payload:
		return payloadSegs(s)
	case s.Segs <= 1:
		return 0
	}
	return n / int(s.Frame.Payload)
}

// payloadSegs returns how many wire segments with payload s holds. A segment
// without any carries nothing that could be delivered or lost.
func payloadSegs(s *model.SKB) int {
	if s.Payload == 0 {
		return 0
	}
	return s.Segs
}

// ring is a FIFO in a circular buffer that grows when it must.
type ring[T any] struct {
	buf  []T // its length is a power of two
	head int
	n    int
}

func (q *ring[T]) len() int { return q.n }

// at returns the i-th element; it is valid until the next push.
func (q *ring[T]) at(i int) *T { return &q.buf[(q.head+i)&(len(q.buf)-1)] }

// back returns the newest element, nil if there is none.
func (q *ring[T]) back() *T {
	if q.n == 0 {
		return nil
	}
	return q.at(q.n - 1)
}

func (q *ring[T]) push(v T) {
	if q.n == len(q.buf) {
		buf := make([]T, max(2*len(q.buf), 16))
		for i := range q.n {
			buf[i] = *q.at(i)
		}
		q.buf, q.head = buf, 0
	}
	q.n++
	*q.at(q.n - 1) = v
}

func (q *ring[T]) pop() T {
	var zero T
	v := *q.at(0)
	*q.at(0) = zero // or the ring would keep alive what it points to
	q.head = (q.head + 1) & (len(q.buf) - 1)
	q.n--
	return v
}

// Delivery is what one Read copied.
type Delivery struct {
	// Bytes is the payload copied, SKBs the number of skbs that it came from.
	Bytes, SKBs int
	// Arrivals are the wire arrivals of the segments whose last byte was copied, in
	// order. The slice is the Receiver's: it is good until the next Read.
	Arrivals []sim.Time
}

// Read copies up to limit bytes in order to the application. Skbs that are read up
// are put on free for the caller to free, each followed by those merged into it. The caller charges the copy, and asks
// CleanupRbuf after its last Read whether an ACK is due.
func (r *Receiver) Read(now sim.Time, limit int, free *model.SKBList) Delivery {
	r.clock(now)
	d := Delivery{Arrivals: r.arrivals[:0]}
	// Skbs at the front that are read but joined to an unread one were counted then.
	i := 0
	for i < r.queue.len() && r.queue.at(i).done {
		i++
	}
	for d.Bytes < limit && i < r.queue.len() {
		e := r.queue.at(i)
		s := e.s
		n := min(limit-d.Bytes, s.Payload-s.Consumed)
		first := endedBy(s, s.Consumed)
		s.Consumed += n
		last := endedBy(s, s.Consumed)
		d.Arrivals = append(d.Arrivals, arrivals(s, first, last)...)
		r.stats.SegmentsRead += int64(last - first)
		d.Bytes += n
		d.SKBs++
		r.copied += uint64(n)
		if s.Consumed < s.Payload {
			break
		}
		if s.Frame.Flags&model.FIN != 0 {
			r.copied++
		}
		e.done = true
		i++
		if i == r.queue.len() || !r.queue.at(i).joined {
			for ; i > 0; i-- {
				r.release(r.queue.pop().s, free)
			}
		}
	}
	r.arrivals = d.Arrivals
	r.stats.BytesRead += int64(d.Bytes)
	r.rcvSpaceAdjust(now)
	return d
}

// arrivals returns the arrivals of segments [first, last) of s, nothing for an skb
// that was built without them.
func arrivals(s *model.SKB, first, last int) []sim.Time {
	if len(s.Arrivals) == s.Segs {
		return s.Arrivals[first:last]
	}
	return nil
}

// NextLen returns how many bytes a Read can take from the first skb, for callers
// that charge the copy skb by skb.
func (r *Receiver) NextLen() int {
	for i := range r.queue.len() {
		if e := r.queue.at(i); !e.done {
			return e.s.Payload - e.s.Consumed
		}
	}
	return 0
}
