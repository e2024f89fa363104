package conform

import (
	"errors"
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
	return []pktgenRun{run}, nil
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
