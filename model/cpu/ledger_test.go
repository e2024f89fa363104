package cpu

import (
	"testing"

	"napisim/model"
	"napisim/sim"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// naiveLedger is a ledger as its comment says it: a stack of contexts, each with what
// it has not paid for.
type naiveLedger struct {
	paid [model.NumStages + 1]int64
	open [][]charge
}

func (l *naiveLedger) spend(e charge) {
	top := len(l.open) - 1
	l.open[top] = append(l.open[top], e)
}

func (l *naiveLedger) look() {
	top := len(l.open) - 1
	for _, e := range l.open[top] {
		l.paid[e.stage()] += e.count()
	}
	l.open[top] = nil
}

// A ledger counts like the naive one, whatever nests and in however many charges, and
// nothing that is open gets lost.
func TestLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &Core{}
		c.setEager(false)
		for s := range c.costs {
			c.costs[s] = sim.Time(s*s + 1)
		}
		naive := &naiveLedger{open: make([][]charge, 1)}
		var outer []int
		var shelf [][]charge // what a preempted task has open, here and in the naive ledger
		var shelfNaive [][]charge
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch step := rapid.SampledFrom([]string{"spend", "spend", "look", "nest", "unnest", "preempt"}).Draw(t, "step"); {
			case step == "spend":
				for range rapid.SampledFrom([]int{1, 3, 30, 300}).Draw(t, "times") {
					s := model.Stage(rapid.IntRange(0, int(stageWork)).Draw(t, "stage"))
					n := rapid.IntRange(0, 1<<40).Draw(t, "n")
					if s == stageWork {
						c.Work(sim.Time(n))
					} else {
						c.SpendN(s, n)
					}
					naive.spend(newCharge(s, int64(n)))
				}
			case step == "look":
				c.paid = c.n
				naive.look()
			case step == "nest" && len(outer) < 2:
				outer = append(outer, c.nest())
				naive.open = append(naive.open, nil)
			case step == "unnest" && len(outer) > 0:
				c.paid = c.n // the end of an interrupt looks
				naive.look()
				c.unnest(outer[len(outer)-1])
				outer = outer[:len(outer)-1]
				naive.open = naive.open[:len(naive.open)-1]
			case step == "preempt" && len(outer) > 0 && shelf == nil:
				c.paid = c.n
				naive.look()
				shelf = [][]charge{c.save(nil)}
				shelfNaive, naive.open = naive.open, make([][]charge, 1)
				// The other task spends, and comes back with it.
				c.Spend(3)
				naive.spend(newCharge(3, 1))
				c.paid = c.n
				naive.look()
				c.load(shelf[0])
				naive.open = shelfNaive
				shelf = nil
			}
			if diff := cmp.Diff(naive.paid, c.total()); diff != "" {
				t.Fatalf("-naive +ledger:\n%s", diff)
			}
			var open sim.Time
			for _, charges := range naive.open {
				open += price(&c.costs, charges)
			}
			if got := price(&c.costs, c.log[:c.n]) - price(&c.costs, c.log[c.base:c.paid]); got != open {
				t.Fatalf("%v are open, want %v", got, open)
			}
		}
	})
}

// Align brings a core that is in the middle of its charges to its next look, where a
// lazy one is, and from there on it pays at once again.
func TestAlign(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := interruptible(mode)
		c := m.Cores[0]
		j := &journal{m: m}
		steps := 0
		line := c.NewLine(1, "dev", func(*Core) { j.note("handler") })
		start(c, "task", TaskConfig{}, func(*Task) {
			c.Look()
			j.from = c.Now()
			at(m, j.from+8*us, line.Raise) // in the second charge, which then goes on
			at(m, j.from+12*us, func() {
				c.Align()
				line.Raise()
				m.eng.Schedule(m.eng.Now(), 255, device(func() {
					j.note("%d steps", steps)
					checkBooks(t, m)
				}), 0)
			})
			at(m, j.from+70*us, line.Raise)
			at(m, j.from+100*us, line.Raise)
			for range 3 {
				for range 5 {
					c.Work(7 * us)
					steps++
				}
				c.Look()
				j.note("look")
			}
			if c.eager != (mode == sim.Eager) || c.aligning {
				t.Error("the core has not gone back to its mode")
			}
		})
		run(t, m, ms)
		j.expect(t, "9us handler", "12us 5 steps", "13us handler", "39us look",
			"71us handler", "76us look", "101us handler", "113us look")
	})
}

// What is spent counts when the look is over: not while it is being paid for, not
// while an interrupt has its turn, and not while another task has the core.
func TestSpentCountsAtTheEndOfALook(t *testing.T) {
	eachMode(t, func(t *testing.T, mode sim.Mode) {
		m := newMachine(mode, func(c *Config) {
			c.Preempt = PreemptFull
			c.Costs[model.StageRecvmsg] = 30 * us
			c.Costs[model.StageIRQHandler] = 10 * us
			c.Costs[model.StageSyscall] = 10 * us
		})
		c := m.Cores[0]
		urgent := start(c, "urgent", TaskConfig{FIFO: 1}, func(task *Task) {
			task.Sleep()
			c.Spend(model.StageSyscall)
		})
		line := c.NewLine(1, "dev", func(c *Core) {
			c.Spend(model.StageIRQHandler)
			c.Wake(urgent)
		})
		start(c, "task", TaskConfig{}, func(*Task) {
			c.Spend(model.StageRecvmsg)
			c.Spend(model.StageRecvmsg)
			c.Work(us)
			c.Look()
		})
		at(m, 20*us, line.Raise)
		type numbers struct {
			recvmsg, handler, syscall int64
			worked                    sim.Time
		}
		read := func(when sim.Time, want numbers) {
			m.eng.Schedule(when, 255, device(func() {
				c.Align()
				m.eng.Schedule(when, 255, device(func() {
					checkBooks(t, m)
					spent := c.Spent()
					got := numbers{spent[model.StageRecvmsg], spent[model.StageIRQHandler], spent[model.StageSyscall], c.Worked()}
					if got != want {
						t.Errorf("at %v: %+v, want %+v", when, got, want)
					}
				}), 0)
			}), 0)
		}
		read(10*us, numbers{})
		read(25*us, numbers{})
		read(35*us, numbers{0, 1, 0, 0}) // urgent has the core
		read(45*us, numbers{0, 1, 1, 0})
		read(75*us, numbers{0, 1, 1, 0}) // the second recvmsg
		read(82*us, numbers{2, 1, 1, us})
		run(t, m, ms)
	})
}
