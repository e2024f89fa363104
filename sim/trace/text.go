package trace

import (
	"bufio"
	"io"
	"strconv"

	"napisim/sim"
)

// header is what the kernel writes above the events.
const header = `#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
`

// WriteText writes events in the format of the kernel's trace file.
func WriteText(w io.Writer, events []Event) error {
	out := bufio.NewWriter(w)
	kept, written, cpus := int64(len(events)), int64(len(events)), int64(1)
	for i := range events {
		cpus = max(cpus, int64(events[i].CPU)+1)
		if events[i].Point == Lost {
			kept--
			written += events[i].A - 1
		}
	}
	b := append([]byte(nil), "# tracer: nop\n#\n# entries-in-buffer/entries-written: "...)
	b = text(integer(b, "", kept), "/")
	b = integer(integer(b, "", written), "   #P:", cpus)
	b = text(text(b, "\n"), header)
	for i := range events {
		if _, err := out.Write(b); err != nil {
			return err
		}
		b = append(appendEvent(b[:0], &events[i]), '\n')
	}
	if _, err := out.Write(b); err != nil {
		return err
	}
	return out.Flush()
}

// appendEvent appends the line of e: task, cpu, flags, time, point and arguments.
func appendEvent(b []byte, e *Event) []byte {
	if e.Point == Lost {
		b = integer(b, "CPU:", int64(e.CPU))
		return text(integer(b, " [LOST ", e.A), " EVENTS]")
	}
	comm := e.Comm
	if e.PID == 0 {
		// Only the arguments of sched_switch call the idle task swapper.
		comm = "<idle>"
	}
	b = append(spaces(b, 16-len(comm)), comm...)
	start := len(b) + 1
	b = integer(b, "-", int64(e.PID))
	b = spaces(b, 7-(len(b)-start))
	b = padded(text(b, " ["), int64(e.CPU), 3, 10)
	b = flags(text(b, "] "), e.Flags)

	// The kernel rounds to the nearest microsecond.
	us := int64((e.At + sim.Microsecond/2) / sim.Microsecond)
	seconds := strconv.AppendInt(nil, us/1e6, 10)
	b = append(spaces(text(b, " "), 5-len(seconds)), seconds...)
	b = padded(text(b, "."), us%1e6, 6, 10)
	b = text(b, ": ")
	b = text(text(b, e.Point.String()), ": ")
	return points[e.Point].args(b, e)
}

// flags appends the five characters of a state. Migration is never disabled here.
func flags(b []byte, f Flags) []byte {
	irqs := byte('.')
	switch {
	case f.IRQsOff && f.BHOff:
		irqs = 'D'
	case f.IRQsOff:
		irqs = 'd'
	case f.BHOff:
		irqs = 'b'
	}
	resched := byte('.')
	if f.NeedResched {
		resched = 'N'
	}
	depth := byte('.')
	if f.PreemptDepth > 0 {
		depth = "0123456789abcdef"[min(f.PreemptDepth, 15)]
	}
	return append(b, irqs, resched, ".shH"[f.Context], depth, '.')
}

func text(b []byte, s string) []byte { return append(b, s...) }

// field appends a label and a string.
func field(b []byte, label, s string) []byte { return append(append(b, label...), s...) }

// integer appends a label and a decimal number.
func integer(b []byte, label string, v int64) []byte {
	return strconv.AppendInt(append(b, label...), v, 10)
}

// pointer appends a label and the identity of an object in the shape of a pointer.
func pointer(b []byte, label string, v int64) []byte {
	return padded(append(b, label...), v, 16, 16)
}

// padded appends a number with leading zeros up to a width.
func padded(b []byte, v int64, width, base int) []byte {
	var digits [20]byte
	d := strconv.AppendUint(digits[:0], uint64(v), base)
	for range width - len(d) {
		b = append(b, '0')
	}
	return append(b, d...)
}

func spaces(b []byte, n int) []byte {
	for range n {
		b = append(b, ' ')
	}
	return b
}
