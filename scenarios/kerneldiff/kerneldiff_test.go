package kerneldiff_test

import (
	"slices"
	"strings"
	"testing"

	"napisim/model/unit"
	"napisim/scenarios"
	"napisim/scenarios/kerneldiff"
	"napisim/scenarios/spec"
)

func load(t *testing.T, name string) *spec.Preset {
	t.Helper()
	p, err := scenarios.Default().Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func history(t *testing.T) []*spec.Preset {
	t.Helper()
	all, err := kerneldiff.History(scenarios.Default())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func find(t *testing.T, all []kerneldiff.Difference, name string) kerneldiff.Difference {
	t.Helper()
	i := slices.IndexFunc(all, func(d kerneldiff.Difference) bool { return d.Name == name })
	if i < 0 {
		t.Fatalf("no difference in %s", name)
	}
	return all[i]
}

// TestBetween: 8b43fd3d1d7d and 8c48eea3adf3 are of 6.4; 6a5bcd84e886 came before.
func TestBetween(t *testing.T) {
	all := history(t)
	between := kerneldiff.Between(load(t, "v6.3"), load(t, "v6.4"), all)
	d := find(t, between, "napi_schedule")
	if d.From != "always_raise" || d.To != "skip_in_net_rx_action" || d.Commit() != "8b43fd3d1d7d" ||
		!slices.Contains(d.Functions, "net_rx_action") || d.Effect() == "" {
		t.Errorf("%+v", d)
	}
	if got := find(t, between, "page_pool_recycle").Commit(); got != "8c48eea3adf3" {
		t.Errorf("page_pool_recycle: %s", got)
	}
	// On the way from 5.4 to 6.4 pages passed the ring.
	d = find(t, kerneldiff.Between(load(t, "v5.4"), load(t, "v6.4"), all), "page_pool_recycle")
	if d.Commit() != "6a5bcd84e886, 8c48eea3adf3" || len(d.Effects) != 2 {
		t.Errorf("%+v", d)
	}
	// Backwards the same commits are missing.
	d = find(t, kerneldiff.Between(load(t, "v6.4"), load(t, "v5.4"), all), "page_pool_recycle")
	if d.Commit() != "without 6a5bcd84e886, 8c48eea3adf3" || !strings.HasPrefix(d.Effect(), "Undone: ") {
		t.Errorf("%+v", d)
	}
	if got := kerneldiff.Between(load(t, "v6.4"), load(t, "v6.4"), all); len(got) != 0 {
		t.Errorf("v6.4 differs from itself: %+v", got)
	}
}

// TestSettings: a default that differs is one difference, one that is derived has no value.
func TestSettings(t *testing.T) {
	a, b := load(t, "v6.4"), load(t, "v6.4")
	b.Sysctl.NetdevBudget = 600
	b.Sysctl.NetdevBudgetUsecs = 12 * unit.Millisecond
	b.Sysctl.TCPRmem[1] = 87380
	got := kerneldiff.Between(a, b, history(t))
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for _, want := range []struct{ path, from, to string }{
		{"sysctl.net.core.netdev_budget", "300", "600"},
		{"sysctl.net.core.netdev_budget_usecs", "", "12ms"},
		{"sysctl.net.ipv4.tcp_rmem", "[4KiB, 128KiB, 6MiB]", "[4KiB, 87380B, 6MiB]"},
	} {
		i := slices.IndexFunc(got, func(d kerneldiff.Difference) bool { return d.Path == want.path })
		if i < 0 || got[i].From != want.from || got[i].To != want.to {
			t.Errorf("%s: %+v", want.path, got)
			continue
		}
		s, err := scenarios.Default().Resolve("quickstart", []string{got[i].Assign(got[i].To)})
		if err != nil {
			t.Errorf("what is written cannot be read: %v", err)
		} else if back := kerneldiff.Setting(s.Sysctl, got[i].Name); back != want.to {
			t.Errorf("%s: read back as %s", want.path, back)
		}
	}
}

func TestHaving(t *testing.T) {
	all := history(t)
	if !slices.IsSortedFunc(all, func(a, b *spec.Preset) int { return spec.CompareVersions(a.Version, b.Version) }) {
		t.Error("not in the order of versions")
	}
	if got := kerneldiff.Having(all, "ksoftirqd", "inline"); !strings.HasPrefix(got, "v4.8, v6.5-") {
		t.Errorf("got %s", got)
	}
	if got := kerneldiff.Having(all, "napi_schedule", "clear_flag_always"); got != "" {
		t.Errorf("got %s", got)
	}
}

func TestLineage(t *testing.T) {
	line, err := scenarios.Default().Lineage("v6.4")
	if err != nil || line.Base != "v6.3" || line.Under.Name != "v6.3" {
		t.Fatalf("base %q, %v", line.Base, err)
	}
	if got := line.Files["behaviours.napi_schedule"]; !strings.HasSuffix(got, "v6.4.yaml") {
		t.Errorf("napi_schedule comes from %s", got)
	}
	if got := line.Files["behaviours.ksoftirqd"]; !strings.HasSuffix(got, "v5.3.yaml") {
		t.Errorf("page_pool_recycle comes from %s", got)
	}
	if _, err := scenarios.Default().Lineage("v6.44"); err == nil {
		t.Error("no error for a preset that is not there")
	}
}
