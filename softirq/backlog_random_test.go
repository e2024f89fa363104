package softirq

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
	"napisim/softirq/rps"
)

// This file runs random backlogs and random steering.

// The limit of the backlog against a count of what waits: bursts from interrupts into one
// core's backlog whose input queue an oracle follows.
func TestBacklogLimitAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := defaultSetup()
		s.log = nil
		s.kernel.NetdevMaxBacklog = rapid.IntRange(0, 40).Draw(t, "limit")
		r := newRig(s)
		dropped := r.connect(Links{})
		sd := r.sds[0]
		sent, refused := 0, 0
		at := sim.Time(0)
		for range rapid.IntRange(1, 20).Draw(t, "bursts") {
			at += between(0, 50*sim.Microsecond).Draw(t, "wait")
			n := rapid.IntRange(1, 60).Draw(t, "n")
			line := sd.Core().NewLine(-1, "feed", func(*cpu.Core) {
				before, _ := sd.Backlog()
				for range n {
					sd.NetifRx(nil, r.udp(0))
				}
				sent += n
				refused += n - min(n, max(s.kernel.NetdevMaxBacklog+1-before, 0))
			})
			r.at(at, phaseDevices, line.Raise)
		}
		r.run(t, 100*sim.Millisecond)
		if *dropped != refused || r.stack.delivered != int64(sent-refused) || r.skbs.Live() != 0 {
			t.Fatalf("sent %d, dropped %d, want %d, delivered %d, live %d", sent, *dropped, refused, r.stack.delivered, r.skbs.Live())
		}
	})
}

// spread is a random machine whose packets go from core to core.
type spread struct {
	setup
	mask      uint64
	flowCount int
	bursts    []spreadBurst
	records   []spreadRecord
}

type spreadBurst struct {
	at   sim.Time
	hash uint32
	n    int
}

type spreadRecord struct {
	at   sim.Time
	hash uint32
	cpu  int
}

func drawSpread(t *rapid.T) (sp spread) {
	sp.setup = defaultSetup()
	sp.log = nil
	sp.machine.Cores = rapid.IntRange(2, 4).Draw(t, "cores")
	sp.machine.IPILatency = between(0, 2*sim.Microsecond).Draw(t, "ipi")
	sp.machine.Costs[model.StageBacklogEnqueue] = between(0, sim.Microsecond).Draw(t, "enqueue")
	sp.machine.Costs[model.StageBacklogDequeue] = between(0, sim.Microsecond).Draw(t, "dequeue")
	sp.machine.Costs[model.StageRPS] = between(0, sim.Microsecond).Draw(t, "rps")
	sp.machine.Costs[model.StageIPI] = between(0, sim.Microsecond).Draw(t, "send")
	sp.kernel.NAPISchedule = rapid.SampledFrom(NAPIScheduleNames()).Draw(t, "napi_schedule")
	sp.kernel.Ksoftirqd = rapid.SampledFrom(KsoftirqdNames()).Draw(t, "ksoftirqd")
	sp.kernel.NetdevMaxBacklog = rapid.SampledFrom([]int{1000, 5}).Draw(t, "limit")
	sp.kernel.DevWeight = rapid.SampledFrom([]int{64, 3}).Draw(t, "weight")
	sp.kernel.BacklogThreads = rapid.Bool().Draw(t, "threads")
	sp.mask = rapid.Uint64Range(0, 1<<sp.machine.Cores-1).Draw(t, "mask")
	sp.flowCount = rapid.SampledFrom([]int{0, 16}).Draw(t, "flows")
	at := sim.Time(0)
	for range rapid.IntRange(1, 25).Draw(t, "bursts") {
		at += between(0, 40*sim.Microsecond).Draw(t, "wait")
		sp.bursts = append(sp.bursts, spreadBurst{at + 1, hashOf(t), rapid.IntRange(1, 30).Draw(t, "n")})
	}
	for hash := range uint32(5) { // each flow has a reader from the beginning
		sp.records = append(sp.records, spreadRecord{0, flowHash(hash), rapid.IntRange(0, sp.machine.Cores-1).Draw(t, "reader")})
	}
	for range rapid.IntRange(0, 20).Draw(t, "moves") {
		sp.records = append(sp.records, spreadRecord{between(1, at+1).Draw(t, "move"), hashOf(t), rapid.IntRange(0, sp.machine.Cores-1).Draw(t, "reader")})
	}
	return sp
}

func flowHash(i uint32) uint32 { return i * (1<<30 + 1) }
func hashOf(t *rapid.T) uint32 { return flowHash(rapid.Uint32Range(0, 4).Draw(t, "flow")) }
func (sp *spread) run(t *rapid.T, mode sim.Mode) string {
	s := sp.setup
	s.mode = mode
	r := newRig(s)
	socks := rps.NewSockFlows(16)
	dropped := r.connect(Links{RPS: true, Socks: socks})
	last := map[uint32]uint64{}
	r.stack.seen = func(_ *cpu.Core, s *model.SKB) {
		if s.Frame.Seq <= last[s.Frame.Hash] {
			t.Fatalf("flow %x: packet %d after %d", s.Frame.Hash, s.Frame.Seq, last[s.Frame.Hash])
		}
		last[s.Frame.Hash] = s.Frame.Seq
	}
	d := r.nic("eth0", nil, 0)
	d.napi.rps = rps.NewQueue(rps.Config{CPUs: sp.mask, FlowCount: sp.flowCount})
	seq := uint64(0)
	for _, b := range sp.bursts {
		for range b.n {
			seq++
			f := udpFrame(b.at)
			f.Hash, f.Seq = b.hash, seq
			d.frame(f)
		}
	}
	for _, rec := range sp.records {
		r.at(rec.at, 0, func() { socks.Record(rec.hash, rec.cpu) })
	}
	r.run(t, quiet)
	if r.stack.delivered+int64(*dropped) != int64(seq) || r.skbs.Live() != 0 {
		t.Fatalf("%d sent, %d delivered, %d dropped, %d live", seq, r.stack.delivered, *dropped, r.skbs.Live())
	}
	for _, sd := range r.sds {
		if sd.backlog.napi.state != 0 || sd.backlog.head != sd.backlog.tail || sd.rpsIPIWaiting() || !sd.pollList.empty() {
			t.Fatalf("cpu%d is not at rest", sd.core.ID)
		}
	}
	return r.books() + fmt.Sprintf("dropped %d, %x", *dropped, r.m.Fingerprint.Sum())
}

// Whatever steers packets, each flow keeps its order, nothing is lost, and all modes of
// the engine agree.
func TestSteeringKeepsOrderAndBooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sp := drawSpread(t)
		want := sp.run(t, sim.Lazy)
		for _, mode := range []sim.Mode{sim.Eager, sim.Slow} {
			if diff := cmp.Diff(want, sp.run(t, mode)); diff != "" {
				t.Fatalf("mode %d differs from the lazy run\n%s", mode, diff)
			}
		}
	})
}
