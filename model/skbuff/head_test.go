package skbuff

import (
	"testing"

	"napisim/model"
)

// The truesize of skbs with a head of their own by version, of section 9.1 and 11.1: 128
// bytes take 128 + 64 + 320 = 512, the 304 of napi_get_frags 384 + 320 = 704, and 600
// bytes 704 + 320 = 1024.
func TestHeadSizeByVersion(t *testing.T) {
	for _, c := range []struct {
		length int
		want   map[string]int
	}{
		{128, map[string]int{"page_frag": 512, "kmalloc": 512, "page_slice": 1024, "small_slab": 704}},
		{GROMaxHead, map[string]int{"page_frag": 704, "kmalloc": 1024, "page_slice": 1024, "small_slab": 704}},
		{600, map[string]int{"page_frag": 1024, "kmalloc": 1024, "page_slice": 1024, "small_slab": 1024}},
		{1000, map[string]int{"page_frag": 1408, "kmalloc": 1408, "page_slice": 1408, "small_slab": 1408}},
	} {
		for _, name := range HeadNames() {
			got, err := HeadSize(name, c.length)
			if err != nil {
				t.Fatal(err)
			}
			same(t, name, got, c.want[name])
		}
	}
	small, _ := HeadSize("kmalloc", 128)
	same(t, "truesize of a small skb up to v6.0", small+model.SKBHead, 768)
	small, _ = HeadSize("small_slab", 128)
	same(t, "truesize of a small skb since v6.14", small+model.SKBHead, 960)
	if _, err := HeadSize("slab", 1); err == nil {
		t.Error("an unknown behaviour is accepted")
	}
}
