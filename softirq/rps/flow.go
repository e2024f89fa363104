package rps

import (
	"fmt"
	"math/bits"
)

// NoCPU stands for RPS_NO_CPU: nobody has been asked yet, or nothing steers the packet.
const NoCPU = -1

// SockFlows is struct rps_sock_flow_table, one for the whole host: on which CPU the
// application last read each flow. Flows share an entry when the low bits of their
// hashes agree; the rest of the hash, which the entry keeps, tells them apart.
type SockFlows struct {
	entries []sockFlow
}

type sockFlow struct {
	hash uint32
	cpu  int
}

// NewSockFlows returns a table of the given number of entries, rounded up to a power of
// two as net.core.rps_sock_flow_entries is; nil for none, which turns RFS off.
func NewSockFlows(entries int) *SockFlows {
	if entries <= 0 {
		return nil
	}
	t := &SockFlows{entries: make([]sockFlow, roundUp(entries))}
	for i := range t.entries {
		t.entries[i].cpu = NoCPU
	}
	return t
}

func roundUp(n int) int { return 1 << bits.Len(uint(n-1)) }

// Record is rps_record_sock_flow (all versions): the application reads the flow on cpu. A flow
// without a hash is not recorded.
func (t *SockFlows) Record(hash uint32, cpu int) {
	if hash != 0 {
		t.entries[int(hash)&(len(t.entries)-1)] = sockFlow{hash, cpu}
	}
}

// lookup returns the CPU that reads the flow, NoCPU if none has or the entry
// belongs to another flow by now.
func (t *SockFlows) lookup(hash uint32) int {
	e := t.entries[int(hash)&(len(t.entries)-1)]
	if e.hash != hash {
		return NoCPU
	}
	return e.cpu
}

// Flow is struct rps_dev_flow: where the packets of one flow of a receive queue go, and
// the tail of that CPU's backlog when the last of them was put there.
type Flow struct {
	cpu      int
	lastTail uint32
}

// Enqueued notes the tail of the backlog after a packet of the flow joined it.
func (f *Flow) Enqueued(tail uint32) { f.lastTail = tail }

// Queue is what one receive queue knows of steering.
type Queue struct {
	cpus  Map
	flows []Flow
}

// Config describes the steering of a receive queue.
type Config struct {
	// CPUs is the mask rps_cpus; 0 turns RPS off.
	CPUs uint64
	// FlowCount is rps_flow_cnt, rounded up to a power of two; 0 turns RFS off.
	FlowCount int
}

// Validate returns every fault of the configuration on a machine with that many CPUs.
func (c *Config) Validate(cpus int) []error {
	var faults []error
	if cpus < 64 && c.CPUs>>cpus != 0 {
		faults = append(faults, fmt.Errorf("rps_cpus: %x names CPUs from %d on", c.CPUs, cpus))
	}
	if c.FlowCount < 0 {
		faults = append(faults, fmt.Errorf("rps_flow_cnt: %d is negative", c.FlowCount))
	}
	return faults
}

// NewQueue returns the steering of a receive queue, nil if there is none.
func NewQueue(cfg Config) *Queue {
	q := &Queue{cpus: NewMap(cfg.CPUs)}
	if cfg.FlowCount > 0 {
		q.flows = make([]Flow, roundUp(cfg.FlowCount))
		for i := range q.flows {
			q.flows[i].cpu = NoCPU
		}
	} else if q.cpus.Empty() {
		return nil
	}
	return q
}

// CPU is get_rps_cpu with set_rps_cpu (all versions): the CPU that a packet with this hash goes
// to, NoCPU where it stays, and for RFS the flow that has to learn of its place in the backlog.
// socks may be nil. head returns how many packets have left the backlog of a CPU so far: a flow
// follows its reader to another CPU only when the last packet sent to the old one has left that
// one's queue, so that packets are not reordered.
func (q *Queue) CPU(hash uint32, socks *SockFlows, head func(cpu int) uint32) (cpu int, flow *Flow) {
	if hash == 0 {
		return NoCPU, nil
	}
	if q.flows != nil && socks != nil {
		if next := socks.lookup(hash); next != NoCPU {
			f := &q.flows[int(hash)&(len(q.flows)-1)]
			if f.cpu != next && (f.cpu == NoCPU || int32(head(f.cpu)-f.lastTail) >= 0) {
				*f = Flow{cpu: next, lastTail: head(next)}
			}
			return f.cpu, f
		}
	}
	if q.cpus.Empty() {
		return NoCPU, nil
	}
	return q.cpus.CPU(hash), nil
}
