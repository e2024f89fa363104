package fair

import (
	"testing"

	"napisim/sim"

	"pgregory.net/rapid"
)

const (
	us = sim.Microsecond
	ms = sim.Millisecond
)

// The tunables scale with 1 + floor(log2(min(cores, 8))) (kernel-facts 3.6).
func TestScalingWithCores(t *testing.T) {
	for cores, factor := range map[int]sim.Time{1: 1, 2: 2, 3: 2, 4: 3, 7: 3, 8: 4, 9: 4, 64: 4} {
		want := scaled{Params{
			Latency: 6 * ms * factor, MinGranularity: 750 * us * factor, WakeupGranularity: ms * factor,
			BaseSlice: 750 * us * factor,
		}, ms}
		if got := (Params{}).scale(cores, ms); got != want {
			t.Errorf("%d cores: %v, want %v", cores, got, want)
		}
	}
}

// newQueue returns a queue for one core with a running entity and some that wait, all
// given by nice value, and with vruntime 0.
func newQueue(nices ...int) (*Queue, []*Entity) { return newQueueOf(Params{}, nices...) }

func newQueueOf(p Params, nices ...int) (*Queue, []*Entity) {
	q := New(p, 1, 4*ms)
	var all []*Entity
	for _, nice := range nices {
		e := NewEntity(nil, nice)
		q.add(&e)
		q.insert(&e)
		all = append(all, &e)
	}
	q.Pick()
	return &q, all
}

// A slice is the share of the weight in a period of 6 ms, or of 0.75 ms for each
// entity if there are more than 8.
func TestSlice(t *testing.T) {
	tests := []struct {
		name  string
		nices []int
		want  sim.Time // of the first
	}{
		{"alone", []int{0}, 6 * ms},
		{"two", []int{0, 0}, 3 * ms},
		{"three", []int{0, 0, 0}, 2 * ms},
		{"eight", make([]int, 8), 750 * us},
		{"nine", make([]int, 9), 750 * us}, // 9 * 0.75 / 9
		{"nine with a heavy one", append([]int{-5}, make([]int, 8)...), 9 * 750 * us * 3121 / (3121 + 8*1024)},
		{"nice 0 beside 5", []int{0, 5}, 6 * ms * 1024 / (1024 + 335)},
		{"nice 5 beside 0", []int{5, 0}, 6 * ms * 335 / (1024 + 335)},
		{"extremes", []int{19, -20}, 6 * ms * 15 / (15 + 88761)},
	}
	for _, tt := range tests {
		q, all := newQueue(tt.nices...)
		if got := q.slice(all[0], false); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// check_preempt_wakeup compares strictly, and the granularity is that of the woken
// entity: a light one has to be further behind.
func TestWakeupGranularity(t *testing.T) {
	for _, tt := range []struct {
		nice int
		gran sim.Time
	}{{0, ms}, {-20, ms * 1024 / 88761}, {19, ms * 1024 / 15}} {
		q, all := newQueue(0)
		woken := &Entity{weight: niceWeight(tt.nice), vruntime: 10 * ms}
		for _, lead := range []sim.Time{-ms, 0, 1, tt.gran, tt.gran + 1, 10 * tt.gran} {
			all[0].vruntime = 10*ms + lead
			if got, want := q.Preempts(woken), lead > tt.gran; got != want {
				t.Errorf("nice %d, lead %v: preempts %v", tt.nice, lead, got)
			}
		}
	}
	q, _ := newQueue()
	if q.Preempts(&Entity{weight: nice0}) {
		t.Error("nothing runs, but is preempted")
	}
}

// check_preempt_tick: more than a slice since picked; or at least the minimum
// granularity and a lead of more than a slice.
func TestTickRule(t *testing.T) {
	tests := []struct {
		name      string
		ran, lead sim.Time
		want      bool
	}{
		{"slice not used up", 3*ms - 1, 0, false},
		{"slice just used up", 3 * ms, 0, false},
		{"over", 3*ms + 1, 0, true},
		{"over, far behind", 3*ms + 1, -sim.Second, true},
		{"lead of a slice", ms, 3 * ms, false},
		{"lead over a slice", ms, 3*ms + 1, true},
		{"lead, at the minimum", 750 * us, 3*ms + 1, true},
		{"lead, below the minimum", 750*us - 1, sim.Second, false},
	}
	for _, tt := range tests {
		q, all := newQueue(0, 0)
		all[0].prevRan, all[0].Ran = sim.Second, sim.Second+tt.ran
		all[0].vruntime, all[1].vruntime = tt.lead, 0
		if got := q.Tick(); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	q, all := newQueue(0)
	all[0].Ran = sim.Second
	if q.Tick() {
		t.Error("an entity alone is rescheduled")
	}
}

// place_entity at one core: a sleeper is put at most 3 ms behind the minimum, a new
// entity one slice ahead of it; neither gains by it.
func TestPlacement(t *testing.T) {
	tests := []struct {
		name  string
		own   sim.Time
		fresh bool
		nice  int
		want  sim.Time
	}{
		{"long sleep", 0, false, 0, 97 * ms},
		{"just below the credit", 97*ms - 1, false, 0, 97 * ms},
		{"short sleep", 98 * ms, false, 0, 98 * ms},
		{"ahead", 105 * ms, false, 0, 105 * ms},
		// Two entities of equal weight: a slice of 3 ms, with the new one counted.
		{"new", 0, true, 0, 103 * ms},
		// sched_vslice: the slice divided by the weight, 6 ms * w/(w + 1024) * 1024/w.
		{"new, light", 0, true, 5, 100*ms + (6*ms*335/(335+1024))*1024/335},
	}
	for _, tt := range tests {
		q, all := newQueue(0)
		all[0].vruntime = 100 * ms
		q.updateMin()
		e := &Entity{weight: niceWeight(tt.nice), vruntime: tt.own}
		q.Enqueue(e, tt.fresh)
		if e.vruntime != tt.want {
			t.Errorf("%s: vruntime %v, want %v", tt.name, e.vruntime, tt.want)
		}
	}
}

// The minimum follows the smallest runnable vruntime, but never goes back.
func TestMinVruntime(t *testing.T) {
	q, all := newQueue(0, 0)
	step := func(what string, want sim.Time) {
		t.Helper()
		if q.minVR != want {
			t.Errorf("%s: minimum %v, want %v", what, q.minVR, want)
		}
	}
	q.Charge(2 * ms)
	step("the other one waits at 0", 0)
	all[1].vruntime = 5 * ms
	q.Charge(2 * ms)
	step("the running one is behind", 4*ms)
	q.Block(false)
	step("it sleeps", 5*ms)
	q.Enqueue(all[0], false)
	q.updateMin()
	step("it wakes up with credit", 5*ms)
	if got := all[0].vruntime; got != 4*ms {
		t.Errorf("vruntime %v after a short sleep, want its own 4ms", got)
	}
}

// An entity that goes on begins no new slice; one that is picked after another does.
func TestPickBeginsASlice(t *testing.T) {
	q, all := newQueue(0, 0)
	expect := func(d sim.Time, want *Entity, slice sim.Time) {
		t.Helper()
		q.Charge(d)
		if e := q.Pick(); e != want || e.prevRan != slice {
			t.Errorf("picked %p with a slice from %v, want %p from %v", e, e.prevRan, want, slice)
		}
	}
	all[1].vruntime = 2 * ms
	expect(ms, all[0], 0)
	expect(2*ms, all[1], 0)
	expect(2*ms, all[0], 3*ms)
}

// The queue against the plainest second implementation: a list that is searched for
// the smallest vruntime, of equal ones the first that came.
func TestFairQueueAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := New(Params{}, rapid.IntRange(1, 8).Draw(t, "cores"), 4*ms)
		var waiting, asleep []*Entity
		var running *Entity
		for range rapid.IntRange(1, 12).Draw(t, "entities") {
			nice := rapid.IntRange(-20, 19).Draw(t, "nice")
			asleep = append(asleep, &Entity{weight: niceWeight(nice)})
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			before := q.minVR
			switch rapid.SampledFrom([]string{"wake", "run", "switch", "sleep"}).Draw(t, "step") {
			case "wake":
				if len(asleep) > 0 {
					e := asleep[0]
					asleep = asleep[1:]
					q.Enqueue(e, rapid.Bool().Draw(t, "fresh"))
					waiting = append(waiting, e)
				}
			case "run":
				if running != nil {
					q.Charge(sim.Time(rapid.IntRange(0, 8).Draw(t, "ran")) * ms)
				}
			case "sleep":
				if running != nil {
					q.Block(false)
					asleep, running = append(asleep, running), nil
				}
			case "switch":
				if running != nil {
					waiting, running = append(waiting, running), nil
				}
				best := -1
				for i, e := range waiting {
					if best < 0 || e.vruntime < waiting[best].vruntime {
						best = i
					}
				}
				got := q.Pick()
				if best >= 0 {
					running = waiting[best]
					waiting = append(waiting[:best:best], waiting[best+1:]...)
				}
				if got != running {
					t.Fatalf("picked %v, want %v", got, running)
				}
			}
			if q.minVR < before {
				t.Fatalf("minimum goes back from %v to %v", before, q.minVR)
			}
			if smallest := smallestOf(running, waiting); smallest != nil && len(asleep) == 0 && q.minVR > max(before, smallest.vruntime) {
				t.Fatalf("minimum %v is above %v", q.minVR, smallest.vruntime)
			}
		}
	})
}

func smallestOf(running *Entity, waiting []*Entity) *Entity {
	smallest := running
	for _, e := range waiting {
		if smallest == nil || e.vruntime < smallest.vruntime {
			smallest = e
		}
	}
	return smallest
}
