package skbuff

import (
	"fmt"
	"slices"

	"napisim/model"
)

// GROMaxHead is GRO_MAX_HEAD, the room for headers that napi_get_frags asks for.
const GROMaxHead = 304

// headSize is a way of allocating the data area of an skb for headers.
type headSize struct {
	name string
	size func(need int) int
}

// headSizes is the table of skb_small_head behaviours.
var headSizes = []headSize{
	{"page_frag", func(need int) int { return need }},
	{"kmalloc", powerOfTwo},
	{"page_slice", func(need int) int { return max(need, 1024) }},
	{"small_slab", func(need int) int { return max(need, smallHead) }},
}

const (
	netSKBPad = 64  // NET_SKB_PAD
	cacheLine = 64  // SMP_CACHE_BYTES
	smallHead = 704 // SKB_SMALL_HEAD_CACHE_SIZE
)

// powerOfTwo is what kmalloc gives for an skb that fits into 1 KiB; a larger one is cut
// off a page.
func powerOfTwo(need int) int {
	if need > 1024 {
		return need
	}
	size := 512
	for size < need {
		size *= 2
	}
	return size
}

// HeadNames lists the values of the skb_small_head behaviour in the order of history.
func HeadNames() []string {
	var all []string
	for _, h := range headSizes {
		all = append(all, h.name)
	}
	return all
}

// HeadSize returns the size of the data area that napi_alloc_skb gives for so many bytes,
// skb_shared_info included, of an skb below a page. The truesize of the skb is larger by its
// descriptor.
func HeadSize(behaviour string, length int) (int, error) {
	i := slices.IndexFunc(headSizes, func(h headSize) bool { return h.name == behaviour })
	if i < 0 {
		return 0, fmt.Errorf("skb_small_head: unknown behaviour %q", behaviour)
	}
	need := (length+netSKBPad+cacheLine-1)/cacheLine*cacheLine + model.SharedInfo
	return headSizes[i].size(need), nil
}
