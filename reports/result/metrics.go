package result

import (
	"math"
	"slices"
	"strings"

	"napisim/reports/result/quantity"
)

// A Block is the part of a report that a metric belongs to.
type Block string

// The blocks, in the order in which reports show them.
const (
	BlockThroughput Block = "throughput"
	BlockReceive    Block = "interrupts, softirqs, polls"
	BlockLatency    Block = "latency"
	BlockCPU        Block = "cpu"
	BlockMemory     Block = "page memory"
	BlockSKB        Block = "skb descriptors"
	BlockTCP        Block = "tcp sockets"
	BlockOther      Block = "other"
)

// Blocks returns every Block in the order of a report.
func Blocks() []Block {
	return []Block{BlockThroughput, BlockReceive, BlockLatency, BlockCPU, BlockMemory, BlockSKB, BlockTCP, BlockOther}
}

// A Definition describes a metric that napisim knows by name. A document may
// hold others; they carry their own unit and direction like any metric.
type Definition struct {
	Name   string
	Unit   string
	Better Better
	Block  Block
	Help   string
}

// pagePoolPrefix starts the counters of a page_pool, which are named after the
// kernel's struct page_pool_stats and depend on how the driver uses it.
const pagePoolPrefix = "page_pool_"

// The counters of skb descriptors and those of TCP sockets, which are named after
// the kernel's in /proc/net/netstat.
const (
	skbPrefix = "skb_"
	tcpPrefix = "tcp_"
)

// definitions is in the order of reports and comparisons: what a user asks for
// first comes first. Busy time has no better direction, since a greedy flow
// turns every saved cycle into goodput.
var definitions = []Definition{
	{"goodput", "bit/s", Higher, BlockThroughput, "payload that applications have read"},
	{"transactions", "1/s", Higher, BlockThroughput, "requests of clients that were answered"},
	{"request_retries", "frames", Lower, BlockThroughput, "requests that clients sent again because no answer came"},
	{"rx_frames", "frames", Higher, BlockThroughput, "frames that the driver took from its rings"},
	{"frames_written", "frames", Higher, BlockThroughput, "frames that tasks sent to tap devices and veth pairs"},
	{"rx_bytes", "B", Higher, BlockThroughput, "bytes of the frames that devices wrote to memory, without FCS"},
	{"gro_segments_per_frame", "1", Higher, BlockThroughput, "wire segments in one packet that GRO hands up"},
	{"acks_sent", "frames", Neither, BlockThroughput, "acknowledgements that the receiver sent"},
	{"retransmits", "frames", Lower, BlockThroughput, "segments that the sender had to repeat"},
	{"rx_missed_errors", "frames", Lower, BlockThroughput, "frames that found no free descriptor"},
	{"rcvbuf_errors", "frames", Lower, BlockThroughput, "packets that found their socket's buffer full"},

	{"interrupts", "1/s", Lower, BlockReceive, "device interrupts taken, those for transmit completions included"},
	{"frames_per_interrupt", "frames", Higher, BlockReceive, "frames taken per interrupt of a vector that reports received frames; all frames if there was none"},
	{"softirqs", "1/s", Neither, BlockReceive, "entries of the NET_RX softirq"},
	{"softirq_restarts", "1/s", Neither, BlockReceive, "restarts of the softirq loop"},
	{"polls", "1/s", Neither, BlockReceive, "calls of NAPI poll functions, those for transmit completions included"},
	{"work_per_poll", "frames", Neither, BlockReceive, "frames taken in one poll of a NAPI that receives"},
	{"backlog_polls", "1/s", Neither, BlockReceive, "polls of the backlogs, which deliver what was sent to another core or through netif_rx"},
	{"received_rps", "1/s", Neither, BlockReceive, "interrupts by which a core learnt of packets that RPS had put on its backlog"},
	{"busy_polls", "1/s", Neither, BlockReceive, "polls by tasks that busy polling lets wait at the card; polls does not count them"},
	{"busy_poll_frames", "frames", Neither, BlockReceive, "frames that these polls took: BusyPollRxPackets"},
	{"time_squeeze", "1", Lower, BlockReceive, "net_rx_action ended with work left"},
	{"ksoftirqd_wakeups", "1/s", Neither, BlockReceive, "softirq work handed to ksoftirqd"},
	{"context_switches", "1/s", Neither, BlockReceive, "switches between tasks"},

	{"latency_p50", "s", Lower, BlockLatency, "from the wire to the application, median"},
	{"latency_p90", "s", Lower, BlockLatency, "from the wire to the application, 90th percentile"},
	{"latency_p99", "s", Lower, BlockLatency, "from the wire to the application, 99th percentile"},
	{"latency_p999", "s", Lower, BlockLatency, "from the wire to the application, 99.9th percentile"},
	{"latency_max", "s", Lower, BlockLatency, "from the wire to the application, largest value"},
	{"rtt_mean", "s", Lower, BlockLatency, "from a client's request to its answer, mean"},
	{"rtt_p50", "s", Lower, BlockLatency, "from a client's request to its answer, median"},
	{"rtt_p90", "s", Lower, BlockLatency, "from a client's request to its answer, 90th percentile"},
	{"rtt_p99", "s", Lower, BlockLatency, "from a client's request to its answer, 99th percentile"},
	{"rtt_max", "s", Lower, BlockLatency, "from a client's request to its answer, largest value"},

	{"cpu_busy", "1", Neither, BlockCPU, "share of time in which cores did not idle, over all cores"},
	{"cpu_softirq", "1", Neither, BlockCPU, "share of time in softirqs, ksoftirqd included, over all cores"},
	{"cpu_hardirq", "1", Neither, BlockCPU, "share of time in interrupt handlers, over all cores"},
	{"cpu_task", "1", Neither, BlockCPU, "share of time in tasks, over all cores"},

	{pagePoolPrefix + "alloc_fast", "pages", Neither, BlockMemory, "pages from the pool's cache"},
	{pagePoolPrefix + "alloc_slow", "pages", Lower, BlockMemory, "pages from the page allocator"},
	{pagePoolPrefix + "alloc_slow_high_order", "pages", Lower, BlockMemory, "pages of more than 4 KiB from the page allocator"},
	{pagePoolPrefix + "alloc_empty", "pages", Lower, BlockMemory, "cache and ring were both empty"},
	{pagePoolPrefix + "alloc_refill", "pages", Neither, BlockMemory, "the cache was refilled from the ring"},
	{pagePoolPrefix + "recycle_cached", "pages", Neither, BlockMemory, "pages returned to the cache"},
	{pagePoolPrefix + "recycle_cache_full", "pages", Neither, BlockMemory, "the cache had no room for a page"},
	{pagePoolPrefix + "recycle_ring", "pages", Neither, BlockMemory, "pages returned to the ring"},
	{pagePoolPrefix + "recycle_ring_full", "pages", Lower, BlockMemory, "the ring had no room for a page"},
	{pagePoolPrefix + "recycle_released_ref", "pages", Neither, BlockMemory, "pages given up because somebody held them"},

	{skbPrefix + "slab_allocs", "skbs", Lower, BlockSKB, "descriptors allocated one by one"},
	{skbPrefix + "slab_frees", "skbs", Neither, BlockSKB, "descriptors freed one by one"},
	{skbPrefix + "bulk_allocs", "skbs", Neither, BlockSKB, "descriptors allocated in bulk"},
	{skbPrefix + "bulk_frees", "skbs", Neither, BlockSKB, "descriptors freed in bulk"},
	{skbPrefix + "deferred", "skbs", Neither, BlockSKB, "skbs that readers left to the core that allocated them"},
	{skbPrefix + "defer_kicks", "1", Neither, BlockSKB, "interrupts sent for skbs left to a core"},

	{tcpPrefix + "delayed_acks", "frames", Neither, BlockTCP, "acknowledgements that waited for their timer (DelayedACKs)"},
	{tcpPrefix + "compressed_acks", "frames", Neither, BlockTCP, "duplicate acknowledgements spared (TCPAckCompressed)"},
	{tcpPrefix + "ofo_queue", "packets", Lower, BlockTCP, "packets that came out of order (TCPOFOQueue)"},
	{tcpPrefix + "rcv_coalesce", "packets", Neither, BlockTCP, "packets merged in receive queues (TCPRcvCoalesce)"},
	{tcpPrefix + "backlog_coalesce", "packets", Neither, BlockTCP, "packets merged in backlogs (TCPBacklogCoalesce)"},
	{tcpPrefix + "prune_called", "1", Lower, BlockTCP, "searches for receive memory (PruneCalled)"},
	{tcpPrefix + "rcv_collapsed", "packets", Lower, BlockTCP, "packets copied into denser ones (TCPRcvCollapsed)"},
	{tcpPrefix + "ofo_pruned", "1", Lower, BlockTCP, "times that packets out of order were thrown away (OfoPruned)"},
}

// Definitions returns the metrics that napisim knows by name, in the order in
// which reports show them.
func Definitions() []Definition { return slices.Clone(definitions) }

// Lookup finds the definition of a metric. For a name that is not known, ok is
// false and the definition only says in which block to show it.
func Lookup(name string) (d Definition, ok bool) {
	if i := rank(name); i < len(definitions) {
		return definitions[i], true
	}
	d = Definition{Name: name, Block: BlockOther}
	switch {
	case strings.HasPrefix(name, pagePoolPrefix):
		d.Block = BlockMemory
	case strings.HasPrefix(name, skbPrefix):
		d.Block = BlockSKB
	case strings.HasPrefix(name, tcpPrefix):
		d.Block = BlockTCP
	case strings.HasPrefix(name, "latency_"):
		d.Block = BlockLatency
	case strings.HasPrefix(name, "cpu_"):
		d.Block = BlockCPU
	}
	return d, false
}

// CompareNames orders metric names as reports show them: known ones in their
// fixed order, then all others by the alphabet. It suits slices.SortFunc.
func CompareNames(a, b string) int {
	if byRank := rank(a) - rank(b); byRank != 0 {
		return byRank
	}
	return strings.Compare(a, b)
}

// rank is a name's place in definitions, or one past them all.
func rank(name string) int {
	i := slices.IndexFunc(definitions, func(d Definition) bool { return d.Name == name })
	if i < 0 {
		return len(definitions)
	}
	return i
}

// Shown returns the factor by which values of a metric are multiplied for people,
// and the unit that they then have: shares of CPU time are read in percent.
func Shown(metric, unit string) (factor float64, shown string) {
	if d, _ := Lookup(metric); d.Block == BlockCPU && unit == "1" {
		return 100, "%"
	}
	return 1, unit
}

// Text writes a value of a metric for people.
func Text(metric, unit string, value float64) string {
	factor, unit := Shown(metric, unit)
	return quantity.Format(factor*value, unit)
}

// TextWithin writes a mean of a metric for people, with the half width of its
// interval, which ends at high and is symmetric; without one high is nil.
func TextWithin(metric, unit string, mean float64, high *float64) string {
	half := math.NaN()
	if high != nil {
		half = *high - mean
	}
	factor, unit := Shown(metric, unit)
	number, unit := quantity.Interval(factor*mean, factor*half, unit)
	return strings.TrimSpace(number + " " + unit)
}
