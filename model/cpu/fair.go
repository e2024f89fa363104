package cpu

import (
	"math/bits"

	"napisim/sim"
)

// entity is a task in the fair class: struct sched_entity.
type entity struct {
	task      *Task
	weight    int64
	vruntime  sim.Time
	sumExec   sim.Time
	prevSum   sim.Time // sumExec when last picked
	execStart sim.Time // of the clock that updateClock moves
}

// nice0 is the weight of nice 0 (NICE_0_LOAD).
const nice0 = 1024

// niceWeights is sched_prio_to_weight: each step of nice is a factor of about 1.25.
var niceWeights = [40]int64{
	88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916,
	9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277,
	1024, 820, 655, 526, 423, 335, 272, 215, 172, 137,
	110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
}

func niceWeight(nice int) int64 { return niceWeights[min(max(nice, -20), 19)+20] }

// fairParams are the tunables of CFS after scaling with the number of cores
// (kernel/sched/fair.c up to v6.5; SCHED_TUNABLESCALING_LOG).
type fairParams struct {
	latency, minGran, wakeupGran sim.Time
}

// newFairParams scales the base values of 6 ms, 0.75 ms and 1 ms by
// 1 + floor(log2(min(cores, 8))).
func newFairParams(cores int) fairParams {
	f := sim.Time(bits.Len(uint(min(cores, 8))))
	return fairParams{
		latency:    6 * sim.Millisecond * f,
		minGran:    750 * sim.Microsecond * f,
		wakeupGran: 1 * sim.Millisecond * f,
	}
}

// fairQueue is struct cfs_rq. The running entity is not on the queue, as in CFS; a
// core has a handful of tasks, so a slice in order of vruntime serves as the tree.
type fairQueue struct {
	params fairParams
	queue  []*entity
	curr   *entity
	minVR  sim.Time
	weight int64 // of all runnable entities, curr included
	nr     int   // runnable entities, curr included
}

// enqueue adds an entity that wakes up (place_entity): a sleeper's vruntime is
// raised to half a latency below the minimum, so that it gets credit for its sleep but
// not for all of it; a new one starts one slice behind the others.
func (q *fairQueue) enqueue(e *entity, fresh bool) {
	q.nr++
	q.weight += e.weight
	place := q.minVR - q.params.latency/2
	if fresh {
		place = q.minVR + q.slice(e)*nice0/sim.Time(e.weight)
	}
	e.vruntime = max(e.vruntime, place)
	q.insert(e)
}

// insert puts e behind all that have its vruntime or less.
func (q *fairQueue) insert(e *entity) {
	i := len(q.queue)
	for i > 0 && q.queue[i-1].vruntime > e.vruntime {
		i--
	}
	q.queue = append(q.queue, nil)
	copy(q.queue[i+1:], q.queue[i:])
	q.queue[i] = e
}

// putCurr puts the running entity back on the queue (put_prev_entity).
func (q *fairQueue) putCurr(e *entity) {
	q.curr = nil
	q.insert(e)
}

// dequeueCurr takes the running entity off for good: it sleeps.
func (q *fairQueue) dequeueCurr(e *entity) {
	q.nr--
	q.weight -= e.weight
	q.curr = nil
	q.updateMin()
}

// pick takes the leftmost entity and makes it the running one; nil when empty. One
// that just goes on does not begin a new slice.
func (q *fairQueue) pick(prev *entity) *entity {
	if len(q.queue) == 0 {
		return nil
	}
	e := q.queue[0]
	copy(q.queue, q.queue[1:])
	q.queue = q.queue[:len(q.queue)-1]
	q.curr = e
	if e != prev {
		e.prevSum = e.sumExec
	}
	return e
}

// charge adds runtime to the running entity (update_curr).
func (q *fairQueue) charge(e *entity, delta sim.Time) {
	e.vruntime += delta * nice0 / sim.Time(e.weight)
	q.updateMin()
}

// updateMin is update_min_vruntime: the minimum never goes back.
func (q *fairQueue) updateMin() {
	v := q.minVR
	switch {
	case q.curr != nil && len(q.queue) > 0:
		v = min(q.curr.vruntime, q.queue[0].vruntime)
	case q.curr != nil:
		v = q.curr.vruntime
	case len(q.queue) > 0:
		v = q.queue[0].vruntime
	}
	q.minVR = max(q.minVR, v)
}

// slice is sched_slice: the entity's share of a period in which each runnable
// entity runs once. The period stretches beyond 8 entities.
func (q *fairQueue) slice(e *entity) sim.Time {
	period := q.params.latency
	if q.nr > 8 {
		period = sim.Time(q.nr) * q.params.minGran
	}
	return period * sim.Time(e.weight) / sim.Time(q.weight)
}

// preempts is check_preempt_wakeup: a woken entity preempts the running one if it
// is behind by more than the wakeup granularity, scaled by its weight.
func (q *fairQueue) preempts(e *entity) bool {
	if q.curr == nil {
		return false
	}
	return q.curr.vruntime-e.vruntime > q.params.wakeupGran*nice0/sim.Time(e.weight)
}

// tick is check_preempt_tick: it reports whether the running entity has used up
// its slice, or leads the leftmost by more than a slice.
func (q *fairQueue) tick() bool {
	if q.nr < 2 || q.curr == nil || len(q.queue) == 0 {
		return false
	}
	ideal := q.slice(q.curr)
	ran := q.curr.sumExec - q.curr.prevSum
	if ran > ideal {
		return true
	}
	if ran < q.params.minGran {
		return false
	}
	return q.curr.vruntime-q.queue[0].vruntime > ideal
}
