package host

import (
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/skbuff"
	"napisim/model/tcp"
	"napisim/sim"
)

// Since v6.7 the ACKs of segments taken from the backlog wait until it has been worked
// off: one for three segments, and one after it for what comes later as before.
func TestBacklogAckByVersion(t *testing.T) {
	// The task is woken at 1 ms: IPI 1 us, interrupt 400 ns, switch 1 us; it holds the
	// socket for 1 ms, in which a tick of 400 ns comes.
	const release = 2*ms + 2400*ns + 400*ns
	for _, c := range []struct {
		rule string
		wait bool
		want []ack
	}{
		{"each", true, []ack{
			{at: release + 600*ns, number: mss}, {at: release + 1200*ns, number: 2 * mss}, {at: release + 1800*ns, number: 3 * mss},
		}},
		{"deferred", true, []ack{{at: release + 600*ns, number: 3 * mss}}},
		// net.ipv4.tcp_backlog_ack_defer=0
		{"deferred", false, []ack{
			{at: release + 600*ns, number: mss}, {at: release + 1200*ns, number: 2 * mss}, {at: release + 1800*ns, number: 3 * mss},
		}},
	} {
		cfg := smallWindow()
		cfg.DeferBacklogAcks = c.wait
		if err := cfg.Choose("tcp_backlog_ack", c.rule); err != nil {
			t.Fatal(err)
		}
		r := newRig(onTwoCores())
		k := r.newConn(t, cfg)
		var released sim.Time
		r.task(ms, k.owner(ms, &released))
		for n := range sim.Time(3) {
			k.send(ms+(n+1)*100*us, 1)
			// TSVal differs from segment to segment, or the backlog would merge them.
			r.at(ms+(n+1)*100*us, func() { r.nets[0].ring.Back().Frame.TSVal = uint32(n + 2) })
		}
		k.send(5*ms, 1)
		r.run(t, 10*ms)
		acksAre(t, k.acks, append(c.want, ack{at: 5*ms + toAck, number: 4 * mss}))
	}
}

// compressing is a socket that knows a round trip of 10 ms, so duplicate ACKs wait 500 us.
func compressing() tcp.ReceiverConfig {
	cfg := smallWindow()
	cfg.InitialRTT = 10 * ms
	return cfg
}

// gap sends five segments behind a missing one, 10 us apart from an instant on.
func (k *conn) gap(at sim.Time) {
	k.sent += mss
	for n := range sim.Time(5) {
		k.send(at+n*10*us, 1)
	}
}

// Three duplicate ACKs go out at once. The fourth segment arms the timer: it is in TCP
// 1.1 us after its arrival, and 500 us later, to the nanosecond and not at a tick, the
// HRTIMER softirq sends one ACK for the rest.
func TestCompressedAckTimer(t *testing.T) {
	r := newRig(onOneCore())
	k := r.newConn(t, compressing())
	next := k.settled(Stream(k.TCPSock, 1<<20))
	k.gap(next)
	r.run(t, 30*ms)
	const at = quickAcks * mss
	acksAre(t, k.sinceSettled(t), []ack{
		{at: next + toAck, number: at},
		{at: next + 10*us + toAck, number: at},
		{at: next + 20*us + toAck, number: at},
		// The timer's interrupt takes 400 ns.
		{at: next + 30*us + 1100*ns + 500*us + 400*ns + 600*ns, number: at},
	})
	same(t, "held back", k.Receiver().Stats().CompressedACKs, 2)
	same(t, "ticks of the core's timers", k.comp.Armed(), false)
}

// If the reader owns the socket when the timer expires, the ACK is sent when it lets go.
func TestCompressedAckWhileOwned(t *testing.T) {
	r := newRig(onTwoCores())
	k := r.newConn(t, compressing())
	var released sim.Time
	next := k.settled(func(task *cpu.Task) {
		k.Recv(task, 1<<20)
		k.Recv(task, 1<<20) // waits for ever, but is woken below
	})
	k.gap(next)
	// From 100 us after the gap on the socket is owned for 1 ms.
	owner := r.m.NewTask(r.m.Cores[1], "owner", cpu.TaskConfig{}, k.owner(ms, &released))
	r.at(next+100*us, owner.WakeFromDevice)
	r.run(t, 30*ms)
	acks := k.sinceSettled(t)
	same(t, "ACKs", len(acks), 4)
	same(t, "the last is sent at the release", acks[3].at, released)
	if released < next+1100*us {
		t.Errorf("released at %v", released)
	}
}

// What repairs the gap takes the timer away: the ACK for all of it goes out at once.
func TestCompressedAckCancelled(t *testing.T) {
	r := newRig(onOneCore())
	k := r.newConn(t, compressing())
	next := k.settled(Stream(k.TCPSock, 1<<20))
	hole := k.sent
	k.gap(next)
	r.arrive(next+100*us, k.Receive, func() *model.SKB { return r.segments(hole, 1, next+100*us) })
	r.run(t, 30*ms)
	acks := k.sinceSettled(t)
	same(t, "ACKs", len(acks), 4)
	same(t, "the last", acks[3], ack{at: next + 100*us + toAck, number: (quickAcks + 6) * mss, window: acks[3].window})
	same(t, "interrupts of hrtimers", r.m.Cores[0].Stats().HRTimers, 0)
}

// withHeads gives the rig's sockets caches of descriptors.
func (r *rig) withHeads(cfg skbuff.Config) *skbuff.Heads {
	r.env.Heads = skbuff.New(cfg, r.m, &r.skbs)
	return r.env.Heads
}

// Where Linux merges an skb into the one before it, it frees its descriptor then and
// there, in softirq; the reader frees the rest. Of three segments that merge two are freed
// on core 0 and one on core 1; up to v5.18, later the reader leaves it to core 0.
func TestWhoFreesDescriptors(t *testing.T) {
	for name, want := range map[string][2]int64{"never": {2, 1}, "alloc_cpu": {2, 0}} {
		r := newRig(onTwoCores())
		h := r.withHeads(skbuff.Config{Cache: "unified", Defer: name, DeferMax: 64})
		k := r.newConn(t, smallWindow())
		for n := range sim.Time(3) {
			k.send(ms+n*10*us, 1)
		}
		r.task(2*ms, Stream(k.TCPSock, 1<<20))
		r.run(t, 10*ms)
		for i, c := range r.m.Cores {
			same(t, name, h.On(c).Stats().SlabFrees, want[i])
		}
		same(t, name+": left to core 0", h.On(r.m.Cores[0]).Stats().Deferred, map[string]int64{"never": 0, "alloc_cpu": 3}[name])
		if err := h.Check(); err != nil {
			t.Error(err)
		}
	}
}

// A socket that has to collapse its queue pays for the copy: three skbs of 8000 bytes are
// above a buffer of 20000, so the fourth has their 3*1448 bytes copied into dense ones.
func TestCollapsePaysForTheCopy(t *testing.T) {
	r := newRig(onOneCore())
	cfg := smallWindow()
	cfg.RcvBuf = 10_000
	k := r.newConn(t, cfg)
	for n := range sim.Time(4) {
		k.send((n+1)*ms, 1)
		r.at((n+1)*ms, func() { r.nets[0].ring.Back().Truesize = 8000 })
	}
	r.run(t, 20*ms)
	st := k.Receiver().Stats()
	same(t, "PruneCalled", st.PruneCalled, 1)
	same(t, "TCPRcvCollapsed", st.TCPRcvCollapsed, 3)
	same(t, "bytes copied", r.spent(model.StageCopyByte), 3*mss)
}

// Pitfall 16, seen from a socket: a NET_RX raised by an interrupt while a reader has
// softirqs off is not left pending. It runs when the reader enables them again, in its
// context, and before the next interrupt.
func TestPitfall16NetRXInReadersContext(t *testing.T) {
	r := newRig(onOneCore())
	s := NewUDPSock(&r.env, UDPConfig{RcvBuf: 212992})
	var before, after int
	r.task(0, func(task *cpu.Task) {
		c := task.Core()
		c.BHDisable()
		c.Work(2 * ms)
		c.Look()
		before = s.Queued()
		c.BHEnable()
		after = s.Queued()
	})
	r.datagrams(ms, s, 3, 2304)
	r.run(t, 10*ms)
	same(t, "queued with softirqs off", before, 0)
	same(t, "queued when they are on again", after, 3)
}

// Pitfall 21 for TCP: the test is on what is charged before. One byte below a buffer of
// 40000 a superframe of 12 half pages (24832 bytes) is queued whole; its head of 256 bytes
// is saved, since it merges with the skb before it.
func TestPitfall21TCPOvershoot(t *testing.T) {
	r := newRig(onOneCore())
	cfg := smallWindow()
	cfg.RcvBuf = 20_000
	k := r.newConn(t, cfg)
	k.send(ms, 1)
	r.at(ms, func() { r.nets[0].ring.Back().Truesize = 39_999 })
	k.send(2*ms, 12)
	r.run(t, 3*ms)
	st := k.Receiver().Stats()
	same(t, "charged", k.Receiver().RmemAlloc(), 39_999+24_832-256)
	same(t, "lost", st.Lost.Total(), 0)
	same(t, "PruneCalled", st.PruneCalled, 0)
}
