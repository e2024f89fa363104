package fair

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A recording is what a recorded run shows of the scheduler. Its file has a header
// line "tick N" with the phase of the tick within 4 ms, lines "task N NAME", and then
// one line per event, with the nanoseconds since the one before:
//
//	s DT PREV STATE NEXT   sched_switch
//	w DT TASK N            sched_wakeup that shows need_resched set, or "-" not set
//
// Task 0 is idle. testdata/README.md says where the files come from.
type recording struct {
	tick   int64
	names  []string
	events []event
}

type event struct {
	at    int64 // ns
	kind  byte  // s, w, or t for a tick that is not in the file
	task  int   // the one woken, or the one that loses the core
	next  int
	state byte
	need  bool
}

var recordings = flag.String("recordings", "", "directory of recorded runs: extract testdata from them")

// extracted are the runs in testdata, and extractedEvents how much of each.
var extracted = []string{
	"e1000-burst1", "e1000-satburst64", "e1000-tcprr1", "e1000-udp5k-nomit", "e1000e-burst1000-hog",
	"e1000e-satburst64-hog", "e1000e-tcprr1", "e1000e-udp5k", "veth-udp",
}

const extractedEvents = 1500

func TestExtract(t *testing.T) {
	if *recordings == "" {
		t.Skip("no -recordings")
	}
	for _, kernel := range []string{"k61", "k612"} {
		for _, run := range extracted {
			name := kernel + "-" + run
			extract(t, filepath.Join(*recordings, name, "trace.txt.gz"), filepath.Join("testdata", name+".txt"))
		}
	}
}

var (
	traceLine   = regexp.MustCompile(`^\s*(.*)-(\d+)\s+\[000\] (.....)\s+(\d+): (\w+): (.*)$`)
	traceSwitch = regexp.MustCompile(`prev_pid=(\d+) prev_prio=120 prev_state=(.)\S* ==> next_comm=(.*) next_pid=(\d+)`)
	traceWakeup = regexp.MustCompile(`comm=(.*) pid=(\d+) prio=120`)
	traceTick   = regexp.MustCompile(`^vec=[19] `)
)

// extract reads one ftrace text file and writes its recording. The tick is where most
// TIMER and RCU raises in hardirq context are; the scheduler's part comes 1.5 us later.
func extract(t *testing.T, from, to string) {
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	numbers, names := map[string]int{"0": 0}, []string{"idle"}
	number := func(pid, name string) int {
		n, known := numbers[pid]
		if !known {
			n = len(names)
			numbers[pid], names = n, append(names, name)
		}
		return n
	}
	phases := map[int64]int{}
	var body strings.Builder
	var last int64
	events := 0
	for s := bufio.NewScanner(z); s.Scan(); {
		m := traceLine.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		at, _ := strconv.ParseInt(m[4], 10, 64)
		switch {
		case m[5] == "sched_switch" && events < extractedEvents:
			w := traceSwitch.FindStringSubmatch(m[6])
			fmt.Fprintf(&body, "s %d %d %s %d\n", at-last, number(w[1], m[1]), w[2], number(w[4], w[3]))
		case m[5] == "sched_wakeup" && events < extractedEvents:
			w := traceWakeup.FindStringSubmatch(m[6])
			need := "-"
			if m[3][1] == 'N' {
				need = "N"
			}
			fmt.Fprintf(&body, "w %d %d %s\n", at-last, number(w[2], w[1]), need)
		case m[5] == "softirq_raise" && traceTick.MatchString(m[6]) && strings.ContainsAny(m[3][2:3], "hH"):
			phases[at%4e6/1000]++
			continue
		default:
			continue
		}
		last = at
		events++
	}
	var tick int64
	for _, p := range sortedKeys(phases) {
		if phases[p] > phases[tick] {
			tick = p
		}
	}
	head := fmt.Sprintf("tick %d\n", tick*1000+1500)
	for n, name := range names {
		head += fmt.Sprintf("task %d %s\n", n, name)
	}
	if err := os.WriteFile(to, []byte(head+body.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func sortedKeys(m map[int64]int) []int64 {
	var keys []int64
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// readRecording reads a recording and adds its ticks.
func readRecording(t *testing.T, path string) *recording {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := &recording{}
	num := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return n
	}
	var at int64
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		switch w[0] {
		case "tick":
			r.tick = num(w[1])
		case "task":
			r.names = append(r.names, w[2])
		case "s":
			at += num(w[1])
			r.events = append(r.events, event{at: at, kind: 's', task: int(num(w[2])), state: w[3][0], next: int(num(w[4]))})
		case "w":
			at += num(w[1])
			r.events = append(r.events, event{at: at, kind: 'w', task: int(num(w[2])), need: w[3] == "N"})
		}
	}
	first, last := r.events[0].at, r.events[len(r.events)-1].at
	for at := first/4e6*4e6 + r.tick; at < last; at += 4e6 {
		r.events = append(r.events, event{at: at, kind: 't'})
	}
	slices.SortStableFunc(r.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return r
}
