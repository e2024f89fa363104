package duplex

import (
	"napisim/model"
	"napisim/model/cpu"
)

// fragPage is the size of the pages that written data is copied to.
const fragPage = 32768

// Send is write by task t: it copies size bytes into the write queue, sends on the way
// what the windows let out, and blocks while the send buffer is full. The data is in one
// buffer each time, whose pages are mapped when they are first read.
func (s *Sock) Send(t *cpu.Task, size int) {
	c := t.Core()
	c.Spend(model.StageSendmsg)
	s.lock(c)
	n := &s.snd
	goal := n.sizeGoal()
	for left := size; left > 0; {
		room := 0
		if n.unsent() {
			room = goal - n.queue[len(n.queue)-1].n
		}
		if room <= 0 {
			if n.wmemQueued >= n.sndbuf {
				n.noSpace = true
				s.push(c, goal)
				s.waitMemory(t)
				goal = n.sizeGoal()
				continue
			}
			c.MightResched() // the allocation may sleep
			s.allocSKB(c)
			n.queue = append(n.queue, skb{seq: n.write})
			n.wmemQueued += skbTruesize
			room = goal
		}
		if n.frag == 0 { // sk_page_frag_refill, which does not wait for memory
			c.Spend(model.StagePageSlow)
			n.frag = fragPage
		}
		copied := min(room, left, n.frag)
		if at := size - left; at+copied > n.touched {
			copied = min(copied, userPage-at%userPage)
			c.Spend(model.StagePageFault)
			c.MightResched() // the page fault may sleep, at the latest for the page
			n.touched = at + copied
		}
		n.frag -= copied
		c.SpendN(model.StageSendByte, copied)
		c.Look()
		tail := &n.queue[len(n.queue)-1]
		tail.n += copied
		n.write += uint64(copied)
		n.wmemQueued += copied
		if left -= copied; left == 0 || tail.n < goal {
			continue
		}
		switch {
		case n.forcedPush():
			n.markPush()
			s.writeXmit(c, true, false)
		case n.isTail():
			s.writeXmit(c, true, true) // tcp_push_one
		}
	}
	s.push(c, goal)
	s.unlock(c)
}

// allocSKB is tcp_stream_alloc_skb.
func (s *Sock) allocSKB(c *cpu.Core) {
	c.Spend(model.StageStreamSKB)
	s.env.Heads.On(c).AllocQueued()
}

// forcedPush is forced_push: more than half the largest window was written since the
// last push.
func (s *sender) forcedPush() bool { return s.write > s.pushed+uint64(s.maxWnd>>1) }

func (s *sender) markPush() {
	s.queue[len(s.queue)-1].push = true
	s.pushed = s.write
}

// push is tcp_push at the end of a write. While the driver still holds what was sent
// before, a short skb waits for more, or for the driver to free that (autocorking).
func (s *Sock) push(c *cpu.Core, goal int) {
	c.Look()
	n := &s.snd
	if !n.unsent() {
		return
	}
	n.markPush()
	tail := &n.queue[len(n.queue)-1]
	if tail.n < goal && n.sent > 0 && n.wmemAlloc > skbTruesize+tail.n {
		n.throttled = true
		return
	}
	s.writeXmit(c, s.cfg.NoDelay, false)
}

// waitMemory is sk_stream_wait_memory.
func (s *Sock) waitMemory(t *cpu.Task) {
	c := t.Core()
	s.unlock(c)
	for {
		c.Look()
		if s.snd.wmemQueued < s.snd.sndbuf {
			break
		}
		s.snd.noSpace = true
		s.sleep(t)
	}
	s.lock(c)
}

// Shutdown is shutdown(SHUT_WR), and close of a socket that has read everything: a FIN
// follows the data.
func (s *Sock) Shutdown(t *cpu.Task) {
	c := t.Core()
	s.lock(c)
	n := &s.snd
	if s.state == established {
		s.state = finished
		if n.unsent() {
			n.queue[len(n.queue)-1].fin = true
		} else {
			s.allocSKB(c)
			n.queue = append(n.queue, skb{seq: n.write, fin: true})
			n.wmemQueued += skbTruesize
		}
		n.write++
		s.writeXmit(c, true, false)
	}
	s.unlock(c)
}
