package softirq

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq/rps"
)

// kernels are the two that were recorded: what differs between them here.
func kernels() map[string]Config {
	k61 := DefaultConfig()
	k612 := DefaultConfig()
	k612.NAPISchedule, k612.Ksoftirqd = "skip_in_net_rx_action", "inline"
	return map[string]Config{"v6.1": k61, "v6.12": k612}
}

// connect joins the cores of a rig; what a backlog drops is counted.
func (r *rig) connect(links Links) *int {
	dropped := new(int)
	links.Drop = func(c *cpu.Core, s *model.SKB, reason model.DropReason) {
		if reason != model.DropBacklog {
			panic(reason)
		}
		c.Look()
		*dropped++
		r.skbs.Put(s)
	}
	Connect(r.sds, links)
	return dropped
}

// udp is a packet of one segment.
func (r *rig) udp(hash uint32) *model.SKB {
	s := r.skbs.Get()
	s.Frame = udpFrame(0)
	s.Frame.Hash = hash
	s.Segs, s.Payload = 1, 18
	return s
}

// emitter lets the NET_TX softirq of core 0 put bursts on a backlog, as a qdisc does
// whose timer has fired: each instant is one burst of n.
func (r *rig) emitter(q *rps.Queue, n int, hash func(i int) uint32, at ...sim.Time) {
	sd := r.sds[0]
	sd.OpenSoftirq(NetTX, func() {
		for i := range n {
			sd.NetifRx(q, r.udp(hash(i)))
		}
	})
	line := sd.Core().NewLine(-1, "hrtimer", func(*cpu.Core) { sd.RaiseSoftirq(NetTX) })
	for _, at := range at {
		r.at(at, phaseDevices, line.Raise)
	}
}

func hashless(int) uint32 { return 0 }

// pollsOf returns the work of each poll of the backlogs, and their budgets.
func pollsOf(log *trace.Log) (work, budgets []int) {
	for _, e := range log.Events() {
		if e.Point == trace.NAPIPoll && e.S == "" {
			work, budgets = append(work, int(e.B)), append(budgets, int(e.C))
		}
	}
	return work, budgets
}

// raisesOf counts raises of NET_RX on a core, by the context that they come from.
func raisesOf(log *trace.Log, core int) map[trace.Context]int {
	n := map[trace.Context]int{}
	for _, e := range log.Events() {
		if e.Point == trace.SoftirqRaise && e.A == int64(NetRX) && int(e.CPU) == core {
			n[e.Flags.Context]++
		}
	}
	return n
}

// With netdev_max_backlog 1000 and no consumer 1001 packets are accepted, as the
// test is whether the length is above the limit.
func TestB1BacklogAccepts1001(t *testing.T) {
	r := newRig(defaultSetup())
	dropped := r.connect(Links{})
	sd := r.sds[0]
	line := sd.Core().NewLine(24, "feed", func(*cpu.Core) { // interrupts are off: nobody polls
		for range 1001 {
			sd.NetifRx(nil, r.udp(0))
		}
		same(t, "dropped after 1001", *dropped, 0)
		sd.NetifRx(nil, r.udp(0))
		same(t, "dropped after 1002", *dropped, 1)
		input, process := sd.Backlog()
		same(t, "input_pkt_queue", input, 1001)
		same(t, "process_queue", process, 0)
	})
	r.at(10*sim.Microsecond, phaseDevices, line.Raise)
	r.run(t, 20*sim.Millisecond)
	same(t, "softnet dropped", sd.Stats().Dropped, 1)
	same(t, "delivered", r.stack.delivered, 1001)
	same(t, "live skbs", r.skbs.Live(), 0)
}

// Fact 3 of the recordings: one raise for each burst and one for each full poll; the sizes
// of polls; 199 of 1200 dropped; dev_weight counts from the second poll on.
func TestFact03Backlog(t *testing.T) {
	for name, kernel := range kernels() {
		for _, tt := range []struct {
			burst, weight int
			polls         string
			full, dropped int // of each burst
		}{
			{1, 64, "1", 0, 0},
			{64, 64, "64 0", 1, 0},
			{65, 64, "64 1", 1, 0},
			{300, 64, "64x4 44", 4, 0},
			{1200, 64, "64x15 41", 15, 199},
		} {
			t.Run(fmt.Sprintf("%s/burst%d", name, tt.burst), func(t *testing.T) {
				s := defaultSetup()
				s.kernel = kernel
				r := newRig(s)
				dropped := r.connect(Links{})
				r.emitter(nil, tt.burst, hashless, 10*sim.Millisecond, 110*sim.Millisecond, 210*sim.Millisecond)
				r.run(t, 300*sim.Millisecond)
				work, _ := pollsOf(s.log)
				if len(work)%3 != 0 {
					t.Fatalf("polls %v", work)
				}
				for burst := range slices.Chunk(work, len(work)/3) {
					same(t, "polls of a burst", runLengths(burst), tt.polls)
				}
				same(t, "dropped", *dropped, 3*tt.dropped)
				same(t, "softnet dropped", r.sds[0].Stats().Dropped, int64(3*tt.dropped))
				same(t, "raises from softirqs", raisesOf(s.log, 0)[trace.Softirq], 3*(1+tt.full))
				same(t, "processed", r.sds[0].Stats().Processed, int64(3*(tt.burst-tt.dropped)))
				same(t, "live skbs", r.skbs.Live(), 0)
			})
		}
	}
}

// Correction C2: process_backlog takes the weight over when it runs, so the first poll
// after boot, or after a change, has the old one. It does not concern a driver's NAPI.
func TestC2DevWeightCountsFromTheSecondPoll(t *testing.T) {
	for name, kernel := range kernels() {
		for _, bias := range []int{1, 2} {
			s := defaultSetup()
			s.kernel = kernel
			s.kernel.DevWeight, s.kernel.DevWeightRXBias = 16, bias
			r := newRig(s)
			r.connect(Links{})
			r.emitter(nil, 300, hashless, 10*sim.Millisecond)
			d := r.nic("eth0", nil, 0)
			d.arrive(40*sim.Millisecond, 64)
			r.run(t, 80*sim.Millisecond)
			work, budgets := pollsOf(s.log)
			// 64, then the other 236 in polls of 16 (14 and a rest of 12) or 32 (7 and 12).
			want := map[int]string{1: "64 16x14 12", 2: "64 32x7 12"}[bias]
			same(t, name+": polls", runLengths(work), want)
			same(t, name+": first and second budget", budgets[:2], []int{64, 16 * bias})
			same(t, name+": polls of a driver", runLengths(d.polls), "64 0")
		}
	}
}

// Pitfall 16: netif_rx from a task up to v5.17 leaves NET_RX pending until the next
// interrupt; netif_rx_ni, and netif_rx since v5.18, run it before they return.
func TestPitfall16NetifRxFromTask(t *testing.T) {
	for _, tt := range []struct {
		behaviour string
		ni        bool
		polled    bool // when the call has returned
	}{{"split_ni", false, false}, {"split_ni", true, true}, {"universal", false, true}, {"universal", true, true}} {
		s := defaultSetup()
		s.kernel.NetifRx = tt.behaviour
		r := newRig(s)
		r.connect(Links{})
		var polled bool
		r.task("writer", cpu.TaskConfig{}, func(task *cpu.Task) {
			if tt.ni {
				r.sds[0].NetifRxNI(nil, r.udp(0))
			} else {
				r.sds[0].NetifRx(nil, r.udp(0))
			}
			task.Core().Look()
			polled = r.stack.delivered == 1
			work(task.Core(), 10*sim.Millisecond)
		})
		r.run(t, 20*sim.Millisecond)
		what := fmt.Sprintf("%s, ni %v: ", tt.behaviour, tt.ni)
		same(t, what+"delivered when the call returned", polled, tt.polled)
		same(t, what+"delivered after the next tick", r.stack.delivered, 1)
	}
}

// netif_rx_ni uses do_softirq, which from v4.9 to v6.4 leaves softirqs to a ksoftirqd that
// waits for the core.
func TestNetifRxNIWaitsForKsoftirqd(t *testing.T) {
	for behaviour, want := range map[string]bool{"inline": true, "defer_while_running": false} {
		s := defaultSetup()
		s.kernel.NetifRx, s.kernel.Ksoftirqd = "split_ni", behaviour
		r := newRig(s)
		r.connect(Links{})
		var polled bool
		r.task("writer", cpu.TaskConfig{FIFO: 50}, func(task *cpu.Task) {
			c := task.Core()
			c.Wake(r.sds[0].Ksoftirqd()) // cannot run: the writer has the core
			r.sds[0].NetifRxNI(nil, r.udp(0))
			c.Look()
			polled = r.stack.delivered == 1
		})
		r.run(t, 20*sim.Millisecond)
		same(t, behaviour+": delivered when the call returned", polled, want)
		same(t, behaviour+": delivered in the end", r.stack.delivered, 1)
	}
}

// do_softirq does nothing in an interrupt or with softirqs off: netif_rx_ni leaves the packet to
// the local_bh_enable then.
func TestNetifRxNIWithSoftirqsOff(t *testing.T) {
	s := defaultSetup()
	s.kernel.NetifRx = "split_ni"
	r := newRig(s)
	r.connect(Links{})
	r.task("writer", cpu.TaskConfig{}, func(task *cpu.Task) {
		c := task.Core()
		c.BHDisable()
		r.sds[0].NetifRxNI(nil, r.udp(0))
		c.Look()
		same(t, "delivered with softirqs off", r.stack.delivered, 0)
		c.BHEnable()
		c.Look()
		same(t, "delivered", r.stack.delivered, 1)
	})
	r.run(t, sim.Millisecond)
}

// Pitfall 17: what process_backlog has taken over is not seen by the limit, and a packet
// for a queue that is not empty schedules nothing.
func TestPitfall17ProcessQueueIsInvisible(t *testing.T) {
	s := defaultSetup()
	s.kernel.NetdevMaxBacklog = 9
	r := newRig(s)
	dropped := r.connect(Links{})
	sd := r.sds[0]
	var lengths [][2]int // of both queues after each feed
	line := sd.Core().NewLine(24, "feed", func(*cpu.Core) {
		for range 11 {
			sd.NetifRx(nil, r.udp(0))
		}
		input, process := sd.Backlog()
		lengths = append(lengths, [2]int{input, process})
	})
	first := true
	r.stack.seen = func(*cpu.Core, *model.SKB) {
		if first { // an interrupt in the middle of process_backlog
			first = false
			line.Raise()
		}
	}
	r.at(10*sim.Microsecond, phaseDevices, line.Raise)
	r.run(t, sim.Millisecond)
	same(t, "lengths", lengths, [][2]int{{10, 0}, {10, 9}}) // the first has left process_queue
	same(t, "dropped", *dropped, 2)                         // the eleventh of each time
	same(t, "delivered", r.stack.delivered, 20)
	same(t, "schedules", sd.backlog.napi.Stats().Scheduled, 1)
	same(t, "state", sd.backlog.napi.state, 0)
	work, _ := pollsOf(s.log)
	same(t, "polls", runLengths(work), "20")
}

// cross sets up two cores: bursts at core 0 that RPS sends to core 1.
func cross(kernel Config) (setup, *rig) {
	s := defaultSetup()
	s.machine.Cores = 2
	s.kernel = kernel
	return s, newRig(s)
}

// Fact 18: received_rps counts interrupts, not packets: one for each burst, at the end of
// the pass, which raises NET_RX from hardirq context on the other core. v6.1 raises NET_RX on
// the sending core for it, v6.12 does not.
func TestFact18RPS(t *testing.T) {
	for name, kernel := range kernels() {
		s, r := cross(kernel)
		r.connect(Links{RPS: true})
		d := r.nic("eth0", nil, 0)
		d.napi.rps = rps.NewQueue(rps.Config{CPUs: 0b10})
		for i := range 20 {
			for range 63 { // one poll, one pass
				f := udpFrame(sim.Time(i+1) * 10 * sim.Millisecond)
				f.Hash = 77
				d.frame(f)
			}
		}
		r.run(t, 220*sim.Millisecond)
		same(t, name+": received_rps", r.sds[1].Stats().ReceivedRPS, 20)
		same(t, name+": processed there", r.sds[1].Stats().Processed, 20*63)
		same(t, name+": processed here", r.sds[0].Stats().Processed, 0)
		same(t, name+": raises there", raisesOf(s.log, 1), map[trace.Context]int{trace.Hardirq: 20})
		// The device's interrupt raises once; RPS once more in v6.1, from the softirq.
		here := map[trace.Context]int{trace.Hardirq: 20}
		if name == "v6.1" {
			here[trace.Softirq] = 20
		}
		same(t, name+": raises here", raisesOf(s.log, 0), here)
		same(t, name+": live skbs", r.skbs.Live(), 0)
	}
}

// firstIPI returns when core 1 takes its first interrupt for the backlog.
func firstIPI(log *trace.Log) sim.Time {
	for _, e := range log.Events() {
		if e.CPU == 1 && e.Point == trace.SoftirqRaise {
			return e.At
		}
	}
	return sim.Never
}

// Pitfall 18: interrupts for RPS wait for the end of net_rx_action. With (b) that is the
// end of the whole looping invocation: rounds of 3 frames until the budget is used up.
// With (a) each round is a net_rx_action of its own.
func TestPitfall18IPIsWait(t *testing.T) {
	for name, kernel := range kernels() {
		s, r := cross(kernel)
		r.connect(Links{RPS: true})
		d := r.nic("eth0", nil, 0)
		d.napi.rps = rps.NewQueue(rps.Config{CPUs: 0b10})
		d.batch, d.batches = 3, 30
		d.hash = 77
		d.arrive(10*sim.Millisecond, 3)
		r.run(t, 50*sim.Millisecond)
		polls := 0
		for _, e := range s.log.Events() {
			if e.Point == trace.NAPIPoll && e.S == "eth0" && e.At < firstIPI(s.log) {
				polls++
			}
		}
		// The IPI travels 1 us; a round takes longer, so at most the next poll is seen.
		want := map[string]int{"v6.1": 1, "v6.12": 31}[name]
		if polls != want {
			t.Errorf("%s: %d polls of eth0 before the other core is told, want %d", name, polls, want)
		}
		same(t, name+": delivered", r.stack.delivered, 93)
	}
}

// ... unless process_backlog runs, which sends them first of all.
func TestPitfall18ProcessBacklogSendsIPIs(t *testing.T) {
	s, r := cross(kernels()["v6.12"])
	r.connect(Links{RPS: true})
	d := r.nic("eth0", nil, 0)
	d.napi.rps = rps.NewQueue(rps.Config{CPUs: 0b11})
	d.batch, d.batches = 3, 30
	d.hash = 0xffffffff // to core 1
	local := udpFrame(10 * sim.Millisecond)
	local.Hash = 1 // to core 0: its backlog is polled in the same net_rx_action
	d.frame(local)
	d.arrive(10*sim.Millisecond, 3)
	r.run(t, 50*sim.Millisecond)
	polls, backlog := 0, 0
	for _, e := range s.log.Events() {
		if e.Point != trace.NAPIPoll || e.At >= firstIPI(s.log) {
			continue
		}
		if e.S == "eth0" {
			polls++
		} else if e.CPU == 0 {
			backlog++
		}
	}
	if polls != 1 {
		t.Errorf("%d polls of eth0 and %d of the backlog before the other core is told, want 1 and its backlog's", polls, backlog)
	}
	same(t, "delivered", r.stack.delivered, 94)
}

// Backlog threads: packets of other cores wake the thread there, without an interrupt
// for RPS and without NET_RX; those of the own core take the softirq.
func TestBacklogThreads(t *testing.T) {
	kernel := kernels()["v6.12"]
	kernel.BacklogThreads = true
	s, r := cross(kernel)
	r.connect(Links{RPS: true})
	r.emitter(rps.NewQueue(rps.Config{CPUs: 0b11}), 300, func(i int) uint32 { return []uint32{1, 1, 0xffffffff}[i%3] }, 10*sim.Millisecond)
	r.run(t, 50*sim.Millisecond)
	same(t, "received_rps", r.sds[1].Stats().ReceivedRPS, 0)
	same(t, "raises there", raisesOf(s.log, 1), map[trace.Context]int{})
	same(t, "processed there", r.sds[1].Stats().Processed, 100)
	same(t, "processed here", r.sds[0].Stats().Processed, 200)
	for _, e := range s.log.Events() {
		want := "swapper/0"
		if e.CPU == 1 {
			want = "backlog_napi/1"
		}
		if e.Point == trace.NAPIPoll && e.Comm != want {
			t.Errorf("cpu%d: a poll by %s, want %s", e.CPU, e.Comm, want)
		}
	}
	same(t, "live skbs", r.skbs.Live(), 0)
}

// In steady state a packet that crosses cores costs no allocation.
func TestBacklogWithoutAllocations(t *testing.T) {
	s := defaultSetup()
	s.log = nil
	s.machine.Cores = 2
	r := newRig(s)
	r.connect(Links{RPS: true, Socks: rps.NewSockFlows(16)})
	r.stack.counting = true
	d := r.nic("eth0", nil, 0)
	d.napi.rps = rps.NewQueue(rps.Config{CPUs: 0b10, FlowCount: 16})
	d.hash = 77
	for i := range 100 {
		d.arrive(sim.Time(i+1)*sim.Millisecond, 60)
	}
	d.polls = make([]int, 0, 1000)
	var before, after runtime.MemStats
	r.at(20*sim.Millisecond, phaseObservers, func() { runtime.ReadMemStats(&before) })
	r.at(99*sim.Millisecond, phaseObservers, func() { runtime.ReadMemStats(&after) })
	r.run(t, 110*sim.Millisecond)
	if n := after.Mallocs - before.Mallocs; n > 100 {
		t.Errorf("%d allocations for %d packets", n, 79*60)
	}
	same(t, "delivered there", r.sds[1].Stats().Processed, 6000)
}

// The core noted last is told first, as rps_ipi_list is a stack.
func TestIPIsLastNotedFirst(t *testing.T) {
	s := defaultSetup()
	s.machine.Cores = 4
	s.machine.Costs[model.StageIPI] = 100 * sim.Nanosecond
	r := newRig(s)
	r.connect(Links{RPS: true})
	d := r.nic("eth0", nil, 0)
	d.napi.rps = rps.NewQueue(rps.Config{CPUs: 0b1110})
	for _, hash := range []uint32{1, 1 << 31, 0xffffffff, 2} { // to cores 1, 2, 3 and 1
		f := udpFrame(10 * sim.Millisecond)
		f.Hash = hash
		d.frame(f)
	}
	r.run(t, 20*sim.Millisecond)
	var told []int
	for _, e := range s.log.Events() {
		if e.Point == trace.SoftirqRaise && e.CPU > 0 {
			told = append(told, int(e.CPU))
		}
	}
	same(t, "cores told", told, []int{3, 2, 1})
	same(t, "delivered", r.stack.delivered, 4)
}

// A NAPI thread sends the interrupts behind each poll since v6.4 (821eba962d95), and raises
// nothing for them; before, it raises NET_RX as anybody, which local_bh_enable runs.
func TestRPSFromNAPIThread(t *testing.T) {
	for name, kernel := range kernels() {
		s, r := cross(kernel)
		r.connect(Links{RPS: true})
		d := r.nic("eth0", nil, 0)
		d.napi.rps = rps.NewQueue(rps.Config{CPUs: 0b10})
		d.hash = 77
		if err := d.napi.SetThreaded(r.sds[0], Threaded); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			d.arrive(sim.Time(i+1)*10*sim.Millisecond, 20)
		}
		r.run(t, 70*sim.Millisecond)
		raises := map[string]int{"v6.1": 5, "v6.12": 0}[name]
		same(t, name+": raises of the thread", raisesOf(s.log, 0)[trace.Task], raises)
		same(t, name+": received_rps", r.sds[1].Stats().ReceivedRPS, 5)
		same(t, name+": delivered there", r.sds[1].Stats().Processed, 100)
	}
}
