package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"

	"napisim/model/unit"
	"napisim/sim"
)

// A pace says when progress is shown.
type pace struct {
	patience time.Duration // work that is done by then shows none
	line     time.Duration // between two lines where there is no terminal
	draw     time.Duration // between two drawings of the bar where there is one
}

// whole is the progress of a finished run.
const whole = 100

// A meter measures how far a list of runs has come, from the goroutines of the runs.
type meter struct {
	parts []atomic.Int64 // of each run, in hundredths
	start time.Time
}

func newMeter(runs int) *meter {
	return &meter{parts: make([]atomic.Int64, runs), start: time.Now()}
}

// at records how far run i of some length has come, and returns whether it counts as
// finished. It does from a hundredth before its end, since a later call may not come.
func (m *meter) at(i int, now, length sim.Time) (finished bool) {
	hundredths := int64(float64(now) / float64(length) * whole)
	if finished = hundredths >= whole-1; finished {
		hundredths = whole
	}
	m.parts[i].Store(hundredths)
	return finished
}

// observe returns the Progress function of run i: it feeds the meter and ends the run
// when the user interrupts, unless the run counts as finished and is worth keeping.
func (a *app) observe(m *meter, i int, length unit.Duration) func(now sim.Time) bool {
	return func(now sim.Time) bool {
		return m.at(i, now, sim.Time(length)) || a.ctx.Err() == nil
	}
}

// read returns the hundredths of all runs together and the number of finished ones.
func (m *meter) read() (hundredths int64, finished int) {
	for i := range m.parts {
		part := m.parts[i].Load()
		hundredths += part
		if part == whole {
			finished++
		}
	}
	return hundredths, finished
}

// line says how far the work is.
func (m *meter) line() string {
	hundredths, finished := m.read()
	elapsed := time.Since(m.start)
	text := fmt.Sprintf("%d of %d runs, %d %% of all in %s",
		finished, len(m.parts), hundredths/int64(len(m.parts)), elapsed.Round(time.Second))
	if hundredths > 0 {
		all := time.Duration(float64(elapsed) * float64(whole*len(m.parts)) / float64(hundredths))
		text += fmt.Sprintf(", about %s to go", (all - elapsed).Round(time.Second))
	}
	return text
}

// watch shows progress on standard error until the returned function is called: a bar
// on a terminal, a line now and then elsewhere.
func (a *app) watch(m *meter) (stop func()) {
	if a.quiet {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-done:
			return
		case <-time.After(a.pace.patience):
		}
		if width, ok := a.terminal(a.stderr); ok && a.getenv("TERM") != "dumb" {
			a.bar(m, width, done)
			return
		}
		tick := time.NewTicker(a.pace.line)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				a.say("%s", m.line())
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// bar draws a bar until done.
func (a *app) bar(m *meter, width int, done <-chan struct{}) {
	tracker := &progress.Tracker{Total: int64(whole * len(m.parts)), RemoveOnCompletion: true}
	w := progress.NewWriter()
	w.SetOutputWriter(a.stderr)
	w.SetUpdateFrequency(a.pace.draw)
	w.SetTerminalWidth(width)
	w.SetAutoStop(false)
	w.SetStyle(progress.StyleDefault)
	// The line says how far and how long, from the start of the work and not of the bar.
	w.Style().Visibility = progress.StyleVisibility{Tracker: true}
	w.AppendTracker(tracker)
	update := func() {
		hundredths, _ := m.read()
		tracker.SetValue(min(hundredths, tracker.Total-1)) // the whole would end the bar
		tracker.UpdateMessage(m.line())
	}
	update()
	rendered := make(chan struct{})
	go func() {
		defer close(rendered)
		w.Render()
	}()
	tick := time.NewTicker(a.pace.draw)
	defer tick.Stop()
	for {
		select {
		case <-done:
			tracker.MarkAsDone()
			done = nil
			w.Stop()
		case <-rendered:
			return
		case <-tick.C:
			if done == nil {
				w.Stop() // again: one that comes before the first drawing is lost
				continue
			}
			update()
		}
	}
}
