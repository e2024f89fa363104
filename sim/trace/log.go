package trace

import (
	"cmp"
	"slices"

	"napisim/sim"
)

// Log keeps the events of a window of simulated time. All methods may be called on
// a nil *Log, which records nothing.
type Log struct {
	from, to sim.Time
	limit    int
	points   uint64 // one bit for each Point that is kept
	events   []Event
	lost     []Event // one Lost event for each CPU that lost some
}

// NewLog returns a log of the events in [from, to). It keeps the first limit of
// them and counts the others: the beginning of an overload says more than its end.
func NewLog(from, to sim.Time, limit int) *Log {
	return &Log{from: from, to: to, limit: limit, points: 1<<numPoints - 1}
}

// Select restricts the log to the given points, as set_event does. At 10 Mpps the
// points of single frames fill any log within milliseconds.
func (l *Log) Select(points ...Point) {
	if l == nil {
		return
	}
	l.points = 0
	for _, p := range points {
		l.points |= 1 << p
	}
}

// Recording reports whether an event of this instant would be recorded. A model
// asks before it builds the event.
func (l *Log) Recording(now sim.Time) bool {
	return l != nil && now >= l.from && now < l.to
}

// Emit records e if it lies in the window, is selected and there is room. It reports
// whether e is one of those asked for, which a real tracer pays for.
func (l *Log) Emit(e Event) bool {
	if !l.Recording(e.At) || l.points>>e.Point&1 == 0 {
		return false
	}
	if len(l.events) >= l.limit {
		l.lose(e)
		return true
	}
	l.events = append(l.events, e)
	return true
}

// lose counts e in the Lost event of its CPU, which carries the time of the first
// one lost.
func (l *Log) lose(e Event) {
	for i := range l.lost {
		if l.lost[i].CPU == e.CPU {
			l.lost[i].A++
			return
		}
	}
	l.lost = append(l.lost, Event{At: e.At, Point: Lost, CPU: e.CPU, A: 1})
}

// Events returns what was recorded, in order of time; events of one instant keep
// the order in which they were emitted. A core may run ahead of the others within
// its horizon, so the order of emission alone is not that of time. Where the log
// was full, a Lost event for each CPU stands at the end.
func (l *Log) Events() []Event {
	if l == nil {
		return nil
	}
	byTime := func(a, b Event) int { return cmp.Compare(a.At, b.At) }
	slices.SortStableFunc(l.events, byTime)
	return append(slices.Clip(l.events), l.lost...)
}
