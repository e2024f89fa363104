package scenarios_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/scenarios"
)

// presetChanges writes out, for each behaviour, the presets in which its value changes, in
// the order of the versions. The source is the behaviour matrix of the kernel facts.
var presetChanges = map[string]string{
	// ____napi_schedule and net_rx_action changed together in 6.4.
	// In 6.14 a raise from a task began to wake ksoftirqd.
	"napi_schedule": "v4.8=always_raise v6.4=skip_in_net_rx_action v6.14=skip_and_wake",
	// MISSED came in 4.11.
	"napi_schedule_prep": "v4.8=lost v4.12=missed",
	// The columns of completion, which change in 4.10, 5.0 and 5.8.
	"napi_complete": "v4.8=always_unmask v4.12=hold v5.3=flush_old v5.8=defer_hard_irqs",
	// NAPI threads came in 5.12; they poll busily from 6.18 on.
	"napi_threaded": "v4.8=none v5.12=if_running v6.12=always v6.18=busy_poll",
	// Busy loops own the NAPI from 4.10 on; 5.11 prefers, 6.9 has epoll's own settings, 6.13 suspends.
	"busy_poll": "v4.8=each_poll v4.12=owned v5.11=prefer v6.12=epoll_params v6.13=irq_suspend",
	// The test for a running ksoftirqd is in 4.9 to 6.4, with exceptions from 4.18 and 5.3 on.
	"ksoftirqd": "v4.8=inline v4.9=defer_always v4.19=defer_while_running v5.3=defer_unless_parked v6.5=inline",
	// GRO's list holds packets of napi_gro_frags from 5.4 on and all from 5.5 on; from 5.11
	// on it counts segments. In 5.4.0 merged packets bypass it.
	"gro_normal": "v4.8=single v5.4.0=frags_list_5_4_0 v5.4=frags_list v5.5=skb_list v5.11=skb_list_segments",
	// GRO hashes from 4.19 on, and merges what the card has merged from 6.3 on.
	"gro_table": "v4.8=one_list v4.19=hash v6.3=hash_merge_gso",
	// Lists of packets share their route from 5.5 on.
	"ip_list": "v4.8=no_hint v5.5=route_hint",
	// BIG TCP came with 5.19, for IPv4 with 6.3.
	"gro_max_size": "v4.8=fixed v5.19=big_tcp_ipv6 v6.3=big_tcp",
	// UDP_GRO is of 5.0, rx-gro-list of 5.6, rx-udp-gro-forwarding of 5.12.
	"udp_gro": "v4.8=none v5.3=socket v5.5=frag_list v5.12=forward v6.12=tcp_frag_list",
	// EEVDF took the place of CFS in 6.6, learned DELAY_DEQUEUE in 6.12, and slices a little
	// shorter by 6.17.
	"scheduler": "v4.8=cfs v6.6=eevdf_6_6 v6.12=eevdf_6_12 v6.18=eevdf_6_17",
	// ktimers came to RT with 6.12.
	"timer_thread": "v4.8=none v6.12=ktimers",
	// skb pages are recycled from 5.14 on, straight into the cache from 6.4 on.
	"page_pool_recycle": "v4.8=driver_only v5.14=ring v6.4=direct_list_owner v6.6=direct_in_softirq",
	// Descriptors are kept for allocations from 5.12 on, more of them in 6.18.
	"skb_cache": "v4.8=free_only v5.12=unified v6.18=unified_128",
	// Heads for headers come from kmalloc from 5.11 on, from a page from 6.1 on, and from a
	// slab of their own between 6.12 and 6.14.
	"skb_small_head": "v4.8=page_frag v5.11=kmalloc v6.1=page_slice v6.14=small_slab",
	// TCP readers leave skbs to the core that allocated them from 5.19 on.
	"skb_defer_free": "v4.8=never v5.19=alloc_cpu",
	// The receive half of TCP: 4.19 (ACKs, autotuning), 5.0 (backlog), 6.1, 6.6 and 6.10.
	"tcp_ack_now":          "v4.8=window v4.19=window_or_drained",
	"tcp_backlog_ack":      "v4.8=each v6.12=deferred",
	"tcp_backlog_coalesce": "v4.8=never v5.3=contiguous",
	"tcp_backlog_limit":    "v4.8=rcvbuf_sndbuf v6.1=half_sndbuf v6.12=double_rcvbuf",
	"tcp_grow_window":      "v4.8=truesize v5.19=truesize_less_head",
	"tcp_drs":              "v4.8=reader v4.19=growth v6.18=growth_less_unread",
	"tcp_sack_compression": "v4.8=never v4.19=from_first v5.3=after_three",
	"tcp_win_scaling":      "v4.8=adv_win_scale v6.6=ratio_65 v6.12=ratio_128",
	// UDP has its own memory accounting from 4.10 on; it is strict in 6.18.
	"udp_rcvbuf": "v4.8=at_limit v4.12=above_limit_recheck v6.12=above_limit v6.18=strict",
	// In 6.10 to 6.12 only a datagram that finds the queue empty tells the reader.
	"udp_wakeup": "v4.8=every v6.12=when_empty v6.13=every",
	// netif_rx works in any context from 5.18 on.
	"netif_rx":        "v4.8=split_ni v5.19=universal",
	"backlog_threads": "v4.8=none v6.12=threads",
	// 4.10 called netif_receive_skb, 4.11 added batches; writers own the NAPI from 6.4 on.
	"tun_write": "v4.8=netif_rx_ni v4.12=rx_batched v6.4=frags_owned",
	// The time limit follows the tick from 5.7 on, and did before it was a setting. 6.1.192 and
	// 6.12.117 refuse less, 6.3.8 to 6.6.9 do not.
	"netdev_budget_usecs": "v4.8=not_settable v4.12=fixed_2000 v5.8=two_jiffies v6.1=at_least_two_jiffies v6.3=two_jiffies v6.12=at_least_two_jiffies",
}

// TestPresets: the presets choose what the versions do, and there is one for each version
// in which a behaviour changes.
func TestPresets(t *testing.T) {
	l := scenarios.Loader(nil)
	entries, err := l.Presets()
	if err != nil {
		t.Fatal(err)
	}
	var versions []string
	got, last := map[string]string{}, map[string]string{}
	for _, e := range entries {
		versions = append(versions, e.Name)
		p, err := l.Preset(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name != e.Name || e.Summary == "" {
			t.Errorf("the preset %s calls itself %q: %q", e.Name, p.Name, e.Summary)
		}
		for name, value := range p.Behaviours {
			if value != last[name] {
				got[name] = strings.TrimSpace(got[name] + " " + e.Name + "=" + value)
				last[name] = value
			}
		}
	}
	if diff := cmp.Diff(presetChanges, got); diff != "" {
		t.Errorf("changes of behaviours (-want +got):\n%s", diff)
	}
	const all = "v4.8 v4.9 v4.12 v4.19 v5.3 v5.4.0 v5.4 v5.5 v5.8 v5.11 v5.12 v5.14 v5.19 v6.1 v6.3 v6.4 v6.5 v6.6 v6.12 v6.13 v6.14 v6.18"
	if diff := cmp.Diff(all, strings.Join(versions, " ")); diff != "" {
		t.Errorf("presets (-want +got):\n%s", diff)
	}
}

// TestPlatforms: every stage of the model has a cost on every platform.
func TestPlatforms(t *testing.T) {
	l := scenarios.Loader(scenarios.Stages())
	entries, err := l.Platforms()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		p, err := l.Platform(e.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		if p.Name != e.Name || e.Summary == "" {
			t.Errorf("the platform %s calls itself %q: %q", e.Name, p.Name, e.Summary)
		}
	}
}

// TestLibrary: every scenario can be resolved, alone and from its own resolved text,
// has the name of its file, and starts with the line that editors look for.
func TestLibrary(t *testing.T) {
	l := scenarios.Loader(scenarios.Stages())
	entries, err := l.Scenarios()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Run(e.Name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("library", e.Name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(text, []byte("# yaml-language-server: $schema=../schema.json\n")) {
				t.Error("the first line does not name the schema")
			}
			s, err := l.Resolve(e.Name, nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != e.Name || e.Summary == "" {
				t.Errorf("the scenario calls itself %q: %q", s.Name, e.Summary)
			}
			again, err := l.ResolveText("resolved", s.Resolved(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s, again); diff != "" {
				t.Errorf("(-first +again):\n%s", diff)
			}
			for i, row := range s.Evidence {
				if _, err := l.Resolve(e.Name, row.Assignments()); err != nil {
					t.Errorf("evidence %d: %v", i, err)
				}
			}
		})
	}
}

func ExampleLoader() {
	_, err := scenarios.Loader(scenarios.Stages()).Resolve("quickstart", []string{
		"preempt=fulll",
		"nics.eth0.link.rate=10gbps",
		"nics.eth0.rings.rx=1099511627776",
	})
	fmt.Println(err)
	// Output:
	// --set #1: preempt: "fulll" is not one of none, voluntary, full, lazy (did you mean "full"?)
	// --set #2: nics.eth0.link.rate: "10gbps" has an unknown unit; rates count bits, with SI prefixes (did you mean "10Gbps"?)
	// --set #3: nics.eth0.rings.rx: 1099511627776 is more than 65536: no network card has such a ring
}
