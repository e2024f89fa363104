package spec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/scenarios/spec"
	"napisim/scenarios/spec/behaviours"
	"napisim/scenarios/strict"
)

func TestExplain(t *testing.T) {
	tests := []struct{ path, want string }{
		{"nics.eth0.coalesce.rx-usecs", `
nics.<name>.coalesce.rx-usecs: duration
  The longest time that a received frame waits for its interrupt.
  default    0s
  range      to 1s
  units      ps, ns, us, ms, s
             a number without unit counts us
  in Linux   ethtool -C rx-usecs
`},
		{"sysctl.net.ipv4.tcp_rmem", `
sysctl.net.ipv4.tcp_rmem: a list of 3 values, each a byte count
  The smallest, the initial and the largest receive buffer of a TCP socket.
  default    4096 131072 6291456
  range      1B to 2147483647B
  units      B, kB, KiB, MB, MiB, GB, GiB
             a number without unit counts B
  in Linux   sysctl net.ipv4.tcp_rmem
`},
		{"traffic.arrivals", `
traffic.<name>.arrivals: a mapping
  When frames are sent, over all flows together.
  default    none: the field must be given
  only for   udp
  fields     exactly one of cbr, poisson, bursts
`},
		{"hz", `
hz: one of the values
  The timer frequency of the kernel.
  default    that of the platform
  values     100, 250, 300, 1000
  counts     ticks per second
  in Linux   CONFIG_HZ
`},
		{"kernel.behaviours.ksoftirqd", `
kernel.behaviours.ksoftirqd: one of the values
  Who runs the softirqs that are raised while ksoftirqd is runnable.
  inline: Whoever leaves an interrupt or a section with softirqs off runs them. (to 4.8
    and from 6.5)
  defer_always: They wait until the scheduler runs ksoftirqd. (4.9 to 4.17)
  defer_while_running: They wait, unless a tasklet is pending: then all that is pending
    runs at once. (4.18 to 5.2)
  defer_unless_parked: As defer_while_running, but they do not wait for a ksoftirqd that
    is told to park, as when its CPU goes offline. (5.3 to 6.4)
  default    that of kernel.preset
  values     inline, defer_always, defer_while_running, defer_unless_parked
`},
		{"nics.link", `
nics.<name>.link: a mapping
  The cable and what is at its other end.
  default    none: the field must be given
  short      a single value stands for rate
  fields     rate, delay
`},
	}
	for _, tt := range tests {
		f, err := spec.Explain(tt.path)
		if err != nil {
			t.Errorf("%s: %v", tt.path, err)
			continue
		}
		if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), f.Explain()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.path, diff)
		}
	}
}

// TestExplainFindsPlaces: one field, however its place is written.
func TestExplainFindsPlaces(t *testing.T) {
	for path, want := range map[string]string{
		"nics.rings.rx":                    "nics.<name>.rings.rx",
		"nics.<name>.rings.rx":             "nics.<name>.rings.rx",
		"nics.enp1s0f0.rings.rx":           "nics.<name>.rings.rx",
		"nics":                             "nics",
		"nics.eth0":                        "nics.<name>",
		"sysctl.net.core.netdev_budget":    "sysctl.net.core.netdev_budget",
		"sysctl.net.ipv4.tcp_rmem.2":       "sysctl.net.ipv4.tcp_rmem.0",
		"evidence.value":                   "evidence.0.value",
		"evidence.3.value":                 "evidence.0.value",
		"platform.costs.copy_byte.cost":    "platform.costs.<name>.cost",
		"traffic.flood.arrivals.bursts":    "traffic.<name>.arrivals.bursts",
		"kernel.behaviours.napi_schedule":  "kernel.behaviours.napi_schedule",
		"traffic.bulk.arrivals.cbr":        "traffic.<name>.arrivals.cbr",
		"sysctl.net.core.gro_normal_batch": "sysctl.net.core.gro_normal_batch",
	} {
		if f, err := spec.Explain(path); err != nil || f.Path != want {
			t.Errorf("%s is found as %q, %v; want %s", path, f.Path, err, want)
		}
	}
	for path, want := range map[string]string{
		"nic":                           `nic: unknown field (did you mean "nics"?)`,
		"nics.eth0.coalesc.rx":          `nics.<name>.coalesc.rx: unknown field (did you mean "coalesce"?)`,
		"sysctl.net.core.netdev_budjet": `sysctl.net.core.netdev_budjet: unknown field (did you mean "net.core.netdev_budget"?)`,
		"kernel.behaviours.napi_sched":  `kernel.behaviours.napi_sched: unknown field (did you mean "napi_schedule"?)`,
		"cpus.x":                        "cpus.x: unknown field",
	} {
		if _, err := spec.Explain(path); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

// TestPaths: every path that completion offers can be explained and set.
func TestPaths(t *testing.T) {
	paths := spec.Paths()
	for _, must := range []string{
		"kernel.behaviours.napi_schedule", "sysctl.net.core.netdev_budget", "nics.<name>.rings.rx", "platform",
		"nics.<name>.link", "traffic.<name>.arrivals", "traffic.<name>.arrivals.cbr", "platform.costs.<name>.cost", "cpus",
	} {
		if !slices.Contains(paths, must) {
			t.Errorf("%s is not among the paths", must)
		}
	}
	for _, never := range []string{"napisim", "base", "nics", "sysctl", "evidence"} {
		if slices.Contains(paths, never) {
			t.Errorf("%s is among the paths", never)
		}
	}
	root := strict.Tree(*full())
	for _, path := range paths {
		if f, err := spec.Explain(path); err != nil || f.Path != path || f.Doc == "" {
			t.Errorf("%s is explained as %q: %q, %v", path, f.Path, f.Doc, err)
		}
		set := strings.NewReplacer(
			"nics.<name>", "nics.eth0", "traffic.<name>", "traffic.bulk", "apps.<name>", "apps.hog", "taps.<name>", "taps.tap0", "veths.<name>", "veths.vb", "costs.<name>", "costs.work",
		).Replace(path) + "=null"
		if _, found := strict.Set[spec.Scenario](root, 1, set); len(found) > 0 {
			t.Errorf("%s: %v", set, found)
		}
	}
}

// TestBehaviours: names are unique, documented and usable in a path.
func TestBehaviours(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range behaviours.All() {
		if seen[b.Name] || b.Doc == "" || len(b.Values) < 2 || strings.ContainsAny(b.Name, ".= ") {
			t.Errorf("behaviour %+v", b)
		}
		seen[b.Name] = true
		for _, v := range b.Values {
			if seen[b.Name+v.Name] || !strings.HasSuffix(v.Doc, ".") || v.Versions == "" {
				t.Errorf("%s: value %+v", b.Name, v)
			}
			seen[b.Name+v.Name] = true
		}
	}
}
