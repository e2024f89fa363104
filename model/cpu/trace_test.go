package cpu

import (
	"fmt"
	"strings"
	"testing"

	"napisim/model"
	"napisim/sim"
	"napisim/sim/trace"

	"github.com/google/go-cmp/cmp"
)

// A story of wakeups and preemption on two cores, as the kernel would trace it. Each
// interrupt takes 1 + 1 us to enter and leave, a switch 2 us, an IPI 1 us on its way.
func TestStory(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := newMachine(mode, func(c *Config) {
			c.Cores = 2
			c.Preempt = PreemptFull
			c.IPILatency = us
			c.TickPhase = 500 * us
			c.Costs[model.StageHardirqEntry] = us
			c.Costs[model.StageHardirqExit] = us
			c.Costs[model.StageContextSwitch] = 2 * us
		})
		m.Trace = trace.NewLog(100*ms, 101*ms, 100)
		c0, c1 := m.Cores[0], m.Cores[1]
		peer := start(c1, "peer", TaskConfig{}, func(task *Task) {
			task.Sleep()
			c1.Work(5 * us)
		})
		reader := start(c0, "reader", TaskConfig{Nice: -5}, func(task *Task) {
			task.Sleep()
			c0.Work(10 * us) // interrupted and preempted
			c0.Wake(peer)
			c0.BHDisable()
			c0.Work(30 * us) // interrupted, but not preempted
			c0.BHEnable()
			c0.Look()
			task.Sleep()
		})
		start(c0, "app", TaskConfig{}, hog)
		urgent := start(c0, "urgent", TaskConfig{FIFO: 50}, func(task *Task) {
			task.Sleep()
			c0.Look()
			task.Sleep()
		})
		rx := c0.NewLine(24, "eth0-rx-0", func(c *Core) { c.Wake(reader) })
		tx := c0.NewLine(25, "eth0-tx-0", func(c *Core) { c.Wake(urgent) })
		at(m, 100*ms, rx.Raise)
		at(m, 100*ms+6*us, tx.Raise)
		at(m, 100*ms+30*us, tx.Raise)
		run(t, m, 200*ms)
		var out strings.Builder
		if err := trace.WriteText(&out, m.Trace.Events()); err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(out.String(), "FUNCTION\n")
		_, got, _ = strings.Cut(got, "\n") // the last line of the header
		if diff := cmp.Diff(story, "\n"+got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

const story = `
             app-14      [000] d.h..     0.100001: irq_handler_entry: irq=24 name=eth0-rx-0
             app-14      [000] dNh3.     0.100001: sched_wakeup: comm=reader pid=13 prio=115 target_cpu=000
             app-14      [000] dNh..     0.100001: irq_handler_exit: irq=24 ret=handled
             app-14      [000] d..2.     0.100004: sched_switch: prev_comm=app prev_pid=14 prev_prio=120 prev_state=R ==> next_comm=reader next_pid=13 next_prio=115
          reader-13      [000] d.h..     0.100007: irq_handler_entry: irq=25 name=eth0-tx-0
          reader-13      [000] dNh3.     0.100007: sched_wakeup: comm=urgent pid=15 prio=49 target_cpu=000
          reader-13      [000] dNh..     0.100007: irq_handler_exit: irq=25 ret=handled
          reader-13      [000] d..2.     0.100010: sched_switch: prev_comm=reader prev_pid=13 prev_prio=115 prev_state=R+ ==> next_comm=urgent next_pid=15 next_prio=49
          urgent-15      [000] d..2.     0.100012: sched_switch: prev_comm=urgent prev_pid=15 prev_prio=49 prev_state=S ==> next_comm=reader next_pid=13 next_prio=115
          <idle>-0       [001] dNh4.     0.100022: sched_wakeup: comm=peer pid=12 prio=120 target_cpu=001
          <idle>-0       [001] d..2.     0.100025: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=peer next_pid=12 next_prio=120
          reader-13      [000] D.h..     0.100031: irq_handler_entry: irq=25 name=eth0-tx-0
          reader-13      [000] DNh3.     0.100031: sched_wakeup: comm=urgent pid=15 prio=49 target_cpu=000
          reader-13      [000] DNh..     0.100031: irq_handler_exit: irq=25 ret=handled
            peer-12      [001] d..2.     0.100032: sched_switch: prev_comm=peer prev_pid=12 prev_prio=120 prev_state=X ==> next_comm=swapper/1 next_pid=0 next_prio=120
          reader-13      [000] d..2.     0.100054: sched_switch: prev_comm=reader prev_pid=13 prev_prio=115 prev_state=R+ ==> next_comm=urgent next_pid=15 next_prio=49
          urgent-15      [000] d..2.     0.100056: sched_switch: prev_comm=urgent prev_pid=15 prev_prio=49 prev_state=X ==> next_comm=reader next_pid=13 next_prio=115
          reader-13      [000] d..2.     0.100058: sched_switch: prev_comm=reader prev_pid=13 prev_prio=115 prev_state=S ==> next_comm=app next_pid=14 next_prio=120
`

// The third flag of a trace line: h over a task, also in a BH-off section; s in the
// softirq loop; H for a hardirq in that loop (kernel-facts C8). Preemption is off in
// the idle task.
func TestTraceContexts(t *testing.T) {
	m := newMachine(sim.Lazy, nil)
	c := m.Cores[0]
	var got []string
	note := func(what string) {
		flags := c.Event(trace.SoftirqRaise).Flags
		got = append(got, fmt.Sprintf("%s: context %d, bh off %v, irqs off %v, depth %d",
			what, flags.Context, flags.BHOff, flags.IRQsOff, flags.PreemptDepth))
	}
	f := &fakeSoftirqs{c: c}
	c.SetSoftirqs(f)
	line := c.NewLine(1, "dev", func(*Core) {
		note("handler")
		f.pending = !c.ServingSoftirq()
	})
	f.work = func() {
		note("softirq")
		line.Raise()
		c.Look()
	}
	start(c, "task", TaskConfig{}, func(*Task) {
		note("task")
		c.PreemptDisable()
		note("atomic")
		c.PreemptEnable()
		c.BHDisable()
		line.Raise()
		c.BHEnable()
	})
	at(m, ms, line.Raise)
	run(t, m, 2*ms)
	want := []string{
		"task: context 0, bh off false, irqs off false, depth 0",
		"atomic: context 0, bh off false, irqs off false, depth 1",
		"handler: context 2, bh off true, irqs off true, depth 0",
		"softirq: context 1, bh off false, irqs off false, depth 0",
		"handler: context 3, bh off false, irqs off true, depth 0",
		"handler: context 2, bh off false, irqs off true, depth 1", // over idle
		"softirq: context 1, bh off false, irqs off false, depth 1",
		"handler: context 3, bh off false, irqs off true, depth 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The timer and the rescheduling interrupt are counted, but not traced as interrupts.
func TestLocalInterruptsAreNotTraced(t *testing.T) {
	m := newMachine(sim.Lazy, nil)
	m.Trace = trace.NewLog(0, sim.Never, 100)
	start(m.Cores[0], "hog", TaskConfig{}, hog)
	run(t, m, 10*ms)
	for _, e := range m.Trace.Events() {
		if e.Point == trace.IRQHandlerEntry || e.Point == trace.IRQHandlerExit {
			t.Errorf("%v of %s", e.Point, e.S)
		}
	}
	if got, want := m.Cores[0].Stats(), (Stats{ContextSwitches: 1, Interrupts: 3, Ticks: 2, IPIs: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
