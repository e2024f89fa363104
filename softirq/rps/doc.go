// Package rps holds the tables by which the kernel spreads received packets over its
// cores in software: the maps of Receive Packet Steering, the flow tables of Receive
// Flow Steering and the flow limit (get_rps_cpu and skb_flow_limit in
// net/core/dev.c). They are data and rules without costs and without a clock; the
// backlog in softirq asks them. Filters in the device (aRFS) are not part of it.
package rps
