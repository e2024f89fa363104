package cpu

import (
	"napisim/model"
	"napisim/sim"
)

// A charge is a stage in its low 8 bits, and how often or for how many bytes above.
type charge uint64

// stageWork stands for time charged through Work, in picoseconds.
const stageWork = model.NumStages

func newCharge(s model.Stage, n int64) charge { return charge(n)<<8 | charge(s) }

func (e charge) stage() model.Stage { return model.Stage(e) }

func (e charge) count() int64 { return int64(e >> 8) }

// logSize is how many charges the log holds. Not even a softirq in a task and a hardirq in
// that, with all stages in each, fill it: adding stages must not break that. A power of two
// makes the place of a charge cheap.
const logSize = 512

var _ [logSize - 3*(int(model.NumStages)+1) - 64]struct{}

// ledger counts what is spent, by stage. A charge counts when the look that pays for
// it is over, and not before: numbers read in the middle of a run then do not depend
// on how far code has run ahead of the clock, and eager runs agree with lazy ones.
//
// Charges wait in a log, which is folded into the counts when it is full:
//
//	[0, base)     of interrupted contexts, not paid for yet
//	[base, paid)  paid for, to be folded
//	[paid, n)     of the present context, not paid for yet
type ledger struct {
	log           [logSize]charge
	n, base, paid int
	limit         int // where n needs attention: at once in an eager run
	counts        [model.NumStages + 1]int64
}

// half is how full the log may be once it has been put in order.
const half = logSize / 2

// fold empties the log of what is paid for.
func (l *ledger) fold() {
	for _, e := range l.log[l.base:l.paid] {
		l.counts[e.stage()] += e.count()
	}
	l.n = l.base + copy(l.log[l.base:], l.log[l.paid:l.n])
	l.paid = l.base
}

// tidy makes room: what is paid for is folded, and if that is not enough, charges of
// one stage become one.
func (l *ledger) tidy() {
	l.fold()
	if l.n-l.base <= half/4 {
		return
	}
	var sum [model.NumStages + 1]int64
	for _, e := range l.log[l.base:l.n] {
		sum[e.stage()] += e.count()
	}
	l.n = l.base
	for s, n := range sum {
		if n != 0 {
			l.log[l.n] = newCharge(model.Stage(s), n)
			l.n++
		}
	}
}

// nest puts what is not paid for out of the way of an interrupt; it returns what unnest
// needs when the interrupted context goes on.
func (l *ledger) nest() (outer int) {
	l.tidy()
	outer = l.base
	l.base, l.paid = l.n, l.n
	return outer
}

func (l *ledger) unnest(outer int) {
	l.fold()
	l.base, l.paid = outer, outer
}

// save takes out the charges of interrupted contexts of a task that loses the core in
// them, and load puts them back.
func (l *ledger) save(to []charge) []charge {
	l.fold()
	to = append(to[:0], l.log[:l.base]...)
	l.n, l.base, l.paid = 0, 0, 0
	return to
}

func (l *ledger) load(from []charge) {
	l.fold()
	n := copy(l.log[:], from)
	l.n, l.base, l.paid = n, n, n
}

// total returns the counts with all that is paid for.
func (l *ledger) total() [model.NumStages + 1]int64 {
	all := l.counts
	for _, e := range l.log[l.base:l.paid] {
		all[e.stage()] += e.count()
	}
	return all
}

// price returns what charges cost.
func price(costs *model.Costs, charges []charge) sim.Time {
	var sum sim.Time
	for _, e := range charges {
		if e.stage() == stageWork {
			sum += sim.Time(e.count())
		} else {
			sum += costs[e.stage()] * sim.Time(e.count())
		}
	}
	return sum
}
