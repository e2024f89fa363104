package model

import "napisim/sim"

// FlowID names a flow: one 4-tuple. Flows are numbered from zero in the order in
// which the scenario creates them.
type FlowID int32

// Proto is the transport protocol of a frame.
type Proto uint8

// The protocols that the model knows.
const (
	UDP Proto = iota
	TCP
)

// String returns the name that Linux prints.
func (p Proto) String() string {
	if p == TCP {
		return "TCP"
	}
	return "UDP"
}

// TCPFlags are the flag bits of a TCP header that matter to the receive path.
type TCPFlags uint8

// The flags, named as in the header.
const (
	FIN TCPFlags = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// Header sizes in bytes. TCPHeader includes the timestamp option that Linux peers
// negotiate, so a 1500-byte MTU leaves an MSS of 1448.
const (
	EthernetHeader = 14
	IPv4Header     = 20
	IPv6Header     = 40
	UDPHeader      = 8
	TCPHeader      = 20 + 12
	EthernetFCS    = 4
	MinFrame       = 60                   // without FCS; shorter frames are padded by the sender
	WireOverhead   = 8 + 12 + EthernetFCS // preamble, inter-frame gap, FCS
)

// Frame is one Ethernet frame as the wire carries it. It is a value: rings and
// links hold frames by value, so that a frame costs no allocation and the
// collector nothing to scan.
//
// Sequence numbers have 64 bits and never wrap; Linux compares 32-bit numbers
// modulo 2^32, which gives the same answers for any window that is allowed.
type Frame struct {
	// Arrival is the instant at which the last bit has reached the receiver.
	Arrival sim.Time
	// Seq and Ack are the TCP numbers; zero for UDP.
	Seq, Ack uint64
	// Hash is the RSS hash that the NIC reports, 0 when it reports none.
	Hash uint32
	// TSVal and TSEcr are the timestamp option.
	TSVal, TSEcr uint32
	// Window is the advertised window in bytes.
	Window uint32
	// Len is the length in bytes without FCS, as napi_poll and tcpdump see it.
	Len int32
	// Payload is the transport payload in bytes.
	Payload int32
	// Flow is the flow that the frame belongs to.
	Flow FlowID
	// IPID is the identification field of IPv4.
	IPID uint16
	// TOS and TTL are the bytes of the IPv4 header that GRO compares.
	TOS, TTL uint8
	// Proto and Flags tell what the frame is.
	Proto Proto
	Flags TCPFlags
	// IPv6 frames have no IPID; TOS is their traffic class and TTL their hop limit.
	IPv6 bool
	// NoDF says that the don't-fragment bit of IPv4 is clear. Linux senders set it.
	NoDF bool
	// NoCsum says that a datagram carries no UDP checksum.
	NoCsum bool
}

// IPHeader returns the length of the frame's IP header.
func (f *Frame) IPHeader() int {
	if f.IPv6 {
		return IPv6Header
	}
	return IPv4Header
}

// Headers returns the length of the frame's IP and transport headers.
func (f *Frame) Headers() int {
	if f.Proto == TCP {
		return f.IPHeader() + TCPHeader
	}
	return f.IPHeader() + UDPHeader
}

// WireBytes returns the bytes that a frame of the given length without FCS
// occupies on the wire: preamble, FCS and inter-frame gap included.
func WireBytes(length int32) int64 { return int64(max(length, MinFrame)) + WireOverhead }

// TCPFrameLen returns the length without FCS of a TCP frame with that payload.
func TCPFrameLen(payload int32) int32 {
	return max(EthernetHeader+IPv4Header+TCPHeader+payload, MinFrame)
}

// UDPFrameLen returns the length without FCS of a UDP frame with that payload.
func UDPFrameLen(payload int32) int32 {
	return max(EthernetHeader+IPv4Header+UDPHeader+payload, MinFrame)
}

// FrameLen returns the length without FCS of a frame with the headers of f and that
// payload.
func (f *Frame) FrameLen(payload int32) int32 {
	return max(EthernetHeader+int32(f.Headers())+payload, MinFrame)
}

// SACKBlock is one block of the selective acknowledgement option: the half-open
// range [Start, End) of sequence numbers.
type SACKBlock struct{ Start, End uint64 }

// Segment is a frame that the simulated host sends: what Frame says, and the SACK
// blocks that only acknowledgements carry. Blocks[:SACKs] are valid, newest first;
// DSACK tells that the first of them reports a duplicate (RFC 2883).
type Segment struct {
	Frame
	Blocks [4]SACKBlock
	SACKs  int
	DSACK  bool
}
