package model_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"napisim/model"
	"napisim/sim"
)

// listed returns the skbs of a list by following its links.
func listed(l *model.SKBList) []*model.SKB {
	var all []*model.SKB
	for s := l.Front(); s != nil; s = s.Next() {
		all = append(all, s)
	}
	return all
}

// checkList compares a list with the slice that it has to be.
func checkList(t *rapid.T, what string, l *model.SKBList, want []*model.SKB) {
	if !slices.Equal(listed(l), want) {
		t.Fatalf("%s: list has %d skbs in its links, want %d in their order", what, len(listed(l)), len(want))
	}
	if l.Len() != len(want) {
		t.Fatalf("%s: Len is %d with %d skbs", what, l.Len(), len(want))
	}
	var front, back *model.SKB
	if n := len(want); n > 0 {
		front, back = want[0], want[n-1]
	}
	if l.Front() != front || l.Back() != back {
		t.Fatalf("%s: Front or Back is not the first or last of %d skbs", what, len(want))
	}
}

// Whatever is done to two lists, each is what a slice would be.
func TestSKBListAgainstSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lists [2]model.SKBList
		var want [2][]*model.SKB
		loose := func(s *model.SKB) {
			if s.Next() != nil {
				t.Fatal("an skb that was taken off still has a link")
			}
		}
		// place draws a list, a position on it, and the skb before that.
		place := func(t *rapid.T) (i, at int, before *model.SKB) {
			i = rapid.IntRange(0, 1).Draw(t, "list")
			if at = rapid.IntRange(0, len(want[i])).Draw(t, "at"); at > 0 {
				before = want[i][at-1]
			}
			return i, at, before
		}
		t.Repeat(map[string]func(*rapid.T){
			"push back": func(t *rapid.T) {
				i, s := rapid.IntRange(0, 1).Draw(t, "list"), &model.SKB{}
				lists[i].PushBack(s)
				want[i] = append(want[i], s)
			},
			"push front": func(t *rapid.T) {
				i, s := rapid.IntRange(0, 1).Draw(t, "list"), &model.SKB{}
				lists[i].PushFront(s)
				want[i] = slices.Insert(want[i], 0, s)
			},
			"pop front": func(t *rapid.T) {
				i := rapid.IntRange(0, 1).Draw(t, "list")
				s := lists[i].PopFront()
				if len(want[i]) == 0 {
					if s != nil {
						t.Fatal("an empty list gave an skb")
					}
					return
				}
				if s != want[i][0] {
					t.Fatal("PopFront did not give the oldest skb")
				}
				loose(s)
				want[i] = want[i][1:]
			},
			"insert after": func(t *rapid.T) {
				i, at, before := place(t)
				s := &model.SKB{}
				lists[i].InsertAfter(before, s)
				want[i] = slices.Insert(slices.Clone(want[i]), at, s)
			},
			"remove after": func(t *rapid.T) {
				i, at, before := place(t)
				s := lists[i].RemoveAfter(before)
				if at == len(want[i]) {
					if s != nil {
						t.Fatal("there was nothing to remove")
					}
					return
				}
				if s != want[i][at] {
					t.Fatalf("RemoveAfter did not give the skb at %d", at)
				}
				loose(s)
				want[i] = slices.Delete(slices.Clone(want[i]), at, at+1)
			},
			"append": func(t *rapid.T) {
				i := rapid.IntRange(0, 1).Draw(t, "list")
				lists[i].Append(&lists[1-i])
				want[i] = append(slices.Clone(want[i]), want[1-i]...)
				want[1-i] = nil
			},
			"": func(t *rapid.T) {
				checkList(t, "first", &lists[0], want[0])
				checkList(t, "second", &lists[1], want[1])
			},
		})
	})
}

// dirty fills an skb as its life may leave it.
func dirty(s *model.SKB, segs int) {
	s.Dev = "eth0"
	s.Frame = model.Frame{Seq: 1, Len: 60, Flow: 7, Proto: model.TCP}
	s.Segs, s.Payload, s.LastSeg, s.Truesize = segs, 1448*segs, 1448, 2304
	s.Pages, s.Frags, s.Chained, s.CsumNone = 3, 2, 1, true
	s.Age, s.Consumed, s.Stamp = 5, 9, sim.Second
	s.Arrivals = append(s.Arrivals, 1, 2, 3)
}

// The books of a pool follow every skb: who is live, and the segments of the freed.
// An skb comes zeroed, under the name of its struct.
func TestSKBPoolBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p model.SKBPool
		var live []*model.SKB
		byID := map[int64]*model.SKB{}
		freed := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				s := p.Get()
				if slices.Contains(live, s) {
					t.Fatalf("skb %d is in use", s.ID)
				}
				if was := byID[s.ID]; was != nil && was != s {
					t.Fatalf("two skbs are called %d", s.ID)
				}
				byID[s.ID] = s
				blank := &model.SKB{ID: s.ID}
				if diff := cmp.Diff(blank, s, cmpopts.IgnoreUnexported(model.SKB{}), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("skb is not zeroed (-want +got)\n%s", diff)
				}
				dirty(s, rapid.IntRange(0, 17).Draw(t, "segs"))
				live = append(live, s)
			},
			"put": func(t *rapid.T) {
				if len(live) == 0 {
					return
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "skb")
				freed += int64(live[i].Segs)
				p.Put(live[i])
				live = slices.Delete(live, i, i+1)
			},
			"": func(t *rapid.T) {
				if p.Live() != len(live) || p.Freed() != freed {
					t.Fatalf("%d live and %d segments freed, want %d and %d", p.Live(), p.Freed(), len(live), freed)
				}
				seen := map[*model.SKB]int{}
				p.Each(func(s *model.SKB) { seen[s]++ })
				for _, s := range live {
					if seen[s] != 1 {
						t.Fatalf("Each called with skb %d %d times", s.ID, seen[s])
					}
				}
				if len(seen) != len(live) {
					t.Fatalf("Each called for %d skbs, but %d are live", len(seen), len(live))
				}
			},
		})
	})
}

// Structs are named from 1 on in the order in which they are made, and reused oldest
// first.
func TestSKBPoolNames(t *testing.T) {
	var p model.SKBPool
	a, b := p.Get(), p.Get()
	p.Put(b)
	p.Put(a)
	var ids []int64
	for range 3 {
		ids = append(ids, p.Get().ID)
	}
	if want := []int64{2, 1, 3}; !slices.Equal(ids, want) {
		t.Errorf("skbs are called %v, want %v", ids, want)
	}
}

func TestSKBFreedTwicePanics(t *testing.T) {
	var p model.SKBPool
	s := p.Get()
	p.Put(s)
	defer func() {
		if r := recover(); r != "model: skb freed twice" {
			t.Errorf("recovered %v", r)
		}
		if p.Live() != 0 {
			t.Errorf("%d skbs live after the panic", p.Live())
		}
	}()
	p.Put(s)
}

// A pool that has seen its most skbs allocates nothing any more, arrivals included.
func TestSKBPoolAllocatesNothing(t *testing.T) {
	var p model.SKBPool
	const inUse = 8
	cycle := func() {
		var l model.SKBList
		for range inUse {
			s := p.Get()
			for range 17 {
				s.Arrivals = append(s.Arrivals, 1)
			}
			l.PushBack(s)
		}
		for s := l.PopFront(); s != nil; s = l.PopFront() {
			p.Put(s)
		}
	}
	cycle()
	if n := testing.AllocsPerRun(100, cycle); n > 0 {
		t.Errorf("%v allocations for %d skbs", n, inUse)
	}
}

// A FIN occupies a sequence number behind the payload.
func TestEndSeq(t *testing.T) {
	s := model.SKB{Frame: model.Frame{Seq: 1000}, Payload: 2896}
	if got := s.EndSeq(); got != 3896 {
		t.Errorf("end of 2896 bytes from 1000 is %d", got)
	}
	s.Frame.Flags = model.FIN | model.ACK
	if got := s.EndSeq(); got != 3897 {
		t.Errorf("with a FIN it is %d", got)
	}
}
