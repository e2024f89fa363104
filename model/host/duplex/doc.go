// Package duplex models TCP connections of which both ends are processes of the
// simulated machine: sockets that send and receive, with every step on a simulated CPU.
//
// A Sock has the receive half of model/tcp and a send half of its own: sendmsg copies
// into the write queue, tcp_write_xmit hands skbs to the driver as far as congestion
// window, receiver's window, Nagle's rule and small queues let it, and an acknowledgement
// in softirq context, or from the backlog, opens the windows and sends more. It mirrors
// Linux 6.1 and 6.12 as far as nothing is lost: losses do not happen between two
// interfaces of one machine that wait for each other's rings, and a segment that is lost
// all the same stays lost.
package duplex
