package input

import (
	"slices"
	"strconv"
	"strings"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/ftrace"
)

// bursts finds the bursts of a kernel packet generator: by the probe of each frame
// where there is one, else by interrupts and polls. Senders whose frames have events
// of their own have no bursts.
func bursts(r *recording.Recording, in *Input, w *walk) []Burst {
	if len(in.Slots) > 0 || r.TxDevice() == "" || r.Topology == "veth" {
		return nil
	}
	for i := range in.Frames {
		if in.Frames[i].Dev == r.TxDevice() && in.Frames[i].Context == "p" {
			return nil
		}
	}
	f := newFinder(r, in)
	if len(f.polls) == 0 {
		return nil
	}
	if r.EventNames["drv_xmit"] > 0 {
		return f.byProbe()
	}
	f.pid, in.Sender.PID = f.generator(), f.generator()
	in.Sender.Comm = w.comm[in.Sender.PID]
	return f.byPolls()
}

// A polled is a poll of the receiving device.
type polled struct {
	begin, end   int64
	work, budget int
	sum          int // frames polled up to its end
}

// A finder looks for bursts.
type finder struct {
	r     *recording.Recording
	in    *Input
	pid   int
	polls []polled
	irqs  []*ftrace.Event // of network devices, in context h
	marks []mark
}

// A mark is a change of the burst's size written into the trace by the sender's script.
type mark struct {
	at    int64
	burst int
}

// newFinder collects polls, interrupts and marks.
func newFinder(r *recording.Recording, in *Input) *finder {
	f := &finder{r: r, in: in}
	begin := map[int]int64{}
	sum := 0
	for i := range r.Events {
		e := &r.Events[i]
		switch e.Name {
		case "softirq_entry", "sched_switch", "napi_busy_loop":
			begin[e.CPU] = e.At
		case "napi_poll":
			p, ok := e.Poll()
			if ok && p.Dev == r.RxDevice() {
				sum += max(p.Work, 0)
				f.polls = append(f.polls, polled{begin[e.CPU], e.At, p.Work, p.Budget, sum})
			}
			begin[e.CPU] = e.At
		case "irq_handler_entry":
			name, _ := e.Field("name")
			if dev, _ := r.DeviceOf(name); dev != "" && e.Flags.Context == 'h' {
				f.irqs = append(f.irqs, e)
			}
		case "tracing_mark_write":
			if n, ok := strings.CutPrefix(e.Payload, "burst "); ok {
				if size, err := strconv.Atoi(strings.TrimSpace(n)); err == nil && size > 0 {
					f.marks = append(f.marks, mark{e.At, size})
				}
			}
		}
	}
	return f
}

// size returns the frames of a burst: as configured, else what the chains of polls up
// to the first that is not full most often find.
func (f *finder) size() int {
	if f.r.Rate.Burst > 0 {
		return f.r.Rate.Burst
	}
	if f.r.Rate.Form == recording.Paced {
		return 1
	}
	chain, count := 0, map[int]int{}
	for _, p := range f.polls {
		chain += max(p.work, 0)
		if p.work < p.budget && chain > 0 {
			count[chain]++
			chain = 0
		}
	}
	best := 1
	for n, c := range count {
		if c > count[best] || c == count[best] && n < best {
			best = n
		}
	}
	if f.r.Offered > 0 && f.r.Offered%best != 0 {
		return 1 // the chains are chance, not bursts
	}
	return best
}

// byProbe groups the frames: the doorbell follows the last one of a burst. A burst is
// cut short where the queue fills up; the next one then begins anew.
func (f *finder) byProbe() []Burst {
	size, step := f.size(), f.step()
	var out []Burst
	n, first, last := 0, 0, 0 // frames of the open burst; index of the first and last one's event
	flush := func() {
		if n > 0 {
			out = append(out, f.probed(n, first, last))
		}
		n = 0
	}
	for i := range f.r.Events {
		if f.r.Events[i].Name != "drv_xmit" {
			continue
		}
		switch {
		case n == size || n > 0 && f.between(last, i, step):
			flush()
			size = f.size()
		case n == 1 && len(out) == 0 && f.rang(f.r.Events[last].At, f.r.Events[i].At):
			flush()
			size-- // the rest of the first burst
		}
		if n == 0 {
			first = i
		}
		last = i
		n++
	}
	flush()
	return out
}

// probed makes a burst of the events of its first and last frame.
func (f *finder) probed(n, first, last int) Burst {
	e := &f.r.Events[last]
	b := Burst{At: e.At, Earliest: e.At, Latest: f.in.End, Frames: n, PID: e.PID, How: ByProbe}
	for j := last + 1; j < len(f.r.Events); j++ {
		if next := &f.r.Events[j]; next.CPU == e.CPU {
			b.Latest = next.At
			break
		}
	}
	f.schedule(&b, f.r.Events[first].At)
	return b
}

// rang reports whether the receiver interrupted the sender in a span of time. The first
// frame after the device was brought up is on its own: byte queue limits begin at zero,
// so the queue counts as stopped after it and the driver writes the doorbell.
func (f *finder) rang(from, to int64) bool {
	for _, e := range f.irqs {
		name, _ := e.Field("name")
		if dev, _ := f.r.DeviceOf(name); dev == f.r.RxDevice() && e.At > from && e.At < to {
			return true
		}
	}
	return false
}

// slow is the time from the last handler of a doorbell's interrupts to the softirq above
// which the sender added frames in between; without it takes about 1 us.
const slow = 2_500

// divide parts the first burst where its first frame went on its own: the receiver's
// interrupt came, and only later a second one or, when the whole burst was given away,
// the softirq.
func (f *finder) divide(b Burst) []Burst {
	if b.How != ByInterrupt || b.Frames < 2 {
		return []Burst{b}
	}
	first, rest := b, b
	rest.Frames--
	first.Frames = 1
	for _, e := range f.irqs {
		name, _ := e.Field("name")
		if dev, _ := f.r.DeviceOf(name); dev == f.r.RxDevice() && e.PID == b.PID && e.At >= b.Earliest && e.At < b.At-slow {
			first.At, first.Latest = e.At, e.At
			f.schedule(&first, e.At)
			rest.Earliest = e.At
			return []Burst{first, rest}
		}
	}
	exit := int64(0)
	for i := range f.r.Events {
		e := &f.r.Events[i]
		switch {
		case e.At < b.At:
		case e.PID != b.PID || e.Name == "sched_switch":
			return []Burst{b}
		case e.Name == "irq_handler_exit" && (exit == 0 || e.At-exit < cluster):
			exit = e.At
		case e.Name == "softirq_entry":
			if e.At-exit < slow {
				return []Burst{b}
			}
			rest.At, rest.Earliest, rest.Latest = e.At, exit, e.At
			rest.Own += e.At - exit
			return []Burst{first, rest}
		}
	}
	return []Burst{b}
}

// step returns the usual distance of two frames' events with none between.
func (f *finder) step() int64 {
	var gaps []int64
	for i := 1; i < len(f.r.Events); i++ {
		a, b := &f.r.Events[i-1], &f.r.Events[i]
		if a.Name == "drv_xmit" && b.Name == "drv_xmit" {
			gaps = append(gaps, b.At-a.At)
		}
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

// between reports whether the frames of two events belong to different bursts: the
// sender did something else, which it cannot while bottom halves are off for a burst,
// or took longer than for a frame of the same burst.
func (f *finder) between(a, b int, step int64) bool {
	if b == a+1 {
		return f.r.Events[b].At-f.r.Events[a].At > 2*step
	}
	for i := a + 1; i < b; i++ {
		e := &f.r.Events[i]
		if e.CPU == f.r.Events[a].CPU && e.Flags.Context != 'h' && e.Flags.Context != 'H' {
			return true
		}
	}
	return false
}

// generator finds the task that device interrupts most often meet with bottom halves
// off: they are switched off around the driver's transmit function, and the doorbell
// in it is what makes the devices interrupt.
func (f *finder) generator() int {
	for _, bh := range []bool{true, false} {
		count := map[int]int{}
		best := 0
		for _, e := range f.irqs {
			if e.PID == 0 || bh && !e.Flags.BHOff || strings.HasPrefix(e.Comm, "ksoftirqd") {
				continue
			}
			count[e.PID]++
			if count[e.PID] > count[best] {
				best = e.PID
			}
		}
		if best != 0 {
			return best
		}
	}
	return 0
}

// byPolls finds each burst between the poll that emptied the ring before it and the
// poll that found its first frame, at the interrupt that met the sender in between.
func (f *finder) byPolls() []Burst {
	parts := f.marks
	if len(parts) == 0 {
		parts = []mark{{f.in.Start, f.size()}}
	}
	var out []Burst
	before := 0 // frames of earlier bursts
	for i, part := range parts {
		until := f.in.End
		if i+1 < len(parts) {
			until = parts[i+1].at
		}
		total := 0
		for _, p := range f.polls {
			if p.end <= until {
				total = p.sum
			}
		}
		if i+1 == len(parts) && f.r.Offered > total {
			total = f.r.Offered
		}
		for before < total {
			n := min(part.burst, total-before)
			b, ok := f.find(out, before, n, part.at)
			if !ok {
				return out
			}
			if before == 0 {
				out = append(out, f.divide(b)...)
			} else {
				out = append(out, b)
			}
			before += n
		}
	}
	return out
}

// find returns the burst of n frames that follows the first before frames.
func (f *finder) find(earlier []Burst, before, n int, from int64) (Burst, bool) {
	b := Burst{Frames: n, PID: f.pid, How: ByPolls, Earliest: from}
	last := int64(-1) // doorbell of the previous burst, if an interrupt shows it
	if k := len(earlier); k > 0 {
		b.Earliest = max(from, earlier[k-1].Earliest)
		if earlier[k-1].How == ByInterrupt {
			last = earlier[k-1].At
			b.Earliest = max(from, last)
		}
	}
	found := false
	for _, p := range f.polls {
		if p.sum > before {
			b.Latest, found = p.begin, true
			break
		}
		if p.sum == before && p.work < p.budget {
			b.Earliest = max(b.Earliest, p.begin)
		}
	}
	if !found {
		return b, false // never polled: the trace ends before
	}
	if at := f.doorbell(b.Earliest, b.Latest, last); at > 0 {
		b.At, b.How, b.Latest = at, ByInterrupt, at
	} else {
		f.narrow(&b)
		b.At = b.Latest
	}
	f.schedule(&b, b.At)
	b.Earliest = min(b.Earliest, b.Latest)
	return b, true
}

// cluster is the longest distance between interrupts that one doorbell causes.
const cluster = 4_000

// doorbell returns the first interrupt of the last cluster that met the sender in
// (from, to], unless the cluster is the one of the previous burst.
func (f *finder) doorbell(from, to, previous int64) int64 {
	first := int64(0)
	for _, e := range slices.Backward(f.irqs) {
		switch {
		case e.At > to, e.PID != f.pid:
			continue
		case e.At < from, first > 0 && first-e.At > cluster:
			return notBefore(first, previous)
		}
		first = e.At
	}
	return notBefore(first, previous)
}

// notBefore returns at unless it belongs to the cluster that began at previous.
func notBefore(at, previous int64) int64 {
	if previous >= 0 && at-previous <= cluster {
		return 0
	}
	return at
}

// narrow cuts the bounds down to when the sender was on a CPU.
func (f *finder) narrow(b *Burst) {
	latest := int64(0)
	for i := range f.in.Segments {
		s := &f.in.Segments[i]
		if s.PID != f.pid || s.At > b.Latest {
			continue
		}
		if end := min(s.End, b.Latest); end >= b.Earliest {
			latest = max(latest, end)
		}
	}
	if latest > 0 {
		b.Latest = latest
	}
}

// schedule adds when the sender was woken for a burst and its own time up to it;
// first is the burst's first sign.
func (f *finder) schedule(b *Burst, first int64) {
	i, _ := slices.BinarySearchFunc(f.in.Segments, first+1, func(s Segment, at int64) int { return int(s.At - at) })
	for i--; i >= 0; i-- {
		s := &f.in.Segments[i]
		if s.PID != b.PID {
			continue
		}
		if b.At <= s.End {
			b.In, b.Own = s.At, f.ownAt(s, b.At)
		}
		if s.Woken > 0 && !f.sentIn(s, first) {
			b.Wake = s.Woken
		}
		return
	}
}

// sentIn reports whether the sender met an interrupt or gave a frame away in a segment
// before an instant: the segment's wakeup was then for an earlier burst.
func (f *finder) sentIn(s *Segment, before int64) bool {
	for _, e := range f.irqs {
		if e.PID == s.PID && e.At >= s.At && e.At < before {
			return true
		}
	}
	return false
}

// ownAt returns the own time of a segment's task from its switch-in to an instant.
func (f *finder) ownAt(s *Segment, at int64) int64 {
	w := newWalk(f.r, &Input{})
	i, _ := slices.BinarySearchFunc(f.r.Events, s.At, func(e ftrace.Event, at int64) int { return int(e.At - at) })
	c := &cpu{seg: Segment{At: s.At, PID: s.PID}}
	for ; i < len(f.r.Events) && f.r.Events[i].At <= at; i++ {
		if e := &f.r.Events[i]; e.CPU == s.CPU && e.At > s.At {
			w.interruption(e, c)
			switch e.Name {
			case "irq_handler_entry":
				c.nested++
			case "irq_handler_exit":
				c.nested = max(0, c.nested-1)
			}
		}
	}
	return c.own(at)
}
