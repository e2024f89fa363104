package rps

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// CPU = map[(hash * len) >> 32], over the CPUs of the mask in ascending order.
func TestMap(t *testing.T) {
	m := NewMap(0b10110)
	for _, tt := range []struct {
		hash uint32
		want int
	}{{1, 1}, {1 << 30, 1}, {0x55555555, 1}, {0x55555556, 2}, {0xaaaaaaaa, 2}, {0xaaaaaaab, 4}, {0xffffffff, 4}} {
		if got := m.CPU(tt.hash); got != tt.want {
			t.Errorf("hash %x goes to CPU %d, want %d", tt.hash, got, tt.want)
		}
	}
	if m := NewMap(0); !m.Empty() {
		t.Error("the empty mask has CPUs")
	}
}

// A packet without a hash is not steered, nor one of a queue without a map.
func TestHashZero(t *testing.T) {
	none := func(int) uint32 { return 0 }
	q := NewQueue(Config{CPUs: 2})
	if cpu, f := q.CPU(0, nil, none); cpu != NoCPU || f != nil {
		t.Errorf("hash 0 goes to CPU %d", cpu)
	}
	if cpu, _ := q.CPU(7, nil, none); cpu != 1 {
		t.Errorf("hash 7 goes to CPU %d, want 1", cpu)
	}
	if NewQueue(Config{}) != nil {
		t.Error("a queue without a mask steers")
	}
	q = NewQueue(Config{FlowCount: 100})
	if cpu, _ := q.CPU(7, NewSockFlows(100), none); cpu != NoCPU || len(q.flows) != 128 {
		t.Errorf("a flow that nobody reads goes to CPU %d; %d flows", cpu, len(q.flows))
	}
}

// An entry of the socket table belongs to the flow that was recorded last: another one
// with the same low bits falls back to the map.
func TestSockFlowsTellFlowsApart(t *testing.T) {
	socks := NewSockFlows(16)
	q := NewQueue(Config{CPUs: 1 << 3, FlowCount: 16})
	none := func(int) uint32 { return 0 }
	socks.Record(0x15, 1)
	socks.Record(0, 2)
	for hash, want := range map[uint32]int{0x15: 1, 0x25: 3, 0x16: 3} {
		if cpu, _ := q.CPU(hash, socks, none); cpu != want {
			t.Errorf("hash %x goes to CPU %d, want %d", hash, cpu, want)
		}
	}
}

func TestConfigNamesCPUs(t *testing.T) {
	bad := Config{CPUs: 0b101, FlowCount: -1}
	if got := bad.Validate(2); len(got) != 2 {
		t.Errorf("faults %v", got)
	}
	good := Config{CPUs: 1 << 63}
	if got := good.Validate(64); len(got) != 0 {
		t.Errorf("faults %v", got)
	}
}

// RFS against queues of packets that are looked through: a flow follows its reader
// exactly when the old CPU's queue holds none of its packets, and so is never
// reordered.
func TestPitfallFlowFollowsReaderInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const cpus, flows = 3, 4
		socks, q := NewSockFlows(8), NewQueue(Config{FlowCount: 8})
		var queues [cpus][]int // flows of the packets that wait
		var heads, tails [cpus]uint32
		start := rapid.Uint32().Draw(t, "start") // of the counters, which wrap
		for i := range heads {
			heads[i], tails[i] = start, start
		}
		at, reads := [flows]int{}, [flows]int{}
		for f := range flows {
			at[f] = NoCPU
			reads[f] = rapid.IntRange(0, cpus-1).Draw(t, "reader")
			socks.Record(uint32(8+f), reads[f])
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			f := rapid.IntRange(0, flows-1).Draw(t, "flow")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				reads[f] = rapid.IntRange(0, cpus-1).Draw(t, "reader")
				socks.Record(uint32(8+f), reads[f])
			case 1:
				if c := rapid.IntRange(0, cpus-1).Draw(t, "cpu"); len(queues[c]) > 0 {
					queues[c] = queues[c][1:]
					heads[c]++
				}
			default:
				if at[f] == NoCPU || !slices.Contains(queues[at[f]], f) {
					at[f] = reads[f]
				}
				cpu, flow := q.CPU(uint32(8+f), socks, func(c int) uint32 { return heads[c] })
				if cpu != at[f] {
					t.Fatalf("flow %d goes to CPU %d, want %d: %v", f, cpu, at[f], queues)
				}
				queues[cpu] = append(queues[cpu], f)
				tails[cpu]++
				flow.Enqueued(tails[cpu])
			}
		}
	})
}

// The flow limit against the last 128 packets in a slice.
func TestFlowLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewFlowLimit(5) // 8 buckets
		// A history that is not full yet counts as packets of bucket 0 that are never taken
		// off twice: use the others.
		var last []int
		for range rapid.IntRange(1, 600).Draw(t, "packets") {
			hash := rapid.SampledFrom([]uint32{1, 1, 1, 9, 2, 3, 15}).Draw(t, "hash")
			last = append(last, int(hash&7))
			last = last[max(0, len(last)-128):]
			n := 0
			for _, b := range last {
				if b == int(hash&7) {
					n++
				}
			}
			if got := l.Refuse(hash); got != (n > 64) {
				t.Fatalf("refused %v, the flow has %d of the last %d", got, n, len(last))
			}
		}
	})
}

func TestRoundUp(t *testing.T) {
	for n := 1; n < 300; n++ {
		if got := roundUp(n); got < n || got >= 2*n || bits.OnesCount(uint(got)) != 1 {
			t.Errorf("%d is rounded up to %d", n, got)
		}
	}
}
