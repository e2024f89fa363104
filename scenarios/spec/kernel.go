package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"napisim/model/unit"
	"napisim/scenarios/faults"
)

// Kernel is a set of named choices. A scenario names a preset and may override single
// choices of it; after resolving, Behaviours holds all of them.
type Kernel struct {
	// The version whose choices are taken: a name or a file.
	Preset string `yaml:"preset" required:"true"`
	// The choices, by the name of the behaviour.
	Behaviours map[string]string `yaml:"behaviours"`
}

// Preset is a kernel version as its choices and the settings it boots with.
type Preset struct {
	// The name of the preset, which is also the name of its file.
	Name string `yaml:"name" required:"true"`
	// The version of Linux that the choices were read from.
	Version string `yaml:"version" required:"true"`
	// One line that says what sets the version apart.
	Summary string `yaml:"summary" required:"true"`
	// The choices, by the name of the behaviour.
	Behaviours map[string]string `yaml:"behaviours" required:"true"`
	// The settings whose defaults differ from those of other versions.
	Sysctl Sysctl `yaml:"sysctl"`
}

// Sysctl is the set of kernel settings that the model obeys. Those whose values have a
// unit in the kernel's documentation take the kernel's plain number or a value with a
// unit. The defaults are those of Linux on 64-bit machines.
type Sysctl struct {
	// The number of packets that one net_rx_action may poll.
	NetdevBudget int `yaml:"net.core.netdev_budget" default:"300" min:"1" max:"2147483647" unit:"packets" kernel:"sysctl net.core.netdev_budget"`
	// The time that one net_rx_action may poll. It is compared with the tick counter, so
	// that the real limit lies between one tick less and this.
	NetdevBudgetUsecs unit.Duration `yaml:"net.core.netdev_budget_usecs" derived:"what the kernel chooses: see kernel.behaviours.netdev_budget_usecs" min:"1us" max:"2147s" bare:"us" kernel:"sysctl net.core.netdev_budget_usecs"`
	// The number of segments that GRO gathers before it hands them to the stack.
	GRONormalBatch int `yaml:"net.core.gro_normal_batch" default:"8" min:"1" max:"2147483647" unit:"segments" kernel:"sysctl net.core.gro_normal_batch"`
	// The receive buffer of a socket that does not ask for one, TCP excepted.
	RmemDefault unit.Bytes `yaml:"net.core.rmem_default" default:"212992B" min:"2304B" max:"2147483647B" bare:"B" kernel:"sysctl net.core.rmem_default"`
	// The largest receive buffer that a socket may ask for.
	RmemMax unit.Bytes `yaml:"net.core.rmem_max" default:"212992B" min:"2304B" max:"2147483647B" bare:"B" kernel:"sysctl net.core.rmem_max"`
	// The smallest, the initial and the largest receive buffer of a TCP socket.
	TCPRmem [3]unit.Bytes `yaml:"net.ipv4.tcp_rmem" default:"4096 131072 6291456" min:"1B" max:"2147483647B" bare:"B" kernel:"sysctl net.ipv4.tcp_rmem"`
	// Whether TCP grows its receive buffers with the speed of the reader: 1 or 0.
	TCPModerateRcvbuf int `yaml:"net.ipv4.tcp_moderate_rcvbuf" default:"1" min:"0" max:"1" kernel:"sysctl net.ipv4.tcp_moderate_rcvbuf"`
	// The share of a receive buffer that is kept for overhead: with n above 0 it is
	// 1/2^n, otherwise 1 - 1/2^-n.
	TCPAdvWinScale int `yaml:"net.ipv4.tcp_adv_win_scale" default:"1" min:"-31" max:"31" kernel:"sysctl net.ipv4.tcp_adv_win_scale"`
}

// A Behaviour is one thing that kernels do differently. A choice that spans several
// functions is one behaviour, so that no mixture can be named that never existed.
type Behaviour struct {
	Name   string
	Doc    string // what is decided, and where in the kernel
	Values []Value
}

// A Value is one way to behave.
type Value struct {
	Name     string
	Doc      string // what the kernel does
	Versions string // which releases do it
	Commit   string // the change that brought it, "" if it was always there or is not known
}

// The behaviours and their values.
const (
	NAPISchedule = "napi_schedule"
	AlwaysRaise  = "always_raise"
	SkipRaise    = "skip_in_net_rx_action"
	ClearAlways  = "clear_flag_always"

	Ksoftirqd    = "ksoftirqd"
	Inline       = "inline"
	DeferRunning = "defer_while_running"

	GRONormal       = "gro_normal"
	FragsList       = "frags_list"
	SKBList         = "skb_list"
	SKBListSegments = "skb_list_segments"

	PagePoolRecycle = "page_pool_recycle"
	DriverOnly      = "driver_only"
	Ring            = "ring"
	DirectListOwner = "direct_list_owner"

	NetdevBudgetUsecs = "netdev_budget_usecs"
	Fixed2000         = "fixed_2000"
	TwoJiffies        = "two_jiffies"
)

// Behaviours returns the table of all behaviours.
func Behaviours() []Behaviour {
	return []Behaviour{
		{NAPISchedule, "When ____napi_schedule raises NET_RX, and the tail of net_rx_action that goes with it.", []Value{
			{AlwaysRaise, "Every schedule raises NET_RX; net_rx_action returns when its list is empty.", "to 6.3", ""},
			{SkipRaise, "No raise while net_rx_action runs on the CPU: it looks at the list again before it returns, and keeps its flag set while work is left.", "from 6.4", "8b43fd3d1d7d"},
			{ClearAlways, "As " + SkipRaise + ", but net_rx_action clears its flag at every exit.", "never merged: an experiment of May 2023", ""},
		}},
		{Ksoftirqd, "Who runs the softirqs that are raised while ksoftirqd is runnable.", []Value{
			{Inline, "Whoever leaves an interrupt or a section with softirqs off runs them.", "to 4.8 and from 6.5", "d15121be7485"},
			{DeferRunning, "They wait until the scheduler runs ksoftirqd.", "4.9 to 6.4", "4cd13c21b207"},
		}},
		{GRONormal, "How packets leave GRO for the stack.", []Value{
			{FragsList, "Packets of napi_gro_frags and merged packets gather in a list that counts packets; those of napi_gro_receive go one by one.", "5.4.18 and later 5.4", "323ebb61e32b"},
			{SKBList, "All packets gather in the list, which counts packets.", "5.5 to 5.10", "6570bc79c0df"},
			{SKBListSegments, "All packets gather in the list, which counts the segments of merged packets.", "from 5.11", "8dc1c444df19"},
		}},
		{PagePoolRecycle, "How the pages of an skb return to their page_pool.", []Value{
			{DriverOnly, "Not at all: only what the driver itself drops is recycled, other pages go to the page allocator.", "to 5.12", ""},
			{Ring, "Through the ring of the pool.", "5.14 to 6.3", ""},
			{DirectListOwner, "Into the cache of the pool when freed on the CPU where its NAPI is scheduled, otherwise through the ring.", "from 6.4", "8c48eea3adf3"},
		}},
		{NetdevBudgetUsecs, "What net.core.netdev_budget_usecs is by default.", []Value{
			{Fixed2000, "2000 us, whatever the timer frequency.", "4.12 to 5.6", ""},
			{TwoJiffies, "Two ticks. Kernels since March 2025, stable ones included, refuse less; those before take it.", "from 5.7", ""},
		}},
	}
}

// find returns the element of a table with a name; ok is false if there is none.
func find[T any](table []T, name string, of func(T) string) (found T, ok bool) {
	i := slices.IndexFunc(table, func(t T) bool { return of(t) == name })
	if i < 0 {
		return found, false
	}
	return table[i], true
}

func behaviourName(b Behaviour) string { return b.Name }
func valueName(v Value) string         { return v.Name }

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
	table := Behaviours()
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
