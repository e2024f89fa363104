package ftrace

import (
	"strconv"
	"strings"
)

// Flags are the characters between CPU and time.
type Flags struct {
	IRQsOff      bool  // d or D: interrupts are off
	BHOff        bool  // b or D: inside an explicit section with bottom halves off
	NeedResched  bool  // a reschedule of this CPU is asked for, lazily or not
	Context      byte  // 'h' hardirq, 'H' hardirq inside softirq, 's' softirq, 'z', 'Z' NMI, 'p' task
	PreemptDepth uint8 // preempt_disable depth, without softirq and hardirq
	MigrateDepth uint8 // migrate_disable depth, Linux 5.15 and later
}

// String returns the flags as the kernel prints them since Linux 5.15, a wish for a
// reschedule as N.
func (f Flags) String() string {
	s := []byte(".....")
	switch {
	case f.IRQsOff && f.BHOff:
		s[0] = 'D'
	case f.IRQsOff:
		s[0] = 'd'
	case f.BHOff:
		s[0] = 'b'
	}
	if f.NeedResched {
		s[1] = 'N'
	}
	if f.Context != 'p' && f.Context != 0 {
		s[2] = f.Context
	}
	const digits = "0123456789abcdef"
	if f.PreemptDepth > 0 {
		s[3] = digits[f.PreemptDepth%16]
	}
	if f.MigrateDepth > 0 {
		s[4] = digits[f.MigrateDepth%16]
	}
	return string(s)
}

// An Event is one line of a trace.
type Event struct {
	At      int64 // ns of the trace clock
	CPU     int
	Comm    string // saved name of the task; may differ from sched_switch after exec
	PID     int
	Flags   Flags
	Name    string
	Payload string // what follows the name, without the separating ": "
	Line    int    // in the file, from 1
}

// Lost is the name of the event that stands for "CPU:n [LOST m EVENTS]"; its payload is m.
const Lost = "LOST_EVENTS"

// Field returns the value of key=VALUE in the payload and whether it is there. The
// value of a key that ends in comm may hold spaces: it ends where the key's pid
// follows. The value of name ends with the line.
func (e *Event) Field(key string) (string, bool) {
	p := e.Payload
	for from := 0; ; {
		i := strings.Index(p[from:], key)
		if i < 0 {
			return "", false
		}
		start := from + i
		end := start + len(key)
		if end < len(p) && p[end] == '=' && (start == 0 || p[start-1] == ' ' || p[start-1] == '[') {
			return e.value(key, p[end+1:]), true
		}
		from = start + 1
	}
}

// value cuts a field's value from the rest of the payload.
func (e *Event) value(key, rest string) string {
	switch {
	case strings.HasSuffix(key, "comm"):
		if i := strings.Index(rest, " "+strings.TrimSuffix(key, "comm")+"pid="); i >= 0 {
			return rest[:i]
		}
	case key == "name" && strings.HasPrefix(e.Name, "irq_handler"):
		return rest
	}
	if i := strings.IndexByte(rest, ' '); i >= 0 {
		rest = rest[:i]
	}
	return strings.TrimSuffix(rest, "]")
}

// Int returns a field as a number, decimal or 0x hexadecimal, and whether it is one.
func (e *Event) Int(key string) (int64, bool) {
	s, ok := e.Field(key)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		u, uerr := strconv.ParseUint(s, 0, 64)
		if uerr != nil {
			return 0, false
		}
		n = int64(u) //nolint:gosec // pointers of kprobes fill all 64 bits; identity is kept
	}
	return n, true
}

// Vec returns the vector of softirq_raise, softirq_entry and softirq_exit, -1 for others.
func (e *Event) Vec() int {
	n, ok := e.Int("vec")
	if !ok || n < 0 || n > 31 {
		return -1
	}
	return int(n)
}

// A Poll is the payload of napi_poll.
type Poll struct {
	Napi, Dev    string // hashed pointer; device, "(no_device)" for a backlog
	Work, Budget int    // -1 where the kernel is too old to print them
}

// Poll returns the payload of napi_poll, false if it is no napi_poll of known shape.
func (e *Event) Poll() (Poll, bool) {
	const head, mid = "napi poll on napi struct ", " for device "
	rest, ok := strings.CutPrefix(e.Payload, head)
	if e.Name != "napi_poll" || !ok {
		return Poll{}, false
	}
	napi, rest, ok := strings.Cut(rest, mid)
	if !ok {
		return Poll{}, false
	}
	p := Poll{Napi: napi, Work: -1, Budget: -1}
	words := strings.Fields(rest)
	if len(words) == 0 {
		return Poll{}, false
	}
	p.Dev = words[0]
	for i := 1; i+1 < len(words); i += 2 {
		n, err := strconv.Atoi(words[i+1])
		if err != nil {
			return Poll{}, false
		}
		switch words[i] {
		case "work":
			p.Work = n
		case "budget":
			p.Budget = n
		}
	}
	return p, true
}

// A Switch is the payload of sched_switch.
type Switch struct {
	PrevComm, NextComm string
	PrevPID, NextPID   int
	PrevState          string // R, R+, S, D, I, Z ...
}

// Switch returns the payload of sched_switch, false for other events.
func (e *Event) Switch() (Switch, bool) {
	if e.Name != "sched_switch" {
		return Switch{}, false
	}
	var s Switch
	prev, okP := e.Int("prev_pid")
	next, okN := e.Int("next_pid")
	if !okP || !okN {
		return s, false
	}
	s.PrevPID, s.NextPID = int(prev), int(next)
	s.PrevComm, _ = e.Field("prev_comm")
	s.NextComm, _ = e.Field("next_comm")
	s.PrevState, _ = e.Field("prev_state")
	return s, true
}

// A Wakeup is the payload of sched_wakeup and sched_waking.
type Wakeup struct {
	Comm        string
	PID, Target int // task and the CPU it is queued on
}

// Wakeup returns the payload of sched_wakeup, false for other events.
func (e *Event) Wakeup() (Wakeup, bool) {
	if e.Name != "sched_wakeup" && e.Name != "sched_waking" {
		return Wakeup{}, false
	}
	pid, ok := e.Int("pid")
	if !ok {
		return Wakeup{}, false
	}
	w := Wakeup{PID: int(pid)}
	w.Comm, _ = e.Field("comm")
	if s, has := e.Field("target_cpu"); has { // %03d: leading zeros are no octal
		w.Target, _ = strconv.Atoi(s)
	}
	return w, true
}
