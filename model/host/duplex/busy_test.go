package duplex

import (
	"slices"
	"testing"

	"napisim/model/cpu"
	"napisim/model/host"
)

// A poller notes which NAPIs are polled busily; each loop ends at once, after what found
// does, which stands for what the poll receives.
type poller struct {
	ids   []int
	owned []bool // whether the socket was locked then
	sock  *Sock
	found func(c *cpu.Core)
}

func (p *poller) BusyLoop(c *cpu.Core, id int, _ *host.BusyWait) {
	p.ids, p.owned = append(p.ids, id), append(p.owned, p.sock.owned)
	if p.found != nil {
		p.found(c)
	}
}

func (p *poller) SuspendIRQs(*cpu.Core, int) {}
func (p *poller) ResumeIRQs(*cpu.Core, int)  {}

// come lets a NAPI deliver what is on the wire (skb_mark_napi_id).
func (r *rig) come(id int) {
	for len(r.wire) > 0 {
		r.napi = id
		r.deliverOne()
	}
	r.napi = 0
}

// TestBusyReadTCP: a read of an established socket with an empty queue polls the NAPI of
// the last packet before it takes the socket, and one that finds data does not poll.
func TestBusyReadTCP(t *testing.T) {
	r := newRig(nil)
	r.run(t, func(tk *cpu.Task) {
		p := &poller{sock: r.server}
		r.server.SetBusyPoll(p, host.BusyPoll{Usecs: 50})
		r.client.Send(tk, 10)
		r.come(7)
		if n := r.server.Recv(tk, 100); n != 10 || len(p.ids) != 0 {
			t.Errorf("a read that has data got %d bytes and polled %v", n, p.ids)
		}
		p.found = func(*cpu.Core) {
			r.client.Send(tk, 20)
			r.come(9)
		}
		if n := r.server.Recv(tk, 100); n != 20 {
			t.Errorf("got %d bytes", n)
		}
		p.found = nil
		r.client.Shutdown(tk)
		r.come(9)
		if n := r.server.Recv(tk, 100); n != 0 { // CLOSE_WAIT, with the end in the queue
			t.Errorf("got %d bytes", n)
		}
		if !slices.Equal(p.ids, []int{7}) || p.owned[0] {
			t.Errorf("polled %v, socket locked %v; want 7, not locked", p.ids, p.owned)
		}
		if r.server.napiID != 9 {
			t.Errorf("the NAPI of the last packet is %d", r.server.napiID)
		}
	})
}

// TestBusyReadOff: net.core.busy_read of 0 and a socket without a NAPI do not poll.
func TestBusyReadOff(t *testing.T) {
	for _, test := range []struct {
		usecs int64
		napi  int
		polls int
	}{{0, 7, 0}, {50, 0, 0}, {50, 7, 1}} {
		r := newRig(nil)
		r.run(t, func(tk *cpu.Task) {
			p := &poller{sock: r.server}
			r.server.SetBusyPoll(p, host.BusyPoll{Usecs: test.usecs})
			r.client.Send(tk, 10)
			r.come(test.napi)
			r.server.Recv(tk, 100)
			r.server.busyRead(tk.Core())
			if len(p.ids) != test.polls {
				t.Errorf("%+v: polled %v", test, p.ids)
			}
		})
	}
}

// TestBusyEpoll: epoll_wait polls the NAPI of the last ready socket, and forgets it when
// that finds nothing (ep_busy_loop).
func TestBusyEpoll(t *testing.T) {
	r := newRig(nil)
	r.run(t, func(tk *cpu.Task) {
		p := &poller{sock: r.server}
		e := &Epoll{}
		e.SetBusyPoll(p, host.BusyPoll{Usecs: 50})
		e.Add(tk.Core(), r.server)
		r.client.Send(tk, 10)
		r.come(7)
		if got, _ := e.Wait(tk, 8, nil, nil); len(got) != 1 || len(p.ids) != 0 {
			t.Errorf("%d sockets, polled %v", len(got), p.ids)
		}
		r.server.Recv(tk, 100)
		p.found = func(*cpu.Core) {
			r.client.Send(tk, 20)
			r.come(9)
		}
		e.ready, r.server.ready = nil, false // looked at and found empty
		if got, _ := e.Wait(tk, 8, nil, nil); len(got) != 1 || !slices.Equal(p.ids, []int{7}) || e.napiID != 9 {
			t.Errorf("%d sockets, polled %v, then NAPI %d", len(got), p.ids, e.napiID)
		}
		p.found = nil
		e.ready = nil
		e.busyLoop(tk.Core())
		e.busyLoop(tk.Core())
		if !slices.Equal(p.ids, []int{7, 9}) || e.napiID != 0 {
			t.Errorf("polled %v, then NAPI %d", p.ids, e.napiID)
		}
	})
}
