package cost

import (
	"slices"
	"strings"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/ftrace"
	"napisim/scenarios/recording/input"
)

// A pollWatch measures the polls of one CPU.
type pollWatch struct {
	start int64 // of the poll that runs, 0 if unknown
	irq   int64 // time of handlers since
	entry int64 // of the handler that runs
}

// lines collects the durations that depend on a number of frames.
func lines(r *recording.Recording, in *input.Input) []straight {
	out, _ := polls(r)
	line, _ := sender(in)
	return append(out, txClean(r, in), line, reader(r, in))
}

// eachPoll calls f with the time of each poll without the handlers within, counted from
// the pass's begin or the poll before it.
func eachPoll(r *recording.Recording, f func(e *ftrace.Event, p ftrace.Poll, ns int64)) {
	cpus := map[int]*pollWatch{}
	for i := range r.Events {
		e := &r.Events[i]
		w := cpus[e.CPU]
		if w == nil {
			w = &pollWatch{}
			cpus[e.CPU] = w
		}
		switch e.Name {
		case "softirq_entry":
			*w = pollWatch{}
			if e.Vec() == netRX {
				w.start = e.At
			}
		case "softirq_exit", "sched_switch":
			*w = pollWatch{}
		case "irq_handler_entry":
			w.entry = e.At
		case "irq_handler_exit":
			if w.entry > 0 {
				w.irq += e.At - w.entry
			}
		case "napi_poll":
			if p, ok := e.Poll(); ok && w.start > 0 && p.Work >= 0 {
				f(e, p, e.At-w.start-w.irq)
			}
			if w.start > 0 {
				*w = pollWatch{start: e.At}
			}
		}
	}
}

// polls lays a line through the polls of each device and keeps the empty ones apart.
func polls(r *recording.Recording) ([]straight, []series) {
	byDev := map[string]*straight{}
	empty := map[string]*series{}
	var devs []string
	eachPoll(r, func(e *ftrace.Event, p ftrace.Poll, ns int64) {
		if byDev[p.Dev] == nil {
			how := "least squares: time of a poll over its work, handlers taken off"
			byDev[p.Dev] = &straight{series: series{how: how}, fixed: "poll_fixed " + p.Dev, slope: "poll_per_frame " + p.Dev}
			empty[p.Dev] = &series{name: "poll_empty " + p.Dev, how: "median time of a poll without work, handlers taken off"}
			devs = append(devs, p.Dev)
		}
		byDev[p.Dev].add(float64(p.Work), ns, e.Line)
		if p.Work == 0 {
			empty[p.Dev].add(0, ns, e.Line)
		}
	})
	slices.Sort(devs)
	var out []straight
	var none []series
	for _, d := range devs {
		out = append(out, *byDev[d])
		none = append(none, *empty[d])
	}
	return out, none
}

// txClean lays a line through what the sending device does after frames were sent: the
// handler of its own TX vector, or an empty poll, over the frames since the last one.
func txClean(r *recording.Recording, in *input.Input) straight {
	l := straight{
		series: series{how: "least squares: TX handler, or poll without work of the sending device, over the frames sent since the last"},
		fixed:  "tx_clean_fixed", slope: "tx_clean_per_frame",
	}
	type sent struct {
		at     int64
		frames int
	}
	var all []sent
	for _, b := range in.Bursts {
		all = append(all, sent{b.At, b.Frames})
	}
	for _, f := range in.Frames {
		if f.Dev == r.TxDevice() {
			all = append(all, sent{f.At, 1})
		}
	}
	slices.SortStableFunc(all, func(a, b sent) int { return int(a.at - b.at) })
	k := 0
	since := func(at int64) float64 {
		n := 0
		for ; k < len(all) && all[k].at <= at; k++ {
			n += all[k].frames
		}
		return float64(n)
	}
	own := false // the device has a vector for TX
	for _, q := range r.IRQs {
		own = own || q.Dev == r.TxDevice() && q.Queue == "tx"
	}
	if !own || strings.HasPrefix(r.NIC.Model, "virtio") {
		eachPoll(r, func(e *ftrace.Event, p ftrace.Poll, ns int64) {
			if p.Dev == r.TxDevice() && p.Work == 0 {
				l.add(since(e.At), ns, e.Line)
			}
		})
		return l
	}
	var entry *ftrace.Event
	for i := range r.Events {
		e := &r.Events[i]
		switch e.Name {
		case "irq_handler_entry":
			entry = e
		case "irq_handler_exit":
			if entry == nil {
				continue
			}
			action, _ := entry.Field("name")
			if dev, queue := r.DeviceOf(action); dev == r.TxDevice() && queue == "tx" {
				l.add(since(entry.At), e.At-entry.At, e.Line)
			}
			entry = nil
		}
	}
	return l
}

// sender lays a line through the own time of the packet generator from its switch-in to
// the doorbell, for bursts before which it slept; with one size of bursts only, the
// median is all there is.
func sender(in *input.Input) (straight, series) {
	l := straight{
		series: series{how: "least squares: own time of the sender from its switch-in after a sleep to the doorbell, over the frames of the burst"},
		fixed:  "sender_fixed", slope: "sender_per_frame",
	}
	for i, b := range in.Bursts {
		if i > 0 && b.In > in.Bursts[i-1].At && b.How != input.ByPolls {
			l.add(float64(b.Frames), b.Own, 0)
		}
	}
	all := l.series
	all.name, all.how = "sender_burst", "median own time of the sender from its switch-in after a sleep to the doorbell"
	return l, all
}

// reader lays a line through the own time of the task that NET_RX wakes most, from one
// time that it sleeps to the next, over what was delivered meanwhile.
func reader(r *recording.Recording, in *input.Input) straight {
	l := straight{
		series: series{how: "least squares: own time of the receiver between two sleeps, over the packets delivered meanwhile"},
		fixed:  "reader_fixed", slope: "reader_per_datagram",
	}
	pid := readerPID(r)
	var delivered []int64
	for i := range r.Events {
		e := &r.Events[i]
		if dev, _ := e.Field("dev"); e.Name == "netif_receive_skb" && dev == r.RxDevice() {
			delivered = append(delivered, e.At)
		}
	}
	own, k := int64(0), 0
	for _, s := range in.Segments {
		if s.PID != pid {
			continue
		}
		own += s.Own
		if s.State != "S" {
			continue
		}
		n := 0
		for ; k < len(delivered) && delivered[k] <= s.End; k++ {
			n++
		}
		if n > 0 {
			l.add(float64(n), own, 0)
		}
		own = 0
	}
	return l
}

// readerPID returns the task that is woken most often while NET_RX runs, 0 if none is.
func readerPID(r *recording.Recording) int {
	count, best := map[int]int{}, 0
	running := map[int]bool{}
	for i := range r.Events {
		e := &r.Events[i]
		switch e.Name {
		case "softirq_entry":
			running[e.CPU] = e.Vec() == netRX
		case "softirq_exit":
			running[e.CPU] = false
		case "sched_wakeup":
			if w, ok := e.Wakeup(); ok && running[e.CPU] && e.Flags.Context == 's' {
				count[w.PID]++
				if count[w.PID] > count[best] {
					best = w.PID
				}
			}
		}
	}
	return best
}
