// Package guest holds the drivers of a virtual machine's network interfaces: e1000,
// e1000e with MSI-X, and virtio_net, for the devices of nic/emulated.
//
// They are written after the drivers of v6.1 and v6.12, which differ little: what a
// version decides is a field of Config. The order in which an interrupt handler and a
// poll touch the device is theirs, as it decides which interrupts there are.
//
// A core takes interrupts that become pending together in the order in which its lines
// were made, and a guest on x86 takes the highest vector first. So the interface with
// the higher interrupt numbers, the receiver, is made first; each constructor makes the
// lines of its own interface in that order.
//
// Two ways lead to the wire. Burst is what pktgen does: frames are posted in a row and
// the doorbell is written after the last. Xmit and XmitList are dev_queue_xmit: what a
// stopped queue refuses waits in a qdisc, until the NET_TX softirq goes on with it.
package guest
