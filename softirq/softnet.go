package softirq

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/skbuff"
	"napisim/sim/metric"
)

type skb = *model.SKB

// Vector is a softirq vector. Pending vectors run in this order.
type Vector uint8

// The vectors of Linux, in the order of their execution.
const (
	HI Vector = iota
	Timer
	NetTX
	NetRX
	Block
	IRQPoll
	Tasklet
	Sched
	HRTimer
	RCU

	NumVectors
)

// Stack receives what leaves NAPI upwards. Both calls take the skbs over; they run
// in softirq context on core c.
type Stack interface {
	// ReceiveSKB is netif_receive_skb.
	ReceiveSKB(c *cpu.Core, s *model.SKB)
	// ReceiveList is netif_receive_skb_list; the list is empty afterwards.
	ReceiveList(c *cpu.Core, list *model.SKBList)
}

// Softnet is the receive state of one core: struct softnet_data of net/core/dev.c
// and what kernel/softirq.c keeps per CPU.
type Softnet struct {
	core    *cpu.Core
	cfg     Config
	b       behaviours
	stack   Stack
	skbs    *model.SKBPool
	heads   *skbuff.Heads
	actions [NumVectors]func()

	pending   uint32
	ksoftirqd *cpu.Task
	// timerThread runs timersPending, which do not count as pending; see newTimerThread.
	timerThread   *cpu.Task
	timersPending uint32
	parked        bool // ksoftirqd has been told to park

	tasklets, hiTasklets taskletList

	pollList           napiList
	inNetRXAction      bool
	inNAPIThreadedPoll bool

	backlog backlog
	links   Links
	peers   []*Softnet // all cores, by number; nil without RPS

	stats Stats
}

// Stats are the counters of one Softnet. Processed, Dropped and TimeSqueeze are
// columns 1 to 3 of /proc/net/softnet_stat.
type Stats struct {
	// Processed counts skbs that entered the stack; a superframe counts once.
	Processed int64
	// Dropped counts skbs that found the backlog full.
	Dropped int64
	// ReceivedRPS counts interrupts by which other cores told of packets on the backlog, and
	// FlowLimitCount packets refused by the flow limit: columns 10 and 11.
	ReceivedRPS, FlowLimitCount int64
	// TimeSqueeze counts net_rx_action runs ended by budget or time limit.
	TimeSqueeze int64
	// Softirqs counts runs of each vector, as /proc/softirqs.
	Softirqs [NumVectors]int64
	// Invocations counts runs of the softirq loop, Restarts its further passes.
	Invocations, Restarts int64
	// KsoftirqdWakeups counts wakeups of a sleeping ksoftirqd.
	KsoftirqdWakeups int64
	// Polls counts NAPI polls. Work distributes the frames that each handled, without
	// those of NAPIs for transmit completions and of the backlog.
	Polls int64
	Work  metric.Histogram
	// BacklogWork distributes the packets of each poll of the backlog.
	BacklogWork metric.Histogram
	// BusyPolls counts polls by busy loops, BusyPollRxPackets the frames that they handled
	// (BusyPollRxPackets of /proc/net/netstat). Neither is part of Polls and Work.
	BusyPolls, BusyPollRxPackets int64
	// GROSegments distributes the segments of the TCP skbs passed up.
	GROSegments metric.Histogram
}

// NewSoftnet builds the receive state of core c and its ksoftirqd. cfg must be
// valid. The skb pool is shared by all cores of a run.
func NewSoftnet(c *cpu.Core, cfg Config, stack Stack, skbs *model.SKBPool) *Softnet {
	b, faults := cfg.behaviours()
	if len(faults) > 0 {
		panic(faults[0])
	}
	sd := &Softnet{core: c, cfg: cfg, b: b, stack: stack, skbs: skbs}
	sd.actions[Timer] = c.RunTimers
	sd.actions[HI] = func() { sd.taskletAction(&sd.hiTasklets) }
	sd.actions[Tasklet] = func() { sd.taskletAction(&sd.tasklets) }
	sd.actions[NetRX] = func() { sd.b.napiSchedule.NetRXAction(sd); sd.heads.On(c).EndOfNetRX() }
	sd.actions[HRTimer] = func() { c.RunHRTimers(); c.RunSoftHRTimers() }
	c.SetHRTimerSoftirq(func() { sd.raiseSoftirqIRQOff(HRTimer) })
	sd.ksoftirqd = newKsoftirqd(sd)
	sd.timerThread = newTimerThread(sd)
	sd.initBacklog()
	c.SetSoftirqs(sd)
	return sd
}

// SetHeads gives the core its cache of skb descriptors, and the interrupt that others send
// when they have left many skbs for it. Without it descriptors cost nothing.
func (sd *Softnet) SetHeads(h *skbuff.Heads) {
	sd.heads = h
	h.SetKick(sd.core, func() { sd.raiseSoftirqBit(NetRX) })
}

// Core returns the core that this state belongs to.
func (sd *Softnet) Core() *cpu.Core { return sd.core }

// Ksoftirqd returns the core's ksoftirqd task.
func (sd *Softnet) Ksoftirqd() *cpu.Task { return sd.ksoftirqd }

// Stats returns the counters; they keep moving.
func (sd *Softnet) Stats() *Stats { return &sd.stats }

// OpenSoftirq is open_softirq (all versions): it installs the handler of a vector. A vector
// that has none does nothing when it is raised.
func (sd *Softnet) OpenSoftirq(v Vector, action func()) { sd.actions[v] = action }
