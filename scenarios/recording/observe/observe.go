package observe

import (
	"fmt"
	"strings"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/ftrace"
)

// Kinds of items.
const (
	IRQ   = "irq"   // a device's handler is entered
	Raise = "raise" // NET_RX is raised
	Pass  = "pass"  // net_rx_action runs
	Poll  = "poll"  // a NAPI was polled
)

// Who runs a pass or a poll.
const (
	Inline    = "inline"    // softirq on top of whatever ran
	Ksoftirqd = "ksoftirqd" // the kthread of a CPU
	Thread    = "thread"    // a NAPI's or a backlog's own kthread
	IRQThread = "irqthread" // PREEMPT_RT: in the thread of an interrupt
	Task      = "task"      // a busy poll: no softirq, bottom halves off
)

// An Item is one step of the receive path.
type Item struct {
	At      int64  `json:"at_ns"`
	Kind    string `json:"kind"`
	CPU     int    `json:"cpu"`
	Dev     string `json:"dev,omitempty"`     // irq, poll; "(no_device)" is a backlog
	Queue   string `json:"queue,omitempty"`   // irq: rx, tx, or none where one vector serves both
	Context string `json:"context,omitempty"` // irq, raise, poll: h hardirq, H hardirq in softirq, s softirq, p task
	Who     string `json:"who,omitempty"`     // pass, poll
	Work    int    `json:"work,omitempty"`    // poll; pass: the sum of its polls
	Budget  int    `json:"budget,omitempty"`  // poll
	Napi    string `json:"-"`                 // poll: the kernel's name of the NAPI, only good to tell two apart
	End     int64  `json:"end_ns,omitempty"`  // pass: when net_rx_action returned, 0 if the trace ends before
}

// Key returns what two items must share to be equal: everything but instants and who
// runs it; the work of a pass is that of its polls.
func (i Item) Key() string {
	switch i.Kind {
	case IRQ:
		return "irq " + i.Dev + " " + i.Queue + " " + i.Context
	case Raise:
		return "raise " + i.Context
	case Poll:
		return fmt.Sprintf("poll %s %d/%d %s", i.Dev, i.Work, i.Budget, i.Context)
	}
	return i.Kind
}

// String returns the item as a line for people.
func (i Item) String() string {
	s := fmt.Sprintf("%12d [%03d] %s", i.At, i.CPU, i.Key())
	if i.Who != "" {
		s += " by " + i.Who
	}
	return s
}

// An Observation is a trace reduced to what is compared.
type Observation struct {
	Items []Item `json:"items"`
	Stats Stats  `json:"stats"`
}

// Of observes a recording.
func Of(r *recording.Recording) *Observation { return Events(r.Events, r.DeviceOf) }

// Events observes a trace. device returns the device and queue of an interrupt's
// action, "" for interrupts that are no network device's; those are only counted.
func Events(events []ftrace.Event, device func(action string) (dev, queue string)) *Observation {
	w := watcher{out: &Observation{Stats: newStats()}, device: device, cpus: map[int]*cpu{}}
	for i := range events {
		w.event(&events[i])
	}
	w.finish()
	return w.out
}

// A cpu is the state of one CPU.
type cpu struct {
	irqs    []entered // nested handlers
	pass    int       // index of the running pass in Items, -1 if none runs
	polls   int       // of the running pass
	irqNs   int64     // handlers' time within the running pass
	groDev  string    // of the last entry
	segment map[string]int
}

// entered is a handler that was entered.
type entered struct {
	at     int64
	action string
}

// A watcher turns events into items.
type watcher struct {
	out    *Observation
	device func(string) (string, string)
	cpus   map[int]*cpu
}

// on returns the state of a CPU.
func (w *watcher) on(n int) *cpu {
	c := w.cpus[n]
	if c == nil {
		c = &cpu{pass: -1, segment: map[string]int{}}
		w.cpus[n] = c
	}
	return c
}

// who returns who runs a softirq, from the task it runs in.
func who(e *ftrace.Event) string {
	switch {
	case strings.HasPrefix(e.Comm, "ksoftirqd/"), strings.HasPrefix(e.Comm, "ktimers/"):
		return Ksoftirqd
	case strings.HasPrefix(e.Comm, "napi/"), strings.HasPrefix(e.Comm, "backlog_napi/"):
		return Thread
	case strings.HasPrefix(e.Comm, "irq/"):
		return IRQThread
	}
	return Inline
}

// add appends an item with what all items share.
func (w *watcher) add(e *ftrace.Event, i Item) {
	i.At, i.CPU = e.At, e.CPU
	if i.Kind != Pass {
		i.Context = string(e.Flags.Context)
	}
	w.out.Items = append(w.out.Items, i)
}

// event adds one event to the sequence and to the counts.
func (w *watcher) event(e *ftrace.Event) {
	c, s := w.on(e.CPU), &w.out.Stats
	switch e.Name {
	case "irq_handler_entry":
		w.irqEntry(e, c)
	case "irq_handler_exit":
		if n := len(c.irqs); n > 0 {
			in := c.irqs[n-1]
			c.irqs = c.irqs[:n-1]
			s.IRQTime[in.action] = append(s.IRQTime[in.action], e.At-in.at)
			c.irqNs += e.At - in.at
		}
	case "softirq_raise":
		name, _ := e.Field("action")
		s.Raises[name+"/"+string(e.Flags.Context)]++
		if e.Vec() == vecNetRX {
			w.add(e, Item{Kind: Raise})
		}
	case "softirq_entry":
		name, _ := e.Field("action")
		s.Entries[name+"/"+who(e)]++
		if e.Vec() == vecNetRX {
			w.endPass(c, 0)
			w.add(e, Item{Kind: Pass, Who: who(e)})
			c.pass, c.polls, c.irqNs = len(w.out.Items)-1, 0, 0
		}
	case "softirq_exit":
		if e.Vec() == vecNetRX {
			w.endPass(c, e.At)
		}
	case "napi_poll":
		w.poll(e, c)
	default:
		w.count(e, c)
	}
}

// vecNetRX is NET_RX's number among the softirqs.
const vecNetRX = 3

// irqEntry notes an interrupt.
func (w *watcher) irqEntry(e *ftrace.Event, c *cpu) {
	s := &w.out.Stats
	action, _ := e.Field("name")
	c.irqs = append(c.irqs, entered{e.At, action})
	s.IRQs[action]++
	if c.pass >= 0 {
		s.IRQsInPasses++
	}
	dev, queue := w.device(action)
	if dev == "" {
		return
	}
	s.DeviceIRQs[strings.TrimSuffix(dev+" "+queue, " ")]++
	w.add(e, Item{Kind: IRQ, Dev: dev, Queue: queue})
}

// poll notes a poll.
func (w *watcher) poll(e *ftrace.Event, c *cpu) {
	p, ok := e.Poll()
	if !ok {
		w.out.Stats.Other[e.Name]++
		return
	}
	by := who(e)
	if by == Inline && e.Flags.Context == 'p' {
		by = Task
	}
	w.add(e, Item{Kind: Poll, Dev: p.Dev, Work: p.Work, Budget: p.Budget, Who: by, Napi: p.Napi})
	s := &w.out.Stats
	bump(s.Work, p.Dev, p.Work)
	bump(s.Budgets, p.Dev, p.Budget)
	bump(s.PollsBy, p.Dev, by)
	if c.pass >= 0 && e.Flags.Context == 's' {
		w.out.Items[c.pass].Work += max(p.Work, 0)
		c.polls++
	}
}

// endPass closes the running pass, if one runs; at is 0 if its end is unknown.
func (w *watcher) endPass(c *cpu, at int64) {
	if c.pass < 0 {
		return
	}
	s, pass := &w.out.Stats, &w.out.Items[c.pass]
	c.pass = -1
	pass.End = at
	s.PollsPerPass[c.polls]++
	s.MaxWorkPerPass = max(s.MaxWorkPerPass, pass.Work)
	if at != 0 {
		s.PassTime = append(s.PassTime, at-pass.At-c.irqNs)
	}
}

// finish closes what the end of the trace left open.
func (w *watcher) finish() {
	for _, c := range w.cpus {
		w.endPass(c, 0)
		for dev := range c.segment {
			w.endAggregate(c, dev)
		}
	}
}
