package scenarios

import (
	"fmt"
	"maps"
	"slices"

	"napisim/model"
	"napisim/model/unit"
	"napisim/scenarios/spec"
)

// maxSteps is how many frames and ticks a run may have: at some ten million a
// second they take more than a day, and the engine ends at 2^36 events anyway.
const maxSteps = 1e12

// Estimate is what a run will take, roughly.
type Estimate struct {
	// Frames is the most frames that can arrive, Ticks the timer interrupts of all cores.
	Frames, Ticks float64
	// Seconds is the time that one run takes on a present core.
	Seconds float64
}

// The host time of a frame by kind of traffic and of a tick, in seconds; order of magnitude.
const (
	secondsPerTCPFrame = 300e-9
	secondsPerUDPFrame = 100e-9
	secondsPerTick     = 500e-9
)

// EstimateRun returns what one run of the scenario will take. The error says why a
// run is too large to be started.
func EstimateRun(s *spec.Scenario) (Estimate, error) {
	var e Estimate
	seconds := float64(s.Duration) / float64(unit.Second)
	for _, name := range slices.Sorted(maps.Keys(s.Traffic)) {
		t := s.Traffic[name]
		frames := seconds * arrivalRate(s, t)
		per := secondsPerUDPFrame
		if t.Kind == spec.TrafficTCP {
			per = secondsPerTCPFrame
		}
		e.Frames += frames
		e.Seconds += frames * per
	}
	e.Ticks = seconds * float64(s.HZ) * float64(s.CPUs)
	e.Seconds += e.Ticks * secondsPerTick
	if steps := e.Frames + e.Ticks; steps > maxSteps {
		return e, fmt.Errorf("the run is too large: %.3g frames and %.3g ticks in %v, at most %.0g can be simulated; shorten the duration or lower the rates",
			e.Frames, e.Ticks, s.Duration, float64(maxSteps))
	}
	return e, nil
}

// arrivalRate returns the most frames per second that t can bring: its own rate, or
// what its link carries.
func arrivalRate(s *spec.Scenario, t spec.Traffic) float64 {
	switch t.Kind {
	case spec.TrafficTCP:
		return lineRate(s, t)
	case spec.TrafficRR:
		return min(requestRate(s, t), lineRate(s, t))
	}
	return min(offeredRate(t), lineRate(s, t))
}

// requestRate returns the most requests per second of rr traffic: the host answers in no
// time, and the link alone delays.
func requestRate(s *spec.Scenario, t spec.Traffic) float64 {
	link := s.NICs[t.NIC].Link
	wait := float64(t.Think+2*link.Delay) / float64(unit.Second)
	bits := 8 * model.WireBytes(int32(t.Size)-model.EthernetFCS)
	return float64(t.Flows) / (wait + float64(bits)/float64(link.Rate))
}

// offeredRate returns the mean rate of open-loop traffic in frames per second.
func offeredRate(t spec.Traffic) float64 {
	rate := t.Arrivals.CBR + t.Arrivals.Poisson + t.Arrivals.Bursts.Rate
	return float64(rate) / float64(unit.PacketPerSecond)
}

// lineRate returns how many frames of t its link carries per second.
func lineRate(s *spec.Scenario, t spec.Traffic) float64 {
	length := int32(t.Size) - model.EthernetFCS
	if t.Kind == spec.TrafficTCP {
		length = (&model.Frame{Proto: model.TCP, IPv6: t.IPv6}).FrameLen(int32(t.MSS))
	}
	return float64(s.NICs[t.NIC].Link.Rate) / 8 / float64(model.WireBytes(length))
}
