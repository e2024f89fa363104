package fair

import (
	"strings"
	"testing"

	"napisim/sim"

	"pgregory.net/rapid"
)

// eevdf is v6.12 on one CPU: a slice of 0.75 ms, a tick of 4 ms.
var eevdf = Params{Policy: EEVDF, DelayDequeue: true}

// at puts the entities on a queue of EEVDF at given vruntimes, with deadlines one slice
// later; the first one runs.
func queueAt(p Params, vruntimes ...sim.Time) (*Queue, []*Entity) {
	q := New(p, 1, 4*ms)
	var all []*Entity
	for _, v := range vruntimes {
		e := NewEntity(nil, 0)
		e.vruntime, e.deadline = v, v+750*us
		q.add(&e)
		q.insert(&e)
		all = append(all, &e)
	}
	q.remove(all[0])
	q.setNext(all[0])
	return &q, all
}

// Eligible is who is not ahead of the weighted average; the comparison is exact.
func TestEligible(t *testing.T) {
	for _, tt := range []struct {
		vruntimes []sim.Time
		want      []bool
	}{
		{[]sim.Time{5}, []bool{true}},
		{[]sim.Time{5, 5}, []bool{true, true}},
		{[]sim.Time{5, 6}, []bool{true, false}},
		{[]sim.Time{0, 3, 6}, []bool{true, true, false}},
		{[]sim.Time{0, 3, 7}, []bool{true, true, false}}, // the average is 3.33
		{[]sim.Time{0, 3, 5}, []bool{true, false, false}},
		{[]sim.Time{-9, -1, -2}, []bool{true, false, false}},
	} {
		q, all := queueAt(eevdf, tt.vruntimes...)
		for i, e := range all {
			if q.eligible(e) != tt.want[i] {
				t.Errorf("%v: number %d is eligible: %v", tt.vruntimes, i, !tt.want[i])
			}
		}
	}
	// Of weights 1024 and 3121 the heavy one draws the average to itself: 0 and 100 make 75.3.
	q := New(eevdf, 1, 4*ms)
	light, heavy := NewEntity(nil, 0), NewEntity(nil, -5)
	heavy.vruntime = 100
	q.add(&light)
	q.add(&heavy)
	q.insert(&light)
	q.insert(&heavy)
	if got := q.average(); got != 75 {
		t.Errorf("average %d, want 3121*100/4145 = 75", got)
	}
}

// The earliest deadline of the eligible is picked, not the smallest vruntime.
func TestPickEarliestEligibleDeadline(t *testing.T) {
	q, all := queueAt(eevdf, 0, 10*us, 20*us, 90*us)
	q.Block(true) // number 0 is gone, the average is 40 us
	all[2].deadline = 600 * us
	all[3].deadline = 500 * us // the earliest, but not eligible
	q.queue = nil
	for _, e := range all[1:] {
		q.insert(e)
	}
	if q.Pick() != all[2] {
		t.Error("picked another than the eligible one with the earliest deadline")
	}
}

// Correction C5: a waker with positive lag preempts at once, also inside the slice of
// the running task; one without lag does not, whatever the deadlines say.
func TestC5PositiveLagPreemptsInsideTheSlice(t *testing.T) {
	for _, tt := range []struct {
		lag  sim.Time
		want bool
	}{{sim.Nanosecond, true}, {100 * us, true}, {0, false}, {-sim.Nanosecond, false}, {-100 * us, false}} {
		q, _ := queueAt(eevdf, 0)
		q.Charge(10 * us) // of a slice of 750
		sleeper := NewEntity(nil, 0)
		sleeper.lag = tt.lag
		q.Enqueue(&sleeper, false)
		if got := q.Preempts(&sleeper); got != tt.want {
			t.Errorf("lag %v: preempts %v", tt.lag, got)
		}
		if got := q.average() - sleeper.vruntime; got != tt.lag {
			t.Errorf("lag %v before, %v after the placement", tt.lag, got)
		}
	}
}

// RUN_TO_PARITY: an eligible task runs to the deadline that it was picked with, also
// beside one with an earlier deadline. Then the earlier deadline counts.
func TestRunToParity(t *testing.T) {
	q, all := queueAt(eevdf, 0, 600*us)
	all[1].deadline = 700 * us
	if q.Charge(100 * us); q.Pick() != all[0] {
		t.Error("inside the slice, eligible, but not picked again")
	}
	if !q.Charge(650 * us) { // reaches its deadline at 750 us
		t.Error("the deadline is reached and no switch is due")
	}
	if all[0].deadline != 1500*us {
		t.Errorf("the next deadline is %v, want 1.5ms", all[0].deadline)
	}
	if q.Pick() != all[1] {
		t.Error("the other one, at 600 of 675 us, has the earlier deadline and is not picked")
	}
	alone, _ := queueAt(eevdf, 0)
	if alone.Charge(10 * ms) {
		t.Error("a switch is due with nobody to switch to")
	}
}

// The lag that a sleeper keeps is at most two slices or a tick, divided by its weight.
func TestLagIsClamped(t *testing.T) {
	for _, tt := range []struct {
		name  string
		p     Params
		cores int
		tick  sim.Time
		nice  int
		want  sim.Time
	}{
		{"one CPU, HZ 250: a tick", eevdf, 1, 4 * ms, 0, 4 * ms},
		{"one CPU, HZ 1000: two slices", eevdf, 1, ms, 0, 1500 * us},
		{"eight CPUs", eevdf, 8, 4 * ms, 0, 6 * ms},
		{"eight CPUs, v6.17", Params{Policy: EEVDF, BaseSlice: 700 * us}, 8, 4 * ms, 0, 5600 * us},
		{"nice 5", eevdf, 1, 4 * ms, 5, 4 * ms * 1024 / 335},
	} {
		q := New(tt.p, tt.cores, tt.tick)
		e, other := NewEntity(nil, tt.nice), NewEntity(nil, 0)
		other.vruntime = 10 * sim.Second
		for _, x := range []*Entity{&e, &other} {
			q.add(x)
			q.insert(x)
		}
		if got := q.lagOf(&e); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if got := q.lagOf(&other); tt.nice == 0 && got != -tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, -tt.want)
		}
	}
}

// DELAY_DEQUEUE (v6.12): who sleeps ahead of the average stays on the queue. If it is
// picked there it leaves, and what it has gained meanwhile is lost; if it wakes up
// before, it goes on where it was. A task that exits leaves at once.
func TestDelayDequeue(t *testing.T) {
	sleepAhead := func(p Params) (*Queue, []*Entity) {
		q, all := queueAt(p, 0, 0)
		q.Charge(100 * us)
		q.Block(false)
		return q, all
	}
	q, all := sleepAhead(eevdf)
	if !all[0].Delayed() || q.nr != 2 {
		t.Fatal("it is not delayed")
	}
	if q.Pick() != all[1] {
		t.Fatal("the other one does not run")
	}
	q.Charge(60 * us)
	q.Enqueue(all[0], false)
	if all[0].Delayed() || all[0].vruntime != 100*us {
		t.Errorf("woken up, it is at %v, want the 100us at which it fell asleep", all[0].vruntime)
	}

	q, all = sleepAhead(eevdf)
	q.Pick()
	q.Charge(500 * us)
	q.Block(false) // ahead itself
	if q.Pick() != nil || all[0].lag != 0 || all[1].lag != 0 || q.nr != 0 {
		t.Errorf("all sleep, but %d are on the queue, with lags %v and %v", q.nr, all[0].lag, all[1].lag)
	}

	// Woken up behind the average it has lost its gain too, and starts a new slice.
	q, all = sleepAhead(eevdf)
	q.Pick()
	q.Charge(500 * us)
	q.Enqueue(all[0], false)
	if got := q.average() - all[0].vruntime; got != 0 || all[0].deadline != 1250*us {
		t.Errorf("woken up with lag %v and deadline %v, want none and 1.25ms", got, all[0].deadline)
	}

	_, all = sleepAhead(Params{Policy: EEVDF}) // v6.6
	if all[0].Delayed() || all[0].lag != -50*us {
		t.Errorf("v6.6: delayed %v, lag %v, want -50us", all[0].Delayed(), all[0].lag)
	}
	q, all = queueAt(eevdf, 0, 0)
	if q.Charge(100 * us); true {
		q.Block(true)
	}
	if all[0].Delayed() || q.nr != 1 {
		t.Error("a dead task stays")
	}
}

// A new task starts at the average, with half a slice (PLACE_DEADLINE_INITIAL).
func TestEEVDFNewTask(t *testing.T) {
	q, _ := queueAt(eevdf, 100*us, 300*us)
	e := NewEntity(nil, 0)
	q.Enqueue(&e, true)
	if e.vruntime != 200*us || e.deadline != 575*us {
		t.Errorf("at %v with deadline %v, want 200us and 575us", e.vruntime, e.deadline)
	}
}

// A recording of TCP_RR on 6.12: over idle the reader is woken, then ksoftirqd. When the
// reader goes first it runs 14.67 us and ksoftirqd 3.49 us; when ksoftirqd goes first
// it runs 4.68 us and the reader 12.65 us. The order recorded is, again and again,
// three times ksoftirqd and once the reader: its lag of 5.6 us falls by 2.3 us each
// time, and at last it sleeps ahead and keeps none.
func TestC5LagOfKsoftirqdIsUsedUp(t *testing.T) {
	q := New(eevdf, 1, 4*ms)
	reader, ksoftirqd := NewEntity("s", 0), NewEntity("k", 0)
	var order strings.Builder
	for range 12 {
		q.Enqueue(&reader, false)
		q.Enqueue(&ksoftirqd, false)
		first := q.Pick()
		order.WriteString(first.Owner.(string))
		if first == &reader {
			q.Charge(14670 * sim.Nanosecond)
			q.Block(false)
			q.Pick()
			q.Charge(3490 * sim.Nanosecond)
		} else {
			q.Charge(4680 * sim.Nanosecond)
			q.Block(false)
			q.Pick()
			q.Charge(12650 * sim.Nanosecond)
		}
		q.Block(false)
		if q.Pick() != nil {
			t.Fatal("somebody is left")
		}
	}
	if got := order.String(); got != "skkkskkkskkk" {
		t.Errorf("order %s, want skkkskkkskkk", got)
	}
}

// Regularity 4 of section 19.2: the reader is woken in a pass and sets need_resched,
// ksoftirqd is woken when the pass ends. On a busy CPU CFS goes to the reader, which is
// the next buddy, EEVDF to ksoftirqd, which has more lag. Over idle there is no buddy.
func TestR4ReaderOrKsoftirqd(t *testing.T) {
	for _, tt := range []struct {
		p    Params
		busy bool
		want string
	}{
		{Params{}, true, "reader"},
		{Params{}, false, "ksoftirqd"},
		{eevdf, true, "ksoftirqd"},
		{eevdf, false, "ksoftirqd"},
	} {
		q := New(tt.p, 1, 4*ms)
		task, reader, ksoftirqd := NewEntity("task", 0), NewEntity("reader", 0), NewEntity("ksoftirqd", 0)
		q.Enqueue(&task, false)
		q.Pick()
		q.Charge(100 * ms)
		reader.vruntime, ksoftirqd.vruntime = 98500*us, 98000*us // CFS: both more than 1 ms behind
		reader.lag, ksoftirqd.lag = 10*us, 300*us                // EEVDF
		if !tt.busy {
			q.Block(false)
			q.Pick()
		}
		q.Enqueue(&reader, false)
		if tt.busy && !q.Preempts(&reader) {
			t.Errorf("%+v: the reader does not preempt", tt.p)
		}
		q.Enqueue(&ksoftirqd, false) // need_resched is set: nobody asks whether it preempts
		if got := q.Pick().Owner; got != tt.want {
			t.Errorf("%+v, busy %v: %s is next, want %s", tt.p, tt.busy, got, tt.want)
		}
	}
}

// The next buddy goes first only within the wakeup granularity of the leftmost.
func TestNextBuddyIsNotUnfair(t *testing.T) {
	for _, tt := range []struct {
		behind sim.Time
		want   int
	}{{ms, 1}, {ms + 1, 2}} {
		q, all := newQueue(0, 0, 0)
		all[0].vruntime = 10 * ms
		all[1].vruntime = 5 * ms
		all[2].vruntime = 5*ms - tt.behind
		q.queue = nil
		q.insert(all[1])
		q.insert(all[2])
		if !q.Preempts(all[1]) {
			t.Fatal("it does not preempt")
		}
		if q.Pick() != all[tt.want] {
			t.Errorf("%v behind the buddy: number %d is not picked", tt.behind, tt.want)
		}
	}
}

// Whatever happens: the books are right, who is picked is eligible, and nobody who is
// eligible has an earlier deadline, unless the one that runs goes on.
func TestEEVDFInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Params{Policy: EEVDF, DelayDequeue: rapid.Bool().Draw(t, "delay")}
		q := New(p, rapid.IntRange(1, 8).Draw(t, "cores"), 4*ms)
		var ents []*Entity
		asleep := map[*Entity]bool{}
		for range rapid.IntRange(1, 8).Draw(t, "entities") {
			e := NewEntity(nil, rapid.SampledFrom([]int{0, 0, 0, -20, 3, 19}).Draw(t, "nice"))
			ents = append(ents, &e)
			asleep[&e] = true
		}
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"wake", "wake", "run", "switch", "sleep"}).Draw(t, "step") {
			case "wake":
				e := rapid.SampledFrom(ents).Draw(t, "who")
				if !asleep[e] {
					continue
				}
				asleep[e] = false
				q.Enqueue(e, rapid.Bool().Draw(t, "fresh"))
				if q.Preempts(e) && !q.eligible(e) {
					t.Fatal("preempts and is not eligible")
				}
			case "run":
				if q.curr != nil {
					q.Charge(sim.Time(rapid.IntRange(0, 2000).Draw(t, "ran")) * us)
				}
			case "sleep":
				if q.curr == nil {
					continue
				}
				asleep[q.curr] = true
				q.Block(false)
				q.Pick()
			case "switch":
				curr := q.curr
				e := q.Pick()
				if (e == nil) != (q.nr == 0) {
					t.Fatalf("picked %v of %d", e, q.nr)
				}
				if e == nil {
					continue
				}
				if asleep[e] || !q.eligible(e) {
					t.Fatal("picked one that sleeps, or is ahead")
				}
				for _, o := range q.queue {
					if e != curr && q.eligible(o) && o.deadline < e.deadline {
						t.Fatal("somebody has an earlier deadline")
					}
				}
			}
			if fault := q.Check(func(e *Entity) bool { return asleep[e] }); fault != "" {
				t.Fatal(fault)
			}
		}
	})
}

// The sets that kernels have.
func TestParse(t *testing.T) {
	for name, want := range map[string]Params{
		"cfs":        {},
		"eevdf_6_6":  {Policy: EEVDF},
		"eevdf_6_12": {Policy: EEVDF, DelayDequeue: true},
		"eevdf_6_17": {Policy: EEVDF, DelayDequeue: true, BaseSlice: 700 * us},
	} {
		got, err := Parse(name)
		if err != nil || got != want || len(got.Validate()) > 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if len(Names()) != 4 {
		t.Errorf("names %v", Names())
	}
	if _, err := Parse("bfs"); err == nil {
		t.Error("bfs is known")
	}
	if faults := (Params{Policy: 2, Latency: -1, BaseSlice: 2 * sim.Second}).Validate(); len(faults) != 3 {
		t.Errorf("faults %v", faults)
	}
}
