package conform

import (
	"strings"

	"napisim/model/cpu"
	"napisim/scenarios/recording"
	"napisim/scenarios/recording/ftrace"
	"napisim/softirq"
)

// What else a kernel does on the CPU of a recording is no part of the model, but it takes
// part in the softirq loop: the tick raises TIMER and RCU, their handlers run between
// passes of NET_RX, raise themselves again and wake kernel threads, which sets
// need_resched and brings ksoftirqd in. This work is replayed: the raises at their
// instants, the handlers in their order with what each took, raised and woke.

// A tickRaise is a raise of a softirq by the timer interrupt.
type tickRaise struct {
	at  int64 // ns of the trace
	vec softirq.Vector
}

// A job is one run of a handler.
type job struct {
	took  int64 // ns of its own
	again bool  // it raised its vector again
	wakes []int // tasks, by PID
}

// noise is what is replayed.
type noise struct {
	raises []tickRaise
	jobs   map[softirq.Vector][]job
	runs   map[int][]int64 // by PID: what each of its turns took
	names  map[int]string
}

// replayed are the vectors whose handlers are replayed.
func replayed(vec int) bool { return vec == int(softirq.Timer) || vec == int(softirq.RCU) }

// noiseOf extracts the work of timers, RCU and the kernel threads they wake from from on.
func noiseOf(r *recording.Recording, event, from int64) noise {
	n := noise{jobs: map[softirq.Vector][]job{}, runs: map[int][]int64{}, names: map[int]string{}}
	var open *job
	var began, nested int64
	irq := int64(-1)
	for i := range r.Events {
		e := &r.Events[i]
		if e.At < from {
			continue
		}
		vec := e.Vec()
		switch e.Name {
		case "irq_handler_entry":
			irq = e.At
		case "irq_handler_exit":
			if irq >= 0 {
				nested += e.At - irq
			}
		case "softirq_raise":
			switch {
			case !replayed(vec):
			case e.Flags.Context == 'h' || e.Flags.Context == 'H':
				n.raises = append(n.raises, tickRaise{e.At, softirq.Vector(vec)}) //nolint:gosec // 1 or 9
			case open != nil:
				open.again = true
				nested += event
			}
		case "softirq_entry":
			if replayed(vec) {
				v := softirq.Vector(vec) //nolint:gosec // 1 or 9
				n.jobs[v] = append(n.jobs[v], job{})
				open = &n.jobs[v][len(n.jobs[v])-1]
				began, nested = e.At, event
			}
		case "softirq_exit":
			if open != nil && replayed(vec) {
				open.took = max(e.At-began-nested, 0)
				open = nil
			}
		case "sched_wakeup":
			if open != nil && e.Flags.Context == 's' {
				pid, _ := e.Int("pid")
				open.wakes = append(open.wakes, int(pid))
				n.names[int(pid)], _ = e.Field("comm")
				nested += event
			}
		}
	}
	n.turns(r, from)
	return n
}

// turns notes how long each turn of the woken tasks was.
func (n *noise) turns(r *recording.Recording, from int64) {
	var last *ftrace.Event
	for i := range r.Events {
		e := &r.Events[i]
		if e.Name != "sched_switch" {
			continue
		}
		if last != nil && e.At >= from {
			pid, _ := last.Int("next_pid")
			if _, woken := n.names[int(pid)]; woken {
				n.runs[int(pid)] = append(n.runs[int(pid)], e.At-last.At)
			}
		}
		last = e
	}
}

// simulated reports whether a task is one that the model has itself.
func simulatedTask(name string) bool {
	for _, prefix := range []string{"ksoftirqd/", "swapper/", "napi/", "nt", "irq/"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// buildNoise lets the work of others happen.
func (b *bench) buildNoise() error {
	c, sd := b.machine.Cores[0], b.softnets[0]
	n := b.noise
	tasks := map[int]*cpu.Task{}
	for pid, name := range n.names {
		switch {
		case b.pktgen[pid] != nil:
			tasks[pid] = b.pktgen[pid]
		case !simulatedTask(name) && !strings.HasPrefix(name, "kpktgend"):
			tasks[pid] = b.machine.NewTask(c, name, cpu.TaskConfig{Sleeper: true}, turns(n.runs[pid]))
		}
	}
	for _, vec := range []softirq.Vector{softirq.Timer, softirq.RCU} {
		jobs := n.jobs[vec]
		sd.OpenSoftirq(vec, func() {
			if vec == softirq.Timer {
				c.RunTimers()
			}
			if len(jobs) == 0 {
				return
			}
			j := jobs[0]
			jobs = jobs[1:]
			c.Work(ns(j.took))
			for _, pid := range j.wakes {
				if t := tasks[pid]; t != nil {
					c.Look()
					c.Wake(t)
				}
			}
			if j.again {
				sd.RaiseSoftirq(vec)
			}
		})
	}
	raises := n.raises
	var timer *cpu.HRTimer
	arm := func() {
		for len(raises) > 0 && b.at(raises[0].at-tickToRaise) < b.eng.Now() {
			raises = raises[1:]
		}
		if len(raises) > 0 {
			timer.Start(b.at(raises[0].at - tickToRaise))
		}
	}
	timer = c.NewHRTimer(func(*cpu.Core) {
		first := raises[0].at
		for len(raises) > 0 && raises[0].at < first+2*tickToRaise {
			sd.RaiseSoftirq(raises[0].vec)
			raises = raises[1:]
		}
		arm()
	})
	arm()
	return nil
}

// turns is the body of a task that runs for a while whenever it is woken.
func turns(runs []int64) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		for i := 0; ; i++ {
			c.Look()
			t.Sleep()
			if len(runs) > 0 {
				// A turn in the recording has the switches in it, which cost by themselves.
				c.Work(ns(max(runs[min(i, len(runs)-1)]-2500, 200)))
			}
		}
	}
}
