// Package gro is generic receive offload: it merges the TCP segments, and where
// somebody asks for it the datagrams, of a flow that arrive in one or a few polls into
// one skb, so that the stack above walks its path once for many frames.
//
// It mirrors net/core/gro.c (net/core/dev.c before v5.17), the GRO halves of
// net/ipv4/af_inet.c, tcp_offload.c and udp_offload.c, and skb_gro_receive, function
// by function and in their order. A Table is what one NAPI holds: gro_hash in
// napi_struct, gro_node since v6.17, one gro_list up to v4.12.
//
// The package is a state machine without a clock: it charges no CPU time and
// reads no time but the jiffy that it is given. Its caller charges
// StageGROReceive for each packet and StageGROMerge or StageGROFlush by what
// Receive returns and Complete is given. The caller also decides
//
//   - whether GRO runs at all (NETIF_F_GRO, generic XDP);
//   - what becomes of a packet that is not held, and of a completed one:
//     gro_normal_one, whose counter adds 1, or SKB.Segs since v5.11;
//   - when to flush, and whether only old skbs: HZ >= 1000 after a full poll.
//
// What the versions do differently is in Config. What the model leaves out: a
// FlowID is a whole 4-tuple of one direction, so the network and the transport
// step cannot disagree about a flow; packets have no IP options and no extension
// headers; checksums are right; there are no VLAN tags and no tunnels. The IP-ID
// rule is that of v6.10, which differs from older ones for GSO packets only.
package gro
