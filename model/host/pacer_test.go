package host

import (
	"slices"
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

// The instants of a program that sends by the clock are absolute: it is late while
// something holds it up, and on time again afterwards. Bursts of 2 are due at 100, 200
// and 300 us, each frame takes 1 us, the first one more or not.
func TestPacerCatchesUp(t *testing.T) {
	const us = sim.Microsecond
	for first, want := range map[sim.Time][]sim.Time{
		0:        {101 * us, 102 * us, 201 * us, 202 * us, 301 * us},
		50 * us:  {151 * us, 152 * us, 201 * us, 202 * us, 301 * us},
		250 * us: {351 * us, 352 * us, 353 * us, 354 * us, 355 * us},
	} {
		eng := sim.NewEngine(sim.Lazy)
		m := cpu.NewMachine(eng, cpu.Config{Cores: 1, HZ: 250, TickPhase: sim.Millisecond, Costs: model.Costs{}})
		var got []sim.Time
		cfg := PacerConfig{Start: 100 * us, Count: 5, Burst: 2, Gap: 100 * us, First: first, Prepare: us}
		m.NewTask(m.Cores[0], "sender", cpu.TaskConfig{}, Pacer(cfg, func(c *cpu.Core) {
			c.Look()
			got = append(got, c.Now())
		})).WakeFromDevice()
		eng.Run()
		eng.Close()
		if !slices.Equal(got, want) {
			t.Errorf("first %v: sent at %v, want %v", first, got, want)
		}
	}
}
