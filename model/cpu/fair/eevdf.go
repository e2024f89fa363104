package fair

import "napisim/sim"

// This file is EEVDF (kernel/sched/fair.c from v6.6).

func byDeadline(e *Entity) sim.Time { return e.deadline }

// sums returns what the weighted average of the vruntimes on the queue is made of
// (cfs_rq's avg_vruntime and avg_load): the load, and the sum of all weighted distances
// from base, the vruntime of one of them.
func (q *Queue) sums() (base, sum sim.Time, load int64) {
	if q.curr != nil {
		base, load = q.curr.vruntime, q.curr.weight
	} else if len(q.queue) > 0 {
		base = q.queue[0].vruntime
	}
	for _, e := range q.queue {
		sum += (e.vruntime - base) * sim.Time(e.weight)
		load += e.weight
	}
	return base, sum, load
}

// average is avg_vruntime, rounded down; the minimum where the queue is empty.
func (q *Queue) average() sim.Time {
	base, sum, load := q.sums()
	if load == 0 {
		return q.minVR
	}
	return base + floorDiv(sum, sim.Time(load))
}

func floorDiv(a, b sim.Time) sim.Time {
	d := a / b
	if a%b < 0 {
		d--
	}
	return d
}

// eligible is entity_eligible: the entity on the queue is not ahead of the average.
// It compares without rounding.
func (q *Queue) eligible(e *Entity) bool {
	base, sum, load := q.sums()
	return sum >= (e.vruntime-base)*sim.Time(load)
}

// lagOf is update_entity_lag: how far the entity is behind the average, at most two
// slices or a tick.
func (q *Queue) lagOf(e *Entity) sim.Time {
	limit := e.virtual(max(2*q.params.BaseSlice, q.params.tick))
	return min(max(q.average()-e.vruntime, -limit), limit)
}

// chargedEEVDF is update_deadline: at its deadline an entity has used up its request
// and begins another; with others on the queue a switch is due.
func chargedEEVDF(q *Queue, e *Entity) bool {
	if e.vruntime < e.deadline {
		return false
	}
	e.deadline = e.vruntime + e.virtual(q.params.BaseSlice)
	return q.nr > 1
}

// placeEEVDF is place_entity: the entity comes back as far behind the average as it
// left (PLACE_LAG). As its coming moves the average, its lag is made larger before by
// as much as it would shrink.
func placeEEVDF(q *Queue, e *Entity, fresh bool) {
	v := q.average()
	if q.nr > 0 && !fresh {
		_, _, load := q.sums()
		v -= e.lag * sim.Time(load+e.weight) / sim.Time(load)
	}
	e.vruntime = v
	slice := e.virtual(q.params.BaseSlice)
	if fresh {
		slice /= 2 // PLACE_DEADLINE_INITIAL
	}
	e.deadline = v + slice
}

// requeueDelayed is requeue_delayed_entity: an entity wakes up that never left the
// queue. If it is behind the average by now it loses that (DELAY_ZERO).
func (q *Queue) requeueDelayed(e *Entity) {
	e.delayed = false
	if q.lagOf(e) <= 0 {
		return
	}
	q.dequeue(e)
	e.lag = 0
	placeEEVDF(q, e, false)
	q.add(e)
	q.insert(e)
}

// pickEEVDF is pick_eevdf: the earliest deadline of all that are eligible. The running
// entity goes on while it is eligible and has not reached the deadline that it had
// when it was picked (RUN_TO_PARITY).
func (q *Queue) pickEEVDF() *Entity {
	curr := q.curr
	if q.nr == 1 {
		if curr != nil {
			return curr
		}
		return q.queue[0]
	}
	if curr != nil && !q.eligible(curr) {
		curr = nil
	}
	if curr != nil && curr.picked == curr.deadline {
		return curr
	}
	for _, e := range q.queue {
		if q.eligible(e) {
			if curr != nil && curr.deadline < e.deadline {
				return curr
			}
			return e
		}
	}
	return curr
}

// preemptsEEVDF is check_preempt_wakeup_fair: the woken entity would be picked.
func preemptsEEVDF(q *Queue, e *Entity) bool { return q.pickEEVDF() == e }

// tickEEVDF: a tick does no more than charge.
func tickEEVDF(*Queue) bool { return false }
