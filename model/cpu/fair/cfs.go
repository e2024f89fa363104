package fair

import "napisim/sim"

// This file is CFS (kernel/sched/fair.c up to v6.5).

func byVRuntime(e *Entity) sim.Time { return e.vruntime }

func chargedCFS(*Queue, *Entity) bool { return false }

// placeCFS is place_entity: a sleeper's vruntime is raised to half a latency below
// the minimum (GENTLE_FAIR_SLEEPERS), so that it gets credit for its sleep but not
// for all of it; a new one starts one slice behind the others (START_DEBIT).
func placeCFS(q *Queue, e *Entity, fresh bool) {
	place := q.minVR - q.params.Latency/2
	if fresh {
		place = q.minVR + e.virtual(q.slice(e, true))
	}
	e.vruntime = max(e.vruntime, place)
}

// slice is sched_slice: the entity's share of a period in which each runnable
// entity runs once. The period stretches beyond 8 entities. One that comes onto the
// queue is not counted yet.
func (q *Queue) slice(e *Entity, comes bool) sim.Time {
	nr, weight := q.nr, q.weight
	if comes {
		nr, weight = nr+1, weight+e.weight
	}
	period := q.params.Latency
	if nr > 8 {
		period = sim.Time(nr) * q.params.MinGranularity
	}
	return period * sim.Time(e.weight) / sim.Time(weight)
}

// lags reports whether a is behind b by more than the wakeup granularity of the one
// behind, scaled by its weight (wakeup_preempt_entity).
func (q *Queue) lags(a, b *Entity) bool {
	return b.vruntime-a.vruntime > a.virtual(q.params.WakeupGranularity)
}

// pickCFS is pick_next_entity: the smallest vruntime, unless a task that has
// preempted by waking up (the next buddy) is not too far ahead of it. The running
// entity comes after a waiting one with the same vruntime.
func pickCFS(q *Queue) *Entity {
	left := q.curr
	if len(q.queue) > 0 && (left == nil || q.queue[0].vruntime <= left.vruntime) {
		left = q.queue[0]
	}
	if q.next != nil && !q.lags(left, q.next) {
		return q.next
	}
	return left
}

// preemptsCFS is check_preempt_wakeup: a woken entity preempts the running one if it
// is behind by more than the wakeup granularity. It is then also the next buddy.
func preemptsCFS(q *Queue, e *Entity) bool {
	if !q.lags(e, q.curr) {
		return false
	}
	q.next = e
	return true
}

// tickCFS is check_preempt_tick: it reports whether the running entity has used up
// its slice, or leads the leftmost by more than a slice.
func tickCFS(q *Queue) bool {
	ideal := q.slice(q.curr, false)
	ran := q.curr.Ran - q.curr.prevRan
	if ran > ideal {
		return true
	}
	if ran < q.params.MinGranularity || len(q.queue) == 0 {
		return false
	}
	return q.curr.vruntime-q.queue[0].vruntime > ideal
}
