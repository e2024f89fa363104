// Package cpu models processors as the kernel sees them: cores on which hard
// interrupts come before softirqs and softirqs before tasks, FIFO tasks before those of
// the fair class (package fair), a periodic tick and timers with exact instants, and
// costs that take simulated time.
//
// Code that runs on a core is written in direct style. It says what its work
// costs with Core.Spend, and calls Core.Look before it reads or writes anything
// that another actor can see or change: a ring, a queue shared with an interrupt
// handler or another core, a timer, the clock. Spend only adds to a debt; Look
// pays it. Between two looks no one can tell when the work was done, so paying
// late is exact, and it is what makes the simulator fast.
//
// While a debt is paid, events of other actors run in order. An interrupt that
// falls due is delivered at its exact instant, nested on the running context: the
// rest of the debt is paid afterwards, or when the task is scheduled again.
//
// Every picosecond of a core is charged to exactly one Context. Core.Check holds
// the books against each other.
package cpu
