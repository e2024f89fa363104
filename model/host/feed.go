package host

import (
	"napisim/model"
	"napisim/model/cpu"
	"napisim/model/link"
	"napisim/sim"
)

// Feed gives a task the frames of an open-loop source, each from the instant on at which
// the source offers it: the packets of a guest, or of a program that sends by the clock.
// Frames that the task has no time for wait; their Arrival stays that instant.
type Feed struct {
	eng   *sim.Engine
	phase sim.Phase
	src   link.Source
	at    sim.Time // of the next frame
	armed bool     // the wakeup for it is scheduled
	task  *cpu.Task
	taken int64
}

// NewFeed returns the feed of one task. Its wakeups are events of the given phase.
func NewFeed(eng *sim.Engine, phase sim.Phase, src link.Source) *Feed {
	f := &Feed{eng: eng, phase: phase, src: src}
	f.at, _ = src.Peek()
	return f
}

// Taken returns the number of frames that the task has taken.
func (f *Feed) Taken() int64 { return f.taken }

// Due reports whether a frame is there; the caller must have looked.
func (f *Feed) Due() bool { return f.at <= f.eng.Now() }

// Wait blocks task t until a frame is there, and takes it.
func (f *Feed) Wait(t *cpu.Task, frame *model.Frame) {
	c := t.Core()
	for c.Look(); !f.Due(); c.Look() {
		f.task = t
		if !f.armed && f.at != sim.Never {
			f.armed = true
			f.eng.Schedule(f.at, f.phase, f, 0)
		}
		t.Sleep()
	}
	f.taken++
	f.at, _ = f.src.Next(frame)
}

// Fire wakes the task; the engine calls it.
func (f *Feed) Fire(uint64) {
	f.armed = false
	f.task.WakeFromDevice()
}

// Writer is a program that writes frames to a tap device, one a system call.
func Writer(f *Feed, write func(c *cpu.Core, frame *model.Frame, more bool)) func(*cpu.Task) {
	return sender(f, func(c *cpu.Core, frame *model.Frame) { write(c, frame, false) })
}

// Sender is a program that sends datagrams, one a system call; xmit is the driver's
// function, which is called with softirqs off.
func Sender(f *Feed, xmit func(c *cpu.Core, frame *model.Frame)) func(*cpu.Task) {
	return sender(f, func(c *cpu.Core, frame *model.Frame) {
		c.Spend(model.StageUDPSend)
		c.BHDisable()
		xmit(c, frame)
		c.BHEnable()
	})
}

func sender(f *Feed, send func(*cpu.Core, *model.Frame)) func(*cpu.Task) {
	return func(t *cpu.Task) {
		var frame model.Frame
		c := t.Core()
		for {
			t.ToKernel()
			f.Wait(t, &frame)
			c.Spend(model.StageSyscall)
			send(c, &frame)
			t.ToUser()
		}
	}
}

// vhostWeight is how many bytes vhost_net takes from a guest before it lets another
// task have the core (VHOST_NET_WEIGHT, all versions).
const vhostWeight = 0x80000

// Vhost is the thread of vhost_net that takes the packets of a guest and writes them to
// its tap device (handle_tx). It tells the device when another frame is at hand.
func Vhost(f *Feed, write func(c *cpu.Core, frame *model.Frame, more bool)) func(*cpu.Task) {
	return func(t *cpu.Task) {
		var frame model.Frame
		c := t.Core()
		for {
			for bytes := 0; bytes < vhostWeight; bytes += int(frame.Len) {
				f.Wait(t, &frame)
				c.Spend(model.StageVhostTX)
				c.Look()
				write(c, &frame, f.Due())
			}
			c.CondResched()
		}
	}
}
