package trace

import (
	"fmt"

	"napisim/sim"
)

// Point is a tracepoint. The comment of each names the arguments of its Event.
type Point uint8

// The points, with the kernel's names. PTR arguments are numbers that identify an
// object; the kernel prints hashed pointers there, of which no more can be said.
const (
	// IRQHandlerEntry is irq_handler_entry: A irq, S name of the handler.
	IRQHandlerEntry Point = iota
	// IRQHandlerExit is irq_handler_exit: A irq, B 1 if handled.
	IRQHandlerExit
	// SoftirqRaise is softirq_raise: A vector.
	SoftirqRaise
	// SoftirqEntry is softirq_entry: A vector.
	SoftirqEntry
	// SoftirqExit is softirq_exit: A vector.
	SoftirqExit
	// NAPIPoll is napi_poll: A napi, B work, C budget, S device, empty for a backlog.
	NAPIPoll
	// NetifReceiveSKB is netif_receive_skb: A skb, B len, S device.
	NetifReceiveSKB
	// NetifRx is netif_rx: A skb, B len, S device.
	NetifRx
	// NetDevQueue is net_dev_queue: A skb, B len, S device.
	NetDevQueue
	// NetDevXmit is net_dev_xmit: A skb, B len, C return code, S device.
	NetDevXmit
	// NAPIGROReceiveEntry is napi_gro_receive_entry: A skb, B len, C hash, D napi
	// id, E truesize, S device.
	NAPIGROReceiveEntry
	// NAPIGROFragsEntry is napi_gro_frags_entry: as NAPIGROReceiveEntry.
	NAPIGROFragsEntry
	// NAPIGROReceiveExit is napi_gro_receive_exit: A the result of GRO, by the kernel's
	// number.
	NAPIGROReceiveExit
	// NAPIGROFragsExit is napi_gro_frags_exit: as NAPIGROReceiveExit.
	NAPIGROFragsExit
	// KfreeSKB is kfree_skb: A skb, B protocol, S location, T reason.
	KfreeSKB
	// SchedSwitch is sched_switch: the event's own task leaves; A its priority, T its
	// state, B and C pid and priority of the next task, S its name.
	SchedSwitch
	// SchedWakeup is sched_wakeup: A pid, B priority, C target cpu, S name.
	SchedWakeup
	// SchedWaking is sched_waking: as SchedWakeup.
	SchedWaking
	// HRTimerStart is hrtimer_start: A timer, B expiry as a sim.Time, C 1 if it was
	// armed, S function, T mode.
	HRTimerStart
	// HRTimerExpireEntry is hrtimer_expire_entry: A timer, S function.
	HRTimerExpireEntry
	// HRTimerExpireExit is hrtimer_expire_exit: A timer.
	HRTimerExpireExit
	// RxMissed has no counterpart in the kernel, which cannot see it: frames that
	// found no free descriptor. A queue, B frames, S device.
	RxMissed
	// Lost stands for events that a full Log did not keep: A how many.
	Lost

	numPoints
)

// String returns the name that the kernel gives the point.
func (p Point) String() string {
	if p < numPoints {
		return points[p].name
	}
	return fmt.Sprintf("Point(%d)", uint8(p))
}

// ParsePoint returns the point of the given name. Lost is no point to ask for.
func ParsePoint(name string) (Point, error) {
	for p := range Lost {
		if points[p].name == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("unknown trace point %q", name)
}

// Context is what a CPU was doing, as in the third flag of a trace line.
type Context uint8

const (
	// Task is process context, or idle.
	Task Context = iota
	// Softirq is the softirq loop.
	Softirq
	// Hardirq is a hardirq that interrupted a task.
	Hardirq
	// HardirqInSoftirq is a hardirq that interrupted the softirq loop, also before its
	// first softirq_entry.
	HardirqInSoftirq
)

// Flags is the state of a CPU as a trace line shows it (kernels since 5.17).
type Flags struct {
	// IRQsOff says that interrupts were disabled.
	IRQsOff bool
	// BHOff says that an explicit section had disabled softirqs. Running a softirq
	// does not count.
	BHOff bool
	// NeedResched says that the running task was to be preempted.
	NeedResched bool
	// Context is what was running.
	Context Context
	// PreemptDepth is the preemption count without those of softirq and hardirq.
	PreemptDepth uint8
}

// Event is one trace line. It holds plain values only, and its strings are those
// of the model's objects, so building one allocates nothing.
type Event struct {
	// At is the instant. Events of one CPU come in order of time; a Log puts those of
	// several CPUs in order.
	At sim.Time
	// A to E are arguments; the comment of each Point says which ones it has.
	A, B, C, D, E int64
	// S and T are textual arguments.
	S, T string
	// Comm and PID name the task on the CPU, also when it is interrupted. The idle
	// task has PID 0.
	Comm string
	PID  int32
	// CPU is the simulated CPU, from zero.
	CPU int32
	// Point says what happened.
	Point Point
	// Flags is the state of the CPU at that instant.
	Flags Flags
}
