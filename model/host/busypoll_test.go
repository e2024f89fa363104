package host

import (
	"fmt"
	"slices"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/tcp"
	"napisim/sim"
)

// fakePoller notes what it is asked, and receives a datagram in the third turn of a loop.
type fakePoller struct {
	said    []string
	receive func(c *cpu.Core)
}

func (f *fakePoller) BusyLoop(c *cpu.Core, id int, w *BusyWait) {
	turns, start := 0, BusyLoopTime(c)
	for {
		c.Spend(model.StageNAPIPoll)
		if turns++; turns == 3 && f.receive != nil {
			f.receive(c)
		}
		if c.Look(); w.End == nil || w.End(c, start) {
			break
		}
	}
	f.said = append(f.said, fmt.Sprintf("poll %d x%d prefer %v budget %d", id, turns, w.Prefer, w.Budget))
}

func (f *fakePoller) SuspendIRQs(_ *cpu.Core, id int) {
	f.said = append(f.said, fmt.Sprintf("suspend %d", id))
}

func (f *fakePoller) ResumeIRQs(_ *cpu.Core, id int) {
	f.said = append(f.said, fmt.Sprintf("resume %d", id))
}

// busyRig is a rig whose turns of a busy loop take 1.024 us, and a socket whose last packet came
// through NAPI 300.
func busyRig() (*rig, *fakePoller) {
	s := onOneCore()
	s.machine.Costs[model.StageNAPIPoll] = 1024 * ns
	return newRig(s), &fakePoller{}
}

func said(t *testing.T, f *fakePoller, want ...string) {
	t.Helper()
	if !slices.Equal(f.said, want) {
		t.Errorf("asked\n%q, want\n%q", f.said, want)
	}
}

// A blocking read polls as long as SO_BUSY_POLL says before it sleeps, units of 1.024 us; one that
// must not block polls once. Without a NAPI id, or for no time, nobody polls.
func TestBusyPollBeforeASocketSleeps(t *testing.T) {
	for _, c := range []struct {
		id    int
		cfg   BusyPoll
		block bool
		want  []string
	}{
		{300, BusyPoll{Usecs: 5}, true, []string{"poll 300 x6 prefer false budget 0"}},
		{300, BusyPoll{Usecs: 5, Prefer: true, Budget: 16}, false, []string{"poll 300 x1 prefer true budget 16"}},
		{300, BusyPoll{Prefer: true, PreferSuffices: true}, true, nil},
		{0, BusyPoll{Usecs: 5}, true, nil},
	} {
		for _, proto := range []model.Proto{model.UDP, model.TCP} {
			r, f := busyRig()
			u := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992})
			k := r.newConn(t, tcp.DefaultReceiverConfig())
			u.SetBusyPoll(f, c.cfg)
			k.SetBusyPoll(f, c.cfg)
			u.napiID, k.napiID = c.id, c.id
			r.task(0, func(task *cpu.Task) {
				switch {
				case proto == model.UDP && c.block:
					u.Recv(task)
				case proto == model.UDP:
					u.TryRecv(task)
				case c.block:
					k.Recv(task, 1000)
				default:
					k.TryRecv(task, 1000)
				}
			})
			r.run(t, ms)
			said(t, f, c.want...)
		}
	}
}

// What a busy loop receives ends it, and the read returns it without sleeping.
func TestBusyPollFindsADatagram(t *testing.T) {
	r, f := busyRig()
	s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992})
	s.SetBusyPoll(f, BusyPoll{Usecs: 50})
	s.napiID = 300
	f.receive = func(c *cpu.Core) {
		c.BHDisable()
		p := r.skb(datagram(c.Now(), 100), 2304)
		p.NAPIID = 301
		s.Receive(c, p)
		c.BHEnable()
	}
	var at sim.Time
	task := r.task(0, func(task *cpu.Task) {
		s.Recv(task)
		task.Core().Look()
		at = task.Core().Now()
	})
	r.run(t, ms)
	said(t, f, "poll 300 x3 prefer false budget 0")
	same(t, "NAPI id", s.NAPIID(), 301)
	same(t, "wakeups", task.Stats().Wakeups, 1)
	if at == 0 || at > 10*us {
		t.Errorf("read at %v", at)
	}
}

// An epoll instance polls the NAPI that it remembers. When it finds nothing it resumes the
// interrupts and forgets the NAPI, until a socket becomes ready; when it returns events it
// suspends them (v6.13).
func TestEpollBusyPoll(t *testing.T) {
	for _, c := range []struct {
		cfg  BusyPoll
		want []string
	}{
		{BusyPoll{Usecs: 5}, []string{"poll 300 x6 prefer false budget 0"}},
		{BusyPoll{Usecs: 5, Prefer: true}, []string{"suspend 300", "poll 300 x6 prefer true budget 0", "resume 300"}},
		{BusyPoll{Prefer: true}, []string{"suspend 300"}},
		{BusyPoll{Prefer: true, PreferSuffices: true}, []string{"suspend 300", "poll 300 x1 prefer true budget 0", "resume 300"}},
	} {
		r, f := busyRig()
		ep := NewEpoll()
		ep.SetBusyPoll(f, c.cfg)
		s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992})
		ep.Add(s)
		r.datagrams(ms, s, 1, 2304)
		r.at(ms-1, func() { s.napiID = 300 })
		r.task(0, EventLoop(ep, 0))
		r.run(t, 3*ms)
		said(t, f, c.want...)
		if len(c.want) != 1 || !c.cfg.Prefer {
			same(t, "NAPI id after a vain loop", ep.NAPIID(), 0)
		}
	}
}

// A service answers each datagram, to the flow that it came from, in recv and in epoll: with the
// costs of the test, 100 ns of copying an answer of 100 bytes, and out is called with softirqs off.
func TestServiceAnswers(t *testing.T) {
	for _, epoll := range []bool{false, true} {
		r := newRig(onOneCore())
		var sent []model.Segment
		out := func(c *cpu.Core, seg *model.Segment) {
			if !c.InInterrupt() {
				t.Error("softirqs are on")
			}
			sent = append(sent, *seg)
		}
		s := NewService(NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992}), 142, out)
		r.datagrams(ms, s.UDPSock, 3, 2304)
		body := Serve(s)
		if epoll {
			ep := NewEpoll()
			ep.Add(s)
			body = EventLoop(ep, 0)
		}
		r.task(0, body)
		r.run(t, 2*ms)
		same(t, "answers", s.Sent(), 3)
		same(t, "copied bytes: three datagrams of 1000 and answers of 100", r.spent(model.StageCopyByte), 3*1100)
		same(t, "udp_sendmsg", r.spent(model.StageUDPSend), 3)
		for _, seg := range sent {
			if seg.Len != 142 || seg.Payload != 100 || seg.Flow != datagram(0, 1).Flow || seg.Proto != model.UDP {
				t.Errorf("epoll %v: sent %+v", epoll, seg.Frame)
			}
		}
	}
}
