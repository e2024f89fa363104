package ftrace

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// errShape is returned for what is no line of a trace.
var errShape = errors.New("no line of a trace: want COMM-PID [CPU] FLAGS TIME: EVENT: PAYLOAD")

// parseLine reads one line. A CPU in brackets may also stand in COMM or PAYLOAD, so
// each "[digits]" is tried until the rest of the line fits.
func parseLine(line string) (Event, error) {
	err := errShape
	for from := 0; ; {
		i := strings.IndexByte(line[from:], '[')
		if i < 0 {
			return Event{}, err
		}
		open := from + i
		from = open + 1
		end := strings.IndexByte(line[open:], ']')
		if end < 0 {
			return Event{}, err
		}
		cpu, ok := digits(line[open+1 : open+end])
		if !ok {
			continue
		}
		e := Event{CPU: cpu}
		if !e.task(line[:open]) {
			continue
		}
		if rest := e.rest(line[open+end+1:]); rest == nil {
			return e, nil
		} else if !errors.Is(rest, errShape) {
			err = rest
		}
	}
}

// task reads COMM-PID, with "(TGID)" or "(-------)" after it where record-tgid is on.
func (e *Event) task(s string) bool {
	s = strings.TrimRight(s, " \t")
	if strings.HasSuffix(s, ")") {
		if i := strings.LastIndexByte(s, '('); i > 0 {
			s = strings.TrimRight(s[:i], " \t")
		}
	}
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return false
	}
	pid, ok := digits(s[i+1:])
	if !ok {
		return false
	}
	e.PID, e.Comm = pid, strings.TrimLeft(s[:i], " \t")
	return e.Comm != ""
}

// rest reads FLAGS TIME: EVENT: PAYLOAD.
func (e *Event) rest(s string) error {
	s = strings.TrimLeft(s, " \t")
	word, after, _ := strings.Cut(s, " ")
	if !strings.HasSuffix(word, ":") { // not the time yet: flags
		if !e.Flags.parse(word) {
			return errShape
		}
		s = strings.TrimLeft(after, " \t")
		word, after, _ = strings.Cut(s, " ")
	} else {
		e.Flags.Context = 'p'
	}
	clock, ok := strings.CutSuffix(word, ":")
	if !ok {
		return errShape
	}
	at, ok := instant(clock)
	if !ok {
		return errors.New("time " + strconv.Quote(clock) + " is neither SECONDS.FRACTION nor an integer")
	}
	e.At = at
	name, payload, _ := strings.Cut(strings.TrimLeft(after, " "), ":")
	if name == "" || strings.ContainsAny(name, " \t=") {
		return errors.New("no name of an event after the time")
	}
	e.Name, e.Payload = name, strings.TrimRight(strings.TrimPrefix(payload, " "), " \r")
	return nil
}

// parse reads four flags, five since Linux 5.15.
func (f *Flags) parse(s string) bool {
	if len(s) != 4 && len(s) != 5 {
		return false
	}
	switch s[0] {
	case '.', 'X':
	case 'd':
		f.IRQsOff = true
	case 'b':
		f.BHOff = true
	case 'D':
		f.IRQsOff, f.BHOff = true, true
	default:
		return false
	}
	switch s[1] {
	case '.', 'p': // p: preempt resched only, nothing for the scheduler's own flag
	case 'N', 'n', 'L', 'l', 'B', 'b':
		f.NeedResched = true
	default:
		return false
	}
	switch s[2] {
	case '.':
		f.Context = 'p'
	case 's', 'h', 'H', 'z', 'Z':
		f.Context = s[2]
	default:
		return false
	}
	var ok bool
	if f.PreemptDepth, ok = depth(s[3]); !ok {
		return false
	}
	if len(s) == 5 {
		f.MigrateDepth, ok = depth(s[4])
	}
	return ok
}

// depth reads "." or a hexadecimal digit.
func depth(c byte) (uint8, bool) {
	switch {
	case c == '.':
		return 0, true
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}

// digits reads a number of digits only.
func digits(s string) (int, bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// instant returns ns of SECONDS.FRACTION, or of an integer that counts ns.
func instant(s string) (int64, bool) {
	whole, frac, split := strings.Cut(s, ".")
	if whole == "" || whole[0] == '-' || whole[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, false
	}
	if !split {
		return n, true
	}
	f, ok := digits(frac)
	if !ok || n > math.MaxInt64/1_000_000_000-1 {
		return 0, false
	}
	ns := int64(f)
	for range 9 - len(frac) {
		ns *= 10
	}
	return n*1_000_000_000 + ns, true
}
