// Package cost fits from a recording what the steps of the receive path cost on the
// machine that was recorded.
//
// Most values are medians of the distance of two events that follow each other on one
// CPU; they hold one event's own cost. Others are straight lines through durations over
// numbers of frames. Each value tells how it was found and from which lines of the trace.
package cost
