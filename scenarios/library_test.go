package scenarios_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/scenarios"
	"napisim/scenarios/spec"
)

// TestPresets writes out the choices of each kernel. The sources: ____napi_schedule and
// net_rx_action changed together in 6.4; the test for a running ksoftirqd is in 4.9 to
// 6.4; GRO's list counts packets of napi_gro_frags in 5.4 and segments of all from 5.11
// on; skb pages are recycled from 5.14 on, straight into the cache from 6.4 on; the time
// limit follows the tick from 5.7 on.
func TestPresets(t *testing.T) {
	want := map[string][5]string{ // napi_schedule, ksoftirqd, gro_normal, page_pool_recycle, netdev_budget_usecs
		"v5.4": {"always_raise", "defer_while_running", "frags_list", "driver_only", "fixed_2000"},
		"v6.1": {"always_raise", "defer_while_running", "skb_list_segments", "ring", "two_jiffies"},
		"v6.3": {"always_raise", "defer_while_running", "skb_list_segments", "ring", "two_jiffies"},
		"v6.4": {"skip_in_net_rx_action", "defer_while_running", "skb_list_segments", "direct_list_owner", "two_jiffies"},
		"v6.5": {"skip_in_net_rx_action", "inline", "skb_list_segments", "direct_list_owner", "two_jiffies"},
	}
	l := scenarios.Loader(nil)
	entries, err := l.Presets()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][5]string{}
	for _, e := range entries {
		p, err := l.Preset(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name != e.Name || e.Summary == "" {
			t.Errorf("the preset %s calls itself %q: %q", e.Name, p.Name, e.Summary)
		}
		b := p.Behaviours
		got[e.Name] = [5]string{
			b[spec.NAPISchedule], b[spec.Ksoftirqd], b[spec.GRONormal], b[spec.PagePoolRecycle], b[spec.NetdevBudgetUsecs],
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
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
		"kernel.behaviours.napi_schedule=always_rise",
		"nics.eth0.link.rate=10gbps",
		"nics.eth0.rings.rx=1099511627776",
	})
	fmt.Println(err)
	// Output:
	// --set #1: kernel.behaviours.napi_schedule: "always_rise" is not one of always_raise, skip_in_net_rx_action, clear_flag_always (did you mean "always_raise"?)
	// --set #2: nics.eth0.link.rate: "10gbps" has an unknown unit; rates count bits, with SI prefixes (did you mean "10Gbps"?)
	// --set #3: nics.eth0.rings.rx: 1099511627776 is more than 65536: no network card has such a ring
}
