package scenarios

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"napisim/model/unit"
	"napisim/scenarios/spec"
)

// words are what the cells of testdata/matrix.txt mean: of a column and a word the behaviour
// and the values that do it. Where a column has an empty word its cells are settings, see
// TestPresetsAgreeWithTheMatrix.
var words = map[string]map[string][]string{
	"schedule":      {"": {spec.NAPISchedule}, "a": {spec.AlwaysRaise}, "b": {spec.SkipRaise}, "d": {spec.SkipAndWake}},
	"missed":        {"": {spec.NAPISchedulePrep}, "no": {spec.Lost}, "yes": {spec.Missed}},
	"net_rx_action": {"": {spec.NAPISchedule}, "taken once": {spec.AlwaysRaise}, "starts again": {spec.SkipRaise, spec.SkipAndWake}},
	"window":        {"": {spec.NetdevBudgetUsecs}, "constant 2 jiffies": {spec.NotSettable}, "2 jiffies": {spec.TwoJiffies}, "2000 us": {spec.Fixed2000}, "from 2 jiffies on": {spec.AtLeastTwoJiffies}},
	"ksoftirqd": {
		"": {spec.Ksoftirqd}, "inline": {spec.Inline}, "skip if running": {spec.DeferAlways},
		"HI and TASKLET inline": {spec.DeferRunning}, "and a parking one does not run": {spec.DeferParking},
	},
	"completion": {
		"": {spec.NAPIComplete}, "col 1": {spec.AlwaysUnmask}, "col 2": {spec.Hold},
		"col 3": {spec.FlushOld}, "col 4": {spec.FlushOld}, // column 4 has a list, which is gro_normal's
		"col 5": {spec.DeferHardIRQs},
	},
	"timer needs held": {"": {spec.NAPIComplete}, "yes": {spec.AlwaysUnmask, spec.Hold, spec.FlushOld}, "no": {spec.DeferHardIRQs}},
	"threaded": {
		"": {spec.NAPIThreaded}, "-": {spec.NoThreads}, "marked if awake": {spec.IfRunning},
		"marked": {spec.AlwaysScheduled}, "marked, may busy-poll": {spec.BusyPollingNAPIs},
	},
	"scheduler": {
		"": {spec.Scheduler}, "CFS": {"cfs"}, "EEVDF 0.75 ms": {"eevdf_6_6"},
		"EEVDF 0.75 ms, delayed dequeue": {"eevdf_6_12"}, "EEVDF 0.70 ms, delayed dequeue": {"eevdf_6_17"},
	},
	"busy poll": {
		"": {spec.BusyPoll}, "one poll at a time": {"each_poll"}, "owned": {"owned"}, "and preferred": {spec.PreferBusyPoll},
		"and per epoll": {"epoll_params"}, "and suspended": {"irq_suspend"},
	},

	"GRO table": {"": {spec.GROTable}, "1 list of 8": {"one_list"}, "8 lists of 8": {"hash"}, "and GSO merges": {"hash_merge_gso"}},
	"largest":   {"": {spec.GROMaxSize}, "65535": {"fixed"}, "BIG TCP v6": {"big_tcp_ipv6"}, "BIG TCP": {"big_tcp"}},
	"NORMAL of receive": {
		"": {spec.GRONormal}, "single": {"single", "frags_list_5_4_0", spec.FragsList}, "list": {spec.SKBList, spec.SKBListSegments},
	},
	"NORMAL of frags": {
		"": {spec.GRONormal}, "single": {"single"}, "list": {"frags_list_5_4_0", spec.FragsList, spec.SKBList, spec.SKBListSegments},
	},
	"superframe": {
		"": {spec.GRONormal}, "single": {"single", "frags_list_5_4_0"}, "list": {spec.FragsList, spec.SKBList, spec.SKBListSegments},
	},
	"list goes up": {
		"": {spec.GRONormal}, "-": {"single"}, "before the flush": {"frags_list_5_4_0"},
		"after the flush": {spec.FragsList, spec.SKBList, spec.SKBListSegments},
	},
	"counts": {
		"": {spec.GRONormal}, "-": {"single"}, "skbs": {"frags_list_5_4_0", spec.FragsList, spec.SKBList}, "segments": {spec.SKBListSegments},
	},
	"descriptors": {"": {spec.SKBCache}, "frees 64": {"free_only"}, "64/16/32": {"unified"}, "128/32/32": {"unified_128"}},
	"pages of skbs": {
		"": {spec.PagePoolRecycle}, "-": {spec.DriverOnly}, "by the driver": {spec.DriverOnly}, "ring": {spec.Ring},
		"direct by list_owner": {spec.DirectListOwner}, "direct in any softirq": {"direct_in_softirq"},
	},
	"tun write": {
		"": {spec.TunWrite}, "netif_rx_ni": {"netif_rx_ni"}, "netif_receive_skb": {spec.TunRxBatched}, "frags own the NAPI": {spec.TunFragsOwned},
	},
	"netif_rx":       {"": {spec.NetifRx}, "in irq": {"split_ni"}, "anywhere": {"universal"}},
	"backlog thread": {"": {spec.BacklogThreads}, "-": {"none"}, "by boot option": {spec.Threads}},
	"UDP GRO": {
		"": {spec.UDPGRO}, "-": {"none"}, "socket": {"socket"}, "and fraglist": {"frag_list"}, "and forwarding": {"forward"}, "and TCP fraglist": {"tcp_frag_list"},
	},
}

// settings are the columns whose cells are defaults of sysctls.
var settings = map[string]func(s *spec.Scenario) string{
	"tcp_rmem": func(s *spec.Scenario) string {
		r := s.Sysctl.TCPRmem
		return fmt.Sprintf("%d %dM", r[1], r[2]/unit.MiB)
	},
	"defer max": func(s *spec.Scenario) string {
		if s.Kernel.Behaviours[spec.SKBDeferFree] == "never" {
			return "-"
		}
		return fmt.Sprint(s.Sysctl.SKBDeferMax)
	},
}

// The presets agree with the matrix of versions, row by row and cell by cell.
func TestPresetsAgreeWithTheMatrix(t *testing.T) {
	entries, err := Loader(nil).Presets()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/matrix.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	var columns, above []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) == 1:
		case cells[0] == "presets":
			columns, above = cells, nil
		case len(cells) != len(columns):
			t.Fatalf("%d cells in %q", len(cells), line)
		default:
			for i, c := range cells {
				if c == "same" {
					cells[i] = above[i]
				}
			}
			above = cells
			for preset := range strings.FieldsSeq(cells[0]) {
				rows[preset]++
				compareRow(t, preset, columns[1:], cells[1:])
			}
		}
	}
	for _, e := range entries {
		if rows[e.Name] != 2 {
			t.Errorf("%s is in %d tables, want 2", e.Name, rows[e.Name])
		}
		delete(rows, e.Name)
	}
	if len(rows) > 0 {
		t.Errorf("no presets: %v", rows)
	}
}

func compareRow(t *testing.T, preset string, columns, cells []string) {
	t.Helper()
	s := load(t, "quickstart", "kernel="+preset)
	for i, c := range columns {
		if read := settings[c]; read != nil {
			if got := read(s); got != cells[i] {
				t.Errorf("%s: %s is %s, the matrix says %s", preset, c, got, cells[i])
			}
			continue
		}
		column, ok := words[c]
		want := column[cells[i]]
		if !ok || want == nil {
			t.Fatalf("%s: nothing is known of %q in column %q", preset, cells[i], c)
		}
		behaviour := column[""][0]
		if got := s.Kernel.Behaviours[behaviour]; !slices.Contains(want, got) {
			t.Errorf("%s: %s is %s, the matrix says %q: %s", preset, behaviour, got, cells[i], strings.Join(want, " or "))
		}
	}
}
