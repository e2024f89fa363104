// Package stack is the network stack between NAPI and the sockets: core receive,
// IP and the lookup of the socket (net/core/dev.c from netif_receive_skb on,
// net/ipv4/ip_input.c). It processes lists in the order of the kernel: all of a
// list passes core receive before any of it reaches a socket.
package stack
