package sack

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const mss = 4

// An octet is what the oracle knows of one.
type octet struct{ sacked, lost bool }

// oracle is RFC 6675 section 4 read literally: a slice of octets, and loops.
type oracle struct {
	una, nxt, highRxt int
	octets            [1000]octet
}

func (o *oracle) mark(from, to int) (fresh int) {
	for i := max(from, o.una); i < min(to, o.nxt); i++ {
		if !o.octets[i].sacked {
			o.octets[i].sacked = true
			fresh++
		}
	}
	// IsLost: DupThresh discontiguous SACKed sequences, or more than (DupThresh-1)
	// SMSS octets, have arrived above it.
	for i := o.una; i < o.nxt; i++ {
		sequences, octets := 0, 0
		for j := i + 1; j < o.nxt; j++ {
			if o.octets[j].sacked {
				octets++
				if !o.octets[j-1].sacked {
					sequences++
				}
			}
		}
		if !o.octets[i].sacked && (sequences >= DupThresh || octets > (DupThresh-1)*mss) {
			o.octets[i].lost = true
		}
	}
	return fresh
}

// setPipe is SetPipe of the RFC.
func (o *oracle) setPipe() (pipe int) {
	for i := o.una; i < o.nxt; i++ {
		if o.octets[i].sacked {
			continue
		}
		if !o.octets[i].lost {
			pipe++
		}
		if i < o.highRxt {
			pipe++
		}
	}
	return pipe
}

// hole returns the first run of octets at or above from that are not SACKed.
func (o *oracle) hole(from int) (start, end int, ok bool) {
	start = max(from, o.una)
	for start < o.nxt && o.octets[start].sacked {
		start++
	}
	for end = start; end < o.nxt && !o.octets[end].sacked; end++ {
	}
	return start, end, start < o.nxt
}

func (o *oracle) compare(b *Board) error {
	if err := b.Check(); err != nil {
		return err
	}
	if got, want := int(b.Pipe()), o.setPipe(); got != want {
		return fmt.Errorf("pipe %d, want %d", got, want)
	}
	high, sacked := o.una, 0
	for i := o.una; i < o.nxt; i++ {
		if o.octets[i].sacked {
			high = i + 1
			sacked++
		} else if got := b.IsLost(uint64(i)); got != o.octets[i].lost {
			return fmt.Errorf("octet %d: lost %v, want %v", i, got, o.octets[i].lost)
		}
		if got := b.Sacked(uint64(i)); got != o.octets[i].sacked {
			return fmt.Errorf("octet %d: SACKed %v, want %v", i, got, o.octets[i].sacked)
		}
		start, end, ok := o.hole(i)
		if got, gotOK := b.Hole(uint64(i)); ok != gotOK || ok && (int(got.Start) != start || int(got.End) != end) {
			return fmt.Errorf("hole from %d: %v %v, want [%d, %d) %v", i, got, gotOK, start, end, ok)
		}
	}
	if int(b.HighSacked()) != high || int(b.SackedBytes()) != sacked || int(b.HighRxt()) != o.highRxt {
		return fmt.Errorf("high %d, %d SACKed, HighRxt %d; want %d, %d, %d",
			b.HighSacked(), b.SackedBytes(), b.HighRxt(), high, sacked, o.highRxt)
	}
	if got, want := b.Reneging(), o.una < o.nxt && o.octets[o.una].sacked; got != want {
		return fmt.Errorf("reneging %v, want %v", got, want)
	}
	end := o.nxt
	for end > o.una && o.octets[end-1].sacked {
		end--
	}
	start := end
	for start > o.una && !o.octets[start-1].sacked {
		start--
	}
	if got, ok := b.LastHole(); ok != (start < end) || ok && (int(got.Start) != start || int(got.End) != end) {
		return fmt.Errorf("last hole %v %v, want [%d, %d)", got, ok, start, end)
	}
	return nil
}

// The board agrees with the oracle after any sequence of sends, SACKs, ACKs and
// retransmissions, whatever their order and overlap.
func TestBoardAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, o := New(1, mss), &oracle{una: 1, nxt: 1, highRxt: 1}
		within := func(label string) (int, int) {
			from := rapid.IntRange(max(o.una-5, 0), o.nxt+5).Draw(t, label)
			return from, from + rapid.IntRange(1, 20).Draw(t, label+" length")
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if err := o.compare(b); err != nil {
					t.Fatal(err)
				}
			},
			"send": func(t *rapid.T) {
				o.nxt = min(o.nxt+rapid.IntRange(1, 40).Draw(t, "octets"), len(o.octets)-10)
				b.Sent(uint64(o.nxt))
			},
			"sack": func(t *rapid.T) {
				from, to := within("sack")
				fresh := o.mark(from, to)
				if got := b.Mark(Range{Start: uint64(from), End: uint64(to)}); int(got) != fresh {
					t.Fatalf("SACK of [%d, %d): %d fresh octets, want %d", from, to, got, fresh)
				}
			},
			"ack": func(t *rapid.T) {
				o.una = rapid.IntRange(o.una, o.nxt).Draw(t, "una")
				o.highRxt = max(o.highRxt, o.una)
				b.Ack(uint64(o.una))
			},
			"retransmit": func(t *rapid.T) {
				start, end, ok := o.hole(o.highRxt)
				if !ok {
					t.Skip("no hole")
				}
				o.highRxt = min(start+mss, end)
				b.Retransmitted(uint64(o.highRxt))
			},
			"lost retransmission": func(t *rapid.T) {
				seq := rapid.IntRange(max(o.una-3, 0), o.nxt).Draw(t, "seq")
				o.highRxt = min(o.highRxt, max(seq, o.una))
				b.RestartAt(uint64(seq))
			},
			"other evidence": func(t *rapid.T) {
				seq := rapid.IntRange(o.una, o.nxt).Draw(t, "seq")
				for i := o.una; i < seq; i++ {
					o.octets[i].lost = true
				}
				b.LoseBelow(uint64(seq))
			},
			"timeout": func(t *rapid.T) {
				forget := rapid.Bool().Draw(t, "reneged")
				if forget {
					b.Forget()
				}
				b.LoseAll()
				o.highRxt = o.una
				for i := o.una; i < o.nxt; i++ {
					o.octets[i].lost = true
					o.octets[i].sacked = o.octets[i].sacked && !forget
				}
			},
		})
	})
}

// blocks makes ranges of pairs of numbers.
func blocks(edges ...uint64) []Range {
	var rs []Range
	for i := 0; i < len(edges); i += 2 {
		rs = append(rs, Range{Start: edges[i], End: edges[i+1]})
	}
	return rs
}

// The example of a SACKed tail: with segments of 4 octets, 20 are outstanding.
func TestIsLost(t *testing.T) {
	for _, c := range []struct {
		name  string
		marks []Range
		lost  uint64 // octets below are lost
	}{
		{"nothing SACKed", nil, 0},
		{"two segments above", blocks(12, 20), 0},
		{"one octet more than two segments", blocks(11, 20), 11},
		{"two small blocks", blocks(5, 6, 10, 11), 0},
		{"three small blocks", blocks(5, 6, 10, 11, 15, 16), 5},
		{"more blocks", blocks(3, 4, 5, 6, 10, 11, 15, 16), 5},
		{"touching blocks are one", blocks(5, 6, 6, 7, 7, 8), 0},
	} {
		b := New(0, mss)
		b.Sent(20)
		for _, r := range c.marks {
			b.Mark(r)
		}
		var got uint64
		for got < 20 && b.IsLost(got) {
			got++
		}
		if got != c.lost {
			t.Errorf("%s: lost below %d, want %d", c.name, got, c.lost)
		}
	}
}

func TestMarkMerges(t *testing.T) {
	b := New(0, mss)
	b.Sent(100)
	for _, r := range blocks(10, 20, 30, 40, 50, 60, 20, 25, 28, 30, 15, 55, 90, 200) {
		b.Mark(r)
	}
	if diff := cmp.Diff(blocks(10, 60, 90, 100), b.blocks); diff != "" {
		t.Error(diff)
	}
	if b.Blocks() != 2 {
		t.Errorf("%d blocks", b.Blocks())
	}
}

// Recovery with many holes: each ACK brings a block that grows by one segment, the
// sender asks for the pipe and the next hole.
func BenchmarkBoard(b *testing.B) {
	const segs, size = 1000, 1448
	b.ReportAllocs()
	board := New(0, size)
	i := uint64(0)
	for b.Loop() {
		if i%segs == 0 {
			board.Ack(i * size)
			board.Sent((i + segs) * size)
		}
		if i%3 != 0 {
			board.Mark(Range{Start: i * size, End: (i + 1) * size})
		}
		if h, ok := board.Hole(board.HighRxt()); ok && board.IsLost(h.Start) && board.Pipe() < segs*size/2 {
			board.Retransmitted(min(h.Start+size, h.End))
		}
		i++
	}
}
