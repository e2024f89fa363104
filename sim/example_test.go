package sim_test

import (
	"fmt"

	"napisim/sim"
)

// timer is a handler: the engine calls Fire at the instant of the event.
type timer struct {
	eng  *sim.Engine
	proc *sim.Proc
}

func (t *timer) Fire(arg uint64) {
	fmt.Println(t.eng.Now(), "timer", arg)
	t.eng.Ready(t.proc)
}

// A Proc is a process in direct style. It lets time pass on the fast path while
// nobody else can act, and parks when somebody else comes first.
func ExampleProc() {
	eng := sim.NewEngine(sim.Lazy)
	defer eng.Close()

	tick := &timer{eng: eng}
	tick.proc = eng.NewProc("worker", func(p *sim.Proc) {
		for range 3 {
			if eng.AdvanceWithin(40 * sim.Nanosecond) {
				fmt.Println(eng.Now(), "worked without a switch")
				continue
			}
			fmt.Println(eng.Now(), "waits, since the timer may come first")
			p.Park()
			fmt.Println(eng.Now(), "resumed")
		}
	})
	eng.Schedule(100*sim.Nanosecond, 0, tick, 7)
	eng.Ready(tick.proc)
	eng.Run()
	// Output:
	// 40ns worked without a switch
	// 80ns worked without a switch
	// 80ns waits, since the timer may come first
	// 100ns timer 7
	// 100ns resumed
}
