package softirq

import (
	"fmt"
	"testing"

	"napisim/model/cpu"
	"napisim/sim"
	"napisim/softirq/rps"
)

// The flow limit counts from half a backlog on: of 1000 packets of one flow those that
// find fewer than 500 are not noted, of the others 64 are taken.
func TestFlowLimitOfBacklog(t *testing.T) {
	s := defaultSetup()
	s.kernel.FlowLimitCPUs = 1
	r := newRig(s)
	dropped := r.connect(Links{})
	r.emitter(nil, 1000, func(int) uint32 { return 9 }, 10*sim.Millisecond)
	r.run(t, 50*sim.Millisecond)
	same(t, "dropped", *dropped, 1000-500-64)
	same(t, "flow_limit_count", r.sds[0].Stats().FlowLimitCount, int64(*dropped))
	same(t, "softnet dropped", r.sds[0].Stats().Dropped, int64(*dropped))
}

// The flow limit is that of the core which receives: of 300 packets for a core that is busy
// 100 fill its backlog of 200 to the half, and 64 more are half of the last 128. Without a
// limit 201 find room.
func TestFlowLimitOfTheReceivingCore(t *testing.T) {
	for cpus, want := range map[uint64][]int64{0b01: {164, 136, 0}, 0b10: {201, 0, 0}} {
		s := defaultSetup()
		s.machine.Cores = 2
		s.kernel.FlowLimitCPUs, s.kernel.NetdevMaxBacklog = cpus, 200
		r := newRig(s)
		r.connect(Links{RPS: true})
		d := r.nic("eth0", nil, 0)
		d.napi.rps = rps.NewQueue(rps.Config{CPUs: 0b10})
		d.hash = 77
		busy := r.m.Cores[1]
		r.m.NewTask(busy, "busy", cpu.TaskConfig{}, func(*cpu.Task) {
			busy.BHDisable()
			work(busy, 10*sim.Millisecond)
			busy.BHEnable()
		}).WakeFromDevice()
		d.arrive(100*sim.Microsecond, 300)
		r.run(t, 20*sim.Millisecond)
		got := []int64{r.stack.delivered, r.sds[0].Stats().FlowLimitCount, r.sds[1].Stats().FlowLimitCount}
		same(t, fmt.Sprintf("mask %b: delivered, refused by core 0 and 1", cpus), got, want)
		same(t, "softnet dropped", r.sds[1].Stats().Dropped, 300-want[0])
	}
}
