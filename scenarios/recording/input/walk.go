package input

import (
	"strings"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/ftrace"
)

// apart is the gap between two events above which a hardirq that interrupts a task, or
// a softirq that starts, is a new interruption and no continuation of the last one.
const apart = 2_000

// A walk goes through the events once and keeps what each CPU does.
type walk struct {
	r     *recording.Recording
	in    *Input
	cpus  map[int]*cpu
	woken map[int]int64 // last wakeup of a task that has not run since, by pid
	sent  map[int]int   // frames given to the sending device in task context, by pid
	comm  map[int]string
}

// A cpu is the state of one CPU.
type cpu struct {
	seg     Segment
	from    int64 // first event of the interruption that goes on, 0 if the task runs
	to      int64 // last event of it
	handler int64 // entry of the device's handler that runs, 0 if none does
	nested  int
	soft    *softirq
	netTX   int64 // raise of NET_TX by a timer, until it runs
	slot    Slot
	inSlot  bool
}

// A softirq is a handler that runs.
type softirq struct {
	Softirq
	irq int64 // time of device handlers within
}

// newWalk starts at the first event.
func newWalk(r *recording.Recording, in *Input) *walk {
	return &walk{r: r, in: in, cpus: map[int]*cpu{}, woken: map[int]int64{}, sent: map[int]int{}, comm: map[int]string{}}
}

// on returns the state of an event's CPU.
func (w *walk) on(e *ftrace.Event) *cpu {
	c := w.cpus[e.CPU]
	if c == nil {
		c = &cpu{seg: Segment{PID: e.PID, Comm: e.Comm, CPU: e.CPU, At: e.At}}
		w.cpus[e.CPU] = c
	}
	return c
}

// event accounts one event.
func (w *walk) event(e *ftrace.Event) {
	if e.Name == ftrace.Lost {
		return
	}
	c := w.on(e)
	w.interruption(e, c)
	switch e.Name {
	case "irq_handler_entry":
		if c.nested++; c.nested == 1 {
			c.handler = e.At
		}
	case "irq_handler_exit":
		if c.nested = max(0, c.nested-1); c.nested == 0 && c.soft != nil && c.handler > 0 {
			c.soft.irq += e.At - c.handler
		}
	case "softirq_raise":
		w.raise(e, c)
	case "softirq_entry":
		w.entry(e, c)
	case "softirq_exit":
		w.exit(e, c)
	case "sched_wakeup":
		w.wakeup(e, c)
	case "sched_switch":
		w.swtch(e, c)
	case "net_dev_xmit", "netif_rx", "drv_xmit":
		w.xmit(e, c)
	}
}

// interruption keeps the span of events on top of the task.
func (w *walk) interruption(e *ftrace.Event, c *cpu) {
	top := e.Flags.Context != 'p'
	if !top {
		c.resume()
		c.seg.Events++
		return
	}
	fresh := c.from == 0
	if !fresh && e.At-c.to > apart && c.nested == 0 {
		fresh = e.Flags.Context == 'h' || e.Name == "softirq_entry"
	}
	if fresh {
		c.resume()
		c.from = e.At
		c.seg.Irqs++
	}
	c.to = e.At
}

// resume ends an interruption.
func (c *cpu) resume() {
	if c.from > 0 {
		c.seg.Stolen += c.to - c.from
		c.from, c.to = 0, 0
	}
}

// own returns the own time of the running task since it was switched in.
func (c *cpu) own(at int64) int64 {
	stolen := c.seg.Stolen
	if c.from > 0 {
		stolen += at - c.from
	}
	return at - c.seg.At - stolen
}

// raise keeps what a handler raises.
func (w *walk) raise(e *ftrace.Event, c *cpu) {
	name, _ := e.Field("action")
	if c.soft != nil && e.Flags.Context == 's' && name == c.soft.Vec {
		c.soft.Again = true
	}
	if name == "NET_TX" && c.nested == 0 && (e.Flags.Context == 'h' || e.Flags.Context == 'H') {
		c.netTX = e.At
	}
}

// entry opens a softirq handler.
func (w *walk) entry(e *ftrace.Event, c *cpu) {
	name, _ := e.Field("action")
	c.soft = &softirq{Softirq: Softirq{At: e.At, CPU: e.CPU, Vec: name, Who: who(e.Comm)}}
	if name == "NET_TX" {
		c.slot, c.inSlot = Slot{Raise: c.netTX, Entry: e.At, CPU: e.CPU}, true
		c.netTX = 0
	}
}

// exit closes a softirq handler.
func (w *walk) exit(e *ftrace.Event, c *cpu) {
	if c.soft == nil {
		return
	}
	s := c.soft
	c.soft = nil
	s.NS = e.At - s.At - s.irq
	if s.Vec != "NET_RX" {
		w.in.Softirqs = append(w.in.Softirqs, s.Softirq)
	}
	if c.inSlot && c.slot.Frames > 0 {
		w.in.Slots = append(w.in.Slots, c.slot)
	}
	c.inSlot = false
}

// who names the runner of a softirq by its task.
func who(comm string) string {
	for _, p := range []struct{ prefix, name string }{
		{"ksoftirqd/", "ksoftirqd"}, {"ktimers/", "ktimers"}, {"irq/", "irqthread"}, {"napi/", "thread"}, {"backlog_napi/", "thread"},
	} {
		if strings.HasPrefix(comm, p.prefix) {
			return p.name
		}
	}
	return "inline"
}

// wakeup notes who was woken and by whom.
func (w *walk) wakeup(e *ftrace.Event, c *cpu) {
	wake, ok := e.Wakeup()
	if !ok {
		return
	}
	if w.woken[wake.PID] == 0 {
		w.woken[wake.PID] = e.At
	}
	switch {
	case e.Flags.Context == 'p':
		c.seg.Wakes = append(c.seg.Wakes, Wake{Own: c.own(e.At), PID: wake.PID, Comm: wake.Comm})
	case c.soft != nil && e.Flags.Context == 's':
		c.soft.Woke = append(c.soft.Woke, wake.PID)
	}
}

// swtch ends a segment and begins the next.
func (w *walk) swtch(e *ftrace.Event, c *cpu) {
	s, ok := e.Switch()
	if !ok {
		return
	}
	if c.seg.PID == s.PrevPID {
		c.seg.Comm = s.PrevComm // the name after exec
	}
	w.end(c, e.At, s.PrevState)
	c.seg = Segment{PID: s.NextPID, Comm: s.NextComm, CPU: e.CPU, At: e.At, Woken: w.woken[s.NextPID]}
	delete(w.woken, s.NextPID)
}

// end keeps a segment that ends.
func (w *walk) end(c *cpu, at int64, state string) {
	c.resume()
	c.seg.End, c.seg.State = at, state
	c.seg.Own = at - c.seg.At - c.seg.Stolen
	w.comm[c.seg.PID] = c.seg.Comm
	if c.seg.PID != 0 && who(c.seg.Comm) != "ksoftirqd" {
		w.in.Segments = append(w.in.Segments, c.seg)
	}
}

// xmit notes a frame. Within NET_TX it belongs to a slot, which a receiver without a
// queue of its own counts by netif_rx and another by net_dev_xmit.
func (w *walk) xmit(e *ftrace.Event, c *cpu) {
	if e.Name == "drv_xmit" {
		w.sent[e.PID]++
		return
	}
	if e.Name == "netif_rx" {
		return
	}
	dev, _ := e.Field("dev")
	n, _ := e.Int("len")
	if c.inSlot && e.Flags.Context == 's' && dev == w.r.TxDevice() {
		if c.slot.Frames++; c.slot.Frames == 1 {
			c.slot.First = e.At
		}
		c.slot.Last = e.At
		return
	}
	f := Frame{At: e.At, Dev: dev, Len: int(n), Context: string(e.Flags.Context), PID: e.PID}
	if f.Context == "p" {
		f.Own = c.own(e.At)
		if dev == w.r.TxDevice() {
			w.sent[e.PID]++
		}
	}
	w.in.Frames = append(w.in.Frames, f)
}

// finish closes what the end of the trace leaves open.
func (w *walk) finish() {
	for n := range w.r.CPUs {
		if c := w.cpus[n]; c != nil {
			w.end(c, w.in.End, "")
		}
	}
}

// sender returns the task that gave most frames to the sending device.
func (w *walk) sender() Sender {
	s := Sender{Device: w.r.TxDevice()}
	most := 0
	for pid, n := range w.sent {
		if n > most || n == most && pid < s.PID {
			s.PID, most = pid, n
		}
	}
	s.Comm = w.comm[s.PID]
	for _, f := range w.in.Frames {
		if f.Dev == s.Device {
			s.Frames++
		}
	}
	for _, t := range w.in.Slots {
		s.Frames += t.Frames
	}
	return s
}
