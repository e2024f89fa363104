// Package tcp holds the two ends of a TCP connection, each in the form that a
// simulator of the receive path needs.
//
// Sender is a complete peer on an ideal host: congestion control, loss recovery
// and timers of the RFCs, and the bursts of a Linux sender with TSO. It costs no
// simulated CPU and schedules its own timers; its frames leave through a Wire.
//
// Receiver is the receive half of struct tcp_sock: queues, receive memory, window
// and ACK policy, as Linux has them. It is a state machine without time of its
// own: the code that runs on a simulated CPU calls it, charges the costs, sends
// the ACKs and keeps the timers. It owns the skbs that it is given until it hands
// them back on a list of skbs to free, so that pages return to their pool on the
// core that frees them.
//
// Sequence numbers have 64 bits and start at FirstSeq; the handshake is over when
// a connection begins. Timestamps count milliseconds of simulated time, so data
// sent within one millisecond carries one value, as with Linux.
//
// Left out of the sender: pacing, ECN, the proportional rate reduction of RFC 6937
// (a recovery sends when the pipe has room, RFC 6675) and the undoing of needless
// reductions (F-RTO, Eifel, DSACK). Left out of the receiver: memory pressure
// across sockets, urgent data and PAWS.
//
// Package sack holds the scoreboard of RFC 6675, package cong the congestion
// controls, package rto the estimator of round trips and the timers.
package tcp
