// Package conform lets the model go through what a real kernel went through in a
// recording, and compares the two step by step.
//
// The recordings come from an emulator in which each guest instruction takes a
// nanosecond and devices take no time. So a machine is built here that is the
// recorded one: its devices are those of nic/emulated, its kernel is the preset of the
// recording's version with the recording's sysctls, its costs were fitted once from named
// recordings (costs.yaml), each traced event included. What goes in from the recording at
// hand is only what its sender decided: when it began, how many frames, in bursts of how
// many, how far apart; and the phase of the tick. Everything else, interrupts, raises,
// passes, polls and who runs them, comes from the model.
package conform
