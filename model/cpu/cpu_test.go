package cpu

import (
	"fmt"
	"testing"

	"napisim/sim"

	"github.com/google/go-cmp/cmp"
)

const ms = sim.Millisecond

// phaseDevice is the phase of what tests do as devices.
const phaseDevice sim.Phase = 10

// modes are the ways of running that have to agree.
var modes = []struct {
	name string
	mode sim.Mode
}{{"lazy", sim.Lazy}, {"eager", sim.Eager}, {"slow", sim.Slow}}

// A device is a function that the engine calls.
type device func()

func (d device) Fire(uint64) { d() }

// at lets a device act at an instant.
func at(m *Machine, t sim.Time, act func()) {
	m.eng.Schedule(t, phaseDevice, device(act), 0)
}

// newMachine builds one core at HZ 250 that does everything in no time; edit changes
// the configuration.
func newMachine(mode sim.Mode, edit func(*Config)) *Machine {
	cfg := Config{Cores: 1, HZ: 250}
	if edit != nil {
		edit(&cfg)
	}
	if faults := cfg.Validate(); len(faults) > 0 {
		panic(fmt.Sprint(faults))
	}
	return NewMachine(sim.NewEngine(mode), cfg)
}

// start makes a task that starts as soon as the core takes its interrupt.
func start(c *Core, name string, cfg TaskConfig, body func(*Task)) *Task {
	t := c.m.NewTask(c, name, cfg, body)
	t.WakeFromDevice()
	return t
}

// hog computes in user mode for ever.
func hog(t *Task) {
	t.ToUser()
	for {
		t.Core().Work(10 * sim.Millisecond)
		t.Core().Look()
	}
}

// run runs until an instant, or until nothing is left to do, and checks the books.
func run(t *testing.T, m *Machine, until sim.Time) {
	t.Helper()
	m.eng.Schedule(until, 255, device(m.eng.Stop), 0)
	defer m.eng.Close()
	m.eng.Run()
	checkBooks(t, m)
}

// checkBooks settles all cores at the present instant and holds their books against
// each other.
func checkBooks(t interface {
	Helper()
	Errorf(format string, args ...any)
}, m *Machine,
) {
	t.Helper()
	for _, c := range m.Cores {
		c.Settle()
		if err := c.Check(); err != nil {
			t.Errorf("at %v: %v", m.eng.Now(), err)
		}
	}
}

// A journal is what happened when, one line for each event.
type journal struct {
	m     *Machine
	from  sim.Time // counts as zero
	lines []string
}

func (j *journal) note(format string, args ...any) {
	j.lines = append(j.lines, fmt.Sprintf("%v ", j.m.eng.Now()-j.from)+fmt.Sprintf(format, args...))
}

func (j *journal) expect(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, j.lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// eachMode runs a test in all modes.
func eachMode(t *testing.T, test func(t *testing.T, mode sim.Mode)) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) { test(t, m.mode) })
	}
}

func TestValidate(t *testing.T) {
	good := Config{Cores: MaxCores, HZ: 1000, Preempt: PreemptFull, TickPhase: sim.Millisecond - 1}
	if faults := good.Validate(); len(faults) > 0 {
		t.Errorf("good configuration: %v", faults)
	}
	bad := Config{Cores: 65, HZ: 250, Preempt: 4, TickPhase: 4 * sim.Millisecond, IPILatency: -1}
	bad.Costs[0] = -1
	if faults := bad.Validate(); len(faults) != 5 {
		t.Errorf("%d faults, want 5: %v", len(faults), faults)
	}
	if faults := (&Config{}).Validate(); len(faults) != 2 {
		t.Errorf("zero configuration has %d faults, want cpus and hz: %v", len(faults), faults)
	}
	if faults := (TaskConfig{Nice: -21, FIFO: 100}).Validate(); len(faults) != 2 {
		t.Errorf("%d faults of a task, want 2: %v", len(faults), faults)
	}
}

func TestPreemptionNames(t *testing.T) {
	for p := PreemptNone; p <= PreemptFull; p++ {
		if got, err := ParsePreemption(p.String()); got != p || err != nil {
			t.Errorf("%v parses as %v, %v", p, got, err)
		}
	}
	if _, err := ParsePreemption("rt"); err == nil {
		t.Error("rt is accepted")
	}
}
