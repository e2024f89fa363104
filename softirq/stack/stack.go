package stack

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/host"
	"napisim/sim/trace"
)

// Socket takes packets of one flow, as the handler of a transport protocol does
// after its lookup. Receive takes the skb over and runs in softirq context.
type Socket interface {
	Receive(c *cpu.Core, s *model.SKB)
}

// udpSocket is a Socket of UDP.
type udpSocket interface {
	// GRO reports whether it asked for merged datagrams (UDP_GRO).
	GRO() bool
}

// Stack is the receive side of the network stack of one host.
type Stack struct {
	// RouteHint lets an skb in a list take over the route of the first of its sublist
	// (ip_extract_route_hint, v5.5). It is set before the run.
	RouteHint bool

	env    *host.Env
	socks  []bound // by flow
	anyGRO bool    // a socket of UDP asked for merged datagrams (udp_encap_needed_key)
	stats  Stats
}

// bound is the socket of a flow, and what GRO asks about it.
type bound struct {
	sock     Socket
	udp, gro bool
}

// Stats are the counters of the stack.
type Stats struct {
	// Packets and Segments count what passed core receive: a superframe is one
	// packet of several segments.
	Packets, Segments int64
	// Lists counts calls of netif_receive_skb_list that carried something.
	Lists int64
}

// New returns a stack without sockets.
func New(env *host.Env) *Stack { return &Stack{env: env} }

// Bind connects a flow to its socket. It is called before the run.
func (k *Stack) Bind(flow model.FlowID, s Socket) {
	for int(flow) >= len(k.socks) {
		k.socks = append(k.socks, bound{})
	}
	b := bound{sock: s}
	if u, ok := s.(udpSocket); ok {
		b.udp, b.gro = true, u.GRO()
	}
	k.socks[flow] = b
	k.anyGRO = k.anyGRO || b.gro
}

// lookup returns the socket of a flow; its sock is nil if there is none.
func (k *Stack) lookup(flow model.FlowID) bound {
	if int(flow) >= len(k.socks) {
		return bound{}
	}
	return k.socks[flow]
}

// UDPSocket reports whether a UDP socket takes the flow and whether it asked for merged
// datagrams: udp4_gro_lookup_skb, which the kernel calls only after some socket asked.
func (k *Stack) UDPSocket(flow model.FlowID) (found, gro bool) {
	if !k.anyGRO {
		return false, false
	}
	b := k.lookup(flow)
	return b.udp, b.gro
}

// TCPEstablished reports whether a connection of this host takes the flow:
// __inet_lookup_established.
func (k *Stack) TCPEstablished(flow model.FlowID) bool {
	b := k.lookup(flow)
	return b.sock != nil && !b.udp
}

// Stats returns the stack's counters.
func (k *Stack) Stats() Stats { return k.stats }

// ReceiveSKB is netif_receive_skb, ip_rcv, ip_rcv_finish and ip_local_deliver (all versions):
// one packet all the way up.
func (k *Stack) ReceiveSKB(c *cpu.Core, s *model.SKB) {
	c.Look()
	k.count(s)
	k.netifReceive(c, s)
	c.Spend(model.StageIPReceive)
	c.Spend(model.StageRouteLookup)
	k.deliver(c, s)
}

// count notes a packet that enters core receive; the caller has looked.
func (k *Stack) count(s *model.SKB) {
	k.stats.Packets++
	k.stats.Segments += int64(s.Segs)
}

// ReceiveList is netif_receive_skb_list_internal (since v4.19): the whole list passes
// core receive before any of it reaches a socket, as far as its packets are of one
// protocol and interface.
func (k *Stack) ReceiveList(c *cpu.Core, list *model.SKBList) {
	if list.Len() == 0 {
		return
	}
	c.Look()
	k.stats.Lists++
	for s := list.Front(); s != nil; s = s.Next() {
		k.count(s)
	}
	c.Spend(model.StageListReceive)
	c.SpendN(model.StageListSKB, list.Len())
	k.netifReceiveList(c, list)
}

// netifReceiveList is __netif_receive_skb_list_core (v4.19): packets in a row with the same
// packet_type and original device are a sublist. It goes to IP when the first packet that
// does not belong to it has passed core receive.
func (k *Stack) netifReceiveList(c *cpu.Core, list *model.SKBList) {
	var sublist model.SKBList
	for s := list.PopFront(); s != nil; s = list.PopFront() {
		k.netifReceive(c, s)
		if first := sublist.Front(); first != nil && (first.Frame.IPv6 != s.Frame.IPv6 || first.Dev != s.Dev) {
			k.ipListRcv(c, &sublist)
			c.Spend(model.StageSublist)
		}
		sublist.PushBack(s)
	}
	k.ipListRcv(c, &sublist)
}

// ipListRcv is ip_list_rcv with ip_sublist_rcv and ip_list_rcv_finish (v4.19), and
// ipv6_list_rcv: headers, routes and netfilter for all, then local delivery one by one. All
// packets of the model are for this host and of one namespace, so that there is one sublist of
// each kind. A route is taken over from the first packet if addresses and TOS are equal.
func (k *Stack) ipListRcv(c *cpu.Core, list *model.SKBList) {
	c.SpendN(model.StageIPReceive, list.Len())
	first := list.Front()
	for s := first; s != nil; s = s.Next() {
		if s == first || !k.RouteHint || s.Frame.TOS != first.Frame.TOS {
			c.Spend(model.StageRouteLookup)
		}
	}
	for s := list.PopFront(); s != nil; s = list.PopFront() {
		k.deliver(c, s)
	}
}

// netifReceive is __netif_receive_skb_core (all versions): taps, ingress hooks, protocol lookup.
func (k *Stack) netifReceive(c *cpu.Core, s *model.SKB) {
	if c.Machine().Trace != nil {
		k.trace(c, s)
	}
	c.Spend(model.StageNetifReceive)
}

// deliver looks a packet's socket up and hands it over. Where there is none the
// datagram has met udp_rcv and no more; the model knows no TCP without a socket.
func (k *Stack) deliver(c *cpu.Core, s *model.SKB) {
	b := k.lookup(s.Frame.Flow)
	if b.sock == nil {
		c.Spend(model.StageUDPReceive)
		k.env.Drop(c, s, model.DropUDPNoPorts)
		return
	}
	b.sock.Receive(c, s)
}

// trace emits netif_receive_skb, whose length is that of all segments from the IP
// header on.
func (k *Stack) trace(c *cpu.Core, s *model.SKB) {
	c.Look()
	if c.Recording() {
		e := c.Event(trace.NetifReceiveSKB)
		length := int(s.Frame.Len-s.Frame.Payload) - model.EthernetHeader + s.Payload
		e.A, e.B, e.S = s.ID, int64(length), s.Dev
		c.Emit(e)
	}
}
