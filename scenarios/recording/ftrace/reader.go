package ftrace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// maxLine is the longest line read; a trace's own limit is one page.
const maxLine = 1 << 20

// An Error says which line of which file is wrong.
type Error struct {
	File string
	Line int // from 1
	Err  error
}

// Error returns file:line: reason.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// A Reader reads events one after the other.
type Reader struct {
	name   string
	in     *bufio.Scanner
	err    error
	line   int
	names  map[string]string // one copy of each name of an event or task
	header []string
}

// NewReader reads a trace from r, unpacking gzip if it is that; name stands in errors.
func NewReader(r io.Reader, name string) (*Reader, error) {
	b := bufio.NewReader(r)
	if magic, _ := b.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, &Error{name, 1, err}
		}
		b = bufio.NewReader(z)
	}
	s := bufio.NewScanner(b)
	s.Buffer(make([]byte, 0, 4096), maxLine)
	return &Reader{name: name, in: s, names: map[string]string{}}, nil
}

// Header returns the comment lines read so far, without "#".
func (r *Reader) Header() []string { return r.header }

// Next returns the next event, io.EOF at the end, or an *Error; after an error that
// is not about a single line, Next returns it again.
func (r *Reader) Next() (Event, error) {
	if r.err != nil {
		return Event{}, r.err
	}
	for r.in.Scan() {
		r.line++
		line := r.in.Text()
		switch {
		case strings.HasPrefix(line, "#"):
			if len(r.header) < 1000 {
				r.header = append(r.header, strings.Trim(line, "# "))
			}
			continue
		case strings.TrimSpace(line) == "", strings.HasPrefix(strings.TrimLeft(line, " "), "=> "):
			continue // a blank, or a line of a stack trace
		}
		if e, ok := lostLine(line); ok {
			e.Line = r.line
			return e, nil
		}
		e, err := parseLine(line)
		if err != nil {
			return Event{}, &Error{r.name, r.line, err}
		}
		e.Name, e.Comm, e.Line = r.intern(e.Name), r.intern(e.Comm), r.line
		return e, nil
	}
	r.err = io.EOF
	if err := r.in.Err(); err != nil {
		r.err = &Error{r.name, r.line + 1, err}
	}
	return Event{}, r.err
}

// intern returns one copy of a string that repeats.
func (r *Reader) intern(s string) string {
	if have, ok := r.names[s]; ok {
		return have
	}
	s = strings.Clone(s)
	r.names[s] = s
	return s
}

// lostLine reads "CPU:n [LOST m EVENTS]".
func lostLine(line string) (Event, bool) {
	rest, ok := strings.CutPrefix(line, "CPU:")
	if !ok {
		return Event{}, false
	}
	cpu, rest, ok := strings.Cut(rest, " [LOST ")
	n, isN := digits(cpu)
	if !ok || !isN {
		return Event{}, false
	}
	count, _, ok := strings.Cut(rest, "EVENTS]")
	if !ok {
		return Event{}, false
	}
	count = strings.TrimSpace(count)
	if _, err := strconv.ParseInt(count, 10, 64); err != nil {
		count = "-1" // the kernel does not know how many
	}
	return Event{CPU: n, Name: Lost, Payload: count, Flags: Flags{Context: 'p'}}, true
}

// ReadAll returns all events of a trace.
func ReadAll(r io.Reader, name string) ([]Event, error) {
	t, err := NewReader(r, name)
	if err != nil {
		return nil, err
	}
	var all []Event
	for {
		e, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, e)
	}
}

// ReadFile returns all events of a file, plain or gzip.
func ReadFile(path string) ([]Event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	return ReadAll(f, path)
}
