package gro

import (
	"fmt"

	"napisim/sim/metric"
)

// Result is what became of a received packet: enum gro_result. GRO_DROP (up to
// v5.11) and GRO_CONSUMED (IPsec) have no cause in the model.
type Result uint8

// The results, in the order of the enum.
const (
	// Merged means that the packet was appended as a chained skb (frag_list).
	Merged Result = iota
	// MergedFree means that its payload was moved and its descriptor is free.
	MergedFree
	// Held means that it begins a new superframe.
	Held
	// Normal means that it is not aggregated and goes up the stack.
	Normal

	// NumResults is the number of results.
	NumResults
)

// resultNames are the results as the kernel spells them.
var resultNames = [NumResults]string{
	Merged: "GRO_MERGED", MergedFree: "GRO_MERGED_FREE", Held: "GRO_HELD", Normal: "GRO_NORMAL",
}

// String returns the kernel's name.
func (r Result) String() string {
	if r < NumResults {
		return resultNames[r]
	}
	return fmt.Sprintf("Result(%d)", uint8(r))
}

// Reason says why a held skb was completed, or why a packet was not held. Where
// several apply it is the first that the kernel tests.
type Reason uint8

// The reasons, in the order of the tests; those from FlushOverflow on have
// nothing to do with the packet that arrives. Each is documented in reasonText.
const (
	FlushNone Reason = iota
	FlushProtocol
	FlushFlags
	FlushWindow
	FlushAck
	FlushOptions
	FlushTTL
	FlushTOS
	FlushDF
	FlushIPID
	FlushLonger
	FlushSequence
	FlushRecycle
	FlushTooBig
	FlushGSO
	FlushEmpty
	FlushPadded
	FlushNoCsum
	FlushFragList
	FlushShort
	FlushPush
	FlushCount
	FlushOverflow
	FlushAge
	FlushAll

	// NumReasons is the number of reasons.
	NumReasons
)

// reasonText gives each reason its name in results and tells a user who asks why
// GRO does not merge what to look for.
var reasonText = [NumReasons]struct{ name, doc string }{
	FlushNone:     {"none", "nothing ended it"},
	FlushProtocol: {"protocol", "the protocol has no GRO handler, or nobody asked for merged datagrams"},
	FlushFlags:    {"flags", "TCP flags differ, or the new segment has CWR"},
	FlushWindow:   {"window", "the advertised window changed"},
	FlushAck:      {"ack", "the acknowledged sequence number changed"},
	FlushOptions:  {"options", "TCP options differ: a new timestamp value"},
	FlushTTL:      {"ttl", "the IP time to live differs"},
	FlushTOS:      {"tos", "the IP type of service differs: DSCP or ECN"},
	FlushDF:       {"df", "the don't-fragment bit differs"},
	FlushIPID:     {"ip_id", "IP IDs neither count up nor stay constant"},
	FlushLonger:   {"longer", "the new segment is longer than the first, or its GSO size differs"},
	FlushSequence: {"sequence", "the new segment is not the next in sequence"},
	FlushRecycle:  {"recycle", "pages go back to different owners"},
	FlushTooBig:   {"too_big", "the superframe would reach gro_max_size"},
	FlushGSO:      {"gso", "the new packet is a superframe already"},
	FlushEmpty:    {"empty", "the new packet has no payload: of TCP, a pure ACK"},
	FlushPadded:   {"padded", "the frame was padded: it is longer than its datagram"},
	FlushNoCsum:   {"no_checksum", "the datagram carries no checksum"},
	FlushFragList: {"frag_list", "one packet is to be chained, the other to be merged"},
	FlushShort:    {"short", "the last segment is shorter than the first"},
	FlushPush:     {"push", "the last segment has PSH, or FIN, SYN, RST or URG"},
	FlushCount:    {"count", "64 packets are the most that are chained, and the most datagrams"},
	FlushOverflow: {"overflow", "more flows in the bucket than it may hold"},
	FlushAge:      {"age", "held since an earlier jiffy at a flush of old skbs"},
	FlushAll:      {"flush", "a flush of all skbs: end of the poll"},
}

// String returns the reason's name in results.
func (r Reason) String() string {
	if r < NumReasons {
		return reasonText[r].name
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// Doc says what the reason means, for people.
func (r Reason) Doc() string { return reasonText[r].doc }

// Stats counts what a Table did. The counters are those of a whole run. At every
// moment Results[Held] is the sum of Completed and what the table still holds,
// and Results[Normal] is the sum of Passed.
type Stats struct {
	// Results counts received packets by what became of them.
	Results [NumResults]metric.Counter
	// Merged counts segments appended to a held skb. A packet that is a superframe
	// itself counts all of its own.
	Merged metric.Counter
	// Superframes counts completed skbs of more than one segment, and Segments the
	// segments in them.
	Superframes, Segments metric.Counter
	// Completed counts completed skbs by what ended them.
	Completed [NumReasons]metric.Counter
	// Passed counts packets that were not held by the reason.
	Passed [NumReasons]metric.Counter
}
