package duplex

import (
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/model/tcp"
	"napisim/sim"
)

// A rig is a core with the two ends of a connection. Packets lie on the wire until they
// are delivered; the driver frees them at once, unless held says that the test does.
type rig struct {
	eng      *sim.Engine
	core     *cpu.Core
	env      host.Env
	client   *Sock
	server   *Sock
	listener *Listener
	wire     []sent
	log      []Packet // data of the client
	tasklets int
	held     bool // the driver keeps what it sends
	napi     int  // which NAPI delivers
}

// sent is a packet on the wire, and for whom.
type sent struct {
	to *Sock
	p  Packet
}

const stageCost = 10 * sim.Nanosecond

func newRig(change func(*Config)) *rig { return newRigIn(sim.Lazy, change) }

func newRigIn(mode sim.Mode, change func(*Config)) *rig {
	r := &rig{eng: sim.NewEngine(mode), listener: &Listener{}}
	cfg := cpu.Config{Cores: 1, HZ: 250, Preempt: cpu.PreemptVoluntary}
	for s := range cfg.Costs {
		cfg.Costs[s] = stageCost
	}
	cfg.Costs[model.StageSendByte], cfg.Costs[model.StageCopyByte] = 0, 0
	r.core = cpu.NewMachine(r.eng, cfg).Cores[0]
	r.env = host.Env{SKBs: &model.SKBPool{}, Losses: &model.Losses{}}
	make := func(flow model.FlowID, peer **Sock) *Sock {
		c := Config{Receiver: tcp.DefaultReceiverConfig(), TSO: 65536}
		c.Receiver.Flow = flow
		c.Tasklet = func(fn func()) func() {
			return func() {
				r.tasklets++
				fn()
			}
		}
		if change != nil {
			change(&c)
		}
		return New(&r.env, r.core, c, func(_ *cpu.Core, p *Packet) {
			if flow == 0 && p.Payload > 0 {
				r.log = append(r.log, *p)
			}
			r.wire = append(r.wire, sent{*peer, *p})
			if p.Owner != nil && !r.held {
				p.Owner.WFree(r.core, p.Truesize)
			}
		})
	}
	r.client = make(0, &r.server)
	r.server = make(1, &r.client)
	r.listener.Listen(r.server)
	return r
}

// deliver hands over everything on the wire, and what that brings about.
func (r *rig) deliver() {
	for len(r.wire) > 0 {
		r.deliverOne()
	}
}

// deliverOne hands over the oldest packet, as softirqs do.
func (r *rig) deliverOne() {
	w := r.wire[0]
	r.wire = r.wire[1:]
	s := r.env.SKBs.Get()
	s.Frame, s.Segs, s.Payload = w.p.Frame, w.p.Segs(), int(w.p.Payload)
	s.Frame.Payload = min(w.p.Payload, int32(max(w.p.MSS, 1)))
	if s.Segs == 1 {
		s.Frame.Payload = w.p.Payload
	}
	s.LastSeg = s.Payload - (s.Segs-1)*int(s.Frame.Payload)
	s.Truesize, s.NAPIID = s.Segs*2176, r.napi
	r.core.BHDisable()
	w.to.Receive(r.core, s)
	r.core.BHEnable()
}

// run lets a process of the client and one of the server run, after the handshake.
func (r *rig) run(t *testing.T, body func(t *cpu.Task)) {
	t.Helper()
	m := r.core.Machine()
	done := false
	m.NewTask(r.core, "client", cpu.TaskConfig{}, func(tk *cpu.Task) {
		// The handshake without its waits: nobody is there to deliver.
		r.core.BHDisable()
		r.client.state = synSent
		r.client.sendSYN(r.core, model.SYN)
		r.core.BHEnable()
		r.deliver()
		if r.client.state != established || r.server.state != established || len(r.listener.queue) != 1 {
			t.Error("the handshake did not end")
		}
		body(tk)
		done = true
	}).WakeFromDevice()
	r.eng.Schedule(sim.Second, 255, stop{r.eng}, 0)
	r.eng.Run()
	r.eng.Close()
	if !done {
		t.Error("the process did not end")
	}
}

type stop struct{ eng *sim.Engine }

func (s stop) Fire(uint64) { s.eng.Stop() }

// sizes returns the payloads sent so far.
func (r *rig) sizes() (all []int) {
	for i := range r.log {
		all = append(all, int(r.log[i].Payload))
	}
	return all
}
