package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"napisim/cmd/napisim/exit"
	"napisim/reports/result"
)

// A call is one execution of the command within the test.
type call struct {
	world
	ctx      context.Context
	out, err safeBuffer
}

// newCall prepares an execution without terminal, environment or standard input.
func newCall(args ...string) *call {
	c := &call{ctx: context.Background()}
	c.world = world{
		args: args, stdin: strings.NewReader(""), stdout: &c.out, stderr: &c.err,
		getenv:   func(string) string { return "" },
		terminal: func(any) (int, bool) { return 0, false },
		pace:     pace{patience: time.Hour, line: time.Hour, draw: time.Hour},
	}
	return c
}

func (c *call) run(t *testing.T, want exit.Code) {
	t.Helper()
	if got := run(c.ctx, c.world); got != want {
		t.Fatalf("%q: exit code %d, want %d\n%s", c.args, got, want, c.err.String())
	}
}

// A safeBuffer is a buffer that progress may write to while the test reads it.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
	// seen is called with everything that was written so far.
	seen func(text string)
}

// Write implements io.Writer.
func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.b.Write(p)
	if s.seen != nil {
		s.seen(s.b.String())
	}
	return n, err
}

// String returns what was written.
func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// impatient shows progress at once.
var impatient = pace{patience: 0, line: time.Millisecond, draw: time.Millisecond}

const small = "testdata/small.yaml"

// on makes one stream a terminal.
func on(stream any, width int) func(any) (int, bool) {
	return func(s any) (int, bool) { return width, s == stream }
}

func TestColour(t *testing.T) {
	const escape = "\x1b["
	env := func(name, value string) func(string) string {
		return func(n string) string {
			if n == name {
				return value
			}
			return ""
		}
	}
	compare := []string{"compare", small, "--vary", "nics.eth0.coalesce.rx-usecs=20us,200us", "--runs", "3"}
	for name, test := range map[string]struct {
		args     []string
		terminal bool
		getenv   func(string) string
		want     bool
	}{
		"a terminal":             {[]string{"run", small}, true, env("", ""), true},
		"a comparison":           {compare, true, env("", ""), true},
		"a pipe":                 {[]string{"run", small}, false, env("", ""), false},
		"NO_COLOR":               {[]string{"run", small}, true, env("NO_COLOR", "1"), false},
		"a dumb terminal":        {[]string{"run", small}, true, env("TERM", "dumb"), false},
		"another terminal":       {[]string{"run", small}, true, env("TERM", "xterm"), true},
		"--no-color":             {[]string{"run", small, "--no-color"}, true, env("", ""), false},
		"--no-color, comparison": {append(compare, "--no-color"), true, env("", ""), false},
		"JSON":                   {[]string{"run", small, "-o", "json"}, true, env("", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCall(test.args...)
			c.getenv = test.getenv
			if test.terminal {
				c.terminal = on(c.stdout, 100)
			}
			c.run(t, exit.OK)
			if got := strings.Contains(c.out.String(), escape); got != test.want {
				t.Errorf("coloured: %v", got)
			}
		})
	}
}

// What --out writes has no colour, whatever the terminal shows.
func TestFilesHaveNoColour(t *testing.T) {
	dir := t.TempDir()
	c := newCall("run", small, "--out", dir)
	c.terminal = on(c.stdout, 60)
	c.run(t, exit.OK)
	text, err := os.ReadFile(filepath.Join(dir, "result.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("\x1b")) {
		t.Error("result.txt has escape sequences")
	}
	plain := newCall("run", small)
	plain.run(t, exit.OK)
	if string(text) != plain.out.String() {
		t.Error("result.txt depends on the terminal")
	}
}

func TestWidthOfTheTerminal(t *testing.T) {
	for _, args := range [][]string{{"list", "kernels"}, {"explain", "napi_schedule"}, {"diff-kernels", "v6.3", "v6.4"}, {"list", "behaviours"}} {
		testWidths(t, args)
	}
}

func testWidths(t *testing.T, args []string) {
	t.Helper()
	for _, width := range []int{1, 50, 300} {
		c := newCall(append(args, "--no-color")...)
		c.terminal = on(c.stdout, width)
		c.run(t, exit.OK)
		longest := 0
		for line := range strings.Lines(c.out.String()) {
			longest = max(longest, len(strings.TrimSpace(line)))
		}
		if width == 300 && longest <= 100 {
			t.Errorf("%q: %d columns are used of 300", args, longest)
		}
		if width == 50 && longest > 60 { // what cannot wrap needs that much
			t.Errorf("%q: %d columns are used of 50", args, longest)
		}
	}
}

// full is an output without room.
type full struct{}

// Write implements io.Writer.
func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left on device")

func TestOutputThatCannotBeWritten(t *testing.T) {
	c := newCall("list")
	c.stdout = full{}
	c.run(t, exit.Failed)
	if got := c.err.String(); got != "napisim: writing the result: no space left on device\n" {
		t.Errorf("got %q", got)
	}
}

// broken is an input that fails.
type broken struct{}

// Read implements io.Reader.
func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestInputThatCannotBeRead(t *testing.T) {
	for _, args := range [][]string{{"run", "-"}, {"check", "-"}, {"trace", "-"}, {"compare", "a=-", "b=-"}, {"compare", "-", "--vary", "hz=100,250"}} {
		c := newCall(args...)
		c.stdin = broken{}
		c.run(t, exit.Failed)
		if got := c.err.String(); got != "napisim: stdin: io: read/write on closed pipe\n" {
			t.Errorf("%q: got %q", args, got)
		}
	}
	c := newCall("check", "-")
	c.stdin = io.LimitReader(endless{}, 1<<30)
	c.run(t, exit.Failed)
	if got := c.err.String(); got != "napisim: stdin: is larger than 1MiB\n" {
		t.Errorf("got %q", got)
	}
}

// endless is an input that does not end.
type endless struct{}

// Read implements io.Reader.
func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A panic is a fault of the program and is reported as one.
func TestPanicsAreReported(t *testing.T) {
	c := newCall("run", small)
	c.terminal = func(any) (int, bool) { panic("a slip") }
	c.run(t, exit.Failed)
	if got := c.err.String(); got != "napisim: fault of the program, please report it with the command line: a slip\n" {
		t.Errorf("got %q", got)
	}
	if c.out.String() != "" {
		t.Error("there is a result all the same")
	}
}

var progressLine = regexp.MustCompile(`(?m)^([0-9]+) of 40 runs, [0-9]+ % of all in [0-9]+s(, about [0-9]+s to go)?$`)

// The first interrupt keeps the finished runs and says how many they are, in the result
// and beside it.
func TestInterruptKeepsFinishedRuns(t *testing.T) {
	dir := t.TempDir()
	c := newCall("run", small, "--runs", "40", "-j", "1", "--out", dir, "-o", "json")
	finished := interruptAfterOne(t, c)
	c.run(t, exit.Interrupted)
	d, err := result.Read(strings.NewReader(c.out.String()), "stdout")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(d.Runs); n < finished() || n >= 40 {
		t.Errorf("%d runs in the result, %d were seen to finish", n, finished())
	}
	if w := d.Runs[0].Warnings; len(w) != 1 || !strings.HasPrefix(w[0], "interrupted: the result is of ") {
		t.Errorf("warnings: %q", w)
	}
	if !regexp.MustCompile(`(?m)^napisim: interrupted: the result is of [0-9]+ of 40 runs$`).MatchString(c.err.String()) {
		t.Errorf("got %q", c.err.String())
	}
	if data, err := os.ReadFile(filepath.Join(dir, "result.json")); err != nil || string(data) != c.out.String() {
		t.Errorf("result.json is not the result: %v", err)
	}
}

// A comparison that is interrupted keeps the pairs.
func TestInterruptKeepsPairs(t *testing.T) {
	c := newCall("compare", small, "--vary", "preempt=none,full", "--runs", "20", "-j", "1")
	finished := interruptAfterOne(t, c)
	c.run(t, exit.Interrupted)
	paired := strings.Contains(c.out.String(), "Runs are paired by seed")
	if finished() >= 2 && !paired || c.out.String() != "" && !paired {
		t.Errorf("%d runs finished, got %q", finished(), c.out.String())
	}
}

// interruptAfterOne interrupts a call of 40 runs when progress tells of a finished one.
// The returned function returns how many it told of.
func interruptAfterOne(t *testing.T, c *call) (finished func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	c.ctx, c.pace = ctx, impatient
	seen := 0
	c.err.seen = func(text string) {
		lines := progressLine.FindAllStringSubmatch(text, -1)
		if ctx.Err() != nil || len(lines) == 0 {
			return
		}
		if seen, _ = strconv.Atoi(lines[len(lines)-1][1]); seen > 0 {
			cancel()
		}
	}
	return func() int { return seen }
}

func TestInterruptBeforeAnything(t *testing.T) {
	for _, args := range [][]string{
		{"run", small}, {"compare", small, "--vary", "preempt=none,full"}, {"run", small, "-o", "json"},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		c := newCall(append(args, "--out", dir)...)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		c.ctx = ctx
		c.run(t, exit.Interrupted)
		if got := c.err.String(); got != "napisim: interrupted before a run was finished\n" {
			t.Errorf("%q: got %q", args, got)
		}
		if c.out.String() != "" {
			t.Errorf("%q: there is a result", args)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%q: an empty directory is left", args)
		}
	}
}

// A trace that is interrupted shows what there is.
func TestInterruptedTrace(t *testing.T) {
	c := newCall("trace", small)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c.ctx = ctx
	c.run(t, exit.Interrupted)
	if !strings.HasPrefix(c.out.String(), "# tracer: nop") || c.err.String() != "napisim: interrupted: the trace ends early\n" {
		t.Errorf("got %q", c.err.String())
	}
}

func TestProgress(t *testing.T) {
	runs := []string{"run", small, "--set", "duration=6ms", "--runs", "40", "-j", "2"}
	// Quick work shows none.
	c := newCall(runs...)
	c.run(t, exit.OK)
	if c.err.String() != "" {
		t.Errorf("got %q", c.err.String())
	}
	// Long work shows lines where there is no terminal.
	c = newCall(runs...)
	c.pace = impatient
	c.run(t, exit.OK)
	if !progressLine.MatchString(c.err.String()) || strings.Contains(c.err.String(), "\x1b") {
		t.Errorf("got %q", c.err.String())
	}
	// On a terminal it is a bar, which goes away.
	c = newCall(append(runs, "--runs", "80")...)
	c.pace = impatient
	c.terminal = on(c.stderr, 100)
	c.run(t, exit.OK)
	if !strings.Contains(c.err.String(), " of 80 runs") {
		t.Errorf("got %q", c.err.String())
	}
	// -q wants neither.
	c = newCall(append(runs, "-q")...)
	c.pace = impatient
	c.run(t, exit.OK)
	if c.err.String() != "" {
		t.Errorf("got %q", c.err.String())
	}
}

func TestMeter(t *testing.T) {
	m := newMeter(4)
	m.at(0, 99, 100)
	m.at(1, 50, 100)
	m.at(2, 0, 100)
	if h, finished := m.read(); h != 150 || finished != 1 {
		t.Errorf("%d hundredths, %d finished", h, finished)
	}
	m.start = m.start.Add(-30 * time.Second)
	if got := m.line(); got != "1 of 4 runs, 37 % of all in 30s, about 50s to go" {
		t.Errorf("got %q", got)
	}
}
