// Package match compares what was recorded with what was simulated.
//
// Both sequences of interrupts, raises, passes and polls are aligned by their longest
// common subsequence, so that one missing event costs one and not all that follow. Who
// ran a pass is scored apart: it depends on the phase of the tick. Recordings of
// overload and of closed loops are also compared by their numbers.
package match
