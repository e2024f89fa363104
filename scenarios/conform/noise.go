package conform

import (
	"slices"
	"strings"

	"napisim/model/cpu"
	"napisim/scenarios/recording/input"
	"napisim/sim"
	"napisim/softirq"
)

// What else a kernel does on the CPU of a recording is no part of the model, but it takes
// part in the softirq loop: the tick raises TIMER and RCU, their handlers run between
// passes of NET_RX, raise themselves again and wake kernel threads, which sets
// need_resched and brings ksoftirqd in. This work is replayed: the raises at their
// instants, the handlers in their order with what each took, raised and woke.

// replayed are the vectors whose handlers are replayed, by their names in traces.
var replayed = []struct {
	name string
	vec  softirq.Vector
}{{"TIMER", softirq.Timer}, {"RCU", softirq.RCU}}

// noise is the replay of one machine.
type noise struct {
	*bench
	tasks map[int]*cpu.Task // by PID in the recording
	ticks []input.Beat      // to come
	timer *cpu.HRTimer
}

// buildNoise lets the work of others happen.
func (b *bench) buildNoise() error {
	n := &noise{bench: b, tasks: map[int]*cpu.Task{}}
	for _, v := range replayed {
		var jobs []input.Softirq
		for _, s := range b.in.Softirqs {
			if s.Vec == v.name && s.At >= b.start {
				jobs = append(jobs, s)
				n.addTasks(s.Woke)
			}
		}
		b.softnets[0].OpenSoftirq(v.vec, n.handler(v.vec, jobs))
	}
	n.timer = b.machine.Cores[0].NewHRTimer(func(*cpu.Core) { n.tick() }).InHardirq()
	for _, t := range b.in.Tick.Ticks {
		if t.At-tickToRaise >= b.start {
			n.ticks = append(n.ticks, t)
		}
	}
	n.arm()
	return nil
}

// addTasks makes the tasks that a handler woke, unless the model has them itself.
func (n *noise) addTasks(pids []int) {
	for _, pid := range pids {
		if n.tasks[pid] != nil {
			continue
		}
		if t := n.pktgen[pid]; t != nil {
			n.tasks[pid] = t
			continue
		}
		var turns []int64
		name := ""
		for _, s := range n.in.Segments {
			if s.PID == pid && s.At >= n.start {
				turns, name = append(turns, s.Own), s.Comm
			}
		}
		idle := strings.HasPrefix(name, "kpktgend") // a thread of pktgen with nothing to send
		if name != "" && (idle || !simulatedTask(name)) {
			n.tasks[pid] = n.machine.NewTask(n.machine.Cores[0], name, cpu.TaskConfig{Sleeper: true}, n.turns(turns))
		}
	}
}

// handler replays the runs of a vector's handler.
func (n *noise) handler(vec softirq.Vector, jobs []input.Softirq) func() {
	c, sd := n.machine.Cores[0], n.softnets[0]
	return func() {
		if vec == softirq.Timer {
			c.RunTimers()
		}
		if len(jobs) == 0 {
			return
		}
		j := jobs[0]
		jobs = jobs[1:]
		traced := 1 + len(j.Woke) // events within, which are traced here as well
		if j.Again {
			traced++
		}
		c.Work(max(ns(j.NS)-n.prices.event*sim.Time(traced), 0))
		for _, pid := range j.Woke {
			if t := n.tasks[pid]; t != nil {
				c.Look()
				c.Wake(t)
			}
		}
		if j.Again {
			sd.RaiseSoftirq(vec)
		}
	}
}

// arm sets the timer for the next tick that raised something.
func (n *noise) arm() {
	if len(n.ticks) > 0 {
		n.timer.Start(n.at(n.ticks[0].At - tickToRaise))
	}
}

// tick raises what a tick raised.
func (n *noise) tick() {
	for _, v := range replayed {
		if slices.Contains(n.ticks[0].Raised, v.name) {
			n.softnets[0].RaiseSoftirq(v.vec)
		}
	}
	n.ticks = n.ticks[1:]
	n.arm()
}

// switches is what the switches at both ends of a turn cost within it.
const switches = 2500

// turns is the body of a task that runs for a while whenever it is woken.
func (n *noise) turns(turns []int64) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		for i := 0; ; i++ {
			c.Work(ns(max(turns[min(i, len(turns)-1)]-switches, 200)))
			c.Look()
			t.Sleep()
		}
	}
}
