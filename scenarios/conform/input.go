package conform

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"napisim/scenarios/recording"
	"napisim/scenarios/recording/input"
	"napisim/sim"
)

// A pktgenRun is one start of pktgen: what a sender was told.
type pktgenRun struct {
	pid          int
	start        int64 // ns of the trace: the thread is switched to
	burst, count int
	delay        sim.Time
}

// tickToRaise is how long after its interrupt the tick raises the TIMER softirq.
const tickToRaise = 1500

// pktgenRuns finds when pktgen was started and what it was told to send.
func pktgenRuns(r *recording.Recording, in *input.Input) ([]pktgenRun, error) {
	if len(in.Bursts) == 0 {
		return nil, errors.New("no pktgen thread sends anything")
	}
	first := in.Bursts[0]
	run := pktgenRun{
		pid: first.PID, start: first.In, burst: mostFrames(in.Bursts), count: r.Offered, delay: ns(r.Rate.Every),
	}
	if r.Rate.Form == recording.Saturation {
		run.delay = 0
	}
	if run.count == 0 {
		return nil, errors.New("how many packets pktgen was to send is not known")
	}
	if all := sessions(r, in, run); len(all) > 0 {
		return all, nil
	}
	return []pktgenRun{run}, nil
}

// sessions returns the starts of a pktgen that was started anew for each size of bursts,
// which the recording marks; nil where it marks none. A burst is told of with the size that
// was marked, or in the parts that it came out in.
func sessions(r *recording.Recording, in *input.Input, like pktgenRun) (all []pktgenRun) {
	for i := range r.Events {
		e := &r.Events[i]
		n, ok := strings.CutPrefix(e.Payload, "burst ")
		if e.Name != "tracing_mark_write" || !ok {
			continue
		}
		if size, err := strconv.Atoi(strings.TrimSpace(n)); err == nil && size > 0 {
			all = append(all, pktgenRun{pid: like.pid, start: e.At, burst: size, delay: like.delay})
		}
	}
	for i := range all {
		until := int64(math.MaxInt64)
		if i+1 < len(all) {
			until = all[i+1].start
		}
		mark := all[i].start
		for _, b := range in.Bursts {
			if b.At < mark || b.At >= until {
				continue
			}
			if all[i].count == 0 {
				all[i].start = b.In
			}
			all[i].count += b.Frames
		}
	}
	return slices.DeleteFunc(all, func(p pktgenRun) bool { return p.count == 0 })
}

// mostFrames returns the size of the largest burst: a queue that fills up cuts some short.
func mostFrames(bursts []input.Burst) int {
	most := 1
	for _, b := range bursts {
		most = max(most, b.Frames)
	}
	return most
}

// simulatedTask reports whether a task is one that the model has itself.
func simulatedTask(name string) bool {
	for _, prefix := range []string{"ksoftirqd/", "swapper/", "napi/", "nt", "irq/", "kpktgend"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
