// Package observe makes of a trace what is compared: the sequence of device interrupts,
// raises of NET_RX, passes of net_rx_action and polls, with counts and sizes beside it.
//
// Traces of a kernel and of the simulator go through the same functions, so that both
// are read by the same rules.
package observe
