package fair

import (
	"napisim/sim"
)

// Entity is a task in the fair class: struct sched_entity.
type Entity struct {
	// Owner is what the entity stands for.
	Owner any
	// Ran is the time that the entity has run (sum_exec_runtime).
	Ran sim.Time

	weight   int64
	vruntime sim.Time
	prevRan  sim.Time // CFS: Ran when last picked

	// EEVDF.
	deadline sim.Time
	lag      sim.Time // of a sleeping entity: how far it was behind the average
	picked   sim.Time // its deadline when it was last picked
	delayed  bool     // it sleeps, but stays on the queue until it is eligible
}

// NewEntity makes an entity of a nice value, -20 to 19.
func NewEntity(owner any, nice int) Entity {
	return Entity{Owner: owner, weight: niceWeight(nice)}
}

// VRuntime returns the entity's virtual runtime.
func (e *Entity) VRuntime() sim.Time { return e.vruntime }

// Delayed reports whether the entity is on the queue although it sleeps.
func (e *Entity) Delayed() bool { return e.delayed }

// virtual converts time to the entity's virtual time (calc_delta_fair).
func (e *Entity) virtual(d sim.Time) sim.Time { return d * nice0 / sim.Time(e.weight) }

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

// Queue is struct cfs_rq. The running entity is not in the list that waits, as in the
// kernel; a core has a handful of tasks, so a slice stands for the tree: in order of
// vruntime for CFS, of deadline for EEVDF.
type Queue struct {
	params scaled
	policy policy
	queue  []*Entity
	curr   *Entity
	next   *Entity // CFS: who preempted by waking up goes next if that is not too unfair
	minVR  sim.Time
	weight int64 // of all entities on the queue, the running one included
	nr     int   // entities on the queue, the running one included
}

// New returns the queue of one core of a machine with that many cores and that tick.
func New(p Params, cores int, tick sim.Time) Queue {
	return Queue{params: p.scale(cores, tick), policy: policies[p.Policy]}
}

// Curr returns the running entity, nil if none of the class runs.
func (q *Queue) Curr() *Entity { return q.curr }

// Charge is update_curr: the running entity has run for d longer. It reports whether
// it has to give the core away for that.
func (q *Queue) Charge(d sim.Time) (resched bool) {
	e := q.curr
	e.Ran += d
	e.vruntime += e.virtual(d)
	resched = q.policy.charged(q, e)
	q.updateMin()
	return resched
}

// Enqueue is enqueue_entity for an entity that wakes up, or is new.
func (q *Queue) Enqueue(e *Entity, fresh bool) {
	if e.delayed {
		q.requeueDelayed(e)
		return
	}
	q.policy.place(q, e, fresh)
	q.add(e)
	q.insert(e)
}

func (q *Queue) add(e *Entity) {
	q.nr++
	q.weight += e.weight
}

// insert puts e behind all that do not come after it.
func (q *Queue) insert(e *Entity) {
	i := len(q.queue)
	for i > 0 && q.policy.key(q.queue[i-1]) > q.policy.key(e) {
		i--
	}
	q.queue = append(q.queue, nil)
	copy(q.queue[i+1:], q.queue[i:])
	q.queue[i] = e
}

func (q *Queue) remove(e *Entity) {
	for i := range q.queue {
		if q.queue[i] == e {
			q.queue = append(q.queue[:i], q.queue[i+1:]...)
			return
		}
	}
}

// Block is dequeue_entity of the running entity, which goes to sleep or, if it exits,
// for good. It may have to stay on the queue for a while, see Delayed.
func (q *Queue) Block(exits bool) {
	e := q.curr
	if q.next == e {
		q.next = nil
	}
	if !exits && q.params.DelayDequeue && !q.eligible(e) {
		e.delayed = true
		return
	}
	q.dequeue(e)
}

// dequeue takes e off for good.
func (q *Queue) dequeue(e *Entity) {
	e.lag = q.lagOf(e)
	q.nr--
	q.weight -= e.weight
	if e == q.curr {
		q.curr = nil
	} else {
		q.remove(e)
	}
	q.updateMin()
}

// Release puts the running entity back: a task of another class goes before it.
func (q *Queue) Release() {
	if e := q.curr; e != nil {
		q.curr = nil
		q.insert(e)
	}
}

// Leave takes a waiting entity off the queue because its task changes to another class,
// Join brings the running one back from there.
func (q *Queue) Leave(e *Entity) {
	if q.next == e {
		q.next = nil
	}
	q.dequeue(e)
	e.vruntime -= q.minVR
}

// Join makes e the running entity; it has as much lag, or is as far from the minimum,
// as when it left.
func (q *Queue) Join(e *Entity) {
	e.vruntime += q.minVR
	if q.params.Policy == EEVDF {
		placeEEVDF(q, e, false)
	}
	q.add(e)
	q.setNext(e)
}

// Pick is pick_next_task_fair: it makes the entity that goes next the running one and
// returns it, or nil if there is none. It can be the one that has run until now.
func (q *Queue) Pick() *Entity {
	for q.nr > 0 {
		e := q.policy.pick(q)
		if e.delayed { // it sleeps, and has now worked off what it owed
			q.dequeue(e)
			e.delayed = false
			e.lag = min(e.lag, 0) // DELAY_ZERO
			continue
		}
		if e != q.curr {
			q.Release()
			q.remove(e)
			q.setNext(e)
		}
		return e
	}
	return nil
}

// setNext is set_next_entity.
func (q *Queue) setNext(e *Entity) {
	q.curr = e
	e.prevRan = e.Ran
	e.picked = e.deadline
	if q.next == e {
		q.next = nil
	}
}

// Preempts is check_preempt_wakeup of an entity that has been enqueued, where no
// task switch is due yet: it reports whether it preempts the running one.
func (q *Queue) Preempts(e *Entity) bool { return q.curr != nil && q.policy.preempts(q, e) }

// Tick is entity_tick after Charge: it reports whether the running entity has to give
// the core away.
func (q *Queue) Tick() bool {
	return q.nr > 1 && q.curr != nil && q.policy.tick(q)
}

// updateMin is update_min_vruntime: the minimum never goes back.
func (q *Queue) updateMin() {
	v, found := sim.Time(0), false
	if q.curr != nil {
		v, found = q.curr.vruntime, true
	}
	for _, e := range q.queue {
		if !found || e.vruntime < v {
			v, found = e.vruntime, true
		}
	}
	if found {
		q.minVR = max(q.minVR, v)
	}
}

// Check returns what is wrong with the queue's books, "" if nothing is. asleep tells
// whether an entity's task sleeps.
func (q *Queue) Check(asleep func(*Entity) bool) string {
	n, weight := 0, int64(0)
	if q.curr != nil {
		n, weight = 1, q.curr.weight
	}
	for i, e := range q.queue {
		n, weight = n+1, weight+e.weight
		switch {
		case i > 0 && q.policy.key(q.queue[i-1]) > q.policy.key(e):
			return "queue out of order"
		case e == q.curr:
			return "the running entity is queued"
		case e.delayed != asleep(e):
			return "an entity is queued and asleep, but not delayed"
		}
	}
	if n != q.nr || weight != q.weight {
		return "entities or their weight are miscounted"
	}
	return ""
}

// Waiting returns how many entities wait, without the running one.
func (q *Queue) Waiting() int { return len(q.queue) }
