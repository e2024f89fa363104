// Package host holds what uses the network on the simulated machine: sockets and
// the applications that read from them.
//
// A socket has two faces. The stack calls Receive in softirq context, as ip_rcv
// calls tcp_v4_rcv or udp_rcv; an application task calls Recv, as a system call
// does. Both charge their work to the core they run on. The protocol state machine
// of TCP is package tcp; here are its lock, its backlog, its wakeups and its timers.
package host
