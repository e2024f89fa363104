package cost

import (
	"slices"
	"strings"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/ftrace"
)

// A pair is a distance of two neighbours on a CPU that has a meaning.
type pair struct {
	name, how string
	is        func(a, b *ftrace.Event) bool
}

// ksoftirqd reports whether an event is in a ksoftirqd's context.
func ksoftirqd(e *ftrace.Event) bool { return strings.HasPrefix(e.Comm, "ksoftirqd/") }

// rx reports whether an event is this one of NET_RX.
func rx(e *ftrace.Event, name string) bool { return e.Name == name && e.Vec() == netRX }

// next reports whether b switches to a task whose name begins so.
func next(b *ftrace.Event, comm string) bool {
	s, ok := b.Switch()
	return ok && strings.HasPrefix(s.NextComm, comm)
}

// netRX is NET_RX's number.
const netRX = 3

// irqPairs are the distances around handlers of interrupts and softirqs.
func irqPairs() []pair {
	return []pair{
		{"irq_entry_to_raise", "irq_handler_entry to softirq_raise NET_RX", func(a, b *ftrace.Event) bool {
			return a.Name == "irq_handler_entry" && rx(b, "softirq_raise")
		}},
		{"irq_raise_to_exit", "softirq_raise NET_RX to irq_handler_exit", func(a, b *ftrace.Event) bool {
			return rx(a, "softirq_raise") && b.Name == "irq_handler_exit"
		}},
		{"irq_to_irq", "irq_handler_exit to the entry of one that was pending", func(a, b *ftrace.Event) bool {
			return a.Name == "irq_handler_exit" && b.Name == "irq_handler_entry" && b.At-a.At < 3_000
		}},
		{"irq_exit_to_softirq", "irq_handler_exit to softirq_entry, bottom halves on", func(a, b *ftrace.Event) bool {
			return a.Name == "irq_handler_exit" && b.Name == "softirq_entry" && a.Flags.Context == 'h' && !a.Flags.BHOff
		}},
		{"softirq_next_vector", "softirq_exit to softirq_entry of a later vector", func(a, b *ftrace.Event) bool {
			return a.Name == "softirq_exit" && b.Name == "softirq_entry" && b.Vec() > a.Vec()
		}},
		{"softirq_restart", "softirq_exit to softirq_entry of the same or an earlier vector, inline", func(a, b *ftrace.Event) bool {
			return a.Name == "softirq_exit" && b.Name == "softirq_entry" && b.Vec() <= a.Vec() && !ksoftirqd(b) && a.PID == b.PID && b.At-a.At < 3_000
		}},
	}
}

// passPairs are the distances within a pass of net_rx_action.
func passPairs() []pair {
	return []pair{
		{"pass_begin", "softirq_entry NET_RX to the first event of its first poll", func(a, b *ftrace.Event) bool {
			return rx(a, "softirq_entry") && b.Name == "napi_gro_receive_entry"
		}},
		{"poll_to_exit", "napi_poll to softirq_exit", func(a, b *ftrace.Event) bool {
			return a.Name == "napi_poll" && rx(b, "softirq_exit")
		}},
		{"repoll_raise", "napi_poll of a full poll to softirq_raise", func(a, b *ftrace.Event) bool {
			return a.Name == "napi_poll" && rx(b, "softirq_raise") && b.Flags.Context == 's'
		}},
		{"repoll_to_exit", "softirq_raise of a repoll to softirq_exit", func(a, b *ftrace.Event) bool {
			return rx(a, "softirq_raise") && a.Flags.Context == 's' && rx(b, "softirq_exit")
		}},
		{"gro_receive", "napi_gro_receive_entry to its exit, result NORMAL, nothing handed up", func(a, b *ftrace.Event) bool {
			n, _ := b.Int("ret")
			return a.Name == "napi_gro_receive_entry" && b.Name == "napi_gro_receive_exit" && n == 3
		}},
		{"gro_to_next_frame", "napi_gro_receive_exit to the next entry: the driver's part of a frame", func(a, b *ftrace.Event) bool {
			return a.Name == "napi_gro_receive_exit" && b.Name == "napi_gro_receive_entry"
		}},
		{"netif_receive_skb", "netif_receive_skb to the next one of the same list", func(a, b *ftrace.Event) bool {
			return a.Name == "netif_receive_skb" && b.Name == "netif_receive_skb"
		}},
	}
}

// taskPairs are the distances around switches and within the sender.
func taskPairs() []pair {
	return []pair{
		{"switch_to_ksoftirqd", "sched_switch to ksoftirqd to its softirq_entry", func(a, b *ftrace.Event) bool {
			return next(a, "ksoftirqd/") && b.Name == "softirq_entry"
		}},
		{"ksoftirqd_to_switch", "softirq_exit in ksoftirqd to sched_switch", func(a, b *ftrace.Event) bool {
			return a.Name == "softirq_exit" && ksoftirqd(a) && b.Name == "sched_switch"
		}},
		{"switch", "sched_switch from the idle task to the one that is next after softirq_exit", func(a, b *ftrace.Event) bool {
			return a.Name == "softirq_exit" && a.PID == 0 && a.Flags.NeedResched && b.Name == "sched_switch"
		}},
		{"wake_ksoftirqd", "softirq_exit to sched_wakeup of ksoftirqd", func(a, b *ftrace.Event) bool {
			w, ok := b.Wakeup()
			return a.Name == "softirq_exit" && ok && strings.HasPrefix(w.Comm, "ksoftirqd/")
		}},
		{"xmit_step", "drv_xmit to the next one of a burst, with the cost of its probe", func(a, b *ftrace.Event) bool {
			return a.Name == "drv_xmit" && b.Name == "drv_xmit"
		}},
	}
}

// distances collects the distances of neighbours, and the times of handlers.
func distances(r *recording.Recording) []series {
	ps := slices.Concat(irqPairs(), passPairs(), taskPairs())
	var out []series
	for _, p := range ps {
		out = append(out, series{name: p.name, how: "median distance: " + p.how})
	}
	restart := series{name: "softirq_restart_ksoftirqd", how: "median distance: softirq_exit to softirq_entry in ksoftirqd, the lower group"}
	last := map[int]*ftrace.Event{}
	for i := range r.Events {
		b := &r.Events[i]
		if b.Name == ftrace.Lost || b.Name == "napisim_dropped" {
			delete(last, b.CPU) // what stands on either side are no neighbours
			continue
		}
		a := last[b.CPU]
		last[b.CPU] = b
		if a == nil {
			continue
		}
		for k := range ps {
			if ps[k].is(a, b) {
				out[k].add(0, b.At-a.At, b.Line)
			}
		}
		if a.Name == "softirq_exit" && b.Name == "softirq_entry" && ksoftirqd(a) && ksoftirqd(b) && b.Vec() <= a.Vec() {
			restart.add(0, b.At-a.At, b.Line)
		}
	}
	low, high := twoGroups(restart.samples)
	restart.samples = low
	out = append(out, restart, series{
		name: "ksoftirqd_next_invocation", how: "median distance: softirq_exit to softirq_entry in ksoftirqd, the upper group", samples: high,
	})
	return append(out, handlers(r)...)
}

// twoGroups parts samples at the first gap in their sizes that is wider than noise;
// without one all are in the first group.
func twoGroups(all []sample) (low, high []sample) {
	s := slices.Clone(all)
	slices.SortFunc(s, func(a, b sample) int { return int(a.ns - b.ns) })
	const noise = 50 // of one event
	cut := len(s)
	for i := 1; i < len(s); i++ {
		if s[i].ns-s[i-1].ns > noise {
			cut = i
			break
		}
	}
	return s[:cut], s[cut:]
}

// handlers collects the time of each device's handlers, with the events in them.
func handlers(r *recording.Recording) []series {
	byDev := map[string]*series{}
	var order []string
	in := map[int]*ftrace.Event{}
	for i := range r.Events {
		e := &r.Events[i]
		switch e.Name {
		case "irq_handler_entry":
			in[e.CPU] = e
		case "irq_handler_exit":
			entry := in[e.CPU]
			if entry == nil {
				continue
			}
			delete(in, e.CPU)
			action, _ := entry.Field("name")
			dev, queue := r.DeviceOf(action)
			if dev == "" {
				continue
			}
			name := strings.TrimSuffix("irq_handler "+dev+" "+queue, " ")
			if byDev[name] == nil {
				byDev[name] = &series{name: name, how: "median time from irq_handler_entry to irq_handler_exit, with the events in it"}
				order = append(order, name)
			}
			byDev[name].add(0, e.At-entry.At, e.Line)
		}
	}
	slices.Sort(order)
	out := make([]series, 0, len(order))
	for _, name := range order {
		out = append(out, *byDev[name])
	}
	return out
}
