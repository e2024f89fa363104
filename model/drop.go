package model

// DropReason says why a frame, segment or skb ended without reaching an
// application. Every loss has exactly one.
type DropReason uint8

// The reasons, in the order in which a packet meets them.
const (
	// DropWire is a loss that the scenario's link script asked for.
	DropWire DropReason = iota
	// DropRxMissed is a frame that found no free receive descriptor.
	DropRxMissed
	// DropXDP is a frame dropped by the XDP program before an skb existed.
	DropXDP
	// DropBacklog is an skb that found the per-CPU backlog full.
	DropBacklog
	// DropIPAddress is a packet for an address that is not the host's, which does not
	// forward.
	DropIPAddress
	// DropFullRing is an skb that found the ring of a veth pair full.
	DropFullRing
	// DropUDPNoPorts is a datagram for which no socket is bound.
	DropUDPNoPorts
	// DropUDPRcvbuf is a datagram that found its socket's receive buffer full.
	DropUDPRcvbuf
	// DropTCPBacklog is a segment that found the backlog of a locked socket full.
	DropTCPBacklog
	// DropTCPRcvQ is a segment refused because receive memory was used up.
	DropTCPRcvQ
	// DropTCPOfo is an out-of-order segment pruned to make room.
	DropTCPOfo
	// DropTCPOld is a segment that carried nothing new (a spurious retransmission).
	DropTCPOld
	// DropTCPWindow is a segment beyond the advertised window.
	DropTCPWindow

	// NumDropReasons is the number of reasons.
	NumDropReasons
)

// dropText describes a reason for people: where it happens, what it is called and
// which Linux counter a user would see move, and in which function of the kernel.
var dropText = [NumDropReasons]struct{ name, place, counter, location string }{
	DropWire:       {"wire", "link", "(none: lost before the NIC)", ""},
	DropRxMissed:   {"rx_missed", "NIC RX ring", "rx_missed_errors (ip -s -s link; ethtool -S)", ""},
	DropXDP:        {"xdp_drop", "driver, XDP", "rx_xdp_drop (ethtool -S)", ""},
	DropBacklog:    {"cpu_backlog", "softnet backlog", "softnet_stat column 2 (dropped)", "enqueue_to_backlog"},
	DropIPAddress:  {"ip_inaddrerrors", "IP routing", "IpInAddrErrors (nstat)", "ip_error"},
	DropFullRing:   {"full_ring", "veth ring", "rx_drops (ethtool -S of the receiving end)", "veth_xmit"},
	DropUDPNoPorts: {"no_socket", "UDP demultiplexing", "UdpNoPorts (nstat)", "__udp4_lib_rcv"},
	DropUDPRcvbuf:  {"socket_rcvbuff", "UDP receive buffer", "UdpRcvbufErrors (nstat)", "__udp_enqueue_schedule_skb"},
	DropTCPBacklog: {"socket_backlog", "TCP socket backlog", "TcpExtTCPBacklogDrop (nstat)", "tcp_add_backlog"},
	DropTCPRcvQ:    {"proto_mem", "TCP receive queue", "TcpExtTCPRcvQDrop (nstat)", "tcp_data_queue"},
	DropTCPOfo:     {"tcp_ofo_queue_prune", "TCP out-of-order queue", "TcpExtOfoPruned (nstat)", "tcp_prune_ofo_queue"},
	DropTCPOld:     {"tcp_old_data", "TCP receive", "TcpExtTCPDSACKOldSent (nstat)", "tcp_data_queue"},
	DropTCPWindow:  {"tcp_overwindow", "TCP receive", "(window violation, no counter)", "tcp_validate_incoming"},
}

// String returns the reason's name, close to that of enum skb_drop_reason.
func (r DropReason) String() string { return dropText[r].name }

// Place returns where in the path the reason applies.
func (r DropReason) Place() string { return dropText[r].place }

// Counter returns the Linux counter that such a loss would bump, and the tool that
// shows it.
func (r DropReason) Counter() string { return dropText[r].counter }

// Location returns the kernel function that frees the packet, as kfree_skb names it;
// empty for what is lost before there is an skb.
func (r DropReason) Location() string { return dropText[r].location }

// Losses counts packets by reason. A superframe counts its segments.
type Losses [NumDropReasons]int64

// Add counts n packets lost for reason r.
func (l *Losses) Add(r DropReason, n int) { l[r] += int64(n) }

// Total returns the packets lost for any reason.
func (l *Losses) Total() int64 {
	var t int64
	for _, n := range l {
		t += n
	}
	return t
}
