package cpu_test

import (
	"fmt"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

// A device interrupts a core that computes; the handler wakes a reader, which has
// slept long enough to preempt. The work of the other task goes on afterwards.
func Example() {
	cfg := cpu.Config{Cores: 1, HZ: 250}
	cfg.Costs[model.StageIRQHandler] = sim.Microsecond
	cfg.Costs[model.StageRecvmsg] = 3 * sim.Microsecond

	eng := sim.NewEngine(sim.Lazy)
	defer eng.Close()
	m := cpu.NewMachine(eng, cfg)
	core := m.Cores[0]

	arrived := false
	reader := m.NewTask(core, "reader", cpu.TaskConfig{}, func(t *cpu.Task) {
		for core.Look(); !arrived; core.Look() {
			t.Sleep()
		}
		core.Spend(model.StageRecvmsg)
		core.Look()
		fmt.Println(core.Now(), "the reader is done")
	})
	worker := m.NewTask(core, "worker", cpu.TaskConfig{}, func(t *cpu.Task) {
		t.ToUser()
		core.Work(10 * sim.Millisecond)
		core.Look()
		fmt.Println(core.Now(), "the worker is done")
	})
	line := core.NewLine(24, "eth0-rx-0", func(c *cpu.Core) {
		c.Spend(model.StageIRQHandler)
		c.Look()
		arrived = true
		fmt.Println(c.Now(), "interrupt")
		c.Wake(reader)
	})
	reader.WakeFromDevice()
	worker.WakeFromDevice()
	eng.Schedule(9*sim.Millisecond, 0, raise{line}, 0)
	eng.Run()

	// Output:
	// 9.001ms interrupt
	// 9.004ms the reader is done
	// 10.004ms the worker is done
}

// raise is a device that interrupts.
type raise struct{ line *cpu.Line }

func (r raise) Fire(uint64) { r.line.Raise() }
