// Package link models the two directions of a full-duplex Ethernet link.
//
// A Pipe is the direction towards the simulated host. Frames on it are not events:
// they wait, in the order of the wire, until the receiving NIC pulls those that have
// arrived. Open-loop sources are attached to it and drawn from one frame ahead;
// closed-loop senders offer each frame at the current instant. An Egress is the
// direction away from the host: it says when a segment has left and delivers it to
// the peer by an event.
//
// Both serialise: a frame starts when it is offered and the line is free, and takes
// its bytes on the wire, with preamble, FCS and inter-frame gap, at the link's rate.
// The instant at which the line is free again is kept as an exact fraction, so a
// busy line carries exactly its rate however long it runs; only what is reported is
// rounded, up to the picosecond in which the last bit has passed.
//
// Pulling late is exact. Whichever frame has arrived by now was put on the wire
// before now, and what is offered later goes behind it: the choice between sources
// never has to be taken back once its frame has arrived. Until then it is a
// prediction, which an earlier offer may change.
package link
