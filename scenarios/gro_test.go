package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/model/host"
	"napisim/scenarios/spec"
	"napisim/scenarios/spec/behaviours"
	"napisim/sim"
	"napisim/softirq"
	"napisim/softirq/gro"
)

// datagramScenario is a burst of 200 datagrams of 1000 bytes every 4 ms, 30 of them.
const datagramScenario = `napisim: 1
name: datagrams
summary: bursts of datagrams to one reader
platform: x86-server-3ghz
kernel: {preset: v6.1}
cpus: 2
duration: 118ms
warmup: 1ms
nics:
  eth0:
    link: {rate: 10Gbps, delay: 1us}
    coalesce: {rx-usecs: 20us}
apps:
  reader: {kind: udp-reader, cpu: 1, rcvbuf: 208KiB}
traffic:
  bursts: {kind: udp, nic: eth0, to: reader, size: 1046B, arrivals: {bursts: {rate: 50kpps, frames: 200}}}
sysctl:
  net.core.rmem_max: 1MiB
`

// resolveText resolves a scenario given as text.
func resolveText(t testing.TB, text string, sets ...string) *spec.Scenario {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scenario.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Default().Resolve(file, sets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// received runs a scenario in all modes, which must agree, and returns its only UDP socket
// and its first table.
func received(t *testing.T, s *spec.Scenario) (*host.UDPSock, *gro.Stats) {
	t.Helper()
	want := bytesOf(t, s, mustRun(t, s, Options{}))
	for _, o := range []Options{{Mode: sim.Eager}, {Mode: sim.Slow}, {TieSeed: 7}} {
		if got := bytesOf(t, s, mustRun(t, s, o)); got != want {
			t.Errorf("mode %d, ties by %d, differs from lazy: %s", o.Mode, o.TieSeed, firstDifference(want, got))
		}
	}
	sys, err := Build(s, s.Seed, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	if err := sys.Run(Options{}); err != nil {
		t.Fatal(err)
	}
	if err := sys.Check(); err != nil {
		t.Fatal(err)
	}
	return sys.udp[0], sys.ports[0].dev.NAPI().GRO().Stats()
}

// TestUDPGROInScenarios: 30 bursts of 200 datagrams reach the reader in any form. With
// UDP_GRO a read returns up to 64 of them, on kernels that have it; otherwise one, and
// chained ones come apart at the socket.
func TestUDPGROInScenarios(t *testing.T) {
	alone(t)
	const list, forward, wanted = "nics.eth0.features.rx-gro-list=on", "nics.eth0.features.rx-udp-gro-forwarding=on", "apps.reader.udp_gro=on"
	for _, c := range []struct {
		name        string
		sets        []string
		few, merges bool
	}{
		{"v6.1", nil, false, false},
		{"v6.1, UDP_GRO", []string{wanted}, true, true},
		{"v6.1, rx-gro-list", []string{list}, false, true},
		{"v6.1, rx-gro-list and UDP_GRO", []string{list, wanted}, true, true},
		{"v6.1, rx-udp-gro-forwarding before any socket asks", []string{forward}, false, true},
		{"v6.12, UDP_GRO", []string{"kernel.preset=v6.12", wanted}, true, true},
		{"v5.3, UDP_GRO", []string{"kernel.preset=v5.3", wanted}, true, true},
		{"v4.19 has no UDP_GRO", []string{"kernel.preset=v4.19", wanted}, false, false},
		{"GRO off", []string{wanted, "nics.eth0.features.gro=off"}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := resolveText(t, datagramScenario, c.sets...)
			if c.name == "GRO off" {
				s.NICs["eth0"] = func() spec.NIC { n := s.NICs["eth0"]; n.Features.GRO = false; return n }()
				mustRun(t, s, Options{})
				return
			}
			sock, st := received(t, s)
			got := sock.Received()
			if got.Packets != 6000 || got.Bytes != 6000*1000 {
				t.Errorf("%d datagrams of %d bytes, want 6000", got.Packets, got.Bytes)
			}
			if few := got.Reads < 6000/4; few != c.few || !few && got.Reads != 6000 {
				t.Errorf("%d reads", got.Reads)
			}
			if merges := st.Merged > 0; merges != c.merges {
				t.Errorf("GRO merged %d", st.Merged)
			}
		})
	}
}

// TestGROSettingsOfVersions: what a kernel does not have cannot be set.
func TestGROSettingsOfVersions(t *testing.T) {
	for _, c := range []struct{ sets, want string }{
		{"kernel.preset=v5.3 nics.eth0.features.rx-gro-list=on", "rx-gro-list: the kernel has no such feature (udp_gro is socket)"},
		{"kernel.preset=v5.11 nics.eth0.features.rx-udp-gro-forwarding=on", "rx-udp-gro-forwarding: the kernel has no such feature (udp_gro is frag_list)"},
		{"kernel.preset=v5.12 nics.eth0.gro_max_size=65536", "gro_max_size: the kernel has no such setting (behaviour gro_max_size is fixed)"},
		{"kernel.preset=v6.1 nics.eth0.gro_ipv4_max_size=65536", "gro_ipv4_max_size: the kernel has no such setting (behaviour gro_max_size is big_tcp_ipv6)"},
		{"kernel.preset=v6.1 nics.eth0.gro_max_size=185000", ""},
		{"kernel.preset=v6.3 nics.eth0.gro_ipv4_max_size=185000", ""},
		{"kernel.preset=v6.4 kernel.max_skb_frags=45", ""},
	} {
		sys, err := Build(resolveText(t, datagramScenario, strings.Fields(c.sets)...), 1, Options{})
		if err == nil {
			sys.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.sets, err, c.want)
		}
	}
}

// TestTablesAgreeWithTheirDescriptions: the values that scenarios may name are those that
// the code has.
func TestTablesAgreeWithTheirDescriptions(t *testing.T) {
	coded := map[string][]string{
		spec.GRONormal: softirq.GRONormalNames(), spec.GROTable: gro.TableNames(), spec.GROMaxSize: gro.SizeNames(), spec.UDPGRO: gro.UDPNames(),
	}
	for _, b := range behaviours.All() {
		values, ok := coded[b.Name]
		if !ok {
			continue
		}
		delete(coded, b.Name)
		var described []string
		for _, v := range b.Values {
			described = append(described, v.Name)
		}
		if diff := cmp.Diff(values, described); diff != "" {
			t.Errorf("%s (-coded +described)\n%s", b.Name, diff)
		}
	}
	if len(coded) > 0 {
		t.Errorf("not described: %v", coded)
	}
}

// A superframe of IPv4 ends below 64 KiB, or below gro_ipv4_max_size where the kernel has
// it: BIG TCP takes fewer and larger ones of a sender that writes 256 KiB at once.
func TestBigTCPInScenarios(t *testing.T) {
	alone(t)
	largest := func(sets ...string) int64 {
		s := short(t, "quickstart", append(sets, "kernel.preset=v6.12", "traffic.stream.tso=256KiB", "hz=1000", "cpus=2", "apps.reader.cpu=1",
			"nics.eth0.link.rate=25Gbps", "nics.eth0.coalesce.rx-usecs=100us", "nics.eth0.rings.rx=2048", "nics.eth0.page_pool.size=2048")...)
		sys, err := Build(s, s.Seed, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer sys.Close()
		if err := sys.Run(Options{}); err != nil {
			t.Fatal(err)
		}
		var most int64
		for _, sd := range sys.softnets {
			most = max(most, sd.Stats().GROSegments.Max())
		}
		return most
	}
	const ipv6 = "traffic.stream.ipv6=on"
	if got := largest(ipv6); got != 45 { // 72 + 45*1428 = 64332
		t.Errorf("superframes of IPv6 of up to %d segments, want 45", got)
	}
	if got := largest(ipv6, "nics.eth0.gro_max_size=185000"); got <= 45 || got > 129 { // 72 + 129*1428 = 184284
		t.Errorf("superframes of up to %d segments with BIG TCP over IPv6", got)
	}
	if got := largest("nics.eth0.gro_max_size=185000"); got != 45 {
		t.Errorf("gro_max_size is for IPv6: superframes of IPv4 of up to %d segments", got)
	}
	if got := largest(); got != 45 {
		t.Errorf("superframes of up to %d segments, want 45", got)
	}
	if got := largest("nics.eth0.gro_ipv4_max_size=185000"); got <= 45 || got > 127 { // 52 + 127*1448 < 185000
		t.Errorf("superframes of up to %d segments with BIG TCP", got)
	}
}

// Vector G9 in a bulk stream: the rest of a 64 KiB write, which nothing is held to take it,
// waits in the list while the 45 segments of the next write overtake it. v5.4.0 with a
// driver that calls napi_gro_frags shows it as TCPOFOQueue; the versions before and after
// keep the order, and so does a driver that calls napi_gro_receive.
func TestG9ReorderingInScenarios(t *testing.T) {
	alone(t)
	outOfOrder := func(preset, frags string) int64 {
		s := short(t, "quickstart", "kernel.preset="+preset, "nics.eth0.gro_frags="+frags, "hz=1000", "cpus=2", "apps.reader.cpu=1",
			"nics.eth0.link.rate=25Gbps", "nics.eth0.coalesce.rx-usecs=100us", "nics.eth0.rings.rx=2048", "nics.eth0.page_pool.size=2048")
		sys, err := Build(s, s.Seed, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer sys.Close()
		if err := sys.Run(Options{}); err != nil {
			t.Fatal(err)
		}
		if lost := sys.env.Losses.Total(); lost > 0 {
			t.Fatalf("%s: %d lost, of which reordering follows", preset, lost)
		}
		return sys.tcp[0].Receiver().Stats().TCPOFOQueue
	}
	for _, c := range []struct {
		preset, frags string
		reorders      bool
	}{
		{"v5.3", "on", false}, {"v5.4.0", "on", true}, {"v5.4", "on", false}, {"v5.5", "on", false}, {"v6.1", "on", false}, {"v5.4.0", "off", false},
	} {
		if got := outOfOrder(c.preset, c.frags); (got > 0) != c.reorders {
			t.Errorf("%s, napi_gro_frags %s: TCPOFOQueue %d", c.preset, c.frags, got)
		}
	}
}

// Whatever the forms of GRO and of delivery, and whatever of them never existed together,
// the books balance and the modes agree.
func TestBooksOfRandomGRO(t *testing.T) {
	alone(t)
	rapid.Check(t, func(r *rapid.T) {
		set := func(path string, values ...string) string {
			return path + "=" + rapid.SampledFrom(values).Draw(r, path)
		}
		sets := []string{
			"duration=9ms", "warmup=1ms",
			set("hz", "250", "1000"),
			set("kernel.behaviours.gro_normal", softirq.GRONormalNames()...),
			set("kernel.behaviours.gro_table", gro.TableNames()...),
			set("kernel.behaviours.ip_list", "no_hint", "route_hint"),
			set("kernel.behaviours.udp_gro", "forward", "tcp_frag_list"),
			set("kernel.max_skb_frags", "17", "45"),
			set("nics.eth0.features.rx-gro-list", "on", "off"),
			set("nics.eth0.features.rx-udp-gro-forwarding", "on", "off"),
			set("nics.eth0.gro_max_size", "1600", "20000", "65536"),
			set("nics.eth0.gro_frags", "on", "off"),
			set("sysctl.net.core.gro_normal_batch", "1", "8", "100"),
			set("nics.eth0.rings.rx", "16", "512"),
			set("platform.costs.route_lookup.cost", "0ns", "30ns"),
		}
		var s *spec.Scenario
		var err error
		if rapid.Bool().Draw(r, "tcp") {
			s, err = Default().Resolve("quickstart", append(sets, set("traffic.stream.flows", "1", "10"), set("traffic.stream.ipv6", "on", "off")))
		} else {
			s = resolveText(t, datagramScenario, append(sets, "duration=9ms", set("traffic.bursts.flows", "1", "3"), set("traffic.bursts.ipv6", "on", "off"), set("apps.reader.udp_gro", "on", "off"),
				set("apps.reader.cpu", "0", "1"), set("traffic.bursts.size", "70B", "1046B", "1518B"), set("apps.reader.rcvbuf", "2KiB", "208KiB"))...)
		}
		if err != nil {
			r.Fatal(err)
		}
		want := ""
		for _, o := range []Options{{Mode: sim.Lazy}, {Mode: sim.Eager}, {Mode: sim.Slow}, {TieSeed: 3}} {
			run, err := Run(s, s.Seed, o)
			if err != nil {
				r.Fatal(err)
			}
			got := bytesOf(t, s, run)
			if want == "" {
				want = got
			}
			if got != want {
				r.Fatalf("mode %d, ties by %d, differs from lazy: %s", o.Mode, o.TieSeed, firstDifference(want, got))
			}
		}
	})
}
