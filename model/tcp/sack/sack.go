// Package sack keeps the scoreboard of RFC 6675: what the receiver has told by
// selective acknowledgements, what is therefore lost, and how much is in flight.
//
// The board stores ranges of bytes, not segments. Nothing in RFC 6675 needs the
// segment boundaries, and a list of the SACKed ranges stays as short as the number
// of holes however large the window is.
package sack

import (
	"fmt"

	"napisim/model"
)

// DupThresh is the number of later arrivals that make a missing segment count as
// lost (RFC 6675 section 2).
const DupThresh = 3

// Range is a half-open range of sequence numbers. It is never empty on a board.
type Range = model.SACKBlock

// Board is the scoreboard of one connection. Its zero value is not usable; New
// makes one.
//
// The names follow RFC 6675: una is HighACK+1, nxt is HighData+1, and HighRxt is
// kept as the sequence number after the highest retransmitted octet.
type Board struct {
	una, nxt uint64
	mss      uint64
	highRxt  uint64
	// edge bounds the lost octets: all below it that are not SACKed are lost. It
	// is the higher of what IsLost derives from the blocks and what LoseAll set.
	edge   uint64
	blocks []Range // disjoint, not touching, ascending, within [una, nxt)
	sacked uint64  // octets in blocks
	// rxt counts the octets below highRxt that are not SACKed: retransmitted and
	// perhaps still on their way.
	rxt uint64
}

// New returns the board of a connection whose first octet is una.
func New(una uint64, mss int) *Board {
	return &Board{una: una, nxt: una, highRxt: una, edge: una, mss: uint64(mss)}
}

// Sent tells that data up to nxt, exclusive, has been sent for the first time.
func (b *Board) Sent(nxt uint64) { b.nxt = max(b.nxt, nxt) }

// HighRxt returns the sequence number after the highest retransmitted octet of
// this recovery.
func (b *Board) HighRxt() uint64 { return b.highRxt }

// SackedBytes returns the number of outstanding octets that are SACKed.
func (b *Board) SackedBytes() int64 { return int64(b.sacked) }

// Blocks returns the number of SACKed ranges.
func (b *Board) Blocks() int { return len(b.blocks) }

// Reneging reports whether the first outstanding octet is SACKed. An honest
// receiver would have acknowledged it, so it has thrown the data away.
func (b *Board) Reneging() bool { return len(b.blocks) > 0 && b.blocks[0].Start == b.una }

// Mark records one SACK block and returns how many octets it reports for the
// first time. What lies outside of the outstanding data is ignored: it is old, or
// the receiver is wrong.
func (b *Board) Mark(r Range) int64 {
	r.Start, r.End = max(r.Start, b.una), min(r.End, b.nxt)
	if r.Start >= r.End {
		return 0
	}
	// blocks[i:j] are those that r overlaps or touches.
	i := b.search(r.Start)
	if i > 0 && b.blocks[i-1].End == r.Start {
		i--
	}
	fresh, freshRxt := r.End-r.Start, overlap(r, b.una, b.highRxt)
	j := i
	for j < len(b.blocks) && b.blocks[j].Start <= r.End {
		o := b.blocks[j]
		lo, hi := max(o.Start, r.Start), min(o.End, r.End)
		if lo < hi {
			fresh -= hi - lo
			freshRxt -= overlap(Range{Start: lo, End: hi}, b.una, b.highRxt)
		}
		j++
	}
	if fresh == 0 {
		return 0
	}
	if i < j {
		r.Start, r.End = min(r.Start, b.blocks[i].Start), max(r.End, b.blocks[j-1].End)
		b.blocks[i] = r
		b.blocks = append(b.blocks[:i+1], b.blocks[j:]...)
	} else {
		b.blocks = append(b.blocks, Range{})
		copy(b.blocks[i+1:], b.blocks[i:])
		b.blocks[i] = r
	}
	b.sacked += fresh
	b.rxt -= freshRxt
	b.edge = max(b.edge, b.derivedEdge())
	return int64(fresh)
}

// derivedEdge applies IsLost of RFC 6675 to all octets at once. An octet is lost
// if DupThresh SACKed ranges, or more than (DupThresh-1)*SMSS SACKed octets, lie
// above it. Both conditions hold for everything below the octet where they first
// hold, and counting from the top ends after DupThresh ranges.
func (b *Board) derivedEdge() uint64 {
	var bytes uint64
	for n := 1; n <= len(b.blocks); n++ {
		r := b.blocks[len(b.blocks)-n]
		bytes += r.End - r.Start
		if n >= DupThresh || bytes > (DupThresh-1)*b.mss {
			return r.Start
		}
	}
	return b.una
}

// Ack tells that everything below una is acknowledged.
func (b *Board) Ack(una uint64) {
	if una <= b.una {
		return
	}
	b.rxt -= b.unsacked(b.una, min(una, b.highRxt))
	n := 0
	for n < len(b.blocks) && b.blocks[n].End <= una {
		b.sacked -= b.blocks[n].End - b.blocks[n].Start
		n++
	}
	if n > 0 {
		b.blocks = append(b.blocks[:0], b.blocks[n:]...)
	}
	if len(b.blocks) > 0 && b.blocks[0].Start < una {
		b.sacked -= una - b.blocks[0].Start
		b.blocks[0].Start = una
	}
	b.una = una
	b.nxt, b.highRxt, b.edge = max(b.nxt, una), max(b.highRxt, una), max(b.edge, una)
}

// IsLost reports whether an octet that is not SACKed counts as lost.
func (b *Board) IsLost(seq uint64) bool { return seq < b.edge }

// Pipe returns the estimate of the octets in flight: SetPipe of RFC 6675. Each
// octet that is not SACKed counts once unless it is lost, and once more if it was
// retransmitted.
func (b *Board) Pipe() int64 {
	lost := (b.edge - b.una) - b.sackedBelow(b.edge)
	return int64(b.nxt - b.una - b.sacked - lost + b.rxt)
}

// sackedBelow counts the SACKed octets below seq, from the top because seq is
// usually near it.
func (b *Board) sackedBelow(seq uint64) uint64 {
	n := b.sacked
	for i := len(b.blocks) - 1; i >= 0 && b.blocks[i].End > seq; i-- {
		n -= b.blocks[i].End - max(seq, b.blocks[i].Start)
	}
	return n
}

// unsacked counts the octets of [from, to) that are not SACKed.
func (b *Board) unsacked(from, to uint64) uint64 {
	if from >= to {
		return 0
	}
	n := to - from
	for _, r := range b.blocks {
		if r.Start >= to {
			break
		}
		n -= overlap(r, from, to)
	}
	return n
}

// Hole returns the first range at or above from that is outstanding and not
// SACKed, up to the next SACKed octet; false if there is none.
func (b *Board) Hole(from uint64) (Range, bool) {
	from = max(from, b.una)
	i := b.search(from)
	if i < len(b.blocks) && b.blocks[i].Start <= from {
		from = b.blocks[i].End
		i++
	}
	if from >= b.nxt {
		return Range{}, false
	}
	end := b.nxt
	if i < len(b.blocks) {
		end = b.blocks[i].Start
	}
	return Range{Start: from, End: end}, true
}

// HighSacked returns the sequence number after the highest SACKed octet, or una if
// nothing is SACKed.
func (b *Board) HighSacked() uint64 {
	if len(b.blocks) == 0 {
		return b.una
	}
	return b.blocks[len(b.blocks)-1].End
}

// LastHole returns the highest range that is outstanding and not SACKed; false if
// there is none.
func (b *Board) LastHole() (Range, bool) {
	end := b.nxt
	i := len(b.blocks) - 1
	if i >= 0 && b.blocks[i].End == end {
		end = b.blocks[i].Start
		i--
	}
	start := b.una
	if i >= 0 {
		start = b.blocks[i].End
	}
	return Range{Start: start, End: end}, start < end
}

// Retransmitted tells that the octets up to end, exclusive, have been sent again,
// in order: HighRxt moves there.
func (b *Board) Retransmitted(end uint64) {
	if end > b.highRxt {
		b.rxt += b.unsacked(b.highRxt, end)
		b.highRxt = end
	}
}

// RestartAt lets HighRxt fall back to seq: what was retransmitted at or above it no
// longer counts as in flight, and will be sent again.
func (b *Board) RestartAt(seq uint64) {
	if seq = max(seq, b.una); seq < b.highRxt {
		b.highRxt = seq
		b.rxt = b.unsacked(b.una, seq)
	}
}

// Sacked reports whether an outstanding octet is SACKed.
func (b *Board) Sacked(seq uint64) bool {
	i := b.search(seq)
	return i < len(b.blocks) && b.blocks[i].Start <= seq
}

// LoseBelow declares what lies below seq lost unless it is SACKed, on other evidence
// than the SACKs counted by IsLost.
func (b *Board) LoseBelow(seq uint64) { b.edge = max(b.edge, min(seq, b.nxt)) }

// LoseAll declares everything outstanding lost that is not SACKed, as after a
// retransmission timeout. HighRxt falls back to HighACK, so what was retransmitted
// before no longer counts as in flight. A fast recovery needs no such reset: its
// predecessor ended when all that it had sent again was acknowledged, and HighRxt
// never lags behind HighACK.
func (b *Board) LoseAll() {
	b.edge = b.nxt
	b.highRxt, b.rxt = b.una, 0
}

// Forget drops all SACK information, as RFC 2018 section 8 demands when the
// receiver has reneged.
func (b *Board) Forget() {
	b.blocks, b.sacked = b.blocks[:0], 0
	b.rxt = b.highRxt - b.una
}

// search returns the index of the first block that ends above seq.
func (b *Board) search(seq uint64) int {
	lo, hi := 0, len(b.blocks)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if b.blocks[mid].End > seq {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// Check returns an error if the board contradicts itself.
func (b *Board) Check() error {
	var sum uint64
	prev := b.una
	for i, r := range b.blocks {
		if r.Start >= r.End || r.Start < prev || i > 0 && r.Start == prev || r.End > b.nxt {
			return fmt.Errorf("sack: block %d of %v is out of order in [%d, %d)", i, b.blocks, b.una, b.nxt)
		}
		sum += r.End - r.Start
		prev = r.End
	}
	if sum != b.sacked {
		return fmt.Errorf("sack: blocks %v hold %d octets, counted %d", b.blocks, sum, b.sacked)
	}
	if rxt := b.unsacked(b.una, b.highRxt); rxt != b.rxt {
		return fmt.Errorf("sack: %d octets below HighRxt %d, counted %d", rxt, b.highRxt, b.rxt)
	}
	return nil
}

// overlap returns the number of octets that r shares with [from, to).
func overlap(r Range, from, to uint64) uint64 {
	lo, hi := max(r.Start, from), min(r.End, to)
	if lo >= hi {
		return 0
	}
	return hi - lo
}
