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

// Stack is the receive side of the network stack of one host.
type Stack struct {
	env   *host.Env
	socks []Socket // by flow
	stats Stats
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
		k.socks = append(k.socks, nil)
	}
	k.socks[flow] = s
}

// Stats returns the stack's counters.
func (k *Stack) Stats() Stats { return k.stats }

// ReceiveSKB is netif_receive_skb: one packet all the way up.
func (k *Stack) ReceiveSKB(c *cpu.Core, s *model.SKB) {
	c.Look()
	k.count(s)
	k.netifReceive(c, s)
	c.Spend(model.StageIPReceive)
	k.deliver(c, s)
}

// count notes a packet that enters core receive; the caller has looked.
func (k *Stack) count(s *model.SKB) {
	k.stats.Packets++
	k.stats.Segments += int64(s.Segs)
}

// ReceiveList is netif_receive_skb_list_internal and ip_list_rcv (since v4.19): each
// step, core receive and IP, is taken for the whole list before the next one; then
// the packets go to their sockets one by one.
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
	for s := list.Front(); s != nil; s = s.Next() {
		k.netifReceive(c, s)
	}
	c.SpendN(model.StageIPReceive, list.Len())
	for s := list.PopFront(); s != nil; s = list.PopFront() {
		k.deliver(c, s)
	}
}

// netifReceive is __netif_receive_skb_core: taps, ingress hooks, protocol lookup.
func (k *Stack) netifReceive(c *cpu.Core, s *model.SKB) {
	if c.Machine().Trace != nil {
		k.trace(c, s)
	}
	c.Spend(model.StageNetifReceive)
}

// deliver looks a packet's socket up and hands it over. Where there is none the
// datagram has met udp_rcv and no more; the model knows no TCP without a socket.
func (k *Stack) deliver(c *cpu.Core, s *model.SKB) {
	flow := s.Frame.Flow
	if int(flow) >= len(k.socks) || k.socks[flow] == nil {
		c.Spend(model.StageUDPReceive)
		k.env.Drop(c, s, model.DropUDPNoPorts)
		return
	}
	k.socks[flow].Receive(c, s)
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
