package napisim_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// This file keeps the inventory of what the model must reproduce: test vectors, facts and
// regularities of recorded kernels, and pitfalls. Each has a test that is named after it. The
// inventory for readers, docs/vectors.md, is written from it.

var update = flag.Bool("update", false, "write docs/vectors.md anew")

// A group is a list of things that tests are named after: prefix and number.
type group struct {
	prefix string
	title  string
	names  []string          // what each is about, from number 1 on
	except map[int]string    // why no unit test can hold one
	in     func(string) bool // the directories that count, nil: all
	digits int               // of the number in a name
}

func apartFrom(dirs ...string) func(string) bool {
	return func(dir string) bool { return !withinAny(dir, dirs) }
}

var groups = []group{
	{prefix: "S", title: "Softirq and NAPI", names: []string{
		"one saturated NAPI: ten passes of 64 frames, then ksoftirqd",
		"as S1 at 10 us a frame: the ticks end the loop",
		"six saturated NAPIs: five polls reach the budget, the order of the lists afterwards",
		"a ring of exactly 64 frames: one more poll, and the flush in between",
		"an interrupt between the last look at the ring and the completion: MISSED",
		"S5 without MISSED: the schedule is lost, the device has to interrupt again",
		"gro_flush_timeout 20 us and napi_defer_hard_irqs 2 after a burst",
		"a NAPI that completes and is scheduled by a nested interrupt, before and since v6.4",
		"as S8 beside a NAPI that asks to be polled again",
		"ksoftirqd runnable, not running: v4.19 defers, unless a tasklet is pending",
	}},
	{prefix: "G", title: "GRO", names: []string{
		"45 segments of 1448 bytes: the 46th does not fit",
		"PSH at the 10th segment delivers it with the others",
		"a lone segment with PSH is NORMAL",
		"a short segment is merged and ends the superframe",
		"a pure ACK ends the superframe and follows it",
		"a changed timestamp option ends the superframe",
		"the ninth flow of a bucket pushes the first one out",
		"how superframes count towards gro_normal_batch",
		"a superframe overtakes a NORMAL packet in v5.4.0",
		"four interleaved flows share a poll of 64 at HZ=250",
	}},
	{prefix: "B", title: "Backlog", names: []string{"a limit of 1000 accepts 1001 packets"}},
	{prefix: "U", title: "UDP", names: []string{"how many datagrams a receive buffer holds, by version"}},
	{prefix: "T", title: "TCP", names: []string{"a lone segment is acknowledged late, the second and a superframe at once"}},
	{prefix: "C", title: "Descriptor cache", in: func(dir string) bool { return dir == "model/skbuff" }, names: []string{
		"20 allocations from the empty cache of v5.12",
		"frees into the full cache of v5.12",
		"the first proposal with two arrays",
	}},
	{prefix: "P", title: "page_pool", names: []string{
		"600 pages of a socket freed on another CPU meet a ring of 512",
		"the same freed in softirq on the owner's CPU",
	}},
	{prefix: "D", title: "Adaptive moderation of sfc", except: map[int]string{
		1: noSFC, 2: noSFC, 3: noSFC,
	}, names: []string{
		"3 packets per completion since v5.4", "3 packets per completion up to v5.3", "9 packets per completion since v5.4",
	}},
	{prefix: "Fact", title: "Facts of the recordings", digits: 2, names: []string{
		"a full NAPI is polled once per pass",
		"sizes of bursts and polls",
		"the backlog: one raise per burst, 1001 of 1200, dev_weight",
		"the budget does not shorten a poll; what time_squeeze counts",
		"what ends the softirq loop",
		"need_resched by the reader's wakeup is the way into ksoftirqd",
		"ksoftirqd has priority on 6.1 and none on 6.12",
		"in_net_rx_action",
		"the order of the poll list after a pass",
		"MISSED",
		"gro_normal_batch, also with GRO off",
		"GRO of a bulk flow",
		"gro_flush_timeout with napi_defer_hard_irqs",
		"NAPI threads",
		"veth",
		"tap devices",
		"busy polling",
		"RPS: interrupts between CPUs are counted, not packets",
		"PREEMPT_RT: the interrupt thread serves NET_RX",
		"costs of polls, handlers and the way between softirqs",
	}},
	{prefix: "R", title: "Regularities of the recordings", names: []string{
		"interrupts pending together: a pass without polls",
		"the interrupt after an unmask comes before the napi_poll line",
		"in a list all netif_receive_skb lines come before the wakeup",
		"reader or ksoftirqd: who is next",
		"a wakeup over idle sets need_resched",
		"need_resched does not cut a pass",
		"the tick: fixed phase, TIMER before need_resched",
		"fixed distances between lines",
		"a superframe ends at the sender's write",
		"sched_wakeup is told of sleepers only",
	}},
	{prefix: "C", title: "Corrections by the recordings", in: apartFrom("model/skbuff"), except: map[int]string{
		4: "a matter of names: the comment of handleSoftirqs says which tree has which",
	}, names: []string{
		"who runs what a hardirq has raised",
		"dev_weight counts from the second poll of the backlog",
		"jiffies stand still over an idle CPU",
		"the loop is named handle_softirqs",
		"preemption at wakeup: lag under EEVDF, granularity under CFS",
		"ktimers runs the timer softirqs of 6.12 RT",
		"completed superframes wait in the list",
		"the flags of a trace line",
		"S2 at HZ=250",
	}},
	{prefix: "Pitfall", title: "Pitfalls", digits: 2, names: []string{
		"the order of a completion",
		"lost wakeups",
		"the nested interrupt at the unmask",
		"what follows it before and since v6.4",
		"budget and deadline are tested after a poll only",
		"time_squeeze does not count hand-overs to ksoftirqd",
		"NAPIs to be polled again go behind those scheduled meanwhile",
		"a runnable ksoftirqd delays all vectors",
		"pending bits survive the end of the loop",
		"what is raised in a pass waits for the next",
		"skbs and pages that are freed on another CPU",
		"how long GRO holds, by HZ",
		"superframes held across completions",
		"one list for packets and superframes",
		"work counts frames of the ring",
		"raises from task context",
		"process_queue is invisible to the backlog's limit",
		"RPS interrupts wait for the end of net_rx_action",
		"busy polling: masked, not flushed, MISSED",
		"the timer of deferred interrupts",
		"receive buffers are overshot",
		"a ring is refilled behind the poll",
		"NAPI threads run other softirqs",
		"need_resched does not cut a pass",
		"the poll follows the interrupt's affinity",
	}},
}

const noSFC = "no driver of the model has this moderation"

// A named test is one whose name begins with a number of a group, or a script of
// softirq/testdata, which TestVectors plays.
type namedTest struct {
	prefix, dir, name string
	numbers           []int
	digits            int
	at                string
}

var (
	testName   = regexp.MustCompile(`^Test(Fact|Pitfall|[A-Z])(\d+)(?:(?:And)?(?:Fact|Pitfall|[A-Z])?(\d+))?`)
	scriptName = regexp.MustCompile(`^(fact|pitfall|[a-z])(\d+)_`)
)

// namedTests returns all named tests of a tree, sorted.
func namedTests(t *tree, fsys fs.FS) []namedTest {
	var all []namedTest
	add := func(m []string, dir, name, at string) {
		n := namedTest{prefix: strings.ToUpper(m[0][:1]) + m[0][1:], dir: dir, name: name, digits: len(m[1]), at: at}
		for _, text := range m[1:] {
			if i, err := strconv.Atoi(text); err == nil {
				n.numbers = append(n.numbers, i)
			}
		}
		all = append(all, n)
	}
	for _, s := range t.files {
		for _, decl := range s.ast.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !s.test || f.Recv != nil {
				continue
			}
			if m := testName.FindStringSubmatch(f.Name.Name); m != nil {
				add(m[1:], s.dir, f.Name.Name, t.at(f.Pos(), "%s", f.Name.Name))
			}
		}
	}
	scripts, err := fs.Glob(fsys, "softirq/testdata/*.txtar")
	if err != nil {
		panic(err)
	}
	for _, file := range scripts {
		name := strings.TrimSuffix(path.Base(file), ".txtar")
		if m := scriptName.FindStringSubmatch(name); m != nil {
			add(m[1:], "softirq", "TestVectors/"+name, file)
		}
	}
	slices.SortFunc(all, func(a, b namedTest) int { return cmp.Or(cmp.Compare(a.dir, b.dir), cmp.Compare(a.name, b.name)) })
	return all
}

// of returns the tests for each number of a group.
func (g *group) of(all []namedTest) map[int][]namedTest {
	tests := map[int][]namedTest{}
	for _, n := range all {
		if n.prefix != g.prefix || g.in != nil && !g.in(n.dir) {
			continue
		}
		for _, i := range n.numbers {
			tests[i] = append(tests[i], n)
		}
	}
	return tests
}

// checkVectors returns what has no test, what has one and is excepted, and names that no
// group has.
func checkVectors(all []namedTest) []string {
	var found []string
	for i := range groups {
		g := &groups[i]
		tests := g.of(all)
		for n := range g.names {
			switch id := g.id(n + 1); {
			case len(tests[n+1]) == 0 && g.except[n+1] == "":
				found = append(found, fmt.Sprintf("%s (%s) has no test that is named after it", id, g.names[n]))
			case len(tests[n+1]) > 0 && g.except[n+1] != "":
				found = append(found, fmt.Sprintf("%s has a test and a reason to have none", id))
			}
		}
		for _, n := range slices.Sorted(maps.Keys(tests)) {
			for _, test := range tests[n] {
				if n < 1 || n > len(g.names) {
					found = append(found, fmt.Sprintf("%s: there is no %s%d", test.at, g.prefix, n))
				} else if g.digits > 0 && test.digits != g.digits {
					found = append(found, fmt.Sprintf("%s: write %s with %d digits", test.at, g.prefix, g.digits))
				}
			}
		}
	}
	return found
}

func (g *group) id(n int) string { return fmt.Sprintf("%s%0*d", g.prefix, max(g.digits, 1), n) }

// vectorsDoc writes the inventory for readers.
func vectorsDoc(all []namedTest) string {
	var b strings.Builder
	b.WriteString("# What the model must reproduce, and its tests\n\n" +
		"Each vector, recorded fact and pitfall has a test that is named after it: run one with\n" +
		"`go test ./PACKAGE -run 'NAME$'`. This file is written by `go test . -run TestVectorsHaveTests -update`.\n")
	for i := range groups {
		g := &groups[i]
		fmt.Fprintf(&b, "\n## %s\n\n| | what | tests |\n|---|---|---|\n", g.title)
		tests := g.of(all)
		for n, what := range g.names {
			var in []string
			for dir, names := range byDir(tests[n+1]) {
				in = append(in, fmt.Sprintf("%s: %s", dir, strings.Join(names, ", ")))
			}
			slices.Sort(in)
			if why := g.except[n+1]; why != "" {
				in = append(in, "none: "+why)
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", g.id(n+1), what, strings.Join(in, "; "))
		}
	}
	return b.String()
}

func byDir(tests []namedTest) map[string][]string {
	dirs := map[string][]string{}
	for _, n := range tests {
		dirs[n.dir] = append(dirs[n.dir], "`"+n.name+"`")
	}
	return dirs
}

func TestVectorsHaveTests(t *testing.T) {
	const file = "docs/vectors.md"
	all := namedTests(repository(t), os.DirFS("."))
	report(t, checkVectors(all))
	doc := vectorsDoc(all)
	if *update {
		if err := os.WriteFile(file, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != doc {
		t.Errorf("%s is not what the tests' names say: go test . -run TestVectorsHaveTests -update", file)
	}
}

func TestVectorsCanFail(t *testing.T) {
	files := map[string]string{
		"softirq/testdata/s3_order.txtar": "", "softirq/testdata/pitfall01_order.txtar": "", "softirq/testdata/other_1.txtar": "",
		"softirq/a_test.go":      "package softirq\nfunc TestFact01And02Bursts() {}\nfunc TestFact3Backlog() {}\nfunc TestS11Unknown() {}\nfunc TestC1Off() {}\nfunc TestE1000ITR() {}\nfunc TestG1SuperframeOf45IsTheLargest() {}",
		"softirq/a.go":           "package softirq\nfunc TestS1InNoTestFile() {}",
		"model/skbuff/a_test.go": "package skbuff\nfunc TestC2Free() {}\nfunc TestP1P2Recycling() {}\nfunc TestD2Completions() {}",
	}
	fsys := planted(files)
	tr, err := readTree(fsys)
	if err != nil {
		t.Fatal(err)
	}
	found := checkVectors(namedTests(tr, fsys))
	has := func(text string) bool {
		return slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, text) })
	}
	for _, want := range []string{"S1 (", "S2 (", "S10 (", "Fact04 (", "C2 (dev_weight", "C1 (20 allocations", "there is no S11", "write Fact with 2 digits", "D2 has a test"} {
		if !has(want) {
			t.Errorf("not found: %s", want)
		}
	}
	for _, not := range []string{"S3 (", "Pitfall01 (", "Fact01 (", "Fact02 (", "Fact03 (", "C1 (who", "C2 (frees", "P1 (", "P2 (", "G1 (", "C4 (", "D1 (", "E1000", "G45"} {
		if has(not) {
			t.Errorf("found: %s", not)
		}
	}
}
