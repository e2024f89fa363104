package host

import (
	"napisim/model"
)

// UDPRcvbufBehaviour is how a UDP socket charges datagrams to its receive buffer and
// when it gives the memory back.
type UDPRcvbufBehaviour struct {
	// Name selects the behaviour in a scenario.
	Name string
	// Full reports whether a datagram of a truesize is refused, with rmem bytes charged.
	Full func(rmem, size, rcvbuf int) bool
	// Condense says that small payloads are copied into the head when half of the
	// buffer is in use.
	Condense bool
	// Recheck says that the amount is tested once more after it was charged, because
	// other cores may have charged theirs meanwhile.
	Recheck bool
	// Batch says that the reader has a list of its own and gives memory back in batches.
	Batch bool
}

// udpRcvbufs is the table of udp_rcvbuf behaviours.
var udpRcvbufs = []UDPRcvbufBehaviour{
	{Name: "at_limit", Full: fullAtLimit},
	{Name: "above_limit_recheck", Full: fullAboveLimit, Condense: true, Recheck: true, Batch: true},
	{Name: "above_limit", Full: fullAboveLimit, Condense: true, Batch: true},
	{Name: "strict", Full: fullStrict, Condense: true, Batch: true},
}

// fullAtLimit is the test of sock_queue_rcv_skb, which UDP uses up to v4.9.
func fullAtLimit(rmem, _, rcvbuf int) bool { return rmem >= rcvbuf }

// fullAboveLimit is that of __udp_enqueue_schedule_skb from v4.10 to v6.17. In v6.17 it
// stands behind a test of the sum, which it implies.
func fullAboveLimit(rmem, _, rcvbuf int) bool { return rmem > rcvbuf }

// fullStrict is that of v6.18: only an empty socket takes what is larger than its buffer.
func fullStrict(rmem, size, rcvbuf int) bool { return rmem > 0 && rmem+size > rcvbuf }

// UDPRcvbufNames lists the values of the udp_rcvbuf behaviour in the order of history.
func UDPRcvbufNames() []string {
	return model.NamesOf(udpRcvbufs, func(b UDPRcvbufBehaviour) string { return b.Name })
}

// udpDefaultRcvbuf is the behaviour of a socket that names none: that of v6.1.
const udpDefaultRcvbuf = "above_limit_recheck"

// UDPWakeupBehaviour says when a UDP socket tells its reader of a datagram.
type UDPWakeupBehaviour struct {
	// Name selects the behaviour in a scenario.
	Name string
	// Ready reports whether sk_data_ready is called, with so many datagrams in
	// sk_receive_queue before.
	Ready func(queued int) bool
}

// udpWakeups is the table of udp_wakeup behaviours.
var udpWakeups = []UDPWakeupBehaviour{
	{"every", func(int) bool { return true }},
	{"when_empty", func(queued int) bool { return queued == 0 }},
}

// UDPWakeupNames lists the values of the udp_wakeup behaviour.
func UDPWakeupNames() []string {
	return model.NamesOf(udpWakeups, func(b UDPWakeupBehaviour) string { return b.Name })
}

// udpDefaultWakeup is the behaviour of a socket that names none.
const udpDefaultWakeup = "every"

// skbPad is NET_SKB_PAD, what napi_alloc_skb leaves free before the headers.
const skbPad = 64

// condensed reports whether skb_condense changes something: the payload lies in pages
// and fits behind the headers into the head.
func condensed(s *model.SKB) bool {
	room := s.Head - model.SharedInfo - skbPad - int(s.Frame.Len-s.Frame.Payload)
	return s.Head > 0 && s.Frags > 0 && s.Chained == 0 && s.Payload <= room
}
