package softirq

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
	"napisim/softirq/gro"
)

func TestConfig(t *testing.T) {
	c := DefaultConfig()
	if faults := c.Validate(); faults != nil {
		t.Errorf("the default has faults: %v", faults)
	}
	bad := Config{
		NAPISchedule: "a", NAPISchedulePrep: "d", NAPIComplete: "e", NAPIThreaded: "f", BusyPoll: "h", Ksoftirqd: "b", GRONormal: "c", NetifRx: "g",
		NetdevBudget: -1, NetdevBudgetUsecs: -1,
	}
	var got []string
	for _, err := range bad.Validate() {
		got = append(got, err.Error())
	}
	same(t, "faults", strings.Join(got, "\n"), `napi_schedule: unknown behaviour "a"
napi_schedule_prep: unknown behaviour "d"
napi_complete: unknown behaviour "e"
napi_threaded: unknown behaviour "f"
busy_poll: unknown behaviour "h"
ksoftirqd: unknown behaviour "b"
gro_normal: unknown behaviour "c"
netif_rx: unknown behaviour "g"
net.core.netdev_budget: -1 is negative
net.core.netdev_budget_usecs: -1ps is negative
net.core.gro_normal_batch: 0 is below 1
net.core.dev_weight: 0 is below 1
net.core.dev_weight_rx_bias: 0 is below 1`)
	for _, all := range [][]string{NAPIScheduleNames(), NAPISchedulePrepNames(), NAPICompleteNames(), NAPIThreadedNames(), BusyPollNames(), KsoftirqdNames(), GRONormalNames(), NetifRxNames()} {
		if len(all) == 0 || slices.Contains(all, "") {
			t.Errorf("names %q", all)
		}
	}
}

// The poll lists against plain slices.
func TestListsOfNAPIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lists [2]napiList
		var want [2][]*NAPI
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			l := rapid.IntRange(0, 1).Draw(t, "list")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				n := &NAPI{ID: i}
				lists[l].pushBack(n)
				want[l] = append(want[l], n)
			case 2:
				lists[l].splice(&lists[1-l])
				want[l], want[1-l] = append(want[l], want[1-l]...), nil
			case 3:
				if len(want[l]) == 0 {
					break
				}
				k := rapid.IntRange(0, len(want[l])-1).Draw(t, "element")
				n := want[l][k]
				if k == 0 && rapid.Bool().Draw(t, "pop") {
					if got := lists[l].popFront(); got != n {
						t.Fatalf("popped %d, want %d", got.ID, n.ID)
					}
				} else {
					lists[l].remove(n)
				}
				want[l] = slices.Delete(want[l], k, k+1)
				if n.queued || n.next != nil {
					t.Fatalf("%d is still linked", n.ID)
				}
			}
			for l := range lists {
				var got []int
				for n := lists[l].head; n != nil; n = n.next {
					got = append(got, n.ID)
				}
				var ids []int
				for _, n := range want[l] {
					ids = append(ids, n.ID)
				}
				if diff := cmp.Diff(ids, got); diff != "" || lists[l].empty() != (len(ids) == 0) {
					t.Fatalf("list %d: %s", l, diff)
				}
			}
		}
	})
}

// once runs a machine whose one NAPI is scheduled by an interrupt at 10 us and has
// the given poll function.
func once(t *testing.T, s setup, gc *gro.Config, poll func(r *rig, n *NAPI, budget int) int) *rig {
	t.Helper()
	r := newRig(s)
	var n *NAPI
	n = NewNAPI(NAPIConfig{Name: "eth0", ID: 1, GRO: gc, Poll: func(budget int) int { return poll(r, n, budget) }})
	line := r.m.Cores[0].NewLine(24, "eth0", func(*cpu.Core) { r.sds[0].NAPISchedule(n) })
	r.at(10*sim.Microsecond, phaseDevices, line.Raise)
	r.run(t, sim.Millisecond)
	return r
}

// packet is an skb of that many segments of a flow that GRO does not keep.
func (r *rig) packet(segs int) *model.SKB {
	s := r.skbs.Get()
	s.Frame = model.Frame{Proto: model.UDP, Payload: 1000, Len: model.UDPFrameLen(1000)}
	s.Segs, s.Payload, s.LastSeg, s.Truesize, s.Pages = segs, 1000*segs, 1000, 2304*segs, segs
	return s
}

// A packet that GRO does not keep counts 1 towards gro_normal_batch, even if the
// hardware has merged it: napi_skb_finish passes 1, only napi_gro_complete the
// number of segments (since v5.11).
func TestPacketsCountOneWhateverTheyHold(t *testing.T) {
	for _, behaviour := range []string{"skb_list", "skb_list_segments"} {
		for _, frags := range []bool{false, true} {
			s := defaultSetup()
			s.kernel.GRONormal = behaviour
			r := once(t, s, nil, func(r *rig, n *NAPI, _ int) int {
				for range 9 {
					if p := r.packet(5); frags {
						n.GROFrags(p)
					} else {
						n.GROReceive(p)
					}
				}
				n.CompleteDone(9)
				return 9
			})
			same(t, behaviour+": lists of 8 and 1", r.stack.lists, 2)
			same(t, "processed", r.sds[0].Stats().Processed, 9)
		}
	}
}

// After a full poll GRO is flushed first and the list goes up second (v5.4.18 and
// later), so that a superframe does not wait for the next poll: 62 packets are 7 lists of
// 8 and 6 more that wait; with the superframe of the other 2 segments they are an eighth
// list, of 7, below the batch.
func TestFullPollFlushesGROBeforeTheList(t *testing.T) {
	p := play(t, `
		kernel gro_normal=skb_list
		machine hz=250
		nic eth0 gro
		at 10us frames eth0 62
		at 10us tcp eth0 1 2 1448
		run 1ms`)
	pass, rest := p.cut("softirq_exit: NET_RX")
	same(t, "superframes in the first pass", count(pass, "TCP segments 2"), 1)
	same(t, "skbs after it", count(rest, "netif_receive_skb"), 0)
	same(t, "lists", p.r.stack.lists, 8)
	same(t, "segments of TCP skbs", p.stats.GROSegments.Sum(), 2)
}

// Packets are held across polls only within a jiffy: with HZ=1000 and a tick between
// two full polls the superframe goes up after the second one, aged by then, and no
// sooner.
func TestHeldPacketsAge(t *testing.T) {
	p := play(t, `
		kernel gro_normal=skb_list_segments
		machine hz=1000 tick=900us
		cost rx_descriptor=10us
		nic eth0 gro
		task hog 10ms
		at 10us tcp eth0 1 2 1448
		at 10us frames eth0 300
		run 4ms`)
	before, _ := p.cut("TCP segments 2")
	// Polls end 0.66, 1.31, ... ms after 11 us; the first tick behind the hold is at 0.9 ms.
	same(t, "full polls before the flush", count(before, "napi_poll: eth0 work 64"), 2)
}

// A model state that cannot be is a fault that names the device.
func TestImpossibleStates(t *testing.T) {
	for _, c := range []struct {
		want string
		poll func(r *rig, n *NAPI, budget int) int
	}{
		{"eth0 polled 65 frames with weight 64", func(_ *rig, _ *NAPI, budget int) int { return budget + 1 }},
		{"eth0 completed without being scheduled", func(_ *rig, n *NAPI, _ int) int {
			n.CompleteDone(0)
			n.CompleteDone(0)
			return 0
		}},
		{"eth0 was scheduled again by its own poll", func(r *rig, n *NAPI, budget int) int {
			n.CompleteDone(budget)
			r.sds[0].NAPISchedule(n)
			return budget
		}},
		{"eth0 is enabled already", func(r *rig, n *NAPI, _ int) int {
			n.CompleteDone(0)
			n.Enable(r.m.Cores[0])
			return 0
		}},
	} {
		func() {
			defer func() {
				fault, ok := recover().(*sim.Fault)
				if !ok || !strings.Contains(fault.Error(), c.want) {
					t.Errorf("got %v, want %q", fault, c.want)
				}
			}()
			once(t, defaultSetup(), nil, c.poll)
		}()
	}
}
