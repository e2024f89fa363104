package cpu

import (
	"testing"

	"napisim/model"
	"napisim/sim"
)

// instants collects when something happened.
type instants []sim.Time

func (w *instants) expect(t *testing.T, what string, want ...sim.Time) {
	t.Helper()
	if len(*w) != len(want) {
		t.Errorf("%s: at %v, want %v", what, *w, want)
		return
	}
	for i, at := range *w {
		if at != want[i] {
			t.Errorf("%s: at %v, want %v", what, *w, want)
			return
		}
	}
}

// An hrtimer expires at its instant and not at a tick (ticks are at 1, 5, 9 ms), in
// hardirq context on its core, over a busy core and over an idle one (kernel-facts 2.6:
// the watchdog of a NAPI is such a timer).
func TestHRTimerExpiresAtItsInstant(t *testing.T) {
	for _, busy := range []bool{false, true} {
		eachMode(t, func(t *testing.T, mode sim.Mode) {
			m := ticking(mode, 2)
			c := m.Cores[1]
			if busy {
				start(c, "hog", TaskConfig{}, hog)
			}
			var fired instants
			timer := c.NewHRTimer(func(on *Core) {
				on.Look()
				fired = append(fired, on.Now())
				if on != c || !on.InHardirq() || !on.IRQsDisabled() {
					t.Errorf("on cpu%d, hardirq %v, interrupts off %v", on.ID, on.InHardirq(), on.IRQsDisabled())
				}
			})
			at(m, 2*ms, func() { timer.Start(2*ms + 20*us + 1) })
			at(m, 6*ms, func() { timer.Start(7 * ms); timer.Start(6*ms + 1) }) // moved
			at(m, 8*ms, func() { timer.Start(9 * ms) })
			at(m, 8500*us, func() {
				if !timer.Armed() {
					t.Error("not armed")
				}
				timer.Cancel()
				timer.Cancel()
			})
			at(m, 10*ms, func() { timer.Start(3 * ms) }) // has passed
			run(t, m, 12*ms)
			fired.expect(t, "expired", 2*ms+20*us+1, 6*ms+1, 10*ms)
			if n := c.Stats().HRTimers; n != 3 || timer.Armed() {
				t.Errorf("%d expired, armed %v", n, timer.Armed())
			}
			if n := c.Stats().Ticks; !busy && n != 0 {
				t.Errorf("%d ticks on an idle core", n)
			}
		})
	}
}

// A function may start its timer again: nothing is lost, nothing is rounded.
func TestHRTimerStartsItselfAgain(t *testing.T) {
	m := newMachine(sim.Lazy, func(c *Config) { c.Costs[model.StageHRTimer] = us })
	c := m.Cores[0]
	var fired instants
	var timer *HRTimer
	timer = c.NewHRTimer(func(c *Core) {
		c.Look()
		fired = append(fired, c.Now())
		timer.Start(timer.Expires() + 100*us) // hrtimer_forward
	})
	timer.Start(50 * us)
	run(t, m, 260*us)
	fired.expect(t, "expired", 51*us, 151*us, 251*us) // 1 us of its own cost each time
	if got := c.Spent()[model.StageHRTimer]; got != 3 {
		t.Errorf("charged %d times", got)
	}
	if got := c.Account()[Hardirq]; got != 3*us {
		t.Errorf("%v of hardirq, want 3us", got)
	}
}

// What falls due in the timer interrupt is done in it: the tick first, then timers in
// order of their instants. Ticks are at 1, 5, 9 ms.
func TestOneTimerInterruptForAllThatIsDue(t *testing.T) {
	for seed := range uint64(10) {
		m := NewMachine(sim.NewEngineShuffled(sim.Lazy, seed), Config{Cores: 1, HZ: 250, TickPhase: ms})
		c := m.Cores[0]
		start(c, "hog", TaskConfig{}, hog)
		var order []int
		add := func(n int, when, cost sim.Time) {
			c.NewHRTimer(func(c *Core) {
				c.Look()
				order = append(order, n*10+int(c.Stats().Ticks))
				c.Work(cost)
			}).Start(when)
		}
		add(1, 5*ms, 0)
		add(2, 5*ms, 30*us)
		add(3, 5*ms+20*us, 0) // while the second one runs
		add(4, 5*ms-1, 0)
		run(t, m, 6*ms)
		if want := []int{41, 12, 22, 32}; len(order) != 4 || [4]int(order) != [4]int(want) {
			t.Errorf("order %v, want %v", order, want)
		}
		// The start, the tick of 1 ms, the first timer, and all the rest.
		if n := c.Stats().Interrupts; n != 4 {
			t.Errorf("%d interrupts, want 4", n)
		}
	}
}

// A softirq raised by an hrtimer runs as that interrupt ends.
func TestHRTimerRaisesSoftirq(t *testing.T) {
	m := newMachine(sim.Lazy, nil)
	c := m.Cores[0]
	f := &fakeSoftirqs{c: c}
	c.SetSoftirqs(f)
	var ran instants
	f.work = func() { ran = append(ran, c.Now()) }
	c.NewHRTimer(func(*Core) { f.pending = true }).Start(3 * us)
	run(t, m, ms)
	ran.expect(t, "softirq", 3*us)
}

// An hrtimer sleeper wakes at its instant, also on an idle core, goes on sleeping when
// somebody else wakes it, and with SleepTimeout does not.
func TestSleepUntil(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := ticking(mode, 1)
		c := m.Cores[0]
		var woken instants
		task := start(c, "task", TaskConfig{}, func(task *Task) {
			task.SleepUntil(2*ms + 333*us)
			woken = append(woken, c.Now())
			task.SleepUntil(2 * ms) // has passed
			woken = append(woken, c.Now())
			if task.SleepTimeout(9 * ms) {
				t.Error("expired, but it was woken")
			}
			woken = append(woken, c.Now())
			if !task.SleepTimeout(9 * ms) {
				t.Error("woken, but it expired")
			}
			woken = append(woken, c.Now())
		})
		at(m, ms, task.WakeFromDevice)
		at(m, 4*ms, task.WakeFromDevice)
		run(t, m, 20*ms)
		woken.expect(t, "woken", 2*ms+333*us, 2*ms+333*us, 4*ms, 9*ms)
	})
}

// softirqs is a softirq layer with the HRTIMER vector only; off holds it back.
type softirqs struct {
	c            *Core
	pending, off bool
}

func (s *softirqs) Pending() bool { return s.pending && !s.off }
func (s *softirqs) RaiseTimer()   {}
func (s *softirqs) DoSoftirq()    { s.InvokeSoftirq() }
func (s *softirqs) InvokeSoftirq() {
	prev, entered := s.c.BeginSoftirq(Softirq)
	s.pending = false
	s.c.RunSoftHRTimers()
	s.c.EndSoftirq(prev, entered)
}

// A soft timer expires at its exact instant; the HRTIMER softirq runs its function, at the
// exit of the timer's interrupt. One that is cancelled or moved in between does not run.
func TestSoftHRTimer(t *testing.T) {
	for _, mode := range []sim.Mode{sim.Lazy, sim.Eager, sim.Slow} {
		m := newMachine(mode, func(c *Config) { c.Costs[model.StageHRTimer] = us })
		c := m.Cores[0]
		soft := &softirqs{c: c}
		c.SetSoftirqs(soft)
		c.SetHRTimerSoftirq(func() { soft.pending = true })
		var fired instants
		var timer *SoftHRTimer
		timer = c.NewSoftHRTimer(func(c *Core) {
			c.Look()
			fired = append(fired, c.Now())
			if c.InHardirq() || !c.ServingSoftirq() || timer.Armed() {
				t.Errorf("hardirq %v, softirq %v, armed %v", c.InHardirq(), c.ServingSoftirq(), timer.Armed())
			}
		})
		at(m, 10*us, func() { timer.StartOn(c, 30*us+1) })
		at(m, 100*us, func() { timer.StartOn(c, 200*us) })
		at(m, 150*us, timer.Cancel)
		// Expired, but the softirq is held back: still armed, and then cancelled.
		at(m, 300*us, func() { soft.off = true; timer.StartOn(c, 310*us) })
		at(m, 320*us, func() {
			if !timer.Armed() {
				t.Error("not armed although its function has not run")
			}
			timer.Cancel()
			soft.off = false
		})
		// Expired and started again: it runs once, at the later instant.
		at(m, 400*us, func() { soft.off = true; timer.StartOn(c, 410*us) })
		at(m, 420*us, func() { timer.StartOn(c, 500*us); soft.off = false })
		run(t, m, ms)
		fired.expect(t, "expired", 31*us+1, 501*us)
	}
}
