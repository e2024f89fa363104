package scenarios

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/model/host"
	"napisim/model/skbuff"
	"napisim/model/tcp"
	"napisim/model/unit"
	"napisim/nic/driver"
	"napisim/scenarios/spec"
	"napisim/scenarios/spec/behaviours"
	"napisim/softirq"
)

// The files that describe the behaviours of sockets, skbs and pages have the values that
// the packages know, in their order.
func TestBehavioursAreDone(t *testing.T) {
	want := map[string][]string{
		spec.UDPRcvbuf: host.UDPRcvbufNames(), spec.UDPWakeup: host.UDPWakeupNames(),
		spec.SKBCache: skbuff.CacheNames(), spec.SKBDeferFree: skbuff.DeferNames(),
		spec.SKBSmallHead:    skbuff.HeadNames(),
		spec.BusyPoll:        softirq.BusyPollNames(),
		spec.PagePoolRecycle: driver.RecycleNames(),
	}
	for _, b := range tcp.Behaviours() {
		want[b] = tcp.BehaviourValues(b)
	}
	for _, b := range behaviours.All() {
		if want[b.Name] == nil {
			continue
		}
		var got []string
		for _, v := range b.Values {
			got = append(got, v.Name)
		}
		if diff := cmp.Diff(want[b.Name], got); diff != "" {
			t.Errorf("%s (-functions +file):\n%s", b.Name, diff)
		}
		delete(want, b.Name)
	}
	if len(want) > 0 {
		t.Errorf("not described: %v", want)
	}
}

// Settings that versions ship with: section 11.1 and 13 of the kernel facts.
func TestPresetSettings(t *testing.T) {
	l := Loader(nil)
	entries, err := l.Presets()
	if err != nil {
		t.Fatal(err)
	}
	order := func(name string) int {
		return slices.IndexFunc(entries, func(e spec.Entry) bool { return e.Name == name })
	}
	for i, e := range entries {
		s := load(t, "quickstart", "kernel="+e.Name)
		rmem := [3]unit.Bytes{4096, 131072, 6 * unit.MiB}
		if i < order("v5.3") {
			rmem[1] = 87380
		}
		most, deferred := unit.Bytes(212992), 64
		if i >= order("v6.18") {
			rmem[2], most, deferred = 32*unit.MiB, 4*unit.MiB, 128
		}
		if s.Sysctl.TCPRmem != rmem || s.Sysctl.RmemMax != most || s.Sysctl.SKBDeferMax != deferred {
			t.Errorf("%s: tcp_rmem %v, rmem_max %v, skb_defer_max %d", e.Name, s.Sysctl.TCPRmem, s.Sysctl.RmemMax, s.Sysctl.SKBDeferMax)
		}
	}
}

// Every version carries TCP and UDP to readers of both kinds, on the core of the NIC
// and on another, and its books close.
func TestEveryVersionReads(t *testing.T) {
	alone(t)
	entries, err := Loader(nil).Presets()
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		if testing.Short() && i%4 != 0 {
			continue
		}
		for _, wait := range []string{"recv", "epoll"} {
			for cpu := range 2 {
				sets := []string{"kernel=" + e.Name, "duration=20ms", "warmup=2ms"}
				mustRun(t, load(t, "tcp-10g-two-cores", append(sets, "apps.iperf3.wait="+wait, fmt.Sprintf("apps.iperf3.cpu=%d", cpu))...), Options{})
				mustRun(t, load(t, "udp-flood-one-core", append(sets, "apps.udp_sink.wait="+wait, fmt.Sprintf("apps.udp_sink.cpu=%d", cpu),
					"kernel.behaviours.skb_cache=two_arrays")...), Options{})
			}
		}
	}
}

// The descriptor caches under one TCP stream with GRO, whose driver allocates from them:
// up to v5.11 every skb takes one from the slab and those merged go back there; since
// v5.12 the merged ones are used again, so the softirq costs less.
func TestSKBCacheSavesUnderGRO(t *testing.T) {
	busy := func(cache string) float64 {
		r := mustRun(t, load(t, "tcp-10g-two-cores", "duration=50ms", "warmup=10ms", "kernel.behaviours.skb_cache="+cache), Options{})
		return r.Metrics["cpu_softirq"].Value
	}
	if old, unified := busy("free_only"), busy("unified"); unified >= old {
		t.Errorf("softirq share %.4f with free_only and %.4f with unified", old, unified)
	}
}

// napi_gro_frags uses the skb of a merged packet for the next one: a driver that calls it
// takes about one descriptor for each superframe, one that calls napi_gro_receive one for
// each packet.
func TestGROFragsReusesTheSKB(t *testing.T) {
	for _, c := range []struct {
		frags string
		each  bool
	}{{"off", true}, {"on", false}} {
		r := mustRun(t, load(t, "tcp-10g-two-cores", "duration=50ms", "warmup=10ms", "kernel=v5.11", "nics.eth0.gro_frags="+c.frags), Options{})
		frames, allocs := r.Metrics["rx_frames"].Value, r.Metrics["skb_slab_allocs"].Value
		if c.each && allocs != frames || !c.each && allocs > frames/4 {
			t.Errorf("gro_frags %s: %.0f descriptors for %.0f frames", c.frags, allocs, frames)
		}
	}
}
