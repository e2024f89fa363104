package host

import (
	"napisim/model"
	"napisim/model/cpu"
)

// readiness is what a socket knows of those who wait for it: sk_wq with at most one
// reader and one epoll instance, and sk_napi_id.
type readiness struct {
	wait   waitQueue
	item   *epollItem
	napiID int
	busy   Busy
}

// markNAPI is sk_mark_napi_id: the socket remembers the NAPI that its last packet came
// through. The caller has looked.
func (r *readiness) markNAPI(p *model.SKB) {
	if p.NAPIID != 0 {
		r.napiID = p.NAPIID
	}
}

// NAPIID returns sk_napi_id: the NAPI that the last packet came through, 0 if none.
func (r *readiness) NAPIID() int { return r.napiID }

// dataReady is sk_data_ready (sock_def_readable): it wakes a sleeping reader, and tells
// the epoll instance that watches the socket.
func (r *readiness) dataReady(c *cpu.Core) {
	r.wait.wake(c)
	if r.item != nil {
		r.item.callback(c)
	}
}

func (r *readiness) ready() *readiness { return r }

// Pollable is a socket that an Epoll can watch: UDPSock or TCPSock.
type Pollable interface {
	// Readable is the socket's poll function: whether a read would return data. The caller
	// has looked.
	Readable() bool
	// TryRead is one recv of up to size bytes with MSG_DONTWAIT by task t; it reports
	// false for -EAGAIN.
	TryRead(t *cpu.Task, size int) bool

	ready() *readiness
}

// epollItem is struct epitem: a socket in the interest list of an Epoll.
type epollItem struct {
	ep     *Epoll
	sock   Pollable
	linked bool // on the ready list
	next   *epollItem
}

// Epoll mirrors struct eventpoll with level-triggered EPOLLIN events: an interest list,
// the list of sockets that may be ready, and the tasks that wait for one. At most one
// task waits.
type Epoll struct {
	wait       waitQueue
	head, tail *epollItem // rdllist
	linked     int
	napiID     int
	busy       Busy
	events     []Pollable
	stats      EpollStats
}

// EpollStats are the counters of an Epoll.
type EpollStats struct {
	// Callbacks counts calls of ep_poll_callback, Waits returns of epoll_wait with events,
	// Events the events that they returned.
	Callbacks, Waits, Events int64
}

// NewEpoll is epoll_create: an instance that watches nothing.
func NewEpoll() *Epoll { return &Epoll{} }

// Add is EPOLL_CTL_ADD of a socket for EPOLLIN, before the run: a socket without data.
// A socket is watched by one Epoll.
func (ep *Epoll) Add(s Pollable) {
	r := s.ready()
	if r.item != nil {
		panic("host: a socket is watched twice")
	}
	r.item = &epollItem{ep: ep, sock: s}
}

// Stats returns the counters.
func (ep *Epoll) Stats() EpollStats { return ep.stats }

// NAPIID returns the NAPI through which the last packet of a watched socket came
// (ep->napi_id), which a busy poll would poll; 0 if none.
func (ep *Epoll) NAPIID() int { return ep.napiID }

// Available is ep_events_available: whether a socket may be ready. The caller has looked.
func (ep *Epoll) Available() bool { return ep.head != nil }

// callback is ep_poll_callback: the socket may have become readable.
func (i *epollItem) callback(c *cpu.Core) {
	c.Spend(model.StageEpollCallback)
	c.Look()
	ep := i.ep
	ep.stats.Callbacks++
	if id := i.sock.ready().napiID; id != 0 {
		ep.napiID = id // ep_set_busy_poll_napi_id
	}
	ep.link(i)
	ep.wait.wake(c)
}

// link puts an item at the end of the ready list, unless it is there.
func (ep *Epoll) link(i *epollItem) {
	if i.linked {
		return
	}
	i.linked = true
	if ep.tail == nil {
		ep.head = i
	} else {
		ep.tail.next = i
	}
	ep.tail = i
	ep.linked++
}

// unlink takes the first item off the ready list, which must have one.
func (ep *Epoll) unlink() *epollItem {
	i := ep.head
	ep.head = i.next
	if ep.head == nil {
		ep.tail = nil
	}
	i.next, i.linked = nil, false
	ep.linked--
	return i
}

// Wait is epoll_wait by task t without a timeout: it polls busily if it may, sleeps until
// a socket is readable, and returns up to most of those that are, in the order in which they became ready. The
// slice is the Epoll's: it is good until the next Wait.
func (ep *Epoll) Wait(t *cpu.Task, most int) []Pollable {
	c := t.Core()
	for {
		c.Look()
		if !ep.Available() {
			if ep.busyLoop(c); !ep.Available() {
				ep.wait.sleep(t)
			}
			continue
		}
		if ep.sendEvents(c, most); len(ep.events) > 0 {
			ep.suspendIRQs(c)
			ep.stats.Waits++
			ep.stats.Events += int64(len(ep.events))
			return ep.events
		}
	}
}

// sendEvents is ep_send_events: it asks each socket of the list once whether it is
// readable. One that is stays on the list, at its end (level-triggered); one that is not
// comes back with its next callback.
func (ep *Epoll) sendEvents(c *cpu.Core, most int) {
	ep.events = ep.events[:0]
	for n := ep.linked; n > 0 && len(ep.events) < most; n-- {
		c.Spend(model.StageEpollEvent)
		c.Look()
		i := ep.unlink()
		if i.sock.Readable() {
			ep.link(i)
			ep.events = append(ep.events, i.sock)
		}
	}
}
