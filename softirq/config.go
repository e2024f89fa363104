package softirq

import (
	"fmt"

	"napisim/model"
	"napisim/sim"
)

// Config is what a kernel version and its sysctls decide. It is shared by all
// cores and does not change during a run.
type Config struct {
	// NAPISchedule, Ksoftirqd and GRONormal name behaviours.
	NAPISchedule, Ksoftirqd, GRONormal string
	// NAPISchedulePrep, NAPIComplete and NAPIThreaded name behaviours, too.
	NAPISchedulePrep, NAPIComplete, NAPIThreaded string
	// BusyPoll names a behaviour, too.
	BusyPoll string
	// ForcedThreaded is force_irqthreads(): softirqs do not run where an interrupt ends.
	ForcedThreaded bool
	// TimerThread gives cores whose interrupt handlers are threaded a ktimers/N.
	TimerThread bool
	// NetifRx names a behaviour.
	NetifRx string
	// NetdevBudget is net.core.netdev_budget, in packets.
	NetdevBudget int
	// NetdevBudgetUsecs is net.core.netdev_budget_usecs; 0 means two jiffies.
	NetdevBudgetUsecs sim.Time
	// GRONormalBatch is net.core.gro_normal_batch.
	GRONormalBatch int
	// NetdevMaxBacklog is net.core.netdev_max_backlog, in packets.
	NetdevMaxBacklog int
	// DevWeight and DevWeightRXBias are net.core.dev_weight and its factor for receiving: their
	// product is the weight of the backlog, in packets.
	DevWeight, DevWeightRXBias int
	// FlowLimitCPUs is net.core.flow_limit_cpu_bitmap: the cores that limit flows when they
	// put packets on a backlog. FlowLimitTableLen is the number of buckets of each limit.
	FlowLimitCPUs     uint64
	FlowLimitTableLen int
	// BacklogThreads gives each backlog a thread (thread_backlog_napi, since v6.10).
	BacklogThreads bool
}

// DefaultConfig returns the configuration of v6.1 with the kernel's default sysctls.
func DefaultConfig() Config {
	return Config{
		NAPISchedule: "always_raise", Ksoftirqd: "defer_unless_parked", GRONormal: "skb_list_segments",
		NAPISchedulePrep: "missed", NAPIComplete: "defer_hard_irqs", NAPIThreaded: "if_running",
		BusyPoll:     "prefer",
		NetdevBudget: 300, GRONormalBatch: 8,
		NetifRx: "universal", NetdevMaxBacklog: 1000, DevWeight: NAPIPollWeight, DevWeightRXBias: 1, FlowLimitTableLen: 4096,
	}
}

// behaviours are the functions that a Config's names select.
type behaviours struct {
	napiSchedule     NAPIScheduleBehaviour
	napiSchedulePrep NAPISchedulePrepBehaviour
	napiComplete     NAPICompleteBehaviour
	napiThreaded     NAPIThreadedBehaviour
	busyPoll         BusyPollBehaviour
	ksoftirqd        KsoftirqdBehaviour
	groNormal        GRONormalBehaviour
	netifRx          NetifRxBehaviour
}

func (c *Config) behaviours() (b behaviours, faults []error) {
	for _, err := range []error{
		choose(&b.napiSchedule, napiSchedules, func(b NAPIScheduleBehaviour) string { return b.Name }, c.NAPISchedule, "napi_schedule"),
		choose(&b.napiSchedulePrep, napiSchedulePreps, func(b NAPISchedulePrepBehaviour) string { return b.Name }, c.NAPISchedulePrep, "napi_schedule_prep"),
		choose(&b.napiComplete, napiCompletes, func(b NAPICompleteBehaviour) string { return b.Name }, c.NAPIComplete, "napi_complete"),
		choose(&b.napiThreaded, napiThreadeds, func(b NAPIThreadedBehaviour) string { return b.Name }, c.NAPIThreaded, "napi_threaded"),
		choose(&b.busyPoll, busyPolls, func(b BusyPollBehaviour) string { return b.Name }, c.BusyPoll, "busy_poll"),
		choose(&b.ksoftirqd, ksoftirqds, func(b KsoftirqdBehaviour) string { return b.Name }, c.Ksoftirqd, "ksoftirqd"),
		choose(&b.groNormal, groNormals, func(b GRONormalBehaviour) string { return b.Name }, c.GRONormal, "gro_normal"),
		choose(&b.netifRx, netifRxs, func(b NetifRxBehaviour) string { return b.Name }, c.NetifRx, "netif_rx"),
	} {
		if err != nil {
			faults = append(faults, err)
		}
	}
	return b, faults
}

// choose sets a behaviour to the entry of that name.
func choose[T any](b *T, table []T, name func(T) string, want, what string) (err error) {
	*b, err = model.FindNamed(table, name, want, what)
	return err
}

// Validate returns every fault of the configuration.
func (c *Config) Validate() []error {
	_, faults := c.behaviours()
	if c.NetdevBudget < 0 {
		faults = append(faults, fmt.Errorf("net.core.netdev_budget: %d is negative", c.NetdevBudget))
	}
	if c.NetdevBudgetUsecs < 0 {
		faults = append(faults, fmt.Errorf("net.core.netdev_budget_usecs: %v is negative", c.NetdevBudgetUsecs))
	}
	if c.GRONormalBatch < 1 {
		faults = append(faults, fmt.Errorf("net.core.gro_normal_batch: %d is below 1", c.GRONormalBatch))
	}
	if c.NetdevMaxBacklog < 0 {
		faults = append(faults, fmt.Errorf("net.core.netdev_max_backlog: %d is negative", c.NetdevMaxBacklog))
	}
	if c.DevWeight < 1 {
		faults = append(faults, fmt.Errorf("net.core.dev_weight: %d is below 1", c.DevWeight))
	}
	if c.DevWeightRXBias < 1 {
		faults = append(faults, fmt.Errorf("net.core.dev_weight_rx_bias: %d is below 1", c.DevWeightRXBias))
	}
	return faults
}
