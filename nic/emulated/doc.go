// Package emulated models the network devices of an emulator as a guest's drivers see
// them: the e1000 (82540EM), e1000e (82574L) and virtio-net devices of QEMU 7.2, two of
// them joined by a hub that takes no time.
//
// A real device needs time for DMA and for the wire; these need none. Writing the
// doorbell of the sender moves every posted frame into the receive ring of its peer at
// that one instant, marks the descriptors as sent, and sets the causes of both devices.
// What distinguishes the devices is when a cause becomes an interrupt, and that is what
// this package is exact about, quirks of the emulation included:
//
//   - E1000 has one level-triggered line and a mitigation timer that holds back the
//     next raising edge for at least 128 us;
//   - E1000E has a message for each of its two rings, a throttling timer of at least
//     128 us each, and once a message was postponed it repeats one at every expiry;
//   - Virtio moderates nothing but asks for one interrupt at a time (event index).
//
// Rings never drop: frames that find no free descriptor wait in the hub and arrive, in
// order, at the instant at which descriptors are posted.
//
// Methods that take now are called by code that has paid for its work, with the clock
// of its core. Interrupts are raised within such calls or by the device's own timers;
// the core takes them when its handler's turn comes.
package emulated
