// Package trace records what a run did, in the words of the kernel's tracepoints.
//
// There are two records. A Log keeps Events in a window of simulated time, up to a
// bound; a model builds an Event only where Recording says so, and a nil *Log
// records nothing, so an untraced run pays one comparison at each point. A
// Fingerprint is always on: it hashes the trajectory into 64 bits, and two runs
// with the same fingerprint did the same things at the same instants.
//
// WriteText prints events as ftrace does, so that a recording of a simulated
// machine can be laid beside one of a real kernel, grepped by the same scripts and
// opened by the same viewers.
package trace
