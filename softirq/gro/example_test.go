package gro_test

import (
	"fmt"

	"napisim/model"
	"napisim/softirq/gro"
)

// stack prints what gro_normal_one would get.
type stack struct{}

// Complete prints a completed skb.
func (stack) Complete(s *model.SKB) { fmt.Printf("%d segments, %d B\n", s.Segs, s.Payload) }

// A sender writes 64 KiB and then 20000 bytes over a link with an MSS of 1448
// bytes. The first write fills a superframe, the PSH at the end of the second
// completes one early.
func Example() {
	up := stack{}
	table := gro.New(gro.DefaultConfig(), up)
	next := model.Frame{Proto: model.TCP, Flags: model.ACK, Seq: 1, IPID: 1}
	for _, write := range []int32{65536, 20000} {
		for left := write; left > 0; {
			s := &model.SKB{Frame: next, Segs: 1, Truesize: 2304, Pages: 1}
			s.Frame.Payload = min(left, 1448)
			s.Payload = int(s.Frame.Payload)
			left -= s.Frame.Payload
			if left == 0 {
				s.Frame.Flags |= model.PSH
			}
			next.Seq += uint64(s.Payload)
			next.IPID++

			if table.Receive(s, 0) == gro.Normal {
				up.Complete(s)
			}
		}
	}
	table.Flush(false, 0)

	for r, n := range table.Stats().Completed {
		if n != 0 {
			fmt.Printf("completed %d: %s\n", n, gro.Reason(r).Doc())
		}
	}
	// Output:
	// 45 segments, 65160 B
	// 1 segments, 376 B
	// 14 segments, 20000 B
	// completed 1: the superframe would reach gro_max_size
	// completed 1: the last segment is shorter than the first
}
