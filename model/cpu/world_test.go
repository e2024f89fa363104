package cpu

import (
	"fmt"

	"napisim/model"
	"napisim/sim"
	"napisim/sim/trace"
)

// A world is a machine on which random programs run: tasks that work off items of
// their boxes, a small softirq layer, interrupt lines, timers and devices. Every step
// that makes new work takes from a budget, so that a world comes to rest.
type world struct {
	m      *Machine
	spec   *worldSpec
	budget int
	boxes  []int // items for each task
	seen   int   // items taken
	tasks  []*Task
	soft   []*miniSoftirqs
	lines  []*Line
	timers []*Timer
	hr     []*HRTimer
}

type opKind int

const (
	opSpend opKind = iota
	opWork
	opLook
	opObserve
	opPush
	opSoftirq
	opTimer
	opTimerDel
	opHRTimer
	opHRTimerDel
	opDevice
	opRaise
	opCondResched
	opMightResched
	opIRQ
	opPreempt
	opBH
	opUser
	opNap
	numOps
)

// An op is one step of a program. Sections have a body.
type op struct {
	kind opKind
	n    int
	d    sim.Time
	body []op
}

// String writes a program in a form that tells what failed.
func (o op) String() string {
	names := [...]string{
		"spend", "work", "look", "observe", "push", "softirq", "timer", "del", "hrtimer", "hrdel", "device", "raise",
		"cond", "might", "irqoff", "preemptoff", "bhoff", "user", "nap",
	}
	if o.body != nil {
		return fmt.Sprintf("%s%v", names[o.kind], o.body)
	}
	return fmt.Sprintf("%s(%d,%v)", names[o.kind], o.n, o.d)
}

// worldSpec is what a world is built from.
type worldSpec struct {
	Config  Config
	Defer   bool // softirqs are left to a ksoftirqd that is running
	Budget  int
	Tasks   []taskSpec
	Softirq []op // run by every vector but TIMER
	Lines   []lineSpec
	Timers  []lineSpec
	HR      []lineSpec // HRTimers
	Devices []deviceSpec
	Audits  []sim.Time
	Cuts    []sim.Time // when all numbers are read, in the middle of the run
}

type taskSpec struct {
	Core    int
	Config  TaskConfig
	Program []op // run for each item; once if OneShot
	OneShot bool
	Yield   bool
	Items   int // in the box at the start
}

type lineSpec struct {
	Core    int
	Program []op
}

// deviceSpec interrupts at fixed instants, on one line or, at the same instant, on two.
type deviceSpec struct {
	First, Gap sim.Time
	Count      int
	Line, Also int
}

func newWorld(spec *worldSpec, eng *sim.Engine) *world {
	w := &world{spec: spec, budget: spec.Budget, boxes: make([]int, len(spec.Tasks))}
	w.m = NewMachine(eng, spec.Config)
	w.m.Trace = trace.NewLog(0, sim.Never, 1<<20)
	for _, c := range w.m.Cores {
		s := &miniSoftirqs{w: w, c: c}
		s.ksoftirqd = w.m.NewTask(c, fmt.Sprintf("ksoftirqd/%d", c.ID), TaskConfig{}, s.run)
		w.soft = append(w.soft, s)
		c.SetSoftirqs(s)
	}
	for i, spec := range spec.Lines {
		l := w.m.Cores[spec.Core].NewLine(30+i, fmt.Sprintf("dev%d", i), func(c *Core) { w.exec(c, nil, spec.Program) })
		w.lines = append(w.lines, l)
	}
	for _, spec := range spec.Timers {
		w.timers = append(w.timers, w.m.Cores[spec.Core].NewTimer(func(c *Core) { w.exec(c, nil, spec.Program) }))
	}
	for _, spec := range spec.HR {
		w.hr = append(w.hr, w.m.Cores[spec.Core].NewHRTimer(func(c *Core) { w.exec(c, nil, spec.Program) }))
	}
	for i, spec := range spec.Tasks {
		t := w.m.NewTask(w.m.Cores[spec.Core], fmt.Sprintf("task%d", i), spec.Config, func(t *Task) { w.task(t, i) })
		w.tasks = append(w.tasks, t)
		if !spec.OneShot {
			w.boxes[i] = spec.Items
		}
		t.WakeFromDevice()
	}
	for _, spec := range spec.Devices {
		for n := range spec.Count {
			at(w.m, spec.First+sim.Time(n)*spec.Gap, func() {
				w.lines[spec.Line].Raise()
				w.lines[spec.Also].Raise()
			})
		}
	}
	return w
}

// task is the life of task i.
func (w *world) task(t *Task, i int) {
	c := t.Core()
	spec := &w.spec.Tasks[i]
	if spec.OneShot {
		w.exec(c, t, spec.Program)
		return
	}
	for {
		c.Look()
		if w.boxes[i] == 0 {
			t.Sleep()
			continue
		}
		w.boxes[i]--
		w.seen++
		w.exec(c, t, spec.Program)
		if spec.Yield {
			c.CondResched()
		}
	}
}

// pay takes one unit of the budget; the caller has looked.
func (w *world) pay() bool {
	if w.budget == 0 {
		return false
	}
	w.budget--
	return true
}

// exec runs a program on a core; t is nil in interrupts.
func (w *world) exec(c *Core, t *Task, ops []op) {
	for _, o := range ops {
		switch o.kind {
		case opSpend:
			c.SpendN(model.Stage(o.n%int(model.NumStages)), 1+o.n%3)
		case opWork:
			c.Work(o.d)
		case opLook:
			c.Look()
		case opObserve:
			w.observe(c)
		case opPush:
			w.push(c, o.n%len(w.boxes))
		case opSoftirq:
			w.soft[c.ID].raise(1 << (1 + o.n%2))
		case opTimer:
			if c.Look(); len(w.timers) > 0 && w.pay() {
				w.timers[o.n%len(w.timers)].Mod(c.Now() + o.d)
			}
		case opTimerDel:
			if c.Look(); len(w.timers) > 0 {
				w.timers[o.n%len(w.timers)].Del()
			}
		case opHRTimer:
			if c.Look(); len(w.hr) > 0 && w.pay() {
				w.hr[o.n%len(w.hr)].Start(c.Now() + o.d)
			}
		case opHRTimerDel:
			if c.Look(); len(w.hr) > 0 {
				w.hr[o.n%len(w.hr)].Cancel()
			}
		case opDevice:
			if c.Look(); w.pay() {
				at(w.m, c.Now()+o.d, w.lines[o.n%len(w.lines)].Raise)
			}
		case opRaise:
			if c.Look(); w.pay() {
				w.lines[o.n%len(w.lines)].Raise()
			}
		case opCondResched:
			c.CondResched()
		case opMightResched:
			c.MightResched()
		default:
			w.section(c, t, o)
		}
	}
}

func (w *world) section(c *Core, t *Task, o op) {
	switch o.kind {
	case opIRQ:
		off := c.IRQSave()
		w.exec(c, t, o.body)
		c.IRQRestore(off)
	case opPreempt:
		c.PreemptDisable()
		w.exec(c, t, o.body)
		c.PreemptEnable()
	case opBH:
		if c.PreemptRT() && c.preemptOff > 0 {
			return // waiting for the lock while atomic is a fault
		}
		c.BHDisable()
		w.exec(c, t, o.body)
		c.BHEnable()
	case opUser:
		if t == nil || c.InInterrupt() || c.preemptOff > 0 || c.irqsOff {
			return
		}
		t.ToUser()
		c.Work(o.d)
		t.ToKernel()
	case opNap:
		if t == nil || c.InInterrupt() || c.preemptOff > 0 || c.irqsOff {
			return
		}
		c.Look()
		t.SleepUntil(c.Now() + o.d)
	default:
		panic("unknown op")
	}
}

// observe mixes all that a look shows into the fingerprint.
func (w *world) observe(c *Core) {
	c.Look()
	h := w.m.Jiffies()*1000 + int64(w.seen)*31 + int64(w.budget)*17
	for i, n := range w.boxes {
		h = h*31 + int64(n)*7
		if w.tasks[i].Runnable() {
			h++
		}
	}
	if c.NeedResched() {
		h = -h
	}
	c.Mix(trace.KfreeSKB, h)
}

// push makes an item for a task and wakes it.
func (w *world) push(c *Core, to int) {
	c.Look()
	if w.spec.Tasks[to].OneShot || !w.pay() {
		return
	}
	w.boxes[to]++
	c.Spend(model.StageSockWakeup)
	c.Wake(w.tasks[to])
}

// miniSoftirqs is kernel/softirq.c in miniature: vector 0 is TIMER, three passes and
// a due switch are the limits, the rest is left to a ksoftirqd.
type miniSoftirqs struct {
	w         *world
	c         *Core
	pending   uint
	ksoftirqd *Task
}

func (s *miniSoftirqs) Pending() bool { return s.pending != 0 }

func (s *miniSoftirqs) RaiseTimer() { s.pending |= 1 }

func (s *miniSoftirqs) RaiseHRTimer() { s.pending |= 8 }

func (s *miniSoftirqs) InvokeSoftirq() {
	if s.c.ForcedThreaded() {
		if !s.c.BHLocked() {
			s.c.Wake(s.ksoftirqd)
		}
		return
	}
	s.invoke()
}

func (s *miniSoftirqs) invoke() {
	if !s.w.spec.Defer || !s.ksoftirqd.Runnable() {
		s.loop(Softirq)
	}
	s.c.Spend(model.StageSoftirqExit) // also where ksoftirqd has to do it
}

func (s *miniSoftirqs) DoSoftirq() {
	off := s.c.IRQSave()
	if s.pending != 0 {
		s.invoke()
	}
	s.c.IRQRestore(off)
}

// raise is raise_softirq.
func (s *miniSoftirqs) raise(vec uint) {
	off := s.c.IRQSave()
	s.c.Look()
	if s.w.pay() {
		s.pending |= vec
		if !s.c.InInterrupt() && !s.c.BHLocked() {
			s.c.Wake(s.ksoftirqd)
		}
	}
	s.c.IRQRestore(off)
}

func (s *miniSoftirqs) loop(x Context) {
	c := s.c
	prev, entered := c.BeginSoftirq(x)
	for restarts := 3; ; {
		c.Spend(model.StageSoftirqEntry)
		c.Look()
		pending := s.pending
		s.pending = 0
		c.IRQEnable()
		for v := range 4 {
			switch {
			case pending>>v&1 == 0:
			case v == 0:
				c.RunTimers()
			case v == 3:
				c.RunHRTimers()
			default:
				s.w.exec(c, nil, s.w.spec.Softirq)
			}
		}
		c.IRQDisable()
		if s.pending == 0 {
			break
		}
		if restarts--; restarts == 0 || c.NeedResched() {
			c.Wake(s.ksoftirqd)
			break
		}
	}
	c.Spend(model.StageSoftirqExit)
	c.EndSoftirq(prev, entered)
}

// run is run_ksoftirqd.
func (s *miniSoftirqs) run(t *Task) {
	c := s.c
	c.Enter(Ksoftirqd)
	for {
		if c.Look(); s.pending == 0 {
			t.Sleep()
			continue
		}
		c.KsoftirqdRunBegin()
		if s.pending != 0 {
			s.loop(Ksoftirqd)
		}
		c.KsoftirqdRunEnd()
		c.CondResched()
	}
}
