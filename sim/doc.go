// Package sim is the engine under every model of napisim: simulated time, the
// event queue, processes written in direct style, and random streams.
//
// It knows nothing of networks, CPUs or kernels. A model built on it is
// deterministic: exactly one piece of code runs at a time, events are ordered by
// (time, phase, sequence), and nothing here reads a clock, starts a goroutine of
// its own or keeps state outside an Engine.
//
// Three ideas carry it:
//
//   - An event is a value in a heap, not a closure: a Handler and an argument. One
//     that is cancelled and scheduled anew for later, as timers are, stays in place.
//   - A Proc is a coroutine. It runs until it parks; only the engine resumes it.
//   - The horizon is the instant of the earliest pending event. A running Proc
//     may move time forward to any instant strictly before the horizon without
//     giving up control, because nobody else could have acted in between. At the
//     horizon itself the queue's order decides.
//
// The subpackage metric holds counters and histograms, trace the trace points.
package sim
