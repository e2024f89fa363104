package input

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"

	"gopkg.in/yaml.v3"

	"napisim/scenarios/recording"
)

// An Input is what came into the machine of a recording.
type Input struct {
	From     string         `yaml:"from"`               // run id of the recording
	Start    int64          `yaml:"start"`              // instant of the first event
	End      int64          `yaml:"end"`                // instant of the last event
	Tick     Tick           `yaml:"tick"`               // the periodic timer interrupt
	Timers   []Timer        `yaml:"timers,omitempty"`   // timer interrupts that raise NET_TX or wake a task
	Sender   Sender         `yaml:"sender"`             // what sends
	Bursts   []Burst        `yaml:"bursts,omitempty"`   // of a kernel packet generator: frames given to the device at once
	Slots    []Slot         `yaml:"slots,omitempty"`    // frames let out by a qdisc in one NET_TX softirq
	Frames   []Frame        `yaml:"frames,omitempty"`   // frames sent by tasks and by the stack, outside slots
	Softirqs []Softirq      `yaml:"softirqs,omitempty"` // handlers other than NET_RX
	Segments []Segment      `yaml:"segments,omitempty"` // of each task but the idle task and ksoftirqd
	Events   map[string]int `yaml:"events"`             // how often each event was recorded: each cost the machine time
}

// A Tick is the periodic timer interrupt.
type Tick struct {
	Period int64  `yaml:"period"` // ns, 0 if HZ is unknown
	Phase  int64  `yaml:"phase"`  // of its first raise modulo the period; the interrupt begins about 1 us before
	Ticks  []Beat `yaml:"ticks,omitempty"`
}

// A Beat is a tick that raised something; others leave no event.
type Beat struct {
	At     int64    `yaml:"at"` // of the first raise
	CPU    int      `yaml:"cpu"`
	Raised []string `yaml:"raised,flow"`    // vectors in order: TIMER, RCU, SCHED
	Idle   bool     `yaml:"idle,omitempty"` // the idle task ran
}

// A Timer is an hrtimer whose function shows: a raise or a wakeup in hardirq context
// that is no tick and no device's.
type Timer struct {
	At     int64  `yaml:"at"`
	CPU    int    `yaml:"cpu"`
	Raised string `yaml:"raised,omitempty"` // vector
	Woke   int    `yaml:"woke,omitempty"`   // pid
	Comm   string `yaml:"comm,omitempty"`
}

// A Sender is the task that gives most frames to the sending device.
type Sender struct {
	Device string `yaml:"device,omitempty"`
	PID    int    `yaml:"pid,omitempty"`
	Comm   string `yaml:"comm,omitempty"`
	Frames int    `yaml:"frames"` // in all bursts, slots and frames of that device
}

// How the instant of a burst is known.
const (
	ByProbe     = "probe"     // each frame has an event
	ByInterrupt = "interrupt" // the device interrupted the sender at once
	ByPolls     = "polls"     // only bounds: from polled frames and from when the sender ran
)

// A Burst is a number of frames that reach the receiver's ring at one instant.
type Burst struct {
	At       int64  `yaml:"at"`       // best estimate
	Earliest int64  `yaml:"earliest"` // it was not before ...
	Latest   int64  `yaml:"latest"`   // ... and not after
	Frames   int    `yaml:"frames"`
	PID      int    `yaml:"pid"`
	How      string `yaml:"how"`            // probe, interrupt or polls
	Wake     int64  `yaml:"wake,omitempty"` // when a timer woke the sender for this burst, 0 if it did not sleep
	In       int64  `yaml:"in,omitempty"`   // the last switch-in of the sender before At
	Own      int64  `yaml:"own,omitempty"`  // own time of the sender from In to At
}

// A Slot is what one NET_TX softirq lets out.
type Slot struct {
	Raise  int64 `yaml:"raise"` // NET_TX raised by the timer; 0 if not seen
	Entry  int64 `yaml:"entry"` // softirq_entry of NET_TX
	First  int64 `yaml:"first"` // event of the first and the last frame
	Last   int64 `yaml:"last"`
	Frames int   `yaml:"frames"`
	CPU    int   `yaml:"cpu"`
}

// A Frame is a frame given to a device's driver.
type Frame struct {
	At      int64  `yaml:"at"` // of the event, written after the driver took it
	Dev     string `yaml:"dev"`
	Len     int    `yaml:"len"`           // bytes with Ethernet header; more than the MTU where the device cuts segments
	Context string `yaml:"ctx"`           // p task, s softirq
	PID     int    `yaml:"pid"`           // task, or the one that was interrupted
	Own     int64  `yaml:"own,omitempty"` // in context p: own time of the task since it was switched in
}

// A Softirq is one execution of a handler.
type Softirq struct {
	At    int64  `yaml:"at"`
	NS    int64  `yaml:"ns"` // from entry to exit without handlers of interrupts within
	CPU   int    `yaml:"cpu"`
	Vec   string `yaml:"vec"`
	Who   string `yaml:"who"`                 // inline, ksoftirqd ...
	Again bool   `yaml:"again,omitempty"`     // it raised itself again
	Woke  []int  `yaml:"woke,flow,omitempty"` // pids, in order
}

// A Segment is one stay of a task on a CPU.
type Segment struct {
	PID    int    `yaml:"pid"`
	Comm   string `yaml:"comm"`
	CPU    int    `yaml:"cpu"`
	At     int64  `yaml:"at"`  // switched in; the start of the trace for the first
	End    int64  `yaml:"end"` // switched out; the end of the trace for the last
	Own    int64  `yaml:"own"`
	Stolen int64  `yaml:"stolen,omitempty"` // interrupts and softirqs on top
	Irqs   int    `yaml:"irqs,omitempty"`   // how many times the task was interrupted
	Events int    `yaml:"events,omitempty"` // recorded in task context
	State  string `yaml:"state,omitempty"`  // when it was switched out: R, R+, S, D, I, Z; "" at the end of the trace
	Woken  int64  `yaml:"woken,omitempty"`  // the wakeup before At; 0 if it was runnable all the time
	Wakes  []Wake `yaml:"wakes,omitempty"`  // what it woke from task context
}

// A Wake is a wakeup made by a task.
type Wake struct {
	Own  int64  `yaml:"own"` // own time of the waker since it was switched in
	PID  int    `yaml:"pid"`
	Comm string `yaml:"comm"`
}

// Of finds the input of a recording.
func Of(r *recording.Recording) *Input {
	in := &Input{From: r.ID, Events: maps.Clone(r.EventNames)}
	if n := len(r.Events); n > 0 {
		in.Start, in.End = r.Events[0].At, r.Events[n-1].At
	}
	w := newWalk(r, in)
	for i := range r.Events {
		w.event(&r.Events[i])
	}
	w.finish()
	in.Tick, in.Timers = ticks(r)
	in.Sender = w.sender()
	in.Bursts = bursts(r, in, w)
	for _, b := range in.Bursts {
		in.Sender.Frames += b.Frames
	}
	return in
}

// Write writes an input as YAML.
func (in *Input) Write(file string) error {
	text, err := in.YAML()
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// YAML returns an input as YAML, one row per line.
func (in *Input) YAML() ([]byte, error) {
	var doc yaml.Node
	if err := doc.Encode(in); err != nil {
		return nil, err
	}
	rows(&doc)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

// rows makes the elements of each list lines of their own.
func rows(n *yaml.Node) {
	for _, c := range n.Content {
		if n.Kind == yaml.SequenceNode && c.Kind == yaml.MappingNode {
			c.Style = yaml.FlowStyle
		}
		rows(c)
	}
}

// Read reads an input.yaml; what is not known in it is an error with file and line.
func Read(file string) (*Input, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	in := &Input{}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(in); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if !slices.IsSortedFunc(in.Bursts, func(a, b Burst) int { return int(a.At - b.At) }) {
		return nil, fmt.Errorf("%s: bursts are not in order of time", file)
	}
	return in, nil
}
