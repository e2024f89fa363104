package trace

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"napisim/sim"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// recorded are the events of testdata/recorded.txt, line by line.
var recorded = []Event{
	{At: 9636796215, Comm: "nt", PID: 408, Flags: Flags{true, true, false, HardirqInSoftirq, 2}, Point: IRQHandlerEntry, A: 30, S: "nb-tx-0"},
	{At: 9639745606, Comm: "nt", PID: 408, Flags: Flags{true, false, false, Hardirq, 0}, Point: IRQHandlerExit, A: 26, B: 1},
	{At: 9637046169, Comm: "nt", PID: 408, Flags: Flags{true, false, true, Hardirq, 0}, Point: SoftirqRaise, A: 3},
	{At: 9637020986, Comm: "nt", PID: 408, Flags: Flags{true, true, true, HardirqInSoftirq, 2}, Point: SoftirqRaise, A: 2},
	{At: 9637154077, Comm: "nt", PID: 408, Flags: Flags{Context: Softirq}, Point: SoftirqEntry, A: 3},
	{At: 9637188040, Comm: "nt", PID: 408, Flags: Flags{NeedResched: true, Context: Softirq}, Point: SoftirqExit, A: 3},
	{At: 9637026122, Comm: "nt", PID: 408, Flags: Flags{NeedResched: true, Context: Softirq}, Point: NAPIPoll, A: 0xd96abbbb, B: 6, C: 64, S: "nb"},
	{At: 3070229335, Comm: "nt", PID: 157, Flags: Flags{Context: Softirq, PreemptDepth: 1}, Point: NAPIPoll, A: 0xd809bdf3, B: 64, C: 64},
	{At: 9636997823, Comm: "nt", PID: 408, Flags: Flags{Context: Softirq}, Point: NetifReceiveSKB, A: 0x17038960, B: 52, S: "nb"},
	{At: 3066721765, Comm: "swapper/0", Flags: Flags{Context: Softirq, PreemptDepth: 1}, Point: NetifRx, A: 0xc7f6618d, B: 46, S: "vb"},
	{At: 9636822619, Comm: "nt", PID: 408, Flags: Flags{BHOff: true, PreemptDepth: 1}, Point: NetDevXmit, A: 0x4acd318c, B: 66, S: "na"},
	{At: 9636987948, Comm: "nt", PID: 408, Flags: Flags{Context: Softirq}, Point: NAPIGROReceiveEntry, A: 0xaaff7fb1, B: 1500, D: 0x2002, E: 2304, S: "nb"},
	{At: 9637080762, Comm: "nt", PID: 278, Point: KfreeSKB, A: 0x6e496912, B: 2048, S: "00000000f789a52d", T: "NOT_SPECIFIED"},
	{At: 3068979759, Flags: Flags{Context: Softirq, PreemptDepth: 1}, Point: KfreeSKB, A: 0x8e2f63ee, B: 2048, S: "enqueue_to_backlog+0x89/0x3d0", T: "CPU_BACKLOG"},
	{At: 9627569616, Comm: "rcu_preempt", PID: 15, Flags: Flags{IRQsOff: true, PreemptDepth: 2}, Point: SchedSwitch, A: 120, B: 14, C: 120, S: "ksoftirqd/0", T: "I"},
	{At: 2997152917, Comm: "swapper/0", Flags: Flags{IRQsOff: true, PreemptDepth: 2}, Point: SchedSwitch, A: 120, B: 17, C: 120, S: "ksoftirqd/0", T: "R"},
	{At: 9627573116, Comm: "ksoftirqd/0", PID: 14, Flags: Flags{IRQsOff: true, Context: Softirq, PreemptDepth: 4}, Point: SchedWakeup, A: 15, B: 120, S: "rcu_preempt"},
	{At: 9918766552, Comm: "kpktgend_0", PID: 106, Flags: Flags{IRQsOff: true, Context: Softirq, PreemptDepth: 2}, Point: HRTimerStart, A: 0x1ea400d0, B: 5536246806_000, S: "napi_watchdog", T: "REL|PINNED"},
	{At: 9886540151, Flags: Flags{IRQsOff: true, Context: Hardirq, PreemptDepth: 1}, Point: HRTimerExpireEntry, A: 0x5ec776ac, S: "tick_sched_timer"},
}

// inSeconds turns a recorded line, whose clock counts nanoseconds, into one of the
// kernel's default clock. The kernel's timer base has its own zero; ours has not.
func inSeconds(line string) string {
	stamp := regexp.MustCompile(`(\] .{5}) +(\d+): `)
	ns, _ := strconv.ParseInt(stamp.FindStringSubmatch(line)[2], 10, 64)
	us := (ns + 500) / 1000
	line = stamp.ReplaceAllString(line, fmt.Sprintf("$1 %5d.%06d: ", us/1e6, us%1e6))
	return regexp.MustCompile(` now=\d+`).ReplaceAllString(line, fmt.Sprintf(" now=%d", ns))
}

func TestLinesAreThoseOfTheKernel(t *testing.T) {
	file, err := os.ReadFile("testdata/recorded.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(file), "\n"), "\n")
	if len(lines) != len(recorded) {
		t.Fatalf("%d lines, %d events", len(lines), len(recorded))
	}
	for i, e := range recorded {
		e.At *= sim.Nanosecond
		if diff := cmp.Diff(inSeconds(lines[i]), string(appendEvent(nil, &e))); diff != "" {
			t.Errorf("line %d (-kernel +napisim):\n%s", i+1, diff)
		}
	}
}

// TestLinesWithoutARecording shows the points that the recordings do not contain.
func TestLinesWithoutARecording(t *testing.T) {
	tests := []struct {
		event Event
		want  string
	}{
		{Event{Point: NetDevQueue, A: 1, B: 66, S: "eth0"}, "net_dev_queue: dev=eth0 skbaddr=0000000000000001 len=66"},
		{Event{Point: SchedWaking, A: 7, B: 98, C: 12, S: "app"}, "sched_waking: comm=app pid=7 prio=98 target_cpu=012"},
		{Event{Point: IRQHandlerExit, A: 9}, "irq_handler_exit: irq=9 ret=unhandled"},
		{Event{Point: HRTimerExpireExit, A: 0x8d465977}, "hrtimer_expire_exit: hrtimer=000000008d465977"},
		{Event{Point: SoftirqRaise, A: 10}, "softirq_raise: vec=10 [action=?]"},
		{Event{Point: RxMissed, A: 2, B: 3, S: "eth0"}, "rx_missed: dev=eth0 queue=2 frames=3"},
		{
			Event{Point: NAPIGROFragsEntry, A: 1, B: 1500, C: 0xbeef, D: 0x2001, E: 2304, S: "eth0"},
			"napi_gro_frags_entry: dev=eth0 napi_id=0x2001 queue_mapping=0 skbaddr=0000000000000001 vlan_tagged=0" +
				" vlan_proto=0x0000 vlan_tci=0x0000 protocol=0x0800 ip_summed=1 hash=0x0000beef l4_hash=1 len=1500" +
				" data_len=1500 truesize=2304 mac_header_valid=1 mac_header=-14 nr_frags=1 gso_size=0 gso_type=0x0",
		},
	}
	for _, tt := range tests {
		_, got, _ := strings.Cut(string(appendEvent(nil, &tt.event)), ".000000: ")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestWriteTextGolden(t *testing.T) {
	events := []Event{
		{At: 1499 * sim.Nanosecond, Point: IRQHandlerEntry, A: 24, S: "eth0-rx-0", Flags: Flags{IRQsOff: true, Context: Hardirq}},
		{At: 1500 * sim.Nanosecond, CPU: 11, Comm: "a long task name", PID: 12345678, Point: SoftirqEntry, A: 3, Flags: Flags{Context: Softirq, PreemptDepth: 255}},
		{At: 123456 * sim.Second, Comm: "app", PID: 300, Point: NAPIPoll, A: 2, B: 64, C: 64, S: "eth0"},
		{Point: Lost, A: 5, CPU: 11},
	}
	const want = `# tracer: nop
#
# entries-in-buffer/entries-written: 3/8   #P:12
#
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
          <idle>-0       [000] d.h..     0.000001: irq_handler_entry: irq=24 name=eth0-rx-0
a long task name-12345678 [011] ..sf.     0.000002: softirq_entry: vec=3 [action=NET_RX]
             app-300     [000] ..... 123456.000000: napi_poll: napi poll on napi struct 0000000000000002 for device eth0 work 64 budget 64
CPU:11 [LOST 5 EVENTS]
`
	var out bytes.Buffer
	if err := WriteText(&out, events); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

// failing is a writer with room for n bytes.
type failing struct{ n int }

func (f *failing) Write(b []byte) (int, error) {
	if f.n -= len(b); f.n < 0 {
		return 0, os.ErrClosed
	}
	return len(b), nil
}

func TestWriteTextReportsTheWriter(t *testing.T) {
	events := make([]Event, 1000)
	for _, room := range []int{0, 5000, 40_000} {
		if err := WriteText(&failing{room}, events); err == nil {
			t.Errorf("no error from a writer with room for %d bytes", room)
		}
	}
}

// line is what a reader of traces sees in a line.
var line = regexp.MustCompile(`^ *(.*)-(\d+) +\[(\d{3})\] ([.dbD])([.N])([.shH])([.\da-f])\. +(\d+)\.(\d{6}): (\w+): (.*)$`)

// arguments says under which key a point shows an argument of its event.
var arguments = [numPoints]map[string]func(e *Event) any{
	IRQHandlerEntry: {"irq": a, "name": s},
	IRQHandlerExit:  {"irq": a},
	SoftirqRaise:    {"vec": a},
	SoftirqEntry:    {"vec": a},
	SoftirqExit:     {"vec": a},
	NAPIPoll:        {"work": b, "budget": c, "struct": hexA, "device": s},
	NetifReceiveSKB: {"skbaddr": hexA, "len": b, "dev": s},
	NetifRx:         {"skbaddr": hexA, "len": b, "dev": s},
	NetDevQueue:     {"skbaddr": hexA, "len": b, "dev": s},
	NetDevXmit:      {"skbaddr": hexA, "len": b, "dev": s, "rc": c},
	KfreeSKB:        {"skbaddr": hexA, "protocol": b, "location": s, "reason:": tt},
	NAPIGROReceiveEntry: {
		"skbaddr": hexA, "len": b, "dev": s, "truesize": e,
		"napi_id": func(e *Event) any { return fmt.Sprintf("0x%x", e.D) },
	},
	NAPIGROFragsEntry:  {"skbaddr": hexA, "len": b, "dev": s, "truesize": e, "data_len": b},
	NAPIGROReceiveExit: {"ret": a},
	NAPIGROFragsExit:   {"ret": a},
	SchedSwitch:        {"prev_prio": a, "next_pid": b, "next_prio": c, "next_comm": s, "prev_state": tt},
	SchedWakeup:        {"pid": a, "prio": b, "comm": s, "target_cpu": func(e *Event) any { return fmt.Sprintf("%03d", e.C) }},
	SchedWaking:        {"pid": a, "prio": b, "comm": s},
	HRTimerStart:       {"hrtimer": hexA, "function": s, "mode": tt, "was_armed": c},
	HRTimerExpireEntry: {"hrtimer": hexA, "function": s},
	HRTimerExpireExit:  {"hrtimer": hexA},
	RxMissed:           {"queue": a, "frames": b, "dev": s},
}

func a(e *Event) any    { return e.A }
func b(e *Event) any    { return e.B }
func c(e *Event) any    { return e.C }
func e(e *Event) any    { return e.E }
func s(e *Event) any    { return e.S }
func tt(e *Event) any   { return e.T }
func hexA(e *Event) any { return fmt.Sprintf("%016x", e.A) }

func TestWrittenLinesCanBeReadBack(t *testing.T) {
	word := rapid.StringMatching(`[a-z][a-z0-9/_:.-]{0,14}`)
	number := rapid.Int64Range(0, 1<<31)
	rapid.Check(t, func(t *rapid.T) {
		e := Event{
			At:    sim.Time(rapid.Int64Range(0, 1e18).Draw(t, "at")),
			Point: Point(rapid.IntRange(0, int(Lost)-1).Draw(t, "point")),
			A:     number.Draw(t, "a"), B: number.Draw(t, "b"), C: number.Draw(t, "c"),
			D: number.Draw(t, "d"), E: number.Draw(t, "e"),
			S: word.Draw(t, "s"), T: word.Draw(t, "t"), Comm: word.Draw(t, "comm"),
			PID: rapid.Int32Range(1, 1<<22).Draw(t, "pid"), CPU: rapid.Int32Range(0, 255).Draw(t, "cpu"),
			Flags: Flags{
				IRQsOff: rapid.Bool().Draw(t, "irqs"), BHOff: rapid.Bool().Draw(t, "bh"),
				NeedResched:  rapid.Bool().Draw(t, "resched"),
				Context:      Context(rapid.IntRange(0, 3).Draw(t, "context")),
				PreemptDepth: uint8(rapid.IntRange(0, 15).Draw(t, "depth")),
			},
		}
		written := string(appendEvent(nil, &e))
		m := line.FindStringSubmatch(written)
		if m == nil {
			t.Fatalf("unreadable: %q", written)
		}
		n := func(s string, base int) int64 { v, _ := strconv.ParseInt(s, base, 64); return v }
		depth := n(strings.Replace(m[7], ".", "0", 1), 16)
		point, err := ParsePoint(m[10])
		if err != nil {
			t.Fatal(err)
		}
		back := Event{
			Comm: m[1], PID: int32(n(m[2], 10)), CPU: int32(n(m[3], 10)), Point: point,
			Flags: Flags{
				strings.Contains("dD", m[4]), strings.Contains("bD", m[4]), m[5] == "N",
				Context(strings.Index(".shH", m[6])), uint8(depth),
			},
		}
		at := sim.Time(n(m[8], 10))*sim.Second + sim.Time(n(m[9], 10))*sim.Microsecond
		if d := at - e.At; max(d, -d) > sim.Microsecond/2 {
			t.Errorf("time %v written as %v", e.At, at)
		}
		want := Event{Comm: e.Comm, PID: e.PID, CPU: e.CPU, Point: e.Point, Flags: e.Flags}
		if diff := cmp.Diff(want, back); diff != "" {
			t.Errorf("%s\nread back (-want +got):\n%s", written, diff)
		}
		for key, arg := range arguments[e.Point] {
			pattern := `(?:^| )` + key + `[= ](\S+)`
			got := regexp.MustCompile(pattern).FindStringSubmatch(m[11])
			if want := fmt.Sprint(arg(&e)); got == nil || got[1] != want {
				t.Errorf("%s of %q is %q, want %s", key, written, got, want)
			}
		}
	})
}

func TestEveryPointHasANameAndArguments(t *testing.T) {
	for p := range Lost {
		if points[p].name == "" || points[p].args == nil || arguments[p] == nil {
			t.Errorf("point %d is not complete", p)
		}
		if got, err := ParsePoint(p.String()); got != p || err != nil {
			t.Errorf("%v read back as %v, %v", p, got, err)
		}
	}
	for _, name := range []string{"lost", "", "napi_pol"} {
		if p, err := ParsePoint(name); err == nil {
			t.Errorf("%q was taken for %v", name, p)
		}
	}
	if got := (numPoints + 1).String(); got != fmt.Sprintf("Point(%d)", numPoints+1) {
		t.Error(got)
	}
}
