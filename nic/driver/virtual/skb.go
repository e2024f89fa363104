package virtual

import (
	"fmt"
	"math/bits"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/nic/driver"
)

// headroom is what is left free in front of a frame (NET_SKB_PAD and alignment).
const headroom = 64

// truesize returns what an skb of a frame is charged for: the descriptor and a data
// area from kmalloc, whose sizes are powers of two.
func truesize(length int) int {
	return model.SKBHead + 1<<bits.Len(uint(headroom+length+model.SharedInfo-1))
}

// build makes the skb of a frame that is copied from the sender's memory on core c.
func build(c *cpu.Core, host *driver.Host, dev string, f *model.Frame) *model.SKB {
	c.SpendN(model.StageCopyByte, int(f.Len))
	c.Spend(model.StageSKBBuild)
	return wrap(c, host, dev, f)
}

// wrap makes the skb of a frame whose cost has been paid.
func wrap(c *cpu.Core, host *driver.Host, dev string, f *model.Frame) *model.SKB {
	c.Look() // which skb it is shows in a trace, and all cores take them from one pool
	s := host.SKBs.Get()
	s.Dev = dev
	s.Frame = *f
	s.Segs, s.Payload, s.LastSeg = 1, int(f.Payload), int(f.Payload)
	s.Truesize = truesize(int(f.Len))
	s.Arrivals = append(s.Arrivals, f.Arrival)
	return s
}

// drop frees an skb that an interface refuses.
func drop(c *cpu.Core, host *driver.Host, s *model.SKB, r model.DropReason) {
	c.Look()
	host.Losses.Add(r, s.Segs)
	c.Spend(model.StageSKBFree)
	c.Look()
	host.SKBs.Put(s)
}

// find returns the entry of a table by its name.
func find[T any](table []T, name func(T) string, want, what string) (found T, err error) {
	for _, b := range table {
		if name(b) == want {
			return b, nil
		}
	}
	return found, fmt.Errorf("%s: unknown behaviour %q", what, want)
}
