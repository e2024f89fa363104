package nic

import "napisim/sim"

// Moderation decides when an interrupt reports the completions of one ring. A
// vector shows it each completion since the last restart, in order, and asks when
// the interrupt is due. It learns nothing of the future, as hardware does not.
type Moderation interface {
	// Restart forgets the completions shown so far: they are reported or acknowledged.
	// last is the instant of the vector's last interrupt, long ago if there was none.
	Restart(last sim.Time)
	// Completed shows a completion and returns the instant at which the interrupt is
	// due by what is known now, Never if only more completions can make it due. It is
	// not called for completions at or after an instant that was due.
	Completed(at sim.Time) (due sim.Time)
	// Bound returns a lower bound of the instant that is due in the end, when further
	// completions are expected at next at the earliest, which may be Never, and at
	// least gap apart. A vector that is armed looks again then; a bound that is too
	// low costs time, one that is too high is wrong.
	Bound(next, gap sim.Time) sim.Time
}

// longAgo is the instant of an interrupt that never was.
const longAgo = -sim.Never / 2

// later returns t + d, where Never stays Never.
func later(t, d sim.Time) sim.Time {
	if t >= sim.Never-d {
		return sim.Never
	}
	return t + d
}

// Immediate reports each completion at once: rx-usecs 0, rx-frames 0 or 1.
type Immediate struct {
	due sim.Time
}

// Restart implements Moderation.
func (m *Immediate) Restart(sim.Time) { m.due = sim.Never }

// Completed implements Moderation.
func (m *Immediate) Completed(at sim.Time) sim.Time {
	m.due = at
	return at
}

// Bound implements Moderation.
func (m *Immediate) Bound(next, _ sim.Time) sim.Time { return min(m.due, next) }

// Timer reports Delay after the first completion: rx-usecs of drivers whose timer
// starts with a packet.
type Timer struct {
	Delay sim.Time
	due   sim.Time
}

// Restart implements Moderation.
func (m *Timer) Restart(sim.Time) { m.due = sim.Never }

// Completed implements Moderation.
func (m *Timer) Completed(at sim.Time) sim.Time {
	m.due = min(m.due, later(at, m.Delay))
	return m.due
}

// Bound implements Moderation.
func (m *Timer) Bound(next, _ sim.Time) sim.Time { return min(m.due, later(next, m.Delay)) }

// Throttle reports a completion at once unless the last interrupt is less than Gap
// ago: the interrupt throttling rate of Intel's devices, and the period of mlx5 in
// EQE mode.
type Throttle struct {
	Gap    sim.Time
	opened sim.Time // the last interrupt plus Gap
	due    sim.Time
}

// Restart implements Moderation.
func (m *Throttle) Restart(last sim.Time) { m.opened, m.due = last+m.Gap, sim.Never }

// Completed implements Moderation.
func (m *Throttle) Completed(at sim.Time) sim.Time {
	m.due = max(at, m.opened)
	return m.due
}

// Bound implements Moderation.
func (m *Throttle) Bound(next, _ sim.Time) sim.Time { return min(m.due, max(next, m.opened)) }

// Idle reports when no completion has come for Delay: the timer that each completion
// restarts (ethtool -C cqe-mode-rx on).
type Idle struct {
	Delay sim.Time
	due   sim.Time
}

// Restart implements Moderation.
func (m *Idle) Restart(sim.Time) { m.due = sim.Never }

// Completed implements Moderation.
func (m *Idle) Completed(at sim.Time) sim.Time {
	m.due = later(at, m.Delay)
	return m.due
}

// Bound implements Moderation. A completion that is expected need not come, so what
// is due now counts although that completion would move it.
func (m *Idle) Bound(next, _ sim.Time) sim.Time { return min(m.due, later(next, m.Delay)) }

// Count reports when Frames completions have come: rx-frames alone. What is left
// over from a burst stays unreported until more comes.
type Count struct {
	Frames int
	seen   int
	due    sim.Time
}

// Restart implements Moderation.
func (m *Count) Restart(sim.Time) { m.seen, m.due = 0, sim.Never }

// Completed implements Moderation.
func (m *Count) Completed(at sim.Time) sim.Time {
	if m.seen++; m.seen >= m.Frames {
		m.due = at
	}
	return m.due
}

// Bound implements Moderation.
func (m *Count) Bound(next, gap sim.Time) sim.Time {
	if m.seen >= m.Frames {
		return m.due
	}
	// The rest comes no faster than the shortest frames on a full line.
	return later(next, sim.Time(m.Frames-m.seen-1)*gap)
}

// Either reports when the first of two is due: rx-usecs and rx-frames together.
type Either struct {
	A, B Moderation
}

// Restart implements Moderation.
func (m *Either) Restart(last sim.Time) {
	m.A.Restart(last)
	m.B.Restart(last)
}

// Completed implements Moderation.
func (m *Either) Completed(at sim.Time) sim.Time {
	return min(m.A.Completed(at), m.B.Completed(at))
}

// Bound implements Moderation.
func (m *Either) Bound(next, gap sim.Time) sim.Time {
	return min(m.A.Bound(next, gap), m.B.Bound(next, gap))
}
