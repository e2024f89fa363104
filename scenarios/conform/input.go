package conform

import (
	"errors"
	"fmt"
	"strings"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/ftrace"
	"napisim/sim"
)

// A pktgenRun is one start of pktgen.
type pktgenRun struct {
	pid          int
	start        int64 // ns of the trace: the thread is switched to
	burst, count int
	delay        sim.Time
}

// input is what goes into a simulation from a recording.
type input struct {
	tick   int64 // phase of the timer interrupt, ns of the trace modulo a tick
	pktgen []pktgenRun
	end    int64 // the last event
}

// inputOf extracts the input of a recording.
func inputOf(r *recording.Recording) (in input, err error) {
	if r.HZ <= 0 {
		return in, errors.New("the tick rate is not known")
	}
	in.tick = tickPhase(r)
	in.end = r.Events[len(r.Events)-1].At
	if r.Sender.Role == "pktgen" {
		in.pktgen, err = pktgenRuns(r)
	}
	return in, err
}

// tickToRaise is how long after its interrupt the tick raises the TIMER softirq.
const tickToRaise = 1500

// tickPhase finds the phase of the tick: the timer softirq is raised in its handler, later
// where interrupts were off.
func tickPhase(r *recording.Recording) int64 {
	tick := int64(1e9) / int64(r.HZ)
	count := map[int64]int{}
	best, most := int64(0), 0
	for i := range r.Events {
		e := &r.Events[i]
		if e.Name != "softirq_raise" || e.Flags.Context != 'h' || e.Vec() != 1 {
			continue
		}
		slot := e.At % tick / 2000
		if count[slot]++; count[slot] > most {
			best, most = e.At%tick, count[slot]
		}
	}
	return (best - tickToRaise + tick) % tick
}

// pktgenRuns finds when pktgen was started and what it was told to send.
func pktgenRuns(r *recording.Recording) ([]pktgenRun, error) {
	run := pktgenRun{burst: max(r.Rate.Burst, 1), count: r.Offered, delay: ns(r.Rate.Every)}
	if r.Rate.Form == recording.Saturation {
		run.delay = 0
	}
	if run.count == 0 {
		return nil, errors.New("how many packets pktgen was to send is not known")
	}
	var err error
	if run.start, run.pid, err = firstSend(r); err != nil {
		return nil, err
	}
	return []pktgenRun{run}, nil
}

// firstSend returns when the thread began to run that sends first: what it sends shows as
// an interrupt of a network device, or as a probe of the driver.
func firstSend(r *recording.Recording) (at int64, pid int, err error) {
	began := int64(-1)
	for i := range r.Events {
		e := &r.Events[i]
		switch {
		case e.Name == "sched_switch":
			if next, _ := e.Field("next_comm"); strings.HasPrefix(next, "kpktgend") {
				began = e.At
				next, _ := e.Int("next_pid")
				pid = int(next)
			} else {
				began = -1
			}
		case began >= 0 && sends(r, e):
			return began, pid, nil
		}
	}
	return 0, 0, fmt.Errorf("no pktgen thread sends anything")
}

func sends(r *recording.Recording, e *ftrace.Event) bool {
	if e.Name == "drv_xmit" || e.Name == "net_dev_xmit" {
		return true
	}
	if e.Name != "irq_handler_entry" {
		return false
	}
	name, _ := e.Field("name")
	dev, _ := r.DeviceOf(name)
	return dev != ""
}
