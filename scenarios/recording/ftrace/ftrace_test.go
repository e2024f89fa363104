package ftrace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLineShapes reads lines of the shapes kernel-facts 12.4 and C8 name.
func TestLineShapes(t *testing.T) {
	for _, c := range []struct {
		line string
		want Event
	}{
		{ // five flags, integer clock
			"      kpktgend_0-105     [000] D.h1.  10019597035: softirq_raise: vec=3 [action=NET_RX]",
			Event{
				At: 10019597035, Comm: "kpktgend_0", PID: 105, Name: "softirq_raise", Payload: "vec=3 [action=NET_RX]",
				Flags: Flags{IRQsOff: true, BHOff: true, Context: 'h', PreemptDepth: 1},
			},
		},
		{ // four flags, seconds and microseconds
			"          <idle>-0     [012] dNs4   123.000456: sched_wakeup: comm=nt pid=7 prio=120 target_cpu=010",
			Event{
				At: 123_000_456_000, CPU: 12, Comm: "<idle>", Name: "sched_wakeup", Payload: "comm=nt pid=7 prio=120 target_cpu=010",
				Flags: Flags{IRQsOff: true, NeedResched: true, Context: 's', PreemptDepth: 4},
			},
		},
		{ // a comm with dashes, spaces and brackets; no flags
			" my - [001] irq/29-nb-rx-0-181     (   4321) [003]     5.000000001: foo:",
			Event{At: 5_000_000_001, CPU: 3, Comm: "my - [001] irq/29-nb-rx-0", PID: 181, Name: "foo", Flags: Flags{Context: 'p'}},
		},
		{ // migrate-disable depth
			"  irq/29-nb-rx-0-181     [000] d.s33   6917351728: x: y=1",
			Event{
				At: 6917351728, Comm: "irq/29-nb-rx-0", PID: 181, Name: "x", Payload: "y=1",
				Flags: Flags{IRQsOff: true, Context: 's', PreemptDepth: 3, MigrateDepth: 3},
			},
		},
		{"CPU:1 [LOST 12 EVENTS]", Event{CPU: 1, Name: Lost, Payload: "12", Flags: Flags{Context: 'p'}}},
	} {
		got, err := ReadAll(strings.NewReader("# tracer: nop\n\n"+c.line+"\n"), "t")
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		c.want.Line = 3
		if d := cmp.Diff([]Event{c.want}, got); d != "" {
			t.Errorf("%s: %s", c.line, d)
		}
	}
}

// TestPayloads reads the payloads that have their own types.
func TestPayloads(t *testing.T) {
	e := Event{Name: "napi_poll", Payload: "napi poll on napi struct 00000000a6e01260 for device nb work 64 budget 64"}
	if p, ok := e.Poll(); !ok || p != (Poll{"00000000a6e01260", "nb", 64, 64}) {
		t.Error(p, ok)
	}
	e.Payload = "napi poll on napi struct ffff8800 for device eth0" // up to Linux 4.7
	if p, ok := e.Poll(); !ok || p != (Poll{"ffff8800", "eth0", -1, -1}) {
		t.Error(p, ok)
	}
	e = Event{Name: "sched_switch", Payload: "prev_comm=a b prev_pid=4 prev_prio=120 prev_state=R+ ==> next_comm=kworker/0:1-ev next_pid=9 next_prio=120"}
	if s, ok := e.Switch(); !ok || s != (Switch{"a b", "kworker/0:1-ev", 4, 9, "R+"}) {
		t.Error(s, ok)
	}
	e = Event{Name: "sched_wakeup", Payload: "comm=x y pid=010 prio=120 target_cpu=010"}
	if w, ok := e.Wakeup(); !ok || w.Comm != "x y" || w.Target != 10 {
		t.Error(w, ok)
	}
	e = Event{Name: "softirq_entry", Payload: "vec=9 [action=RCU]"}
	if e.Vec() != 9 {
		t.Error(e.Vec())
	}
	if a, _ := e.Field("action"); a != "RCU" {
		t.Error(a)
	}
	e = Event{Name: "irq_handler_entry", Payload: "irq=29 name=my dev"}
	if n, _ := e.Field("name"); n != "my dev" {
		t.Error(n)
	}
}

// TestBadLineIsNamed: what is no trace says where.
func TestBadLineIsNamed(t *testing.T) {
	_, err := ReadAll(strings.NewReader("# x\n a-1 [000] ..... 12: e: p\nhello\n"), "dir/trace.txt")
	var at *Error
	if !errors.As(err, &at) || at.Line != 3 || !strings.HasPrefix(err.Error(), "dir/trace.txt:3: ") {
		t.Error(err)
	}
	_, err = ReadAll(strings.NewReader(" a-1 [000] ..... 1x2: e: p\n"), "t")
	if err == nil || !strings.Contains(err.Error(), `t:1: time "1x2"`) {
		t.Error(err)
	}
}

// TestGzipCutShort: half of a packed file is an error, not an end.
func TestGzipCutShort(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range 1000 {
		_, _ = io.WriteString(z, " a-1 [000] ..... 12: e: p\n")
	}
	_ = z.Close()
	if all, err := ReadAll(bytes.NewReader(b.Bytes()), "t.gz"); err != nil || len(all) != 1000 {
		t.Error(len(all), err)
	}
	if _, err := ReadAll(bytes.NewReader(b.Bytes()[:b.Len()-9]), "t.gz"); err == nil {
		t.Error("no error")
	}
}

// FuzzRead: nothing makes the reader panic or loop.
func FuzzRead(f *testing.F) {
	f.Add([]byte("a-1 [000] ..... 12: napi_poll: napi poll on napi struct 1 for device  work"))
	f.Add([]byte("CPU:1 [LOST EVENTS]\n-1 [0] 9.9:\n[[[]]]-[]\n"))
	f.Add([]byte{0x1f, 0x8b, 0})
	f.Fuzz(func(_ *testing.T, data []byte) {
		all, _ := ReadAll(bytes.NewReader(data), "fuzz")
		for i := range all {
			all[i].Poll()
			all[i].Switch()
			all[i].Wakeup()
			all[i].Vec()
		}
	})
}
