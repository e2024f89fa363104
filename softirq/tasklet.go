package softirq

// A TaskletStruct is tasklet_struct: a function that runs once, in the TASKLET or HI
// softirq, however often it is scheduled before.
type TaskletStruct struct {
	fn        func()
	scheduled bool // TASKLET_STATE_SCHED
	next      *TaskletStruct
}

// NewTasklet is tasklet_setup: fn is called in softirq context.
func NewTasklet(fn func()) *TaskletStruct { return &TaskletStruct{fn: fn} }

// TaskletSchedule is tasklet_schedule (all versions) on this core: t runs in the next TASKLET
// softirq, unless it is scheduled already.
func (sd *Softnet) TaskletSchedule(t *TaskletStruct) { sd.taskletSchedule(t, &sd.tasklets, Tasklet) }

// TaskletHISchedule is tasklet_hi_schedule (all versions): as TaskletSchedule, in the HI softirq.
func (sd *Softnet) TaskletHISchedule(t *TaskletStruct) { sd.taskletSchedule(t, &sd.hiTasklets, HI) }

func (sd *Softnet) taskletSchedule(t *TaskletStruct, l *taskletList, v Vector) {
	off := sd.core.IRQSave()
	sd.core.Look()
	if !t.scheduled {
		t.scheduled = true
		l.pushBack(t)
		sd.raiseSoftirqIRQOff(v)
	}
	sd.core.IRQRestore(off)
}

// taskletAction is tasklet_action_common, tasklet_action in older versions: it takes the whole
// list and runs each tasklet. One that is scheduled meanwhile, also by itself, runs in the next
// pass.
func (sd *Softnet) taskletAction(l *taskletList) {
	sd.core.IRQDisable()
	list := *l
	*l = taskletList{}
	sd.core.IRQEnable()
	for t := list.head; t != nil; {
		next := t.next
		t.next = nil
		sd.core.Look() // others may schedule it from here on
		t.scheduled = false
		t.fn()
		t = next
	}
}

// taskletList is a FIFO of tasklets linked through themselves.
type taskletList struct{ head, tail *TaskletStruct }

func (l *taskletList) pushBack(t *TaskletStruct) {
	if l.tail == nil {
		l.head = t
	} else {
		l.tail.next = t
	}
	l.tail = t
}
