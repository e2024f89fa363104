package traffic

import (
	"slices"
	"testing"

	"napisim/model"
	"napisim/sim"
)

// echo is a wire whose far end answers after a time, or not at all.
type echo struct {
	eng    *sim.Engine
	after  sim.Time
	silent int // the first so many frames get no answer
	to     *Requester
	frames []model.Frame
	at     []sim.Time
}

func (e *echo) Offer(f model.Frame, at sim.Time) sim.Time {
	e.frames = append(e.frames, f)
	e.at = append(e.at, at)
	if e.silent--; e.silent < 0 {
		e.eng.Schedule(at+e.after, 4, e, 0)
	}
	return at
}

func (e *echo) Fire(uint64) { e.to.Deliver(&model.Segment{}) }

func playRequester(cfg RequesterConfig, e *echo, until sim.Time) *RequesterStats {
	e.eng = sim.NewEngine(sim.Lazy)
	defer e.eng.Close()
	e.to = NewRequesters(e.eng, 1, e).Add(cfg)
	e.to.Start(5 * sim.Microsecond)
	e.eng.Schedule(until, 9, stopAt{e.eng}, 0)
	e.eng.Run()
	return e.to.Stats()
}

type stopAt struct{ eng *sim.Engine }

func (s stopAt) Fire(uint64) { s.eng.Stop() }

// One transaction at a time: answers after 7 us and 3 us of thought make a request every 10
// us from 5 us on. Ten are answered by 102 us; the eleventh, sent at 105, is not.
func TestRequesterTakesTurns(t *testing.T) {
	e := &echo{after: 7 * sim.Microsecond}
	s := playRequester(RequesterConfig{Flow: 3, Hash: 9, Size: 60, Think: 3 * sim.Microsecond, Timeout: sim.Millisecond}, e, 106*sim.Microsecond)
	if s.Requests != 11 || s.Answers != 10 || s.Retries != 0 {
		t.Errorf("%d requests, %d answers, %d retries", s.Requests, s.Answers, s.Retries)
	}
	if s.RTT.Count() != 10 || s.RTT.Min() != int64(7*sim.Microsecond) || s.RTT.Max() != int64(7*sim.Microsecond) {
		t.Errorf("%d round trips from %d to %d ps", s.RTT.Count(), s.RTT.Min(), s.RTT.Max())
	}
	for i, at := range e.at {
		if want := sim.Time(5+10*i) * sim.Microsecond; at != want {
			t.Errorf("request %d at %v, want %v", i, at, want)
		}
	}
	if f := e.frames[0]; f.Flow != 3 || f.Hash != 9 || f.Len != 60 || f.Payload != 18 || f.Proto != model.UDP {
		t.Errorf("frame %+v", f)
	}
}

// A request without an answer is sent again after the timeout; its round trip counts from the
// first try. A late answer to a request sent twice is ignored.
func TestRequesterRetries(t *testing.T) {
	e := &echo{after: 30 * sim.Microsecond, silent: 1}
	s := playRequester(RequesterConfig{Size: 60, Think: 40 * sim.Microsecond, Timeout: 20 * sim.Microsecond}, e, 76*sim.Microsecond)
	// Sent at 5, 25 and 45 us; answers to the last two come at 55 and 75 us.
	if s.Requests != 3 || s.Answers != 1 || s.Retries != 2 {
		t.Errorf("%d requests, %d answers, %d retries", s.Requests, s.Answers, s.Retries)
	}
	if got := s.RTT.Max(); got != int64(50*sim.Microsecond) {
		t.Errorf("round trip %d ps, want 50 us", got)
	}
}

// Requests of one instant leave in the order of their flows, whoever asks first.
func TestRequestersOfOneInstant(t *testing.T) {
	for seed := range uint64(20) {
		e := &echo{silent: 100, eng: sim.NewEngineShuffled(sim.Lazy, seed+1)}
		g := NewRequesters(e.eng, 1, e)
		for _, flow := range []model.FlowID{4, 2, 3, 1} {
			g.Add(RequesterConfig{Flow: flow, Size: 60, Timeout: 10 * sim.Microsecond}).Start(sim.Microsecond)
		}
		e.eng.Schedule(12*sim.Microsecond, 9, stopAt{e.eng}, 0)
		e.eng.Run()
		e.eng.Close()
		var flows []model.FlowID
		for _, f := range e.frames {
			flows = append(flows, f.Flow)
		}
		if !slices.Equal(flows, []model.FlowID{1, 2, 3, 4, 1, 2, 3, 4}) {
			t.Errorf("seed %d: flows %v", seed, flows)
		}
	}
}

func TestRequesterConfig(t *testing.T) {
	bad := RequesterConfig{Size: 59, Think: -1, Timeout: -1}
	if n := len(bad.Validate()); n != 3 {
		t.Errorf("%d faults, want 3", n)
	}
	good := RequesterConfig{Size: 1514}
	if faults := good.Validate(); faults != nil {
		t.Error(faults)
	}
}
