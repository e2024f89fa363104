// Package softirq is the part of the Linux kernel that receives packets: softirqs
// and ksoftirqd (kernel/softirq.c), net_rx_action and NAPI (net/core/dev.c), and
// the GRO entry points (net/core/gro.c).
//
// It reads like the kernel: the same functions under their own names in Go casing,
// doing the same things in the same order. Where versions differ, the difference
// is a named behaviour: one small function in one file, and one line in a table
// (behaviour.go). Each function's comment names the kernel versions that it
// mirrors.
//
// The package knows no device: a driver calls Softnet.NAPISchedule and is called
// back through NAPI's poll function. It knows no protocol either: packets leave
// upwards through a Stack.
package softirq
