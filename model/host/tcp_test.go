package host

import (
	"fmt"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/tcp"
	"napisim/sim"
	"napisim/sim/trace"
)

// toAck is the time from an arrival to the driver's ACK: interrupt 900 ns, tcp_rcv 200,
// tcp_send_ack 600.
const toAck = 1700 * ns

// settled gives the socket quickAcks segments, a millisecond apart and acknowledged
// at once, and then a reader. From the instant that it returns ACKs are delayed.
//
// The last window announced is that of a buffer with 16 segments in it. The reader
// empties it, so further segments do not make the window smaller, for which an ACK
// would wait.
func (k *conn) settled(body func(*cpu.Task)) (next sim.Time) {
	for n := range sim.Time(quickAcks) {
		k.send((n+1)*ms, 1)
	}
	k.r.task(quickAcks*ms+500*us, body)
	return (quickAcks + 1) * ms
}

// sinceSettled returns the ACKs after those at once.
func (k *conn) sinceSettled(t *testing.T) []ack {
	t.Helper()
	if len(k.acks) < quickAcks {
		t.Fatalf("%d ACKs, want %d at once", len(k.acks), quickAcks)
	}
	for n, a := range k.acks[:quickAcks] {
		same(t, "instant of a quick ACK", a.at, sim.Time(n+1)*ms+toAck)
		same(t, "number of a quick ACK", a.number, int64(n+1)*mss)
	}
	return k.acks[quickAcks:]
}

// acksAre compares instants and numbers.
func acksAre(t *testing.T, got, want []ack) {
	t.Helper()
	for i := range got {
		got[i].window = 0
	}
	sameAll(t, "ACKs", got, want)
}

// Vector T1: one segment of 1448 bytes is not acknowledged at once but 40 ms later,
// at the next tick. The second one is, and so is a superframe, by one ACK.
func TestT1DelayedACK(t *testing.T) {
	const at = quickAcks * mss
	// The segment is processed at 17 ms + 1.1 us, so 40 ms later lies between the ticks
	// at 56 and 60 ms. The tick takes 400 ns, then the softirq sends the ACK.
	const expiry = 60*ms + 400*ns + 600*ns
	for _, c := range []struct {
		name string
		send func(k *conn, next sim.Time)
		want []ack
	}{
		{"one", func(k *conn, next sim.Time) { k.send(next, 1) }, []ack{{at: expiry, number: at + mss}}},
		{"two", func(k *conn, next sim.Time) {
			k.send(next, 1)
			k.send(next+ms, 1)
		}, []ack{{at: 18*ms + toAck, number: at + 2*mss}}},
		{"superframe of two", func(k *conn, next sim.Time) { k.send(next, 2) }, []ack{{at: 17*ms + toAck, number: at + 2*mss}}},
		{"superframe of ten", func(k *conn, next sim.Time) { k.send(next, 10) }, []ack{{at: 17*ms + toAck, number: at + 10*mss}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(onOneCore())
			k := r.newConn(t, smallWindow())
			c.send(k, k.settled(Stream(k.TCPSock, 1<<20)))
			r.run(t, 300*ms)
			acksAre(t, k.sinceSettled(t), c.want)
			same(t, "bytes read", k.Received().Bytes, c.want[0].number)
		})
	}
}

// A timer that is still set for something acknowledged long ago makes way for an
// earlier one: the delay of ACKs has become shorter meanwhile.
func TestDelayedACKTimerBecomesEarlier(t *testing.T) {
	r := newRig(onOneCore())
	k := r.newConn(t, smallWindow())
	k.settled(Stream(k.TCPSock, 1<<20))
	k.send(20*ms, 1)  // acknowledged late, at 60 ms + the rest of the tick: now wait 80 ms
	k.send(120*ms, 1) // the timer is set for 200 ms
	k.send(121*ms, 1) // acknowledged at once; segments come close together again: 60 ms
	k.send(122*ms, 1) // 50 ms: to be acknowledged at 172 ms, and not at 200
	r.run(t, 400*ms)
	acksAre(t, k.sinceSettled(t), []ack{
		{at: 64*ms + 400*ns + 600*ns, number: 17 * mss},
		{at: 121*ms + toAck, number: 19 * mss},
		{at: 176*ms + 400*ns + 600*ns, number: 20 * mss},
	})
}

// owner is a task that owns the socket for a time and notes when it has let go.
func (k *conn) owner(hold sim.Time, released *sim.Time) func(*cpu.Task) {
	return func(task *cpu.Task) {
		c := task.Core()
		k.lock(c)
		c.Work(hold)
		c.Look()
		k.unlock(c)
		c.Look()
		*released = c.Now()
	}
}

// What arrives while the reader owns the socket waits in the backlog until it lets go,
// and is then processed in its context: one segment after the other, 600 ns an ACK.
func TestBacklogIsProcessedAtRelease(t *testing.T) {
	r := newRig(onTwoCores())
	k := r.newConn(t, smallWindow())
	var released sim.Time
	r.task(ms, k.owner(ms, &released))
	for n := range sim.Time(3) {
		k.send(ms+(n+1)*100*us, 1)
		// TSVal differs from segment to segment, or the backlog would merge them.
		r.at(ms+(n+1)*100*us, func() { r.nets[0].ring.Back().Frame.TSVal = uint32(n + 2) })
	}
	r.at(ms+900*us, func() {
		same(t, "backlog", k.backlog.Len(), 3)
		same(t, "processed while owned", int64(k.Receiver().RcvNxt()), int64(tcp.FirstSeq))
	})
	r.run(t, 10*ms)
	same(t, "backlogged", k.Stats().Backlogged, 3)
	same(t, "backlog", k.backlog.Len(), 0)
	// The task is woken at 1 ms: IPI 1 us, interrupt 400 ns, switch 1 us; it holds the
	// socket for 1 ms, in which the tick of core 1 comes, half a tick behind core 0's.
	const release = 2*ms + 2400*ns + 400*ns
	acksAre(t, k.acks, []ack{
		{at: release + 600*ns, number: mss}, {at: release + 1200*ns, number: 2 * mss}, {at: release + 1800*ns, number: 3 * mss},
	})
	same(t, "released", released, release+1800*ns)
	same(t, "work of the softirq's core", r.m.Cores[0].Spent()[model.StageTCPAck], 0)
	same(t, "work of the reader's core", r.m.Cores[1].Spent()[model.StageTCPAck], 3)
}

// The backlog takes rcvbuf + sndbuf/2 + 64 KiB of truesize before it refuses: superframes
// of 2304 + 14*2048 bytes go beyond 131072 + 43520 + 65536 with the eighth, and the
// ninth is lost. Linux passes kfree_skb for it.
func TestBacklogLimit(t *testing.T) {
	r := newRig(onTwoCores())
	r.m.Trace = trace.NewLog(0, 2*ms, 1000)
	k := r.newConn(t, smallWindow())
	var released sim.Time
	r.task(ms, k.owner(ms, &released))
	for n := range sim.Time(9) {
		k.send(ms+(n+1)*100*us, 15)
	}
	r.run(t, 10*ms)
	same(t, "backlogged", k.Stats().Backlogged, 9)
	same(t, "skbs refused", k.Receiver().Stats().TCPBacklogDrop, 1)
	same(t, "segments lost", k.Receiver().Stats().Lost[model.DropTCPBacklog], 15)
	var drops []string
	for _, e := range r.m.Trace.Events() {
		if e.Point == trace.KfreeSKB {
			drops = append(drops, fmt.Sprintf("%v cpu%d %s %s", e.At, e.CPU, e.S, e.T))
		}
	}
	// Sent at 1.9 ms, in TCP after 1.1 us.
	sameAll(t, "kfree_skb", drops, []string{"1.9011ms cpu0 tcp_add_backlog SOCKET_BACKLOG"})
}

// Segments that merge in the backlog are processed as one, like a superframe.
func TestBacklogCoalesces(t *testing.T) {
	r := newRig(onTwoCores())
	k := r.newConn(t, smallWindow())
	var released sim.Time
	r.task(ms, k.owner(ms, &released))
	for n := range sim.Time(3) {
		k.send(ms+(n+1)*100*us, 1)
	}
	r.run(t, 10*ms)
	same(t, "ACKs", len(k.acks), 1)
	same(t, "acknowledged", k.acks[0].number, 3*mss)
	same(t, "merged", k.Receiver().Stats().TCPBacklogCoalesce, 2)
	sameAll(t, "freed on the softirq's core", r.pages.returned, nil) // their pages have moved
	same(t, "readable", k.Receiver().Readable(), 3*mss)
}

// ownedWhenDue is a reader that owns the socket from 30 to 100 ms, after it has read
// what was acknowledged at once.
func (k *conn) ownedWhenDue(released *sim.Time) func(*cpu.Task) {
	return func(task *cpu.Task) {
		k.Recv(task, 1<<20)
		c := task.Core()
		c.Work(30*ms - c.Now())
		c.Look()
		k.owner(70*ms, released)(task)
	}
}

// The delayed ACK is due while the reader owns the socket: it leaves at the release.
func TestDelayedACKWhileOwned(t *testing.T) {
	r := newRig(onTwoCores())
	k := r.newConn(t, smallWindow())
	var released sim.Time
	k.send(k.settled(k.ownedWhenDue(&released)), 1)
	r.run(t, 300*ms)
	// The socket is released at 100 ms and a few ticks of 400 ns that came between.
	if released < 100*ms || released > 100*ms+20*us {
		t.Errorf("released at %v", released)
	}
	acksAre(t, k.sinceSettled(t), []ack{{at: released, number: (quickAcks + 1) * mss}})
}

// The timer looks whether the socket is owned when it gets there, not when it expires.
func TestDelayedACKJustOwned(t *testing.T) {
	s := onTwoCores()
	s.timer = 0
	s.machine.Costs[model.StageTimerSoftirq] = 100 * us
	r := newRig(s)
	k := r.newConn(t, smallWindow())
	var released sim.Time
	k.send(k.settled(func(task *cpu.Task) {
		k.Recv(task, 1<<20)
		task.Core().Work(60*ms + 50*us - task.Core().Now()) // expired, but its function has not begun
		k.owner(ms, &released)(task)
	}), 1)
	r.run(t, 300*ms)
	acksAre(t, k.sinceSettled(t), []ack{{at: released, number: (quickAcks + 1) * mss}})
}

// The backlog counts against the window until all of it is worked off. A pure ACK in
// it finds that an ACK is overdue, and so takes 1152 bytes from the window.
func TestBacklogCountsUntilItIsDone(t *testing.T) {
	r := newRig(onTwoCores())
	k := r.newConn(t, smallWindow())
	var released sim.Time
	k.send(k.settled(k.ownedWhenDue(&released)), 1)
	r.arrive(90*ms, k.Receive, func() *model.SKB {
		s := r.segments(k.sent, 1, 90*ms)
		s.Frame.Payload, s.Payload, s.LastSeg = 0, 0, 0
		return s
	})
	r.run(t, 300*ms)
	same(t, "backlogged", k.Stats().Backlogged, 1)
	late := k.acks[quickAcks:]
	sameAll(t, "ACKs", late, []ack{{released, (quickAcks + 1) * mss, (131072 - 2304 - 2304) / 2}})
}

// While the owner does the work of the timer at release, another core may still add
// to the backlog. That is processed as well before the socket is free.
func TestBacklogDuringDelayedACK(t *testing.T) {
	s := onTwoCores()
	s.machine.Costs[model.StageTCPAck] = 500 * us
	r := newRig(s)
	k := r.newConn(t, smallWindow())
	var released sim.Time
	k.send(k.settled(k.ownedWhenDue(&released)), 1)
	k.send(100*ms+300*us, 2) // in the 500 us that the delayed ACK takes
	r.run(t, 300*ms)
	same(t, "backlogged", k.Stats().Backlogged, 1)
	same(t, "backlog at rest", k.backlog.Len(), 0)
	same(t, "received", int64(k.Receiver().RcvNxt()-tcp.FirstSeq), (quickAcks+3)*mss)
	same(t, "released", released, k.acks[quickAcks].at)
}

// Two cores may send an ACK of one socket at a time: each sends its own (newConn
// sees to that).
func TestACKsOfTwoCores(t *testing.T) {
	s := onTwoCores()
	s.machine.Costs[model.StageDevXmit] = 100 * us
	r := newRig(s)
	k := r.newConn(t, smallWindow())
	k.send(ms, 2) // the softirq's ACK is on its way from 1.0017 ms to 1.1017 ms
	r.task(ms, func(task *cpu.Task) {
		c := task.Core()
		c.Work(20 * us)
		k.lock(c)
		k.sendAck(c) // and the reader's from about 1.023 ms on
		k.unlock(c)
	})
	r.run(t, 10*ms)
	same(t, "ACKs", len(k.acks), 2)
	if k.acks[1].at-k.acks[0].at > 50*us {
		t.Errorf("the ACKs left at %v and %v, one after the other", k.acks[0].at, k.acks[1].at)
	}
}

// Each read copies skb by skb, up to its size: of superframes of two and three
// segments, 7240 bytes, reads of 2000 take 2000 of the first; its rest, 896, and 1104
// of the second; 2000 of it and its last 1240.
func TestReadCopiesSKBBySKB(t *testing.T) {
	r := newRig(onOneCore())
	k := r.newConn(t, smallWindow())
	k.send(ms, 2)
	k.send(2*ms, 3)
	var got []int
	r.task(3*ms, k.read(2000, &got))
	r.run(t, 10*ms)
	sameAll(t, "bytes of each read", got, []int{2000, 2000, 2000, 1240})
	same(t, "copies", r.spent(model.StageRecvSKB), 5)
	same(t, "bytes copied", r.spent(model.StageCopyByte), 5*mss)
	got2 := k.Received()
	same(t, "bytes", got2.Bytes, 5*mss)
	same(t, "reads", got2.Reads, 4)
	same(t, "packets", got2.Packets, 5)
	same(t, "live skbs", r.skbs.Live(), 0)
}

// A segment's latency ends with the copy that has its last byte. The reader starts at
// 3 ms with an IPI of 1 us, an interrupt of 400 ns and a switch of 1 us; each copy takes
// 50 ns and 1 ns a byte.
func TestTCPLatency(t *testing.T) {
	r := newRig(onOneCore())
	k := r.newConn(t, smallWindow())
	k.send(ms, 3)
	r.task(3*ms, k.read(2000, nil))
	r.run(t, 10*ms)
	const start = 2*ms + 2400*ns
	// The ends of the three segments are in the first 2000 bytes, the second, and the
	// rest, which is 3*1448 - 4000 = 344.
	got := k.Received()
	same(t, "packets", got.Packets, 3)
	same(t, "first", sim.Time(got.Latency.Min()), start+2050*ns)
	same(t, "last", sim.Time(got.Latency.Max()), start+2*2050*ns+394*ns)
	same(t, "all", sim.Time(got.Latency.Sum()), 3*start+(2050+4100+4494)*ns)
	same(t, "packets in TCP", r.spent(model.StageTCPReceive), 1)
	same(t, "further segments in TCP", r.spent(model.StageTCPSegment), 2)
}

// A reader that sleeps is woken once the segment is acknowledged: interrupt 900 ns,
// tcp_rcv 200, ACK 600, wakeup 300, switch 1000, skb 50, copy 1448.
func TestTCPLatencyOfSleeper(t *testing.T) {
	for name, c := range map[string]struct {
		s    setup
		want sim.Time
	}{
		"one core":  {onOneCore(), 4498 * ns},
		"two cores": {onTwoCores(), 6298 * ns}, // and 400 ns + 1 us + 400 ns of IPI
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(c.s)
			k := r.newConn(t, smallWindow())
			task := r.task(0, k.read(1<<20, nil))
			for n := range sim.Time(5) {
				k.send((n+1)*ms, 1)
			}
			r.run(t, 10*ms)
			got := k.Received()
			same(t, "least", sim.Time(got.Latency.Min()), c.want)
			same(t, "greatest", sim.Time(got.Latency.Max()), c.want)
			same(t, "wakeups", task.Stats().Wakeups, 1+5)
			same(t, "wakeups paid for", r.spent(model.StageSockWakeup), 5)
		})
	}
}

// The window is nearly closed when the reader comes. It tells the sender, when it has
// read all, that the window is open again.
func TestWindowUpdateAfterRead(t *testing.T) {
	r := newRig(onOneCore())
	k := r.newConn(t, smallWindow())
	for n := range sim.Time(3) {
		k.send((n+1)*ms, 15)
	}
	var got []int
	r.task(101*ms, k.read(1<<20, &got))
	r.run(t, 200*ms)
	sameAll(t, "bytes of each read", got, []int{45 * mss})
	same(t, "window updates", k.Receiver().Stats().WindowUpdates, 1)
	// The last packet shrinks the window, so its ACK waits for the reader, 40 ms in
	// vain. Three packets of 2304 + 14*2048 bytes leave half of 131072 - 92928.
	last := k.acks[len(k.acks)-2:]
	same(t, "delayed ACK", last[0], ack{44*ms + 400*ns + 600*ns, 45 * mss, 19072})
	// The read has started at 101 ms + 2.4 us and copied three skbs. The empty buffer
	// gives 65536 - 1448, in units of 128.
	const read = 3*50*ns + 45*mss*ns
	same(t, "window update", last[1], ack{101*ms + 2400*ns + read + 600*ns, 45 * mss, 501 * 128})
}

// A read with room left goes on with what has come while it copied: the backlog is
// processed, and copied as well.
func TestReadGoesOnWithBacklog(t *testing.T) {
	r := newRig(onTwoCores())
	k := r.newConn(t, smallWindow())
	k.send(ms, 1)
	k.send(2*ms+2*us, 1) // in TCP after 1.1 us; the copy runs from 2.0024 ms for 1.5 us
	k.send(3*ms, 1)
	var got []int
	r.task(2*ms, k.read(1<<20, &got))
	r.run(t, 10*ms)
	same(t, "backlogged", k.Stats().Backlogged, 1)
	sameAll(t, "bytes of each read", got, []int{2 * mss, mss})
}

// Whether there is a backlog shows when the reader has paid for the pages of what it
// has read.
func TestReadLooksAtBacklogAfterFree(t *testing.T) {
	s := onTwoCores()
	s.machine.Costs[model.StagePageRing] = 100 * us
	r := newRig(s)
	k := r.newConn(t, smallWindow())
	k.send(ms, 1)
	k.send(2*ms+50*us, 1)
	var got []int
	r.task(2*ms, k.read(1<<20, &got))
	r.run(t, 10*ms)
	sameAll(t, "bytes of each read", got, []int{2 * mss})
}

// A socket is released where the reader waits, also if what it waits for is in the
// backlog already.
func TestBlockingReaderProcessesBacklog(t *testing.T) {
	s := onTwoCores()
	s.machine.Costs[model.StageRecvmsg] = 10 * us
	r := newRig(s)
	k := r.newConn(t, smallWindow())
	var got []int
	r.task(0, func(task *cpu.Task) {
		c := task.Core()
		k.lock(c)
		c.Work(ms)
		c.Look()
		same(t, "backlog", k.backlog.Len(), 1)
		k.waitData(task)
		got = append(got, k.copyQueue(c, 1<<20))
		k.unlock(c)
	})
	k.send(500*us, 1)
	r.run(t, 10*ms)
	sameAll(t, "bytes read", got, []int{mss})
}
