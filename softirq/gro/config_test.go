package gro_test

import (
	"strings"
	"testing"

	"napisim/softirq/gro"
)

func TestDefaultConfigIsValid(t *testing.T) {
	for _, c := range []gro.Config{gro.DefaultConfig(), v4_8(), v5_12()} {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestValidateReturnsEveryFault(t *testing.T) {
	c := gro.Config{Buckets: 6, MaxSKBs: -1, MaxSize: 524281, MaxFrags: 16, HeadTruesize: 575, GSO: 3, FragList: true, UDPForward: true}
	err := c.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	want := []string{
		"Buckets is 6, want a power of two",
		"MaxSKBs is -1, want 1 to 4096",
		"MaxSize is 524281, want 1 to 524280",
		"MaxSizeIPv6 is 0, want 1 to 524280",
		"MaxFrags is 16, want 17 to 45",
		"HeadTruesize is 575, want 576 to",
		"GSO is 3",
		"rx-gro-list: the kernel has no such feature (udp_gro is none)",
		"rx-udp-gro-forwarding: the kernel has no such feature (udp_gro is none)",
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d faults, want %d: %v", len(lines), len(want), err)
	}
	for i := range want {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("fault %d is %q, want %q", i, lines[i], want[i])
		}
	}
	for _, buckets := range []int{0, 128} {
		c := gro.DefaultConfig()
		c.Buckets = buckets
		if c.Validate() == nil {
			t.Errorf("%d buckets are valid", buckets)
		}
	}
}

func TestNewRefusesFaults(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a table with a faulty configuration was made")
		}
	}()
	gro.New(gro.Config{}, nil)
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for r := range gro.NumReasons {
		if r.String() == "" || r.Doc() == "" || seen[r.String()] {
			t.Errorf("reason %d: name %q, doc %q", r, r, r.Doc())
		}
		seen[r.String()] = true
	}
	for got, want := range map[string]string{
		gro.GSOBypass.String():  "bypass",
		gro.GSOFlush.String():   "flush",
		gro.GSOMerge.String():   "merge",
		gro.GSORule(9).String(): "GSORule(9)",
		gro.UDPForward.String(): "forward",
		gro.UDPRule(9).String(): "UDPRule(9)",
		gro.Merged.String():     "GRO_MERGED",
		gro.Result(9).String():  "Result(9)",
		gro.Reason(99).String(): "Reason(99)",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Section 14.2: what each kernel's table is.
func TestForVersion(t *testing.T) {
	for _, c := range []struct {
		table, udp                           string
		buckets                              int
		gso                                  gro.GSORule
		recycle, cwr, fixedID, list, forward bool
	}{
		{"one_list", "none", 1, gro.GSOBypass, false, false, false, false, false},            // v4.12
		{"hash", "none", 8, gro.GSOFlush, false, false, false, false, false},                 // v4.19
		{"hash", "socket", 8, gro.GSOFlush, false, false, false, false, false},               // v5.3
		{"hash", "frag_list", 8, gro.GSOFlush, false, false, false, true, false},             // v5.6
		{"hash", "forward", 8, gro.GSOFlush, false, false, false, true, true},                // v6.1
		{"hash_merge_gso", "forward", 8, gro.GSOMerge, true, false, false, true, true},       // v6.3
		{"hash_merge_gso", "tcp_frag_list", 8, gro.GSOMerge, true, false, false, true, true}, // v6.12
		{"hash_match_cwr", "tcp_frag_list", 8, gro.GSOMerge, true, true, true, true, true},   // v6.19
	} {
		got, err := gro.ForVersion(c.table, c.udp)
		if err != nil {
			t.Fatal(err)
		}
		if got.Buckets != c.buckets || got.GSO != c.gso || got.MatchRecycle != c.recycle || got.MatchCWR != c.cwr ||
			got.FixedIDWithoutDF != c.fixedID || got.MaxSize != 65536 || got.MaxSizeIPv6 != 65536 || got.MaxSKBs != 8 || got.MaxFrags != 17 {
			t.Errorf("%s, %s: %+v", c.table, c.udp, got)
		}
		for _, f := range []struct {
			name string
			set  *bool
			can  bool
		}{{"rx-gro-list", &got.FragList, c.list}, {"rx-udp-gro-forwarding", &got.UDPForward, c.forward}} {
			*f.set = true
			if err := got.Validate(); (err == nil) != f.can {
				t.Errorf("%s, %s with %s: %v", c.table, c.udp, f.name, err)
			}
			*f.set = false
		}
	}
	for _, names := range [][2]string{{"heap", "none"}, {"hash", "all"}} {
		if _, err := gro.ForVersion(names[0], names[1]); err == nil {
			t.Errorf("%v is a version", names)
		}
	}
	if len(gro.TableNames()) != 4 || len(gro.UDPNames()) != 5 || len(gro.SizeNames()) != 4 {
		t.Errorf("%v %v %v", gro.TableNames(), gro.UDPNames(), gro.SizeNames())
	}
}

// Section 4.4, size limits: fixed to v5.15, a setting in v5.17, more for IPv6 since v5.19,
// for IPv4 since v6.3.
func TestSetSizes(t *testing.T) {
	for _, c := range []struct {
		version        string
		max, ipv4      int
		ipv6Is, ipv4Is int // 0: refused
	}{
		{"fixed", 0, 0, 65536, 65536},
		{"fixed", 65536, 0, 0, 0},
		{"device", 32768, 0, 32768, 32768},
		{"device", 65537, 0, 0, 0},
		{"device", 0, 65536, 0, 0},
		{"big_tcp_ipv6", 524280, 0, 524280, 65536},
		{"big_tcp_ipv6", 524281, 0, 0, 0},
		{"big_tcp_ipv6", 185000, 185000, 0, 0},
		{"big_tcp", 524280, 0, 524280, 65536},
		{"big_tcp", 0, 524280, 65536, 524280},
		{"big_tcp", 185000, 150000, 185000, 150000},
		{"big_tcp", 40000, 0, 40000, 40000},
		{"big_tcp", 0, 524281, 0, 0},
		{"none", 0, 0, 0, 0},
	} {
		got := gro.DefaultConfig()
		err := got.SetSizes(c.version, c.max, c.ipv4)
		if (err != nil) != (c.ipv6Is == 0) || err == nil && (got.MaxSizeIPv6 != c.ipv6Is || got.MaxSize != c.ipv4Is) {
			t.Errorf("%s %d %d: IPv6 %d, IPv4 %d, %v", c.version, c.max, c.ipv4, got.MaxSizeIPv6, got.MaxSize, err)
		}
	}
}
