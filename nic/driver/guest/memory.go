package guest

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

// fragPage is the size of the pages that receive buffers are cut from.
const fragPage = 32768

// headsPerPage is how many heads of small skbs a page gives (page_frag_1k, since v6.1).
const headsPerPage = 4

// Memory is what the allocators of a core have in store for the skbs of its softirqs: what
// an allocation costs depends on how many came before it.
type Memory struct {
	// HeadPage is what a new page for the heads of small skbs costs. The kernels of the
	// recordings zero all pages that they allocate, a byte with each instruction.
	HeadPage sim.Time
	// Heads is how many heads the page still gives.
	Heads int
	// FreePage is what it costs to free a page of receive buffers whose frames were all
	// copied.
	FreePage sim.Time

	page int // bytes left of the page that netdev_alloc_frag cuts from
}

// head pays for the head of a small skb (napi_alloc_skb).
func (m *Memory) head(c *cpu.Core) {
	if m == nil {
		return
	}
	if m.Heads == 0 {
		c.Work(m.HeadPage)
		m.Heads = headsPerPage
	}
	m.Heads--
}

// cut takes n receive buffers from pages and returns how many new ones that takes.
func (d *Netdev) cut(n int) (pages int) {
	for range n {
		if *d.page -= d.buffer; *d.page < 0 {
			*d.page = fragPage - d.buffer
			pages++
		}
	}
	return pages
}

// memory pays for the memory of the next frame's skb, and notes where its data is. A small
// frame is copied into the head of a small skb, and its buffer stays where it is; with
// virtio_net all frames have such heads, and leave their buffers.
func (d *Netdev) memory(c *cpu.Core, s *model.SKB) {
	copied := s.Frame.Len <= copybreak
	if copied || d.mergeable {
		d.cfg.Memory.head(c)
	}
	if !copied || d.mergeable {
		d.bufferless++
	}
	switch {
	case copied && d.mergeable && d.rx.Taken()%int64(fragPage/d.buffer) == 0:
		c.Work(d.cfg.Memory.freePage())
	case !copied:
		d.keep(s)
	}
	if copied || !d.slabSKBs {
		d.host.Heads.On(c).Alloc(true)
	}
}

func (m *Memory) freePage() sim.Time {
	if m == nil {
		return 0
	}
	return m.FreePage
}

// keep lets an skb have its buffer: build_skb around it, as e1000 and e1000e do, or what
// the driver has instead.
func (d *Netdev) keep(s *model.SKB) {
	if d.rx.Taken() > d.slabBuffers {
		s.Pages = 1
	}
	if d.shape != nil {
		d.shape(s)
	}
}
