package duplex

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
)

// An Epoll is an epoll instance with level-triggered sockets.
type Epoll struct {
	ready     []*Sock
	listeners []*Listener // ready ones
	sleeper   *cpu.Task
	napiID    int // the NAPI through which the last packet of a watched socket came
	busy      host.Busy
}

// SetBusyPoll makes Wait poll through p before it sleeps (ep_busy_loop). It belongs to the
// construction of a run.
func (e *Epoll) SetBusyPoll(p host.BusyPoller, cfg host.BusyPoll) { e.busy.Set(p, cfg, e.available) }

// available is ep_events_available. The caller has looked.
func (e *Epoll) available() bool { return len(e.ready)+len(e.listeners) > 0 }

// busyLoop is ep_busy_loop. A loop that has found nothing forgets the NAPI until a socket
// becomes ready again. The caller has looked, and found nothing.
func (e *Epoll) busyLoop(c *cpu.Core) {
	if !e.busy.Loop(c, e.napiID, true) {
		return
	}
	if c.Look(); !e.available() {
		e.napiID = 0
	}
}

// Add watches a socket. Data that is there makes it ready at once.
func (e *Epoll) Add(c *cpu.Core, s *Sock) {
	c.Look()
	s.epoll = e
	if s.Readable() {
		e.add(c, s)
	}
}

// AddListener watches a listener.
func (e *Epoll) AddListener(l *Listener) { l.epoll = e }

// add is ep_poll_callback.
func (e *Epoll) add(c *cpu.Core, s *Sock) {
	c.Spend(model.StageEpollCallback)
	c.Look()
	if s.napiID != 0 {
		e.napiID = s.napiID // ep_set_busy_poll_napi_id
	}
	if !s.ready {
		s.ready = true
		e.ready = append(e.ready, s)
	}
	e.wake(c)
}

func (e *Epoll) addListener(c *cpu.Core, l *Listener) {
	c.Spend(model.StageEpollCallback)
	c.Look()
	if !l.ready {
		l.ready = true
		e.listeners = append(e.listeners, l)
	}
	e.wake(c)
}

func (e *Epoll) wake(c *cpu.Core) {
	c.Look()
	if t := e.sleeper; t != nil {
		e.sleeper = nil
		c.Spend(model.StageSockWakeup)
		c.Wake(t)
	}
}

// Wait is epoll_wait: it blocks until something is ready and returns up to limit sockets
// and listeners, in the order in which they became ready, listeners first.
func (e *Epoll) Wait(t *cpu.Task, limit int, socks []*Sock, listeners []*Listener) ([]*Sock, []*Listener) {
	c := t.Core()
	c.Spend(model.StageEpollWait)
	for {
		c.Look()
		for !e.available() {
			if e.busyLoop(c); e.available() {
				break
			}
			e.sleeper = t
			t.Sleep()
			e.sleeper = nil
			c.Look()
		}
		again, n := e.ready, 0
		e.ready = nil
		for _, l := range e.listeners {
			l.ready = false
			if len(l.queue) > 0 {
				listeners = append(listeners, l)
				n++
			}
		}
		e.listeners = e.listeners[:0]
		for i, s := range again {
			if n == limit {
				e.ready = append(append([]*Sock{}, again[i:]...), e.ready...)
				break
			}
			c.Spend(model.StageEpollEvent)
			c.Look()
			if !s.Readable() {
				s.ready = false
				continue
			}
			socks = append(socks, s)
			n++
			e.ready = append(e.ready, s) // level-triggered: looked at again the next time
		}
		// Listeners with more in their queues are looked at again as well.
		for _, l := range listeners {
			l.ready = true
			e.listeners = append(e.listeners, l)
		}
		if n > 0 {
			return socks, listeners
		}
	}
}
