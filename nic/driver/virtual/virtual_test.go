package virtual

import (
	"fmt"
	"strings"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/nic/driver"
	"napisim/sim"
	"napisim/sim/trace"
	"napisim/softirq"
	"napisim/softirq/gro"
)

// rig is a core whose one task sends; the stack frees what it gets.
type rig struct {
	m      *cpu.Machine
	host   driver.Host
	skbs   model.SKBPool
	losses model.Losses
	log    *trace.Log
	got    []int // lengths, in order
}

func run(t *testing.T, body func(r *rig, c *cpu.Core)) *rig {
	t.Helper()
	r := &rig{log: trace.NewLog(0, sim.Never, 100_000)}
	eng := sim.NewEngine(sim.Lazy)
	defer eng.Close()
	var costs model.Costs
	for i := range costs {
		costs[i] = sim.Nanosecond
	}
	r.m = cpu.NewMachine(eng, cpu.Config{Cores: 1, HZ: 250, TickPhase: sim.Millisecond, Costs: costs})
	r.m.Trace = r.log
	sd := softirq.NewSoftnet(r.m.Cores[0], softirq.DefaultConfig(), r, &r.skbs)
	r.host = driver.Host{Machine: r.m, Softnets: []*softirq.Softnet{sd}, SKBs: &r.skbs, Losses: &r.losses}
	r.m.NewTask(r.m.Cores[0], "sender", cpu.TaskConfig{}, func(task *cpu.Task) { body(r, task.Core()) }).WakeFromDevice()
	eng.Schedule(500*sim.Microsecond, 255, stop{eng}, 0)
	eng.Run()
	if r.skbs.Live() != 0 {
		t.Errorf("%d skbs are live", r.skbs.Live())
	}
	return r
}

type stop struct{ eng *sim.Engine }

func (s stop) Fire(uint64) { s.eng.Stop() }

func (r *rig) ReceiveSKB(_ *cpu.Core, s *model.SKB) {
	r.got = append(r.got, int(s.Frame.Len))
	r.skbs.Put(s)
}

func (r *rig) ReceiveList(c *cpu.Core, list *model.SKBList) {
	for s := list.PopFront(); s != nil; s = list.PopFront() {
		r.ReceiveSKB(c, s)
	}
}

// polls returns the work of all polls.
func (r *rig) polls() string {
	var all []string
	for _, e := range r.log.Events() {
		if e.Point == trace.NAPIPoll {
			all = append(all, fmt.Sprint(e.B))
		}
	}
	return strings.Join(all, " ")
}

func frame(length int32) *model.Frame {
	return &model.Frame{Len: length, Payload: length - 42, TTL: 64}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Data areas are powers of two that hold headroom, frame and shared info: 64 + 60 + 320
// fit 512, 64 + 1514 + 320 fit 2048, and each has a descriptor of 256.
func TestTruesize(t *testing.T) {
	for length, want := range map[int]int{60: 768, 128: 768, 129: 1280, 1514: 2304, 1664: 2304, 1665: 4352} {
		same(t, fmt.Sprint(length), truesize(length), want)
	}
}

func TestTunConfig(t *testing.T) {
	for _, tt := range []struct {
		cfg  TunConfig
		want string
	}{
		{TunConfig{Write: "rx_batched", NAPI: true, RXFrames: 64}, "[]"},
		{TunConfig{Write: "netif_rx_ni"}, "[]"},
		{TunConfig{Write: "netif_rx", RXFrames: 65}, `[tun_write: unknown behaviour "netif_rx" rx-frames: 65 is not between 0 and 64]`},
		{TunConfig{Write: "frags_owned", NAPI: true, NAPIFrags: true}, "[]"},
		{TunConfig{Write: "rx_batched", NAPI: true, NAPIFrags: true}, "[tun_write: rx_batched does not know IFF_NAPI_FRAGS]"},
		{TunConfig{Write: "frags_owned", NAPIFrags: true}, "[IFF_NAPI_FRAGS: needs IFF_NAPI]"},
		{TunConfig{Write: "netif_receive_skb", NAPI: true}, "[tun_write: netif_receive_skb knows neither IFF_NAPI nor rx-frames]"},
	} {
		same(t, "faults", fmt.Sprint(tt.cfg.Validate()), tt.want)
	}
	same(t, "names", strings.Join(TunWriteNames(), " "), "netif_rx_ni netif_receive_skb rx_batched frags_owned")
}

// tun_rx_batched: frames wait while more follow, but rx-frames of them and the next go
// up together; without rx-frames, and for a single frame, nothing waits.
func TestRXFrames(t *testing.T) {
	for _, tt := range []struct {
		frames int
		more   []bool
		want   string // how many are up after each write
	}{
		{0, []bool{true, true, false}, "1 2 3"},
		{4, []bool{true, true, false, false}, "0 0 3 4"},
		{2, []bool{true, true, true, true, false}, "0 0 3 3 5"},
		{1, []bool{true, true, false}, "0 2 3"},
	} {
		var up []string
		run(t, func(r *rig, c *cpu.Core) {
			d := NewTun(TunConfig{Name: "tap0", Write: "rx_batched", RXFrames: tt.frames}, r.host)
			for _, more := range tt.more {
				d.Write(c, frame(60), more)
				c.Look()
				up = append(up, fmt.Sprint(len(r.got)))
			}
		})
		same(t, fmt.Sprintf("rx-frames %d", tt.frames), strings.Join(up, " "), tt.want)
	}
}

// IFF_NAPI: a writer that says that more follow schedules the NAPI only when more than
// 64 frames wait; then 64 are one full poll and the last is another.
func TestIFFNAPI(t *testing.T) {
	r := run(t, func(r *rig, c *cpu.Core) {
		full := gro.DefaultConfig()
		d := NewTun(TunConfig{Name: "tap0", Write: "rx_batched", NAPI: true, GRO: &full}, r.host)
		for range 65 {
			d.Write(c, frame(60), true)
		}
		d.Write(c, frame(60), true)
		d.Write(c, frame(100), false)
		same(t, "frames", d.Stats(), TunStats{Frames: 67, Bytes: 66*60 + 100})
	})
	same(t, "polls", r.polls(), "64 1 2")
	same(t, "received", len(r.got), 67)
}

// IFF_NAPI_FRAGS since v6.4: each frame is up when its write returns, without a poll.
func TestIFFNAPIFrags(t *testing.T) {
	r := run(t, func(r *rig, c *cpu.Core) {
		full := gro.DefaultConfig()
		d := NewTun(TunConfig{Name: "tap0", Write: "frags_owned", NAPI: true, NAPIFrags: true, GRO: &full}, r.host)
		for i := range 3 {
			d.Write(c, frame(60), true)
			c.Look()
			same(t, "up", len(r.got), i+1)
		}
	})
	same(t, "polls", r.polls(), "")
}

// A burst into a veth pair with a NAPI: the ring holds 256, the rest is dropped, and one
// notification stands for all; exactly four full polls are followed by an empty one.
func TestVethRing(t *testing.T) {
	r := run(t, func(r *rig, c *cpu.Core) {
		full := gro.DefaultConfig()
		d := NewVeth(VethConfig{Name: "vb", GRO: &full}, r.host)
		c.BHDisable()
		for range 300 {
			d.Xmit(c, frame(60))
		}
		c.BHEnable()
		c.BHDisable()
		d.Xmit(c, frame(60)) // notifications are on again
		c.BHEnable()
		same(t, "frames", d.Stats(), VethStats{Frames: 301, Bytes: 301 * 60, Full: 44})
	})
	same(t, "polls", r.polls(), "64 64 64 64 0 1")
	same(t, "received", len(r.got), 257)
	same(t, "lost", r.losses[model.DropFullRing], 44)
}

// The pair's NAPI is used with GRO on at the receiver and TSO off at the sender.
func TestVethBacklog(t *testing.T) {
	full := gro.DefaultConfig()
	for _, tt := range []struct {
		cfg  VethConfig
		napi bool
	}{
		{VethConfig{}, false},
		{VethConfig{SenderTSO: true}, false},
		{VethConfig{GRO: &full, SenderTSO: true}, false},
		{VethConfig{GRO: &full}, true},
	} {
		tt.cfg.Name = "vb"
		r := run(t, func(r *rig, c *cpu.Core) {
			d := NewVeth(tt.cfg, r.host)
			c.BHDisable()
			for range 3 {
				d.Xmit(c, frame(60))
			}
			c.BHEnable()
		})
		same(t, "polls", r.polls(), "3")
		for _, e := range r.log.Events() {
			if e.Point == trace.NAPIPoll {
				same(t, "device's own NAPI", e.S == "vb", tt.napi)
			}
		}
	}
}

// An skb of four segments goes over a pair as it is where the sending end has TSO on, by
// the backlog. Otherwise its segments go by the NAPI of the receiving end, which the first
// one wakes, and GRO puts them together again.
func TestVethSKB(t *testing.T) {
	full := gro.DefaultConfig()
	for _, tso := range []bool{true, false} {
		r := run(t, func(r *rig, c *cpu.Core) {
			d := NewVeth(VethConfig{Name: "vb", Peer: "va", GRO: &full, SenderTSO: tso}, r.host)
			p := Packet{MSS: 1448, Truesize: 1280 + 3*1448 + 100}
			p.Frame = model.Frame{Proto: model.TCP, Flags: model.ACK | model.PSH, Payload: 3*1448 + 100, TTL: 64}
			p.Len = 66 + p.Payload
			c.BHDisable()
			d.XmitSKB(c, &p)
			c.BHEnable()
			want := VethStats{Frames: 4, Bytes: 4*66 + 3*1448 + 100}
			if tso {
				want = VethStats{Frames: 1, Bytes: 66 + 3*1448 + 100}
			}
			same(t, "sent", d.Stats(), want)
		})
		polls, sent, raised := "4", "1514 1514 1514 166", 0
		if tso {
			polls, sent = "1", "4510"
		}
		same(t, "polls", r.polls(), polls)
		same(t, "received", len(r.got), 1)
		var lengths []string
		for _, e := range r.log.Events() {
			switch e.Point {
			case trace.NetDevXmit:
				lengths = append(lengths, fmt.Sprint(e.B))
			case trace.SoftirqRaise:
				raised++
			}
		}
		same(t, "net_dev_xmit", strings.Join(lengths, " "), sent)
		same(t, "raises", raised, 1)
	}
}
