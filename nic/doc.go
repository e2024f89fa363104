// Package nic models network devices as a driver sees them: descriptor rings,
// interrupt vectors and their moderation. It knows no kernel and no CPU.
//
// A frame is not an event. A receive ring pulls what has arrived from its link when
// somebody looks: DMA into free descriptors in order, and a miss for every frame
// that finds none. How often that happens changes nothing; what happened at which
// instant follows from the frames and from the calls that write: RXRing.Refill,
// TXRing.Xmit, and those of a Vector.
//
// Only an armed vector costs events, one at a time: an event at the earliest
// instant at which its moderation may be due, predicted from the arrivals and
// completions that are known, and predicted anew when they change. While a vector
// is masked, which is what it is under load, a device costs no event at all.
//
// Methods that take now are given the current instant by code that has paid for
// its work; a driver passes the clock of its core. Interrupts are raised in the
// engine's context only, never within a call of the driver: unmasking with
// something pending schedules an event at that very instant.
//
// Every frame and every descriptor is accounted for, see Device.Check.
package nic
