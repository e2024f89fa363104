package fair

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"napisim/sim"
)

// clockBeforeSwitch is how much earlier __schedule reads the clock of the runqueue
// than sched_switch is recorded, compared with the same distance at sched_wakeup: in
// these recordings an instruction takes 1 ns, and dequeueing and picking lie between.
const clockBeforeSwitch = 1500

// A tally counts what was predicted.
type tally struct {
	idle, idleRight int // wakeups over idle
	wake, wakeRight int // wakeups over a task
	pick, pickRight int // switches where somebody waited
}

func (a *tally) add(b tally) {
	a.idle += b.idle
	a.idleRight += b.idleRight
	a.wake += b.wake
	a.wakeRight += b.wakeRight
	a.pick += b.pick
	a.pickRight += b.pickRight
}

// A replay feeds a recorded history to a queue: who slept, who woke up and when, and
// who ran. It predicts need_resched at each wakeup and the next task at each switch,
// and goes on from what was recorded.
//
// It does not know the lag or vruntime of tasks that slept when the recording began,
// nor when tasks were forked. While such a task is on the queue nothing is counted,
// unless it has run so long since that this cannot matter any more.
type replay struct {
	q     Queue
	ents  []Entity
	on    []bool // runnable
	known []bool // placed by what was seen
	cur   int    // -1 before the first switch
	last  int64
	need  bool
	tally
}

func newReplay(p Params, r *recording) *replay {
	n := len(r.names)
	v := &replay{q: New(p, 1, 4*ms), ents: make([]Entity, n), on: make([]bool, n), known: make([]bool, n), cur: -1}
	for i := range v.ents {
		v.ents[i] = NewEntity(i, 0)
	}
	return v
}

// charge brings the running entity up to date, as update_curr does.
func (v *replay) charge(at int64) {
	if v.cur > 0 && v.q.Charge(sim.Time(at-v.last)*sim.Nanosecond) {
		v.need = true
	}
	v.last = at
}

// force makes an entity the running one.
func (v *replay) force(e *Entity) {
	if e != v.q.curr {
		v.q.Release()
		v.q.remove(e)
		v.q.setNext(e)
	}
}

func (v *replay) enqueue(task int) {
	if v.q.nr == 0 || v.q.params.Policy == CFS {
		v.known[task] = true // alone it has no lag; and CFS forgets about long sleeps
	}
	v.q.Enqueue(&v.ents[task], false)
	v.on[task] = true
}

// appear queues a task that runs next although nobody has seen it wake up: it was
// forked or waited from the beginning. That it is picked says that nobody is before it.
func (v *replay) appear(task int) {
	v.enqueue(task)
	e := &v.ents[task]
	for _, other := range v.q.queue {
		e.vruntime = min(e.vruntime, other.vruntime)
	}
	if v.q.curr != nil {
		e.vruntime = min(e.vruntime, v.q.curr.vruntime)
	}
	v.q.remove(e)
	v.q.insert(e)
}

// sure reports whether the placement of all on the queue is known.
func (v *replay) sure() bool {
	for task, on := range v.on {
		if on && !v.known[task] && v.ents[task].Ran < 4*ms {
			return false
		}
	}
	return true
}

func (v *replay) wakeup(e event) {
	if v.cur < 0 || v.on[e.task] {
		return
	}
	if v.ents[e.task].Delayed() {
		v.enqueue(e.task) // before the running entity is brought up to date
		v.charge(e.at)
	} else {
		v.charge(e.at)
		v.enqueue(e.task)
	}
	if v.cur == 0 || !v.need && v.q.Preempts(&v.ents[e.task]) {
		v.need = true
	}
	right := 0
	if v.need == e.need {
		right = 1
	}
	switch {
	case v.cur == 0:
		v.idle++
		v.idleRight += right
	case v.sure():
		v.wake++
		v.wakeRight += right
	}
	v.need = e.need
}

func (v *replay) switches(e event) {
	at := e.at - clockBeforeSwitch
	if v.cur < 0 && e.task > 0 {
		v.enqueue(e.task)
		v.force(&v.ents[e.task])
		v.last = at
	}
	v.cur = e.task
	v.charge(at)
	if e.task > 0 && e.state != 'R' {
		v.q.Block(e.state == 'X' || e.state == 'Z')
		v.on[e.task], v.known[e.task] = false, true
	}
	seen := e.next == 0 || v.on[e.next]
	if !seen {
		v.appear(e.next)
	}
	waiting := v.q.Waiting() > 0
	picked := 0
	if p := v.q.Pick(); p != nil {
		picked = p.Owner.(int)
	}
	if seen && waiting && v.sure() {
		v.pick++
		if picked == e.next {
			v.pickRight++
		}
	}
	if e.next == 0 {
		v.q.Release()
	} else {
		v.force(&v.ents[e.next])
	}
	v.cur, v.need, v.last = e.next, false, at
}

func (v *replay) run(r *recording) tally {
	for _, e := range r.events {
		switch {
		case e.kind == 'w':
			v.wakeup(e)
		case e.kind == 's':
			v.switches(e)
		case v.cur > 0: // a tick
			v.charge(e.at)
			v.need = v.q.Tick() || v.need
		}
	}
	return v.tally
}

// replayAll replays the recordings of one kernel.
func replayAll(t *testing.T, kernel string, p Params) tally {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", kernel+"-*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings of %s: %v", kernel, err)
	}
	var all tally
	for _, f := range files {
		r := readRecording(t, f)
		got := newReplay(p, r).run(r)
		t.Logf("%-28s %+v", strings.TrimSuffix(filepath.Base(f), ".txt"), fmt.Sprintf("%+v", got))
		all.add(got)
	}
	t.Logf("%s: %+v", kernel, all)
	// Regularity 5 of section 19.2 has no exception.
	if all.idle == 0 || all.idleRight != all.idle {
		t.Errorf("%d of %d wakeups over idle set need_resched", all.idleRight, all.idle)
	}
	return all
}

// expect holds shares of right predictions, in percent, against what they have to be.
func (a tally) expect(t *testing.T, wake, pick float64) {
	t.Helper()
	for _, c := range []struct {
		what    string
		right   int
		of      int
		atLeast float64
	}{{"wakeups", a.wakeRight, a.wake, wake}, {"switches", a.pickRight, a.pick, pick}} {
		if got := 100 * float64(c.right) / float64(c.of); got < c.atLeast {
			t.Errorf("%s: %d of %d right, %.1f %%, want %.1f %%", c.what, c.right, c.of, got, c.atLeast)
		}
	}
}

// Correction C5 of the kernel facts: CFS on 6.1, softirq time charged to the task. Of
// the wrong ones most are near a fork, whose instant is not recorded.
func TestC5ReplayOfCFS(t *testing.T) {
	replayAll(t, "k61", Params{Policy: CFS}).expect(t, 97, 99.3)
}

// Correction C5 of the kernel facts: EEVDF on 6.12. What is wrong comes from lag that
// tasks brought along from before the recording, which lasts until it is used up.
func TestC5ReplayOfEEVDF(t *testing.T) {
	replayAll(t, "k612", Params{Policy: EEVDF, DelayDequeue: true}).expect(t, 95, 98)
}
