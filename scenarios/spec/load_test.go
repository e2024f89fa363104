package spec_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/model/unit"
	"napisim/scenarios/faults"
	"napisim/scenarios/spec"
	"napisim/scenarios/spec/behaviours"
)

// loader knows the small library of the test data.
func loader(t *testing.T) spec.Loader {
	t.Helper()
	dir, err := filepath.Abs("testdata/shelves")
	if err != nil {
		t.Fatal(err)
	}
	return spec.Loader{Library: os.DirFS(dir), Stages: []string{"work", "copy"}}
}

func resolve(t *testing.T, name string, sets ...string) *spec.Scenario {
	t.Helper()
	s, err := loader(t).Resolve(name, sets)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}

// TestFaults resolves the scenario.yaml of each directory of testdata/faults, with the
// lines of set.txt as assignments; the error is want.txt, in which {napi_schedule} stands
// for the values of that behaviour: who adds one should not have to come here.
func TestFaults(t *testing.T) {
	dirs, err := filepath.Glob("testdata/faults/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no test data", err)
	}
	var values []string
	for _, b := range behaviours.All() {
		for _, v := range b.Values {
			if b.Name == "napi_schedule" {
				values = append(values, v.Name)
			}
		}
	}
	l := loader(t)
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Chdir(dir)
			_, err := l.Resolve("scenario.yaml", lines("set.txt"))
			if err == nil {
				t.Fatal("no fault was found")
			}
			if _, ok := errors.AsType[faults.List](err); !ok {
				t.Errorf("the error is no list of faults: %T", err)
			}
			want := lines("want.txt")
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "{napi_schedule}", strings.Join(values, ", "))
			}
			if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// lines returns the lines of a file, none if it does not exist.
func lines(name string) []string {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// full is what testdata/valid/full.yaml says.
func full() *spec.Scenario {
	return &spec.Scenario{
		Version: 1,
		Name:    "full",
		Summary: "every field once",
		Notes:   "Two lines,\nthe second with \"quotes\": and more.\n",
		Platform: spec.Platform{
			Name: "board", Summary: "a machine for tests", HZ: 250, Preempt: spec.PreemptVoluntary, Noise: 25_000,
			Costs: map[string]spec.Cost{
				"work": {Cost: 130_000, Per: spec.PerOccurrence, Kind: spec.CostMeasured, Source: "a stopwatch"},
				"copy": {Cost: 350, Per: spec.PerByte, Kind: spec.CostFitted, Source: "by eye", Rows: "the first"},
			},
		},
		Kernel: spec.Kernel{Preset: "new", Behaviours: ofNew("always_raise"), MaxSKBFrags: 17},
		HZ:     1000, Preempt: spec.PreemptFull, CPUs: 4,
		Duration: 10 * unit.Second, Warmup: unit.Second, Seed: 7, Runs: 3,
		NICs: map[string]spec.NIC{
			"eth0": {
				Driver:   spec.DriverLAN966x,
				Link:     spec.Link{Rate: unit.Gbps, Delay: 20 * unit.Microsecond},
				MTU:      1500,
				Rings:    spec.Rings{RX: 512, TX: 256},
				Coalesce: spec.Coalesce{RXUsecs: 20 * unit.Microsecond, RXFrames: 64, TXUsecs: 50 * unit.Microsecond},
				NAPI:     spec.NAPI{Threaded: spec.ThreadedDisabled, ThreadCPU: 1},
				IRQ:      spec.IRQ{RX: 1, TX: 1},
				PagePool: spec.PagePool{Size: 1024},
				XDP:      spec.XDPPass,
			},
			"eth1": {
				Driver:   spec.DriverGeneric,
				Link:     spec.Link{Rate: 10 * unit.Gbps},
				MTU:      9000,
				Rings:    spec.Rings{RX: 512, TX: 512},
				NAPI:     spec.NAPI{Threaded: spec.ThreadedDisabled, ThreadCPU: 2},
				Features: spec.Features{GRO: true, RX: true, RXGROList: true, RXUDPGROForwarding: true},
				IRQ:      spec.IRQ{RX: 2, TX: 3},

				GROMaxSize: 185000, GROIPv4MaxSize: 65536, GROFrags: true,
				PagePool: spec.PagePool{Size: 512},
				XDP:      spec.XDPPass,
			},
		},
		Taps: map[string]spec.Tap{
			"tap1": {GRO: true},
			"tap0": {NAPI: true, RXFrames: 16, Queues: spec.Queues{RX0: spec.RXQueue{RPSCPUs: 0xf, RPSFlowCnt: 256}}},
		},
		Veths: map[string]spec.Veth{"vb": {GRO: true, CPU: 2, Queues: spec.Queues{RX0: spec.RXQueue{RPSCPUs: 1}}}},
		Sysctl: spec.Sysctl{
			NetdevBudget: 600, NetdevBudgetUsecs: 8 * unit.Millisecond, GRONormalBatch: 16,
			RmemDefault: 212992, RmemMax: 425984, SKBDeferMax: 64, TCPRmem: [3]unit.Bytes{4096, 131072, 4 * unit.MiB},
			TCPModerateRcvbuf: 0, TCPAdvWinScale: -2, TCPCompSACKNr: 44, TCPCompSACKDelayNs: unit.Millisecond, TCPBacklogAckDefer: 1,
			NetdevMaxBacklog: 2000, DevWeight: 32, DevWeightRXBias: 2, RPSSockFlowEntries: 32768, FlowLimitCPUs: 0xc, FlowLimitTableLen: 8192,
		},
		Apps: map[string]spec.App{
			"reader": {Kind: spec.AppTCPReader, CPU: 1, Nice: -5, ReadSize: 64 * unit.KiB, Wait: spec.WaitRecv, Rcvbuf: unit.MiB},
			"sink":   {Kind: spec.AppUDPReader, CPU: 2, ReadSize: 128 * unit.KiB, Wait: spec.WaitRecv, UDPGRO: true},
			"hog":    {Kind: spec.AppCPUHog, CPU: 1},
			"guest": {
				Kind: spec.AppVhost, CPU: 3, Device: "tap0", To: "sink", Flows: 2, Size: 1518,
				Arrivals: spec.Arrivals{Poisson: 200 * unit.Kpps},
			},
			"prog": {Kind: spec.AppTunWriter, CPU: 3, Device: "tap1", Flows: 1, Size: 64, Arrivals: spec.Arrivals{CBR: unit.Kpps}},
			"talk": {Kind: spec.AppUDPSender, CPU: 3, Device: "vb", To: "sink", Flows: 1, Size: 64, Arrivals: spec.Arrivals{CBR: unit.Kpps}},
		},
		Traffic: map[string]spec.Traffic{
			"bulk": {
				Kind: spec.TrafficTCP, NIC: "eth0", To: "reader", Flows: 2, Start: 5 * unit.Millisecond,
				TSO: 32 * unit.KiB, MSS: 1000, Congestion: spec.CongestionReno, InitCwnd: 4,
			},
			"jumbo": {
				Kind: spec.TrafficTCP, NIC: "eth1", To: "reader", Flows: 1, IPv6: true,
				TSO: 64 * unit.KiB, MSS: 9000 - 40 - 20 - 12, Congestion: spec.CongestionCubic, InitCwnd: 10,
			},
			"flood": {
				Kind: spec.TrafficUDP, NIC: "eth0", To: "sink", Flows: 16, Size: 64,
				Arrivals: spec.Arrivals{CBR: 2 * unit.Mpps},
			},
			"noise": {
				Kind: spec.TrafficUDP, NIC: "eth1", Flows: 1, Size: 9018,
				Arrivals: spec.Arrivals{Poisson: 500 * unit.PacketPerSecond},
			},
			"groups": {
				Kind: spec.TrafficUDP, NIC: "eth1", To: "sink", Flows: 1, Size: 1518,
				Arrivals: spec.Arrivals{Bursts: spec.Bursts{Rate: unit.Mpps, Frames: 16, Spacing: 1_500_000}},
			},
		},
		Evidence: []spec.Evidence{{
			Source:  "a paper",
			Variant: "kernel.behaviours.napi_schedule=skip_in_net_rx_action sysctl.net.core.netdev_budget=300",
			Metric:  "goodput", Value: 529.5, Role: spec.RoleFitted, Note: "one run",
		}},
	}
}

func TestResolve(t *testing.T) {
	got := resolve(t, "testdata/valid/full.yaml")
	if diff := cmp.Diff(full(), got); diff != "" {
		t.Errorf("scenario (-want +got):\n%s", diff)
	}
	if found := got.Validate([]string{"work", "copy"}); len(found) > 0 {
		t.Errorf("a resolved scenario has faults:\n%v", found)
	}
}

// TestDefaults: what the least scenario leaves out. The sources of the figures: sysctls
// from Linux (netdev_budget 300, gro_normal_batch 8, netdev_max_backlog 1000, dev_weight 64, 212992 = 256 times the truesize of
// 256 bytes, tcp_rmem 4096 131072 6291456), two ticks at 250 Hz are 8000 us.
func TestDefaults(t *testing.T) {
	want := &spec.Scenario{
		Version: 1, Name: "small", Summary: "the least that makes a scenario", Notes: "not for reading",
		Platform: full().Platform,
		Kernel:   full().Kernel,
		HZ:       250, Preempt: spec.PreemptVoluntary, CPUs: 1, Duration: unit.Second, Seed: 1, Runs: 1,
		NICs: map[string]spec.NIC{"eth0": {
			Driver: spec.DriverGeneric, Link: spec.Link{Rate: unit.Gbps}, MTU: 1500, Rings: spec.Rings{RX: 512, TX: 512},
			Features: spec.Features{GRO: true, RX: true}, PagePool: spec.PagePool{Size: 512}, XDP: spec.XDPPass,
			NAPI: spec.NAPI{Threaded: spec.ThreadedDisabled},
		}},
		Sysctl: spec.Sysctl{
			NetdevBudget: 300, NetdevBudgetUsecs: 8000 * unit.Microsecond, GRONormalBatch: 8,
			RmemDefault: 256 * (256 + 256 + 320), RmemMax: 212992, SKBDeferMax: 64, TCPRmem: [3]unit.Bytes{4096, 131072, 6291456},
			TCPModerateRcvbuf: 1, TCPAdvWinScale: 1, TCPCompSACKNr: 44, TCPCompSACKDelayNs: unit.Millisecond, TCPBacklogAckDefer: 1,
			NetdevMaxBacklog: 1000, DevWeight: 64, DevWeightRXBias: 1, FlowLimitTableLen: 4096,
		},
		Evidence: []spec.Evidence{{Source: "nobody", Metric: "goodput", Value: 1, Role: spec.RolePredicted}},
	}
	want.Platform.Noise = 0
	want.Platform.Costs["work"] = spec.Cost{Cost: 120_000, Per: spec.PerOccurrence, Kind: spec.CostMeasured, Source: "a stopwatch"}
	want.Kernel.Behaviours["napi_schedule"] = "skip_in_net_rx_action"
	if diff := cmp.Diff(want, resolve(t, "small")); diff != "" {
		t.Errorf("scenario (-want +got):\n%s", diff)
	}
}

func TestLayers(t *testing.T) {
	tests := []struct {
		name string
		sets []string
		got  func(*spec.Scenario) any
		want any
	}{
		{"the preset's setting", []string{"kernel=old"}, func(s *spec.Scenario) any { return s.Sysctl.NetdevBudget }, 200},
		{
			"over the preset",
			[]string{"kernel.preset=old", "sysctl.net.core.netdev_budget=250"},
			func(s *spec.Scenario) any { return s.Sysctl.NetdevBudget }, 250,
		},
		{"a fixed time limit", []string{"kernel=old"}, func(s *spec.Scenario) any { return s.Sysctl.NetdevBudgetUsecs }, 2 * unit.Millisecond},
		{"two ticks", []string{"hz=300"}, func(s *spec.Scenario) any { return s.Sysctl.NetdevBudgetUsecs }, 6666 * unit.Microsecond},
		{
			"one choice",
			[]string{"kernel.behaviours.ksoftirqd=defer_while_running"},
			func(s *spec.Scenario) any { return s.Kernel.Behaviours["ksoftirqd"] }, "defer_while_running",
		},
		{
			"the other choices",
			[]string{"kernel.behaviours.ksoftirqd=defer_while_running"},
			func(s *spec.Scenario) any { return s.Kernel.Behaviours["gro_normal"] }, "skb_list_segments",
		},
		{
			"one cost",
			[]string{"platform.costs.work.cost=1us"},
			func(s *spec.Scenario) any { return s.Platform.Costs["work"].Cost }, unit.Microsecond,
		},
		{
			"its source",
			[]string{"platform.costs.work.cost=1us"},
			func(s *spec.Scenario) any { return s.Platform.Costs["work"].Source }, "a stopwatch",
		},
		{"the machine's clock", []string{"platform.hz=100"}, func(s *spec.Scenario) any { return s.HZ }, spec.HZ(100)},
		{
			"the ring of the pool follows",
			[]string{"nics.eth0.rings.rx=64"},
			func(s *spec.Scenario) any { return s.NICs["eth0"].PagePool.Size }, 64,
		},
		{
			"as far as the kernel allows",
			[]string{"nics.eth0.rings.rx=65536"},
			func(s *spec.Scenario) any { return s.NICs["eth0"].PagePool.Size }, 32768,
		},
		{
			"the TX vector follows",
			[]string{"cpus=2", "nics.eth0.irq.rx=1"},
			func(s *spec.Scenario) any { return s.NICs["eth0"].IRQ.TX }, 1,
		},
		{
			"unless it is given",
			[]string{"cpus=2", "nics.eth0.irq.rx=1", "nics.eth0.irq.tx=0"},
			func(s *spec.Scenario) any { return s.NICs["eth0"].IRQ.TX }, 0,
		},
		{
			"an element of a list",
			[]string{"sysctl.net.ipv4.tcp_rmem=4096 131072 6291456", "sysctl.net.ipv4.tcp_rmem.2=1MiB"},
			func(s *spec.Scenario) any { return s.Sysctl.TCPRmem[2] }, unit.MiB,
		},
		{"a whole entry", []string{"apps.hog={kind: cpu-hog, nice: 5}"}, func(s *spec.Scenario) any { return s.Apps["hog"].Nice }, 5},
		{
			"taken away again",
			[]string{"apps.hog={kind: cpu-hog}", "apps.hog=null"},
			func(s *spec.Scenario) any { return len(s.Apps) }, 0,
		},
		{
			"back to the default",
			[]string{"nics.eth0.mtu=9000", "nics.eth0.mtu=null"},
			func(s *spec.Scenario) any { return s.NICs["eth0"].MTU }, 1500,
		},
		{"another arrival process", []string{
			"traffic.t={kind: udp, nic: eth0, size: 64B, arrivals: {cbr: 1Mpps}}", "traffic.t.arrivals.poisson=2Mpps",
		}, func(s *spec.Scenario) any { return s.Traffic["t"].Arrivals }, spec.Arrivals{Poisson: 2 * unit.Mpps}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got(resolve(t, "small", tt.sets...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBases: files of a directory, each on top of the next.
func TestBases(t *testing.T) {
	l := loader(t)
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"top.yaml":         "napisim: 1\nbase: mid/mid.yaml\nruns: 5\nnics: {eth0: {mtu: 9000}}\n",
		"mid/mid.yaml":     "napisim: 1\nname: mid\nbase: small\nplatform: near.yaml\nseed: 9\napps: {a: {kind: cpu-hog}, b: {kind: cpu-hog}}\n",
		"mid/small.yaml":   "napisim: 1\nbase: small\nruns: 4\nnics: {eth0: {rings: {rx: 64}}}\n",
		"mid/near.yaml":    "base: board\nname: near\ncosts: {work: {cost: 1ns}}\n",
		"gone.yaml":        "napisim: 1\nbase: top\napps: {a: null}\n",
		"board/x.yaml":     "napisim: 1\nbase: ../gone.yaml\n",
		"small":            "napisim: 1\nbase: small\nseed: 5\n",
		"platforms/README": "",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	get := func(name string) *spec.Scenario {
		s, err := l.Resolve(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := get("board/x.yaml")
	if s.Name != "x" || s.Summary != "" || len(s.Evidence) != 0 {
		t.Errorf("what describes the base was taken over: %q %q %v", s.Name, s.Summary, s.Evidence)
	}
	if s.Runs != 5 || s.Seed != 9 || s.NICs["eth0"].MTU != 9000 || s.NICs["eth0"].Rings.RX != 64 || s.NICs["eth0"].Link.Rate != unit.Gbps {
		t.Errorf("merged to runs %d, seed %d, %+v", s.Runs, s.Seed, s.NICs["eth0"])
	}
	if _, there := s.Apps["a"]; there || len(s.Apps) != 1 {
		t.Errorf("apps are %v, want b alone", s.Apps)
	}
	if p := s.Platform; p.Name != "near" || p.Costs["work"].Cost != unit.Nanosecond || p.Costs["copy"].Cost != 350 || p.HZ != 250 {
		t.Errorf("platform is %+v", p)
	}
	if s := get("small"); s.Seed != 5 || s.Duration != unit.Second {
		t.Errorf("the file is not preferred to the library: seed %d", s.Seed)
	}
}

func TestUnreadable(t *testing.T) {
	l := loader(t)
	t.Chdir(t.TempDir())
	for _, dir := range []string{"dir", "small"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("huge.yaml", make([]byte, 1<<20+1), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, want string }{
		{"no.yaml", "open no.yaml: no such file or directory"},
		{"dir", "dir: is a directory, not a file"},
		{"./dir", "dir: is a directory, not a file"},
		{"huge.yaml", "huge.yaml: is larger than 1MiB"},
		{"smal", `there is no file "smal" and no scenario of this name (did you mean "small"?)`},
		{"quite-another", `there is no file "quite-another" and no scenario of this name`},
		{"", `there is no file "" and no scenario of this name`},
	}
	for _, tt := range tests {
		_, err := l.Resolve(tt.name, nil)
		_, list := errors.AsType[faults.List](err)
		if err == nil || err.Error() != tt.want || list {
			t.Errorf("%q: got %v, want %s", tt.name, err, tt.want)
		}
	}
	if _, err := l.Resolve("smal", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an unknown name is not fs.ErrNotExist: %v", err)
	}
	if _, err := l.Resolve("small", nil); err != nil {
		t.Errorf("a directory hides the library: %v", err)
	}
	if _, err := l.Platform("bord"); err == nil || !strings.Contains(err.Error(), `no platform of this name (did you mean "board"?)`) {
		t.Errorf("unknown platform: %v", err)
	}
	if _, err := l.Preset("neu"); err == nil || !strings.Contains(err.Error(), `no kernel preset of this name (did you mean "new"?)`) {
		t.Errorf("unknown preset: %v", err)
	}
}

func TestLists(t *testing.T) {
	l := loader(t)
	got := map[string][]spec.Entry{}
	for what, list := range map[string]func() ([]spec.Entry, error){
		"scenarios": l.Scenarios, "presets": l.Presets, "platforms": l.Platforms,
	} {
		entries, err := list()
		if err != nil {
			t.Fatal(err)
		}
		got[what] = entries
	}
	want := map[string][]spec.Entry{
		"scenarios": {{Name: "small", Summary: "the least that makes a scenario"}},
		"presets":   {{Name: "old", Summary: "fixed time limit", Version: "5.4.18"}, {Name: "new", Summary: "time limit of two ticks", Version: "6.5.0"}},
		"platforms": {{Name: "board", Summary: "a machine for tests"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// ofNew returns the behaviours of the preset new with another napi_schedule.
func ofNew(napiSchedule string) map[string]string {
	p, err := spec.Loader{Library: os.DirFS("testdata/shelves")}.Preset("new")
	if err != nil {
		panic(err)
	}
	p.Behaviours[spec.NAPISchedule] = napiSchedule
	return p.Behaviours
}
