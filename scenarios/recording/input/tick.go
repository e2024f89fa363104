package input

import (
	"slices"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/ftrace"
)

// window is how far after the tick's phase its raises may lie: interrupts are off now
// and then, and an idle CPU first has to wake.
const window = 40_000

// together is the longest distance between two raises of one tick.
const together = 5_000

// ticks finds the tick and the other timers among what hardirqs do outside the handlers
// of devices.
func ticks(r *recording.Recording) (Tick, []Timer) {
	var t Tick
	raises, wakes := outsideHandlers(r.Events)
	if r.HZ > 0 {
		t.Period = 1_000_000_000 / int64(r.HZ)
		t.Phase = phase(raises, t.Period)
	}
	var timers []Timer
	for _, e := range raises {
		name, _ := e.Field("action")
		switch {
		case name == "NET_RX": // a NAPI's own timer: what the simulation has to find
		case name != "NET_TX" && t.near(e.At):
			t.beat(e, name)
		default:
			timers = append(timers, Timer{At: e.At, CPU: e.CPU, Raised: name})
		}
	}
	for _, e := range wakes {
		if w, ok := e.Wakeup(); ok {
			timers = append(timers, Timer{At: e.At, CPU: e.CPU, Woke: w.PID, Comm: w.Comm})
		}
	}
	slices.SortStableFunc(timers, func(a, b Timer) int { return int(a.At - b.At) })
	return t, timers
}

// near reports whether an instant may be a tick's; any may if the period is unknown.
func (t *Tick) near(at int64) bool {
	return t.Period == 0 || (at-t.Phase+t.Period)%t.Period <= window
}

// beat adds a raise to its tick.
func (t *Tick) beat(e *ftrace.Event, name string) {
	if n := len(t.Ticks); n > 0 {
		last := &t.Ticks[n-1]
		if last.CPU == e.CPU && e.At-last.At < together && !slices.Contains(last.Raised, name) {
			last.Raised = append(last.Raised, name)
			return
		}
	}
	t.Ticks = append(t.Ticks, Beat{At: e.At, CPU: e.CPU, Raised: []string{name}, Idle: e.PID == 0})
}

// outsideHandlers returns the raises and wakeups of hardirq context that happen while
// no device's handler runs.
func outsideHandlers(events []ftrace.Event) (raises, wakes []*ftrace.Event) {
	open := map[int]int{} // handlers, by CPU
	for i := range events {
		e := &events[i]
		switch e.Name {
		case "irq_handler_entry":
			open[e.CPU]++
		case "irq_handler_exit":
			open[e.CPU] = max(0, open[e.CPU]-1)
		}
		if open[e.CPU] > 0 || e.Flags.Context != 'h' && e.Flags.Context != 'H' {
			continue
		}
		switch e.Name {
		case "softirq_raise":
			raises = append(raises, e)
		case "sched_wakeup":
			wakes = append(wakes, e)
		}
	}
	return raises, wakes
}

// phase returns the instant modulo the period that most TIMER and RCU raises follow
// within the window: the earliest of them.
func phase(raises []*ftrace.Event, period int64) int64 {
	var at []int64
	for _, e := range raises {
		if name, _ := e.Field("action"); name == "TIMER" || name == "RCU" {
			at = append(at, e.At%period)
		}
	}
	if len(at) == 0 {
		return 0
	}
	slices.Sort(at)
	best, most := at[0], 0
	for i, from := range at {
		n := 0
		for j := range at {
			if d := (at[(i+j)%len(at)] - from + period) % period; d > window {
				break
			}
			n++
		}
		if n > most {
			best, most = from, n
		}
	}
	return best
}
