package rps

// The constants of the flow limit (FLOW_LIMIT_HISTORY; all versions).
const (
	flowHistory = 128
	flowShare   = flowHistory / 2
)

// FlowLimit is struct sd_flow_limit: what the last packets that one CPU put on backlogs
// belonged to. While the backlog is at least half full, a flow with more than half of them is
// refused.
type FlowLimit struct {
	buckets []uint8
	history [flowHistory]int
	head    int
}

// NewFlowLimit returns a limit with net.core.flow_limit_table_len buckets, rounded up to a
// power of two.
func NewFlowLimit(buckets int) *FlowLimit {
	return &FlowLimit{buckets: make([]uint8, roundUp(max(buckets, 1)))}
}

// Refuse is the inner part of skb_flow_limit (v3.11): it notes a packet and reports whether its
// flow has more than half of the last ones. It is asked only while the backlog is at
// least half full.
func (l *FlowLimit) Refuse(hash uint32) bool {
	bucket := int(hash) & (len(l.buckets) - 1)
	old := l.history[l.head]
	l.history[l.head] = bucket
	l.head = (l.head + 1) % flowHistory
	if l.buckets[old] > 0 {
		l.buckets[old]--
	}
	l.buckets[bucket]++
	return l.buckets[bucket] > flowShare
}
