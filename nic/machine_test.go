package nic_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/link"
	"napisim/model/unit"
	"napisim/nic"
	"napisim/sim"
)

const (
	phaseDevice   sim.Phase = 0
	phaseCommands sim.Phase = 100
)

// do is an event.
type do func()

func (d do) Fire(uint64) { d() }

// raise is an interrupt line.
type raise func()

func (r raise) Raise() { r() }

// command is something that a driver or a peer does at an instant. Its text says
// what it saw.
type command struct {
	at   sim.Time
	kind string
	n    int // frames, descriptors, bytes or the vector
}

// run is a scenario of a device.
type run struct {
	cfg      nic.Config
	delay    sim.Time
	drop     link.Drop
	sources  [][]model.Frame
	commands []command
}

func drawCoalesce(t *rapid.T) nic.Coalesce {
	return nic.Coalesce{
		Usecs:  sim.Time(rapid.SampledFrom([]int64{0, 0, 1, 83, 84, 200, 1000}).Draw(t, "usecs")),
		Frames: rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3, 5}).Draw(t, "frames"),
		Mode:   nic.TimerMode(rapid.IntRange(0, 2).Draw(t, "mode")),
	}
}

func drawRun(t *rapid.T) run {
	r := run{
		cfg: nic.Config{
			RXRing: rapid.IntRange(1, 9).Draw(t, "rx"), TXRing: rapid.IntRange(1, 9).Draw(t, "tx"),
			RX: drawCoalesce(t), TX: drawCoalesce(t),
			SharedVector: rapid.Bool().Draw(t, "shared"),
			Rearm:        nic.Rearm(rapid.IntRange(0, 1).Draw(t, "rearm")),
			TXLatency:    sim.Time(rapid.SampledFrom([]int64{0, 1, 84, 300}).Draw(t, "latency")),
		},
		delay: sim.Time(rapid.SampledFrom([]int64{0, 1, 84, 500}).Draw(t, "delay")),
	}
	if every := rapid.SampledFrom([]int64{0, 0, 2, 3}).Draw(t, "drop"); every > 0 {
		r.drop = func(n int64, f *model.Frame) bool { return (n*7+int64(f.Len)/10)%every == 0 }
	}
	// Frames take 84 ps and more: with these distances instants collide often.
	gap := rapid.Map(rapid.SampledFrom([]int64{0, 0, 0, 1, 42, 84, 100, 300, 700}), func(v int64) sim.Time { return sim.Time(v) })
	for range rapid.IntRange(0, 2).Draw(t, "sources") {
		var frames []model.Frame
		at := sim.Time(0)
		for range rapid.IntRange(0, 40).Draw(t, "frames") {
			at += gap.Draw(t, "gap")
			frames = append(frames, model.Frame{Arrival: at, Len: rapid.SampledFrom([]int32{60, 60, 100}).Draw(t, "len")})
		}
		r.sources = append(r.sources, frames)
	}
	kinds := []string{"take", "take", "refill", "refill", "xmit", "reap", "mask", "unmask", "unmask", "ack", "look", "pending", "offer"}
	at := sim.Time(0)
	for range rapid.IntRange(1, 80).Draw(t, "commands") {
		at += gap.Draw(t, "gap")
		c := command{at: at, kind: rapid.SampledFrom(kinds).Draw(t, "kind"), n: rapid.IntRange(0, 9).Draw(t, "n")}
		if c.kind == "xmit" || c.kind == "offer" {
			c.n = 60 + 10*c.n
		}
		r.commands = append(r.commands, c)
	}
	return r
}

// runOracle returns the log of a run on the oracle: what each command saw, and each
// interrupt, in order.
func (r run) runOracle() []string {
	o := newOracle(r.cfg, r.delay)
	o.drop = r.drop
	var log []string
	note := func(format string, args ...any) {
		log = append(log, fmt.Sprintf("%d: ", o.now)+fmt.Sprintf(format, args...))
	}
	o.raised = func(v int) { note("interrupt %d", v) }
	for _, s := range r.sources {
		o.sources = append(o.sources, slices.Clone(s))
	}
	commands := r.commands
	for ; o.now <= r.end(); o.now++ {
		o.step()
		for len(commands) > 0 && commands[0].at == o.now {
			o.execute(commands[0], note)
			o.check()
			commands = commands[1:]
		}
	}
	return append(log, fmt.Sprintf("%d written, %d missed", len(o.written), o.missed))
}

// end is an instant by which everything has happened: the last frame offered, all
// frames after it in line, and the longest timer.
func (r run) end() sim.Time {
	last := sim.Time(0)
	for _, s := range r.sources {
		if len(s) > 0 {
			last = max(last, s[len(s)-1].Arrival)
		}
	}
	if n := len(r.commands); n > 0 {
		last = max(last, r.commands[n-1].at)
	}
	return last + 30_000
}

func (o *oracle) execute(c command, note func(string, ...any)) {
	v := o.vectors[c.n%len(o.vectors)]
	switch c.kind {
	case "take":
		n := min(c.n, len(o.filled))
		for _, f := range o.filled[:n] {
			note("took %v %d", f.Arrival, f.Len)
		}
		o.filled = o.filled[n:]
		o.taken += n
		o.awaiting += n
	case "refill":
		n := min(c.n, o.awaiting)
		o.free += n
		o.awaiting -= n
	case "look":
		note("%d free, %d filled, %d awaiting, %d missed", o.free, len(o.filled), o.awaiting, o.missed)
	case "xmit":
		note("xmit %v", o.xmit(int32(c.n)))
	case "reap":
		note("reaped %d", o.reap())
	case "mask":
		v.masked = true
	case "unmask":
		o.unmask(v)
	case "ack":
		o.ack(v)
	case "pending":
		note("pending %v", o.pending(v))
	case "offer":
		o.offer(model.Frame{Len: int32(c.n)})
	}
}

// runDevice returns the log of a run on a Device. pulls are instants at which
// somebody pulls without need.
func (r run) runDevice(t *rapid.T, pulls []sim.Time) []string {
	eng := sim.NewEngine(sim.Lazy)
	in := link.NewPipe(link.Config{Rate: 8 * unit.Tbps, Delay: r.delay})
	in.SetDrop(r.drop)
	for _, s := range r.sources {
		frames := source(slices.Clone(s))
		in.Attach(&frames)
	}
	dev := nic.New(eng, phaseDevice, r.cfg, in, link.NewEgress(eng, phaseDevice, link.Config{Rate: 8 * unit.Tbps}, nil))
	var log []string
	note := func(format string, args ...any) {
		log = append(log, fmt.Sprintf("%d: ", eng.Now())+fmt.Sprintf(format, args...))
	}
	for i, v := range dev.Vectors() {
		v.Connect(raise(func() { note("interrupt %d", i) }))
	}
	for _, at := range pulls {
		eng.Schedule(at, phaseCommands, do(func() { dev.RX(0).Pull(eng.Now()) }), 0)
	}
	for _, c := range r.commands {
		eng.Schedule(c.at, phaseCommands, do(func() {
			execute(dev, in, c, eng.Now(), note)
			if err := dev.Check(eng.Now()); err != nil {
				t.Fatal(err)
			}
		}), 0)
	}
	eng.Run()
	s := dev.Stats(r.end())
	if err := dev.Check(r.end()); err != nil {
		t.Fatal(err)
	}
	log = append(log, fmt.Sprintf("%d written, %d missed", s.RXPackets, s.RXMissedErrors))
	return log
}

func execute(dev *nic.Device, in *link.Pipe, c command, now sim.Time, note func(string, ...any)) {
	rx, tx, v := dev.RX(0), dev.TX(0), dev.Vectors()[c.n%len(dev.Vectors())]
	switch c.kind {
	case "take":
		for range c.n {
			if rx.Filled() == 0 {
				rx.Pull(now)
			}
			if rx.Filled() == 0 {
				break
			}
			f := rx.Take()
			note("took %v %d", f.Arrival, f.Len)
		}
	case "refill":
		rx.Refill(now, min(c.n, rx.Awaiting()))
	case "look":
		rx.Pull(now)
		note("%d free, %d filled, %d awaiting, %d missed", rx.Free(), rx.Filled(), rx.Awaiting(), rx.Missed())
	case "xmit":
		s := model.Segment{Frame: model.Frame{Len: int32(c.n)}}
		note("xmit %v", tx.Xmit(now, &s))
	case "reap":
		note("reaped %d", tx.Reap(now))
	case "mask":
		v.Mask()
	case "unmask":
		v.Unmask(now)
	case "ack":
		v.Ack(now)
	case "pending":
		note("pending %v", v.Pending(now))
	case "offer":
		in.Offer(model.Frame{Len: int32(c.n)}, now)
	}
}

// Whatever a driver does when, the device does what one that looks at every
// picosecond does, and interrupts at the same instants.
func TestDeviceAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRun(t)
		want := r.runOracle()
		got := r.runDevice(t, nil)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-oracle +device)\n%s", diff)
		}
	})
}

// How often somebody pulls changes nothing.
func TestPullsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRun(t)
		var pulls []sim.Time
		for range rapid.IntRange(1, 100).Draw(t, "pulls") {
			pulls = append(pulls, sim.Time(rapid.Int64Range(0, 8000).Draw(t, "at")))
		}
		if diff := cmp.Diff(r.runDevice(t, nil), r.runDevice(t, pulls)); diff != "" {
			t.Fatalf("(-without +with pulls)\n%s", diff)
		}
	})
}
