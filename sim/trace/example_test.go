package trace_test

import (
	"os"

	"napisim/sim"
	"napisim/sim/trace"
)

// A model builds an event only while the log is recording.
func Example() {
	log := trace.NewLog(sim.Millisecond, 2*sim.Millisecond, 1000)
	poll := func(now sim.Time, work int64) {
		if log.Recording(now) {
			log.Emit(trace.Event{
				At: now, Comm: "ksoftirqd/0", PID: 14, Flags: trace.Flags{Context: trace.Softirq},
				Point: trace.NAPIPoll, A: 1, B: work, C: 64, S: "eth0",
			})
		}
	}
	poll(900*sim.Microsecond, 64) // too early
	poll(1500*sim.Microsecond, 17)
	if err := trace.WriteText(os.Stdout, log.Events()); err != nil {
		panic(err)
	}
	// Output:
	// # tracer: nop
	// #
	// # entries-in-buffer/entries-written: 1/1   #P:1
	// #
	// #                                _-----=> irqs-off/BH-disabled
	// #                               / _----=> need-resched
	// #                              | / _---=> hardirq/softirq
	// #                              || / _--=> preempt-depth
	// #                              ||| / _-=> migrate-disable
	// #                              |||| /     delay
	// #           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
	// #              | |         |   |||||     |         |
	//      ksoftirqd/0-14      [000] ..s..     0.001500: napi_poll: napi poll on napi struct 0000000000000001 for device eth0 work 17 budget 64
}
