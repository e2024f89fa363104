package recording

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shared finds recordings that are too many to keep with the code: in a directory
// shared beside the tree or above it.
func shared() []string {
	for up := "../../.."; len(up) < 30; up += "/.." {
		if runs, _ := filepath.Glob(filepath.Join(up, "shared/traces/runs/*/meta.yaml")); len(runs) > 0 {
			return runs
		}
	}
	return nil
}

// everyRun calls f for each shared recording; without them the test is skipped.
func everyRun(t *testing.T, f func(t *testing.T, dir string, r *Recording)) {
	t.Helper()
	runs := shared()
	if len(runs) == 0 {
		t.Skip("no shared recordings")
	}
	for _, meta := range runs {
		dir := filepath.Dir(meta)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			r, err := Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			f(t, dir, r)
		})
	}
}

// TestEveryRunLoads reads all recordings; the file names say what they should be.
func TestEveryRunLoads(t *testing.T) {
	kinds := map[Kind]int{}
	everyRun(t, func(t *testing.T, dir string, r *Recording) {
		id := filepath.Base(dir)
		kinds[r.Kind()]++
		t.Log(r.Kind(), r.Rate, r.Kernel, r.NIC, r.TxDevice(), r.RxDevice(), r.IRQs)
		want := map[string]string{"k61": "v6.1", "k612": "v6.12", "k612rt": "v6.12"}[strings.SplitN(id, "-", 2)[0]]
		if r.ID != id || r.Kernel.Preset != want || r.Kernel.RT != strings.HasPrefix(id, "k612rt") {
			t.Error(r.ID, r.Kernel)
		}
		if r.HZ != 250 || r.CPUs != 1 || !r.VirtualTime || len(r.Warnings) != 0 || r.Lost != 0 {
			t.Error(r.HZ, r.CPUs, r.VirtualTime, r.Warnings, r.Lost)
		}
		if strings.Contains(id, "-kp") != r.Kprobes && !strings.Contains(id, "backlog") && !strings.Contains(id, "napi-burst") && !strings.Contains(id, "busy") {
			t.Error("kprobes", r.Kprobes)
		}
		for part, kind := range map[string]Kind{"-cost": KindCost, "tcprr": KindRR, "-tcp-": KindTCP, "sat": KindSaturation, "udp5": KindPaced, "defer": KindPaced, "burst1-": KindBurst, "-burst300": KindBurst, "sysctl": KindOther} {
			if strings.Contains(id+"-", part) && r.Kind() != kind && !strings.Contains(id, "satburst") {
				t.Errorf("kind %s, want %s", r.Kind(), kind)
			}
		}
		if r.Topology == "nic" && (r.TxDevice() != "na" || r.RxDevice() != "nb" || len(r.IRQs) < 2 || r.Devices[1].RingRX == 0) {
			t.Error(r.Devices, r.IRQs)
		}
		if r.NIC.Mitigation() == strings.Contains(id, "nomit") {
			t.Error(r.NIC)
		}
	})
	t.Log(kinds)
}

// TestRates reads every form.
func TestRates(t *testing.T) {
	for s, want := range map[string]Rate{
		"50000/s":                       {Paced, 0, 20_000, 50000},
		"80000/s in bursts of 4":        {Paced, 4, 50_000, 80000},
		"one burst each 10000000 ns":    {Bursts, 0, 10_000_000, 0},
		"burst of 64 each 10 ms":        {Bursts, 64, 10_000_000, 0},
		"slots of 300 frames each 20ms": {Slots, 300, 20_000_000, 0},
		"saturation":                    {Saturation, 0, 0, 0},
		"closed loop":                   {ClosedLoop, 0, 0, 0},
		"none":                          {NoTraffic, 0, 0, 0},
		"":                              {},
	} {
		if got, err := ParseRate(s); err != nil || got != want {
			t.Errorf("%q: %v %v, want %v", s, got, err, want)
		}
	}
	if _, err := ParseRate("now and then"); err == nil {
		t.Error("no error")
	}
	for s, want := range map[string]int{
		"bursts of 65 frames put": 65, "pktgen bursts of 64 back to back": 64, "bursts of 1,2,4 frames": 0,
		"bursts of 300, threaded NAPI": 300, "in bursts of 4": 4, "as before": 0,
	} {
		if got := burstOf(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}

// TestBadInput: each fault names file and line.
func TestBadInput(t *testing.T) {
	const meta, trace = "kernel: 6.1.0\nhz: 250\ntopology: veth\n", " a-1 [000] ..... 12: e: p\n"
	for _, c := range []struct{ file, text, want string }{
		{"meta.yaml", "hz: 250\nhz: 100\n", "meta.yaml:2: hz is given twice"},
		{"meta.yaml", "kernel: 6.1\nhz: many\n", `meta.yaml:2: hz: want a number from 1, not "many"`},
		{"meta.yaml", "hz: 250\n", "meta.yaml:1: kernel: is missing"},
		{"meta.yaml", "kernel: x\n", "meta.yaml:1: kernel: want"},
		{"meta.yaml", "kernel: 6.1\ntopology: ring\n", "meta.yaml:2: topology: want nic, veth or tun"},
		{"meta.yaml", "kernel: 6.1\nrate: often\n", "meta.yaml:2: rate: "},
		{"meta.yaml", "kernel: 6.1\n\t- a\n", "meta.yaml:2: "},
		{"sysctls.txt", "a = 1\nb\n", "sysctls.txt:2: want NAME = VALUE"},
		{"sysctls.txt", "x.mtu = big\n", "sysctls.txt:1: x.mtu"},
		{"ethtool.txt", "RX: 4\n", "ethtool.txt:1: want"},
		{"softnet_stat.after", "00 01\n", "softnet_stat.after:1: want at least 9 columns"},
		{"interrupts.after", " 1: 2\n", "interrupts.after:1: want the header"},
		{"softirqs.after", " CPU0\nHI: x\n", "softirqs.after:2: HI"},
		{"trace.txt", "# only\n", "trace.txt:1: no event"},
		{"trace.txt", "# only\nwhat\n", "trace.txt:2: no line of a trace"},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"meta.yaml": meta, "trace.txt": trace, c.file: c.text} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %s", c.file, c.text, err, c.want)
		}
	}
}

// TestTraceAlone: a file without the rest still gives devices and a kind.
func TestTraceAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.txt")
	text := " nt-5 [001] d.h1. 10: irq_handler_entry: irq=29 name=eth3-rx-0\n" +
		" nt-5 [001] ..s1. 20: softirq_entry: vec=3 [action=NET_RX]\n" +
		" nt-5 [001] ..s1. 30: napi_poll: napi poll on napi struct 1 for device eth3 work 1 budget 64\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if dev, queue := r.DeviceOf("eth3-rx-0"); r.ID != "mine" || r.CPUs != 2 || r.RxDevice() != "eth3" || dev != "eth3" || queue != "rx" || r.Kind() != KindPaced {
		t.Error(r, r.Kind())
	}
}
