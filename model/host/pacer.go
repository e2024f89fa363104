package host

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
)

// PacerConfig describes a program that sends by the clock.
type PacerConfig struct {
	// Start is the instant at which it looks at the clock first, and then sends.
	Start sim.Time
	// Count is how many frames it sends, Burst how many one after the other.
	Count, Burst int
	// Gap is the time between the starts of two bursts; 0 sends them back to back.
	Gap sim.Time
	// Prepare is the program's own work before each frame, First what the first one costs
	// more.
	Prepare, First sim.Time
}

// Pacer is a program that sends bursts of frames at fixed instants: it sleeps until the
// instant of each (clock_nanosleep with an absolute time), so that one that is late does
// not delay the next. Each call of send is a system call.
func Pacer(cfg PacerConfig, send func(*cpu.Core)) func(*cpu.Task) {
	return func(t *cpu.Task) {
		c := t.Core()
		t.SleepUntil(cfg.Start)
		next := cfg.Start
		c.Work(cfg.First)
		for sent := 0; sent < cfg.Count; {
			if cfg.Gap > 0 && sent > 0 {
				next += cfg.Gap
				t.ToKernel()
				c.Spend(model.StageSyscall)
				t.SleepUntil(next)
				t.ToUser()
			}
			for n := min(cfg.Burst, cfg.Count-sent); n > 0; n-- {
				c.Work(cfg.Prepare)
				t.ToKernel()
				c.Spend(model.StageSyscall)
				send(c)
				t.ToUser()
				sent++
			}
		}
	}
}
