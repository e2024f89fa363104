package spec_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"napisim/scenarios/faults"
	"napisim/scenarios/spec"
)

// TestResolvedText writes out what the least scenario comes to.
func TestResolvedText(t *testing.T) {
	want := `napisim: 1
name: small
summary: the least that makes a scenario
notes: not for reading
platform:
  name: board
  summary: a machine for tests
  hz: 250
  preempt: voluntary
  irq_time_accounting: off
  noise: 0%
  costs:
    copy:
      cost: 350ps
      per: byte
      kind: fitted
      source: by eye
      rows: the first
    work:
      cost: 120ns
      per: occurrence
      kind: measured
      source: a stopwatch
kernel:
  preset: new
  behaviours:
` + choices(ofNew("skip_in_net_rx_action")) + `  threadirqs: off
  preempt_rt: off
  max_skb_frags: 17
  thread_backlog_napi: off
hz: 250
preempt: voluntary
cpus: 1
duration: 1s
warmup: 0s
seed: 1
runs: 1
nics:
  eth0:
    driver: generic
    link:
      rate: 1Gbps
      delay: 0s
    mtu: 1500
    rings:
      rx: 512
      tx: 512
    coalesce:
      rx-usecs: 0s
      rx-frames: 0
      tx-usecs: 0s
      tx-frames: 0
    features:
      gro: on
      rx: on
      rx-gro-list: off
      rx-udp-gro-forwarding: off
    napi:
      gro_flush_timeout: 0s
      napi_defer_hard_irqs: 0
      irq_suspend_timeout: 0s
      threaded: disabled
      thread_cpu: 0
    gro_max_size: 0B
    gro_ipv4_max_size: 0B
    gro_frags: off
    irq:
      rx: 0
      tx: 0
    page_pool:
      size: 512
    queues:
      rx-0:
        rps_cpus: "0"
        rps_flow_cnt: 0
    xdp: pass
sysctl:
  net.core.netdev_budget: 300
  net.core.netdev_budget_usecs: 8ms
  net.core.gro_normal_batch: 8
  net.core.netdev_max_backlog: 1000
  net.core.dev_weight: 64
  net.core.dev_weight_rx_bias: 1
  net.core.rps_sock_flow_entries: 0
  net.core.flow_limit_cpu_bitmap: "0"
  net.core.flow_limit_table_len: 4096
  net.core.busy_read: 0s
  net.core.busy_poll: 0s
  net.core.rmem_default: 208KiB
  net.core.rmem_max: 208KiB
  net.core.skb_defer_max: 64
  net.ipv4.tcp_rmem: [4KiB, 128KiB, 6MiB]
  net.ipv4.tcp_moderate_rcvbuf: 1
  net.ipv4.tcp_adv_win_scale: 1
  net.ipv4.tcp_comp_sack_nr: 44
  net.ipv4.tcp_comp_sack_delay_ns: 1ms
  net.ipv4.tcp_backlog_ack_defer: 1
evidence:
  - source: nobody
    metric: goodput
    value: 1
    role: predicted
`
	s := resolve(t, "small")
	if diff := cmp.Diff(want, string(s.Resolved())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	sum := sha256.Sum256([]byte(want))
	if got := s.Digest(); got != hex.EncodeToString(sum[:]) {
		t.Errorf("the digest %s is not the SHA-256 of the text", got)
	}
}

// TestResolvedStandsAlone: the resolved text needs no library and means the same.
func TestResolvedStandsAlone(t *testing.T) {
	s := resolve(t, "testdata/valid/full.yaml")
	text := s.Resolved()
	// The name of the preset stays, so its file has to exist; its choices no longer count.
	alone := spec.Loader{Library: fstest.MapFS{
		"library/copy.yaml": {Data: text},
		"kernels/new.yaml":  {Data: read(t, "testdata/shelves/kernels/old.yaml")},
	}}
	again, err := alone.Resolve("copy", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, again); diff != "" {
		t.Errorf("(-first +again):\n%s", diff)
	}
	if !bytes.Equal(text, again.Resolved()) {
		t.Errorf("the text is not stable:\n%s", again.Resolved())
	}
}

func TestDigestTellsScenariosApart(t *testing.T) {
	seen := map[string]string{}
	for _, set := range []string{"seed=1", "seed=2", "nics.eth0.rings.rx=511", "platform.costs.work.cost=121ns", "kernel.behaviours.ksoftirqd=defer_while_running"} {
		d := resolve(t, "small", set).Digest()
		if other, taken := seen[d]; taken {
			t.Errorf("%s and %s have the same digest", set, other)
		}
		seen[d] = set
	}
	if a, b := resolve(t, "small").Digest(), resolve(t, "small", "seed=1", "hz=250").Digest(); a != b {
		t.Error("what is written out that was the default anyway changes the digest")
	}
}

// TestValidate: a scenario that no file was read for is checked as strictly.
func TestValidate(t *testing.T) {
	s := full()
	if found := s.Validate([]string{"work", "copy"}); len(found) > 0 {
		t.Fatalf("a good scenario has faults:\n%v", found)
	}
	s.CPUs = 0
	s.HZ = 0
	s.Duration = 0
	nic := s.NICs["eth1"]
	nic.Rings.RX, nic.Link.Rate = 0, -1
	s.NICs["eth1"] = nic
	delete(s.Kernel.Behaviours, spec.Ksoftirqd)
	hog := s.Apps["hog"]
	hog.Kind = "cpu-pig"
	s.Apps["hog"] = hog
	const want = `apps.hog.kind: "cpu-pig" is not one of tcp-reader, udp-reader, udp-server, cpu-hog, tun-writer, vhost, udp-sender (did you mean "cpu-hog"?)
cpus: 0 is less than 1
duration: 0s is less than 1us: nothing happens in less
hz: "0" is not one of 100, 250, 300, 1000
kernel.preset: leaves open the behaviour ksoftirqd
nics.eth1.link.rate: -1bps is less than 1kbps
nics.eth1.rings.rx: 0 is less than 1: no network card has such a ring
platform.costs: has no cost for the stage sleep; write 0ns if it is free`
	got := s.Validate([]string{"work", "copy", "sleep"}).Err()
	sorted := strings.Split(got.Error(), "\n")
	if diff := cmp.Diff(strings.Split(want, "\n"), sorted); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// FuzzResolve: no file and no assignment makes the loader panic or fail without a
// reason, and what is accepted has a resolved text that means the same.
func FuzzResolve(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	more, err := filepath.Glob("testdata/valid/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range append(seeds, more...) {
		f.Add(read(f, name), "seed=2")
	}
	for line := range strings.Lines(string(read(f, "testdata/faults/set/set.txt"))) {
		f.Add(read(f, "testdata/shelves/library/small.yaml"), strings.TrimSuffix(line, "\n"))
	}
	shelves := fstest.MapFS{}
	for _, name := range seeds {
		if rest, ok := strings.CutPrefix(filepath.ToSlash(name), "testdata/shelves/"); ok {
			shelves[rest] = &fstest.MapFile{Data: read(f, name)}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, set string) {
		if strings.ContainsAny(set, "/\\") {
			t.Skip("could name a file of this machine")
		}
		shelves["library/fuzz.yaml"] = &fstest.MapFile{Data: text}
		l := spec.Loader{Library: fs.FS(shelves)}
		s, err := l.Resolve("fuzz", []string{set})
		if err != nil {
			list, ok := errors.AsType[faults.List](err)
			for _, fault := range list {
				if fault.Text == "" {
					t.Errorf("a fault without a reason: %v", err)
				}
			}
			if !ok {
				t.Errorf("no list of faults: %v", err)
			}
			return
		}
		if found := s.Validate(nil); len(found) > 0 {
			t.Errorf("accepted, but Validate finds:\n%v", found)
		}
		shelves["library/fuzz.yaml"] = &fstest.MapFile{Data: s.Resolved()}
		again, err := l.Resolve("fuzz", nil)
		if err != nil {
			t.Fatalf("the resolved text is refused: %v\n%s", err, s.Resolved())
		}
		if !bytes.Equal(s.Resolved(), again.Resolved()) {
			t.Errorf("the resolved text means something else:\n%s\nbecame\n%s", s.Resolved(), again.Resolved())
		}
	})
}

// choices writes behaviours as the resolved text does, by name.
func choices(of map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(&text, "    %s: %s\n", name, of[name])
	}
	return text.String()
}
