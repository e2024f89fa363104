package cpu

import (
	"testing"

	"napisim/sim"

	"pgregory.net/rapid"
)

const ms = sim.Millisecond

// The tunables scale with 1 + floor(log2(min(cores, 8))) (kernel-facts 3.6).
func TestScalingWithCores(t *testing.T) {
	for cores, factor := range map[int]sim.Time{1: 1, 2: 2, 3: 2, 4: 3, 7: 3, 8: 4, 9: 4, 64: 4} {
		want := fairParams{latency: 6 * ms * factor, minGran: 750 * us * factor, wakeupGran: ms * factor}
		if got := newFairParams(cores); got != want {
			t.Errorf("%d cores: %v, want %v", cores, got, want)
		}
	}
}

// newQueue returns a queue for one core with a running entity and some that wait, all
// given by nice value, and with vruntime 0.
func newQueue(nices ...int) (*fairQueue, []*entity) {
	q := &fairQueue{params: newFairParams(1)}
	var all []*entity
	for _, nice := range nices {
		e := &entity{weight: niceWeight(nice)}
		q.nr++
		q.weight += e.weight
		q.insert(e)
		all = append(all, e)
	}
	q.pick(nil)
	return q, all
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
		if got := q.slice(all[0]); got != tt.want {
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
		woken := &entity{weight: niceWeight(tt.nice), vruntime: 10 * ms}
		for _, lead := range []sim.Time{-ms, 0, 1, tt.gran, tt.gran + 1, 10 * tt.gran} {
			all[0].vruntime = 10*ms + lead
			if got, want := q.preempts(woken), lead > tt.gran; got != want {
				t.Errorf("nice %d, lead %v: preempts %v", tt.nice, lead, got)
			}
		}
	}
	q, _ := newQueue()
	if q.preempts(&entity{weight: nice0}) {
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
		all[0].prevSum, all[0].sumExec = sim.Second, sim.Second+tt.ran
		all[0].vruntime, all[1].vruntime = tt.lead, 0
		if got := q.tick(); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	q, all := newQueue(0)
	all[0].sumExec = sim.Second
	if q.tick() {
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
		e := &entity{weight: niceWeight(tt.nice), vruntime: tt.own}
		q.enqueue(e, tt.fresh)
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
	q.charge(all[0], 2*ms)
	step("the other one waits at 0", 0)
	all[1].vruntime = 5 * ms
	q.charge(all[0], 2*ms)
	step("the running one is behind", 4*ms)
	q.dequeueCurr(all[0])
	step("it sleeps", 5*ms)
	q.enqueue(all[0], false)
	q.updateMin()
	step("it wakes up with credit", 5*ms)
	if got := all[0].vruntime; got != 4*ms {
		t.Errorf("vruntime %v after a short sleep, want its own 4ms", got)
	}
}

// An entity that goes on begins no new slice; one that is picked after another does.
func TestPickBeginsASlice(t *testing.T) {
	q, all := newQueue(0, 0)
	run := func(e *entity, d sim.Time) {
		e.sumExec += d
		q.charge(e, d)
		q.putCurr(e)
	}
	expect := func(prev, want *entity, slice sim.Time) {
		t.Helper()
		if e := q.pick(prev); e != want || e.prevSum != slice {
			t.Errorf("picked %p with a slice from %v, want %p from %v", e, e.prevSum, want, slice)
		}
	}
	all[1].vruntime = 2 * ms
	run(all[0], ms)
	expect(all[0], all[0], 0)
	run(all[0], 2*ms)
	expect(all[0], all[1], 0)
	run(all[1], 2*ms)
	expect(all[1], all[0], 3*ms)
}

// The queue against the plainest second implementation: a list that is searched for
// the smallest vruntime, of equal ones the first that came.
func TestFairQueueAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := &fairQueue{params: newFairParams(rapid.IntRange(1, 8).Draw(t, "cores"))}
		var waiting, asleep []*entity
		var running *entity
		for i := range rapid.IntRange(1, 12).Draw(t, "entities") {
			nice := rapid.IntRange(-20, 19).Draw(t, "nice")
			asleep = append(asleep, &entity{weight: niceWeight(nice), execStart: sim.Time(i)})
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			before := q.minVR
			switch rapid.SampledFrom([]string{"wake", "run", "switch", "sleep"}).Draw(t, "step") {
			case "wake":
				if len(asleep) > 0 {
					e := asleep[0]
					asleep = asleep[1:]
					q.enqueue(e, rapid.Bool().Draw(t, "fresh"))
					waiting = append(waiting, e)
				}
			case "run":
				if running != nil {
					q.charge(running, sim.Time(rapid.IntRange(0, 8).Draw(t, "ran"))*ms)
				}
			case "sleep":
				if running != nil {
					q.dequeueCurr(running)
					asleep, running = append(asleep, running), nil
				}
			case "switch":
				if running != nil {
					q.putCurr(running)
					waiting, running = append(waiting, running), nil
				}
				best := -1
				for i, e := range waiting {
					if best < 0 || e.vruntime < waiting[best].vruntime {
						best = i
					}
				}
				got := q.pick(nil)
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

func smallestOf(running *entity, waiting []*entity) *entity {
	smallest := running
	for _, e := range waiting {
		if smallest == nil || e.vruntime < smallest.vruntime {
			smallest = e
		}
	}
	return smallest
}
