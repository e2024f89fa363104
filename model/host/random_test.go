package host

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/tcp"
	"napisim/sim"
)

// This file runs random machines with random arrivals: no wakeup is lost, and lazy,
// eager and slow runs are the same.

// rest is the instant by which everything random has come to rest.
const rest = sim.Second

func between(low, high sim.Time) *rapid.Generator[sim.Time] {
	return rapid.Map(rapid.Int64Range(int64(low), int64(high)), func(v int64) sim.Time { return sim.Time(v) })
}

// drawSetup draws a machine whose costs are of all sizes, none at all included.
func drawSetup(t *rapid.T) (s setup) {
	s.machine = cpu.Config{
		Cores:      rapid.IntRange(1, 2).Draw(t, "cores"),
		HZ:         rapid.SampledFrom([]int{100, 250, 1000}).Draw(t, "hz"),
		Preempt:    rapid.SampledFrom([]cpu.Preemption{cpu.PreemptNone, cpu.PreemptVoluntary, cpu.PreemptFull}).Draw(t, "preempt"),
		IPILatency: between(0, 2*us).Draw(t, "ipi"),
		TickPhase:  between(0, ms-1).Draw(t, "tick"),
	}
	s.rx = rapid.IntRange(0, s.machine.Cores-1).Draw(t, "rx")
	s.reader = rapid.IntRange(0, s.machine.Cores-1).Draw(t, "reader")
	s.timer = rapid.IntRange(0, s.machine.Cores-1).Draw(t, "timer")
	for stage := range model.NumStages {
		if stage.PerByte() {
			s.machine.Costs[stage] = sim.Time(rapid.IntRange(0, 1000).Draw(t, stage.String()))
		} else {
			cost := rapid.OneOf(rapid.Just(sim.Time(0)), between(1, 2*us), between(1, 2*us), between(1, 20*us))
			s.machine.Costs[stage] = cost.Draw(t, stage.String())
		}
	}
	return s
}

// arrivals are instants in their order: close together, in one instant, and far apart.
func drawArrivals(t *rapid.T, most int) (all []sim.Time) {
	at := sim.Time(0)
	gap := rapid.OneOf(rapid.Just(sim.Time(0)), between(1, us), between(1, 10*us), between(1, 3*ms))
	for range rapid.IntRange(1, most).Draw(t, "arrivals") {
		at += gap.Draw(t, "gap")
		all = append(all, at)
	}
	return all
}

// modesAgree runs something in all modes and returns what a lazy run says. What is
// the same in all may still be wrong.
func modesAgree(t *rapid.T, s setup, run func(setup) string) {
	var want string
	for mode, name := range []string{"lazy", "eager", "slow"} {
		s.mode = sim.Mode(mode)
		got := run(s)
		if mode == 0 {
			want = got
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s run differs (-lazy +%[1]s)\n%s", name, diff)
		}
	}
}

// story is what two runs have to have in common.
func (r *rig) story(got *Reception) string {
	text := fmt.Sprintf("%+v losses %v freed %d\n", *got, r.losses, r.skbs.Freed())
	text += fmt.Sprintf("pages %v at %v\n", r.pages.returned, r.pages.when)
	for _, c := range r.m.Cores {
		text += fmt.Sprintf("cpu%d %v %+v %v\n", c.ID, c.Account(), c.Stats(), c.Spent())
	}
	return text + fmt.Sprintf("fingerprint %x", r.m.Fingerprint.Sum())
}

// Every datagram that is not refused reaches the reader, wherever that runs.
func TestUDPReaderIsAlwaysWoken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		rcvbuf := rapid.SampledFrom([]int{1000, 10_000, 212992}).Draw(t, "rcvbuf")
		arrivals := drawArrivals(t, 60)
		spurious := between(0, 50*us).Draw(t, "spurious wakeup")
		pause := rapid.OneOf(rapid.Just(sim.Time(0)), between(1, 100*us)).Draw(t, "pause")
		modesAgree(t, s, func(s setup) string {
			r := newRig(s)
			sock := NewUDPSock(&r.env, UDPConfig{RcvBuf: rcvbuf})
			task := r.task(0, func(task *cpu.Task) {
				for {
					sock.Recv(task)
					task.Core().Work(pause)
				}
			})
			for _, at := range arrivals {
				r.datagrams(at, sock, 1, 2304)
				r.at(at+spurious, task.WakeFromDevice)
			}
			r.run(t, rest)
			st, got := sock.Stats(), sock.Received()
			if st.InDatagrams+st.RcvbufErrors != int64(len(arrivals)) || r.losses.Total() != st.RcvbufErrors {
				t.Fatalf("%+v and losses %v of %d datagrams", st, r.losses, len(arrivals))
			}
			if got.Reads != st.InDatagrams || sock.Queued() != 0 || r.skbs.Live() != 0 {
				t.Fatalf("%d of %d datagrams read, %d wait, %d skbs live", got.Reads, st.InDatagrams, sock.Queued(), r.skbs.Live())
			}
			if sock.rmem != 0 || sock.deficit != 0 {
				t.Fatalf("an empty socket has %d bytes and %d to give back", sock.rmem, sock.deficit)
			}
			return r.story(got) + fmt.Sprintf(" %+v", st)
		})
	})
}

// A TCP stream whose sender repeats what is not acknowledged is read to its last
// byte, in order and once. Wherever the reader runs, the ACKs leave as they were built
// (newConn sees to that).
func TestTCPReaderIsAlwaysWoken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSetup(t)
		cfg := tcp.DefaultReceiverConfig()
		cfg.CompSACKs = 0
		cfg.RcvBuf = rapid.SampledFrom([]int{0, 4000, 65536}).Draw(t, "rcvbuf")
		arrivals := drawArrivals(t, 30)
		var bursts []int
		for range arrivals {
			bursts = append(bursts, rapid.SampledFrom([]int{1, 1, 1, 2, 5, 17}).Draw(t, "burst"))
		}
		size := rapid.SampledFrom([]int{700, mss, 4000, 1 << 20}).Draw(t, "size")
		spurious := between(0, 50*us).Draw(t, "spurious wakeup")
		swap := rapid.Bool().Draw(t, "swap")
		modesAgree(t, s, func(s setup) string {
			r := newRig(s)
			k := r.newConn(t, cfg)
			task := r.task(0, Stream(k.TCPSock, size))
			for _, at := range arrivals {
				r.at(at+spurious, task.WakeFromDevice)
			}
			k.stream(arrivals, bursts, swap)
			r.run(t, rest)
			return k.checkStream(t, int64(mss*sum(bursts)))
		})
	})
}

func sum(all []int) (n int) {
	for _, v := range all {
		n += v
	}
	return n
}

// stream sends bursts at their arrivals, neighbours swapped if wanted, and repeats
// every 5 ms what is not acknowledged then.
func (k *conn) stream(arrivals []sim.Time, bursts []int, swap bool) {
	r := k.r
	type burst struct {
		seq uint64
		n   int
	}
	var all []burst
	for _, n := range bursts {
		all = append(all, burst{k.sent, n})
		k.sent += uint64(n * mss)
	}
	order := slices.Clone(all)
	for i := 1; swap && i < len(order); i += 2 {
		order[i-1], order[i] = order[i], order[i-1]
	}
	for i, at := range arrivals {
		r.arrive(at, k.Receive, func() *model.SKB { return r.segments(order[i].seq, order[i].n, at) })
	}
	for at := arrivals[len(arrivals)-1] + 5*ms; at < rest*9/10; at += 5 * ms {
		r.at(at, func() {
			n := r.nets[r.rx]
			for _, b := range all {
				if b.seq+uint64(b.n*mss) > k.Receiver().RcvNxt() && n.ring.Len() < 20 {
					n.ring.PushBack(r.segments(b.seq, b.n, at))
				}
			}
			n.receive = k.Receive
			n.line.Raise()
		})
	}
}

func (k *conn) checkStream(t *rapid.T, bytes int64) string {
	r, got := k.r, k.Received()
	if err := k.Receiver().Check(); err != nil {
		t.Fatal(err)
	}
	if got.Bytes != bytes || k.Receiver().Readable() != 0 {
		t.Fatalf("%d of %d bytes read, %d are in the socket", got.Bytes, bytes, k.Receiver().Readable())
	}
	if got.Packets != got.Latency.Count() || got.Packets != bytes/mss {
		t.Fatalf("%d packets and %d latencies for %d segments", got.Packets, got.Latency.Count(), bytes/mss)
	}
	if k.owned || k.backlog.Len() > 0 || r.skbs.Live() != 0 {
		t.Fatalf("at rest: owned %v, backlog %d, %d skbs live", k.owned, k.backlog.Len(), r.skbs.Live())
	}
	if n := len(k.acks); n == 0 || k.acks[n-1].number != bytes {
		t.Fatalf("%d ACKs, and the last is not for %d bytes", n, bytes)
	}
	return r.story(got) + fmt.Sprintf(" %+v %+v %v %v", k.Stats(), k.Receiver().Stats(), k.acks, k.handed)
}
