package observe

import (
	"strings"

	"napisim/scenarios/recording/ftrace"
)

// Stats are counts and sizes of a trace.
type Stats struct {
	IRQs         map[string]int `json:"irqs"`           // handler entries, by action
	DeviceIRQs   map[string]int `json:"device_irqs"`    // of network devices, by "DEV QUEUE" or "DEV"
	Raises       map[string]int `json:"raises"`         // by "VECTOR/CONTEXT"
	Entries      map[string]int `json:"entries"`        // softirq_entry, by "VECTOR/WHO"
	IRQsInPasses int            `json:"irqs_in_passes"` // handlers entered while net_rx_action ran

	Work           map[string]map[int]int    `json:"work"`    // polls, by device and work
	Budgets        map[string]map[int]int    `json:"budgets"` // polls, by device and budget
	PollsBy        map[string]map[string]int `json:"polls_by"`
	PollsPerPass   map[int]int               `json:"polls_per_pass"`
	MaxWorkPerPass int                       `json:"max_work_per_pass"`

	GRO        map[string]map[string]int `json:"gro"`        // results, by device
	Aggregates map[string]map[int]int    `json:"aggregates"` // segments of each packet that was HELD, by device; exact with one flow
	Delivered  map[string]map[int]int    `json:"delivered"`  // netif_receive_skb, by device and length
	NetifRX    map[string]int            `json:"netif_rx"`
	Xmit       map[string]int            `json:"net_dev_xmit"`
	Freed      map[string]int            `json:"kfree_skb"` // by reason

	Wakeups          int `json:"wakeups"` // of all tasks
	KsoftirqdWakeups int `json:"ksoftirqd_wakeups"`
	KsoftirqdIn      int `json:"ksoftirqd_switches"`
	ThreadIn         int `json:"napi_thread_switches"`
	Switches         int `json:"switches"`

	IRQTime  map[string][]int64 `json:"-"` // ns from entry to exit, by action
	PassTime []int64            `json:"-"` // ns of each pass without the handlers in it

	Other map[string]int `json:"other"` // events not counted above, kprobes among them
}

// newStats returns empty counts.
func newStats() Stats {
	return Stats{
		IRQs: map[string]int{}, DeviceIRQs: map[string]int{}, Raises: map[string]int{}, Entries: map[string]int{},
		Work: map[string]map[int]int{}, Budgets: map[string]map[int]int{}, PollsBy: map[string]map[string]int{},
		PollsPerPass: map[int]int{}, GRO: map[string]map[string]int{}, Aggregates: map[string]map[int]int{},
		Delivered: map[string]map[int]int{}, NetifRX: map[string]int{}, Xmit: map[string]int{}, Freed: map[string]int{},
		IRQTime: map[string][]int64{}, Other: map[string]int{},
	}
}

// bump adds one to a count of two keys.
func bump[K comparable](m map[string]map[K]int, dev string, k K) {
	if m[dev] == nil {
		m[dev] = map[K]int{}
	}
	m[dev][k]++
}

// Sum adds up a histogram.
func Sum[K comparable](h map[K]int) int {
	n := 0
	for _, c := range h {
		n += c
	}
	return n
}

// Frames returns how many packets the polls of a device found.
func (s *Stats) Frames(dev string) int {
	n := 0
	for work, polls := range s.Work[dev] {
		n += max(work, 0) * polls
	}
	return n
}

// groResults are the names of what napi_gro_receive returns, by number.
var groResults = []string{"MERGED", "MERGED_FREE", "HELD", "NORMAL", "CONSUMED"}

// count notes events that only the counts need.
func (w *watcher) count(e *ftrace.Event, c *cpu) {
	s := &w.out.Stats
	dev, _ := e.Field("dev")
	switch e.Name {
	case "napi_gro_receive_entry", "napi_gro_frags_entry":
		c.groDev = dev
	case "napi_gro_receive_exit", "napi_gro_frags_exit":
		w.gro(e, c)
	case "netif_receive_skb":
		n, _ := e.Int("len")
		bump(s.Delivered, dev, int(n))
	case "netif_rx":
		s.NetifRX[dev]++
	case "net_dev_xmit":
		s.Xmit[dev]++
	case "kfree_skb":
		reason := "?"
		if _, after, ok := strings.Cut(e.Payload, "reason: "); ok {
			reason = strings.TrimSpace(after)
		}
		s.Freed[reason]++
	case "sched_switch":
		s.Switches++
		sw, _ := e.Switch()
		switch {
		case strings.HasPrefix(sw.NextComm, "ksoftirqd"):
			s.KsoftirqdIn++
		case strings.HasPrefix(sw.NextComm, "napi/"):
			s.ThreadIn++
		}
	case "sched_wakeup":
		s.Wakeups++
		if wake, ok := e.Wakeup(); ok && strings.HasPrefix(wake.Comm, "ksoftirqd") {
			s.KsoftirqdWakeups++
		}
	default:
		s.Other[e.Name]++
	}
}

// gro notes a result. HELD opens an aggregate of the device and merges add to it; with
// several flows at once the sizes are of all their merges together.
func (w *watcher) gro(e *ftrace.Event, c *cpu) {
	n, ok := e.Int("ret")
	if !ok || n < 0 || int(n) >= len(groResults) {
		w.out.Stats.Other[e.Name]++
		return
	}
	result := groResults[n]
	bump(w.out.Stats.GRO, c.groDev, result)
	switch result {
	case "HELD":
		w.endAggregate(c, c.groDev)
		c.segment[c.groDev] = 1
	case "MERGED", "MERGED_FREE":
		if c.segment[c.groDev] > 0 {
			c.segment[c.groDev]++
		}
	}
}

// endAggregate counts the open aggregate of a device.
func (w *watcher) endAggregate(c *cpu, dev string) {
	if n := c.segment[dev]; n > 0 {
		bump(w.out.Stats.Aggregates, dev, n)
		c.segment[dev] = 0
	}
}
