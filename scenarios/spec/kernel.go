package spec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"napisim/model/unit"
	"napisim/scenarios/faults"
	"napisim/scenarios/spec/behaviours"
)

// Kernel is a set of named choices. A scenario names a preset and may override single
// choices of it; after resolving, Behaviours holds all of them.
type Kernel struct {
	// The version whose choices are taken: a name or a file.
	Preset string `yaml:"preset" required:"true"`
	// The choices, by the name of the behaviour.
	Behaviours map[string]string `yaml:"behaviours"`
	// Whether interrupt handlers run in threads of their own.
	ThreadIRQs bool `yaml:"threadirqs" default:"off" kernel:"the boot option threadirqs"`
	// Whether the kernel is built for real time: interrupt handlers run in threads, and
	// softirqs where softirqs are enabled again. It needs the preemption model full or lazy.
	PreemptRT bool `yaml:"preempt_rt" default:"off" kernel:"CONFIG_PREEMPT_RT"`
	// The number of fragments that an skb has room for. Kernels before 6.4 have 17.
	MaxSKBFrags int `yaml:"max_skb_frags" default:"17" min:"17" max:"45" unit:"fragments" kernel:"CONFIG_MAX_SKB_FRAGS"`
	// Whether the kernel is booted with a thread for each backlog, where it can have them.
	ThreadBacklogNAPI bool `yaml:"thread_backlog_napi" default:"off" kernel:"boot parameter thread_backlog_napi"`
}

// Preset is a kernel version as its choices and the settings it boots with.
type Preset struct {
	// The name of the preset, which is also the name of its file.
	Name string `yaml:"name" required:"true"`
	// The preset whose choices and settings hold where this one does not say otherwise: as
	// a rule the version before.
	Base string `yaml:"base"`
	// The version of Linux that the choices were read from.
	Version string `yaml:"version" required:"true"`
	// One line that says what sets the version apart.
	Summary string `yaml:"summary" required:"true"`
	// The choices, by the name of the behaviour.
	Behaviours map[string]string `yaml:"behaviours"`
	// The settings whose defaults differ from those of other versions.
	Sysctl Sysctl `yaml:"sysctl"`
}

// Sysctl is the set of kernel settings that the model obeys. Those whose values have a
// unit in the kernel's documentation take the kernel's plain number or a value with a
// unit. The defaults are those of Linux on 64-bit machines.
type Sysctl struct {
	// The number of packets that one net_rx_action may poll. It is looked at after each poll,
	// so that every run polls once, even with 0.
	NetdevBudget int `yaml:"net.core.netdev_budget" default:"300" min:"0" max:"2147483647" unit:"packets" kernel:"sysctl net.core.netdev_budget"`
	// The time that one net_rx_action may poll. It is compared with the tick counter, so
	// that the real limit lies between one tick less and this.
	NetdevBudgetUsecs unit.Duration `yaml:"net.core.netdev_budget_usecs" derived:"what the kernel chooses: see kernel.behaviours.netdev_budget_usecs" min:"1us" max:"2147s" bare:"us" kernel:"sysctl net.core.netdev_budget_usecs"`
	// The number of segments that GRO gathers before it hands them to the stack.
	GRONormalBatch int `yaml:"net.core.gro_normal_batch" default:"8" min:"1" max:"2147483647" unit:"segments" kernel:"sysctl net.core.gro_normal_batch"`
	// The number of packets that the backlog of a CPU may hold for another one to be put there.
	NetdevMaxBacklog int `yaml:"net.core.netdev_max_backlog" default:"1000" min:"0" max:"2147483647" unit:"packets" kernel:"sysctl net.core.netdev_max_backlog"`
	// The number of packets that one poll of the backlog may deliver. The first poll of each CPU
	// has the value of boot, 64.
	DevWeight int `yaml:"net.core.dev_weight" default:"64" min:"1" max:"65536" unit:"packets" kernel:"sysctl net.core.dev_weight"`
	// What dev_weight is multiplied with for receiving.
	DevWeightRXBias int `yaml:"net.core.dev_weight_rx_bias" default:"1" min:"1" max:"65536" kernel:"sysctl net.core.dev_weight_rx_bias"`
	// The number of entries in which sockets record the CPU that reads each flow; 0 turns RFS off.
	RPSSockFlowEntries int `yaml:"net.core.rps_sock_flow_entries" default:"0" min:"0" max:"536870912" unit:"entries" kernel:"sysctl net.core.rps_sock_flow_entries"`
	// The CPUs that refuse a flow with more than half of the last packets that they put on a
	// backlog which is at least half full: those that receive, not those that the packets are for.
	FlowLimitCPUs CPUMask `yaml:"net.core.flow_limit_cpu_bitmap" default:"0" kernel:"sysctl net.core.flow_limit_cpu_bitmap"`
	// The number of buckets by which the flow limit tells flows apart.
	FlowLimitTableLen int `yaml:"net.core.flow_limit_table_len" default:"4096" min:"1" max:"16777216" unit:"buckets" kernel:"sysctl net.core.flow_limit_table_len"`
	// How long reads from sockets that do not say so themselves poll the network card before
	// they sleep or return -EAGAIN; 0: not at all.
	BusyRead unit.Duration `yaml:"net.core.busy_read" default:"0s" max:"2147s" bare:"us" kernel:"sysctl net.core.busy_read"`
	// How long epoll_wait polls the card of a socket before it sleeps, if its epoll instance
	// does not say so itself; kernels before 4.10 poll in select and poll only.
	BusyPoll unit.Duration `yaml:"net.core.busy_poll" default:"0s" max:"2147s" bare:"us" kernel:"sysctl net.core.busy_poll"`
	// The receive buffer of a socket that does not ask for one, TCP excepted.
	RmemDefault unit.Bytes `yaml:"net.core.rmem_default" default:"212992B" min:"2304B" max:"2147483647B" bare:"B" kernel:"sysctl net.core.rmem_default"`
	// The largest receive buffer that a socket may ask for.
	RmemMax unit.Bytes `yaml:"net.core.rmem_max" default:"212992B" min:"2304B" max:"2147483647B" bare:"B" kernel:"sysctl net.core.rmem_max"`
	// The number of skbs that may wait for the CPU that allocated them to free them.
	SKBDeferMax int `yaml:"net.core.skb_defer_max" default:"64" min:"0" max:"2147483647" unit:"skbs" kernel:"sysctl net.core.skb_defer_max"`
	// The smallest, the initial and the largest receive buffer of a TCP socket.
	TCPRmem [3]unit.Bytes `yaml:"net.ipv4.tcp_rmem" default:"4096 131072 6291456" min:"1B" max:"2147483647B" bare:"B" kernel:"sysctl net.ipv4.tcp_rmem"`
	// Whether TCP grows its receive buffers with the speed of the reader: 1 or 0.
	TCPModerateRcvbuf int `yaml:"net.ipv4.tcp_moderate_rcvbuf" default:"1" min:"0" max:"1" kernel:"sysctl net.ipv4.tcp_moderate_rcvbuf"`
	// The share of a receive buffer that is kept for overhead: with n above 0 it is
	// 1/2^n, otherwise 1 - 1/2^-n. Without effect from 6.6 on: see kernel.behaviours.tcp_win_scaling.
	TCPAdvWinScale int `yaml:"net.ipv4.tcp_adv_win_scale" default:"1" min:"-31" max:"31" kernel:"sysctl net.ipv4.tcp_adv_win_scale"`
	// The number of duplicate ACKs that TCP may hold back. 0 sends each at once.
	TCPCompSACKNr int `yaml:"net.ipv4.tcp_comp_sack_nr" default:"44" min:"0" max:"255" unit:"ACKs" kernel:"sysctl net.ipv4.tcp_comp_sack_nr"`
	// How long TCP holds duplicate ACKs back at most; a twentieth of the round trip is the
	// other limit.
	TCPCompSACKDelayNs unit.Duration `yaml:"net.ipv4.tcp_comp_sack_delay_ns" default:"1ms" min:"0s" max:"1s" bare:"ns" kernel:"sysctl net.ipv4.tcp_comp_sack_delay_ns"`
	// Whether ACKs wait until the backlog of a socket has been worked off: 1 or 0. Without
	// effect before 6.7: see kernel.behaviours.tcp_backlog_ack.
	TCPBacklogAckDefer int `yaml:"net.ipv4.tcp_backlog_ack_defer" default:"1" min:"0" max:"1" kernel:"sysctl net.ipv4.tcp_backlog_ack_defer"`
}

// CPUMask is a set of CPUs as the kernel writes it: a hexadecimal number with bit n for
// CPU n.
type CPUMask uint64

// String returns the mask in hexadecimal.
func (m CPUMask) String() string { return strconv.FormatUint(uint64(m), 16) }

// MarshalText writes the mask as UnmarshalText reads it.
func (m CPUMask) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads a hexadecimal number of up to 64 bits.
func (m *CPUMask) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil {
		return fmt.Errorf("%q is no mask of CPUs: it is a hexadecimal number without 0x, such as f for CPUs 0 to 3", text)
	}
	*m = CPUMask(v)
	return nil
}

// The behaviours and values that the scenarios package knows by name.
const (
	NAPISchedule = "napi_schedule"
	AlwaysRaise  = "always_raise"
	SkipRaise    = "skip_in_net_rx_action"
	SkipAndWake  = "skip_and_wake"
	ClearAlways  = "clear_flag_always"

	NAPISchedulePrep = "napi_schedule_prep"
	Lost             = "lost"
	Missed           = "missed"

	NAPIComplete  = "napi_complete"
	AlwaysUnmask  = "always_unmask"
	Hold          = "hold"
	FlushOld      = "flush_old"
	DeferHardIRQs = "defer_hard_irqs"

	NAPIThreaded     = "napi_threaded"
	NoThreads        = "none"
	IfRunning        = "if_running"
	AlwaysScheduled  = "always"
	BusyPollingNAPIs = "busy_poll"

	BusyPoll       = "busy_poll"
	EachPoll       = "each_poll"
	OwnedByLoop    = "owned"
	PreferBusyPoll = "prefer"
	EpollParams    = "epoll_params"
	IRQSuspend     = "irq_suspend"

	Ksoftirqd    = "ksoftirqd"
	Inline       = "inline"
	DeferAlways  = "defer_always"
	DeferRunning = "defer_while_running"
	DeferParking = "defer_unless_parked"

	GRONormal       = "gro_normal"
	FragsList       = "frags_list"
	SKBList         = "skb_list"
	SKBListSegments = "skb_list_segments"

	GROTable   = "gro_table"
	GROMaxSize = "gro_max_size"
	UDPGRO     = "udp_gro"

	IPList    = "ip_list"
	NoHint    = "no_hint"
	RouteHint = "route_hint"

	NetifRx = "netif_rx"

	BacklogThreads = "backlog_threads"
	Threads        = "threads"

	TunWrite      = "tun_write"
	TunRxBatched  = "rx_batched"
	TunFragsOwned = "frags_owned"

	PagePoolRecycle = "page_pool_recycle"
	DriverOnly      = "driver_only"
	Ring            = "ring"
	DirectListOwner = "direct_list_owner"

	Scheduler   = "scheduler"
	TimerThread = "timer_thread"
	KTimers     = "ktimers"

	SKBCache     = "skb_cache"
	SKBDeferFree = "skb_defer_free"
	SKBSmallHead = "skb_small_head"
	UDPRcvbuf    = "udp_rcvbuf"
	UDPWakeup    = "udp_wakeup"

	NetdevBudgetUsecs = "netdev_budget_usecs"
	NotSettable       = "not_settable"
	Fixed2000         = "fixed_2000"
	TwoJiffies        = "two_jiffies"
	AtLeastTwoJiffies = "at_least_two_jiffies"
)

// find returns the element of a table with a name; ok is false if there is none.
func find[T any](table []T, name string, of func(T) string) (found T, ok bool) {
	i := slices.IndexFunc(table, func(t T) bool { return of(t) == name })
	if i < 0 {
		return found, false
	}
	return table[i], true
}

func behaviourName(b behaviours.Behaviour) string { return b.Name }
func valueName(v behaviours.Value) string         { return v.Name }

// names returns the names in a table, in its order.
func names[T any](table []T, of func(T) string) []string {
	all := make([]string, len(table))
	for i, t := range table {
		all[i] = of(t)
	}
	return all
}

// checkBehaviours returns a fault for each choice that does not exist, and for each
// behaviour that is left open.
func checkBehaviours(chosen map[string]string, path, whole string) faults.List {
	var found faults.List
	table := behaviours.All()
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		at := path + "." + name
		b, ok := find(table, name, behaviourName)
		if !ok {
			found = append(found, faults.Fault{
				Path:       at,
				Text:       "is no behaviour",
				Suggestion: faults.Nearest(name, names(table, behaviourName)),
			})
			continue
		}
		if values := names(b.Values, valueName); !slices.Contains(values, chosen[name]) {
			found = append(found, faults.Fault{
				Path:       at,
				Text:       fmt.Sprintf("%q is not one of %s", chosen[name], strings.Join(values, ", ")),
				Suggestion: faults.Nearest(chosen[name], values),
			})
		}
	}
	for _, b := range table {
		if chosen[b.Name] == "" {
			found = append(found, faults.Fault{Path: whole, Text: "leaves open the behaviour " + b.Name})
		}
	}
	return found
}
