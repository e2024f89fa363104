package nic_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"napisim/model"
	"napisim/model/link"
	"napisim/model/unit"
	"napisim/nic"
	"napisim/sim"
)

const (
	ns = sim.Nanosecond
	us = sim.Microsecond
)

// bed is a device on a link of 1 Gbit/s without delay. A frame of 60 bytes takes
// (60+24)*8 = 672 ns.
type bed struct {
	eng        *sim.Engine
	in         *link.Pipe
	dev        *nic.Device
	interrupts []sim.Time // of the first vector
	txIRQs     []sim.Time // of a second one
}

func newBed(cfg nic.Config) *bed {
	b := &bed{eng: sim.NewEngine(sim.Lazy), in: link.NewPipe(link.Config{Rate: unit.Gbps})}
	b.dev = nic.New(b.eng, phaseDevice, cfg, b.in, link.NewEgress(b.eng, phaseDevice, link.Config{Rate: unit.Gbps}, nil))
	b.dev.RXVector(0).Connect(raise(func() { b.interrupts = append(b.interrupts, b.eng.Now()) }))
	if b.dev.TXVector(0) != b.dev.RXVector(0) {
		b.dev.TXVector(0).Connect(raise(func() { b.txIRQs = append(b.txIRQs, b.eng.Now()) }))
	}
	b.dev.RX(0).Refill(0, cfg.RXRing)
	return b
}

// at schedules something that a driver or a peer does.
func (b *bed) at(t sim.Time, f func(now sim.Time)) {
	b.eng.Schedule(t, phaseCommands, do(func() { f(b.eng.Now()) }), 0)
}

// arrive lets frames of 60 bytes arrive at the given instants.
func (b *bed) arrive(at ...sim.Time) {
	for _, t := range at {
		b.at(t-672*ns, func(now sim.Time) { b.in.Offer(model.Frame{Len: 60}, now) })
	}
}

// takeAll is a poll: the driver takes what is there.
func (b *bed) takeAll(now sim.Time) {
	b.dev.RX(0).Pull(now)
	for b.dev.RX(0).Filled() > 0 {
		b.dev.RX(0).Take()
	}
}

func (b *bed) want(t *testing.T, name string, interrupts ...sim.Time) {
	t.Helper()
	if diff := cmp.Diff(interrupts, b.interrupts); diff != "" {
		t.Errorf("%s: interrupts (-want +got)\n%s", name, diff)
	}
}

// plain is a device without moderation.
func plain(rearm nic.Rearm) nic.Config {
	return nic.Config{RXRing: 16, TXRing: 16, SharedVector: true, Rearm: rearm}
}

// The race of every driver: a frame arrives after the last look at the ring and
// before the interrupt is enabled again. Nobody will look at it unless the device
// interrupts by itself.
func TestNoWakeupIsLost(t *testing.T) {
	for _, rearm := range []nic.Rearm{nic.NewerThanConsumer, nic.LatchEvents} {
		for _, late := range []sim.Time{11 * us, 11*us + 1, 11500 * ns, 12*us - 1, 12 * us} {
			b := newBed(plain(rearm))
			v := b.dev.RXVector(0)
			b.at(0, v.Unmask)
			b.arrive(10*us, late)
			b.at(10*us, func(now sim.Time) { // the handler
				v.Mask()
				v.Ack(now)
			})
			b.at(11*us-1, b.takeAll) // the poll: its last look
			b.at(12*us, v.Unmask)
			b.eng.Run()
			b.want(t, rearm.String(), 10*us, 12*us)
		}
	}
}

// The same with a transmit completion that shares the vector.
func TestNoTXWakeupIsLost(t *testing.T) {
	for _, rearm := range []nic.Rearm{nic.NewerThanConsumer, nic.LatchEvents} {
		b := newBed(plain(rearm))
		v, tx := b.dev.TXVector(0), b.dev.TX(0)
		b.at(0, v.Unmask)
		b.arrive(10 * us)
		b.at(10*us, func(now sim.Time) {
			v.Mask()
			v.Ack(now)
		})
		// An ACK leaves at the end of the poll, 672 ns before it is completed.
		b.at(11*us, func(now sim.Time) {
			b.takeAll(now)
			if n := tx.Reap(now); n != 0 {
				t.Errorf("reaped %d", n)
			}
			tx.Xmit(now, &model.Segment{Frame: model.Frame{Len: 60}})
		})
		b.at(11_600*ns, v.Unmask) // before the completion
		b.at(11_700*ns, func(now sim.Time) {
			if n := tx.Reap(now); n != 1 {
				t.Errorf("reaped %d", n)
			}
		})
		b.eng.Run()
		b.want(t, rearm.String(), 10*us, 11_672*ns)
	}
}

// What was consumed while the vector was masked leads to an interrupt only where the
// device latches events and nobody has acknowledged it: the second frame comes after
// the acknowledgement, is taken by the same poll, and interrupts a lan966x all the same.
func TestConsumedWhileMasked(t *testing.T) {
	for _, c := range []struct {
		rearm nic.Rearm
		ack   sim.Time // the driver's second acknowledgement, 0 for none
		want  []sim.Time
	}{
		{nic.NewerThanConsumer, 0, []sim.Time{10 * us}},
		{nic.LatchEvents, 0, []sim.Time{10 * us, 20 * us}},
		{nic.LatchEvents, 10_900 * ns, []sim.Time{10 * us, 20 * us}},
		{nic.LatchEvents, 11 * us, []sim.Time{10 * us}}, // the instant of the arrival is included
		{nic.LatchEvents, 15 * us, []sim.Time{10 * us}},
	} {
		b := newBed(plain(c.rearm))
		v := b.dev.RXVector(0)
		b.at(0, v.Unmask)
		b.arrive(10*us, 11*us)
		b.at(10*us, func(now sim.Time) {
			v.Mask()
			v.Ack(now)
		})
		if c.ack > 0 {
			b.at(c.ack, v.Ack)
		}
		b.at(12*us, b.takeAll)
		b.at(20*us, v.Unmask)
		b.eng.Run()
		b.want(t, c.rearm.String(), c.want...)
	}
}

// A vector fires once until it is armed again, masks are respected to the instant,
// and an armed vector that is acknowledged is armed anew.
func TestFiresOncePerArming(t *testing.T) {
	b := newBed(plain(nic.NewerThanConsumer))
	v := b.dev.RXVector(0)
	b.at(0, v.Unmask)
	b.arrive(10*us, 11*us, 12*us)
	b.eng.Run()
	b.want(t, "without re-arming", 10*us)

	b = newBed(plain(nic.LatchEvents))
	v = b.dev.RXVector(0)
	b.at(0, v.Unmask)
	b.arrive(10*us, 11*us, 12*us)
	b.at(11_500*ns, v.Ack)
	b.eng.Run()
	b.want(t, "acknowledged without masking", 10*us, 12*us)

	b = newBed(plain(nic.NewerThanConsumer))
	v = b.dev.RXVector(0)
	b.arrive(10 * us)
	b.at(15*us, func(now sim.Time) {
		if v.Masked() {
			v.Unmask(now)
		}
		if len(b.interrupts) > 0 {
			t.Error("the interrupt was raised within the call")
		}
		v.Mask()
	})
	b.eng.Run()
	b.want(t, "masked at the instant of the interrupt")
}

func TestModeration(t *testing.T) {
	for _, c := range []struct {
		name     string
		coalesce nic.Coalesce
		arrivals []sim.Time
		unmask   sim.Time
		want     sim.Time // the first interrupt; 0 for none
	}{
		{"none", nic.Coalesce{}, []sim.Time{10 * us}, 0, 10 * us},
		{"a count of one", nic.Coalesce{Usecs: 20 * us, Frames: 1}, []sim.Time{10 * us}, 0, 10 * us},
		{"timer", nic.Coalesce{Usecs: 20 * us}, []sim.Time{10 * us, 15 * us}, 0, 30 * us},
		{"the timer runs while masked", nic.Coalesce{Usecs: 20 * us}, []sim.Time{10 * us}, 12 * us, 30 * us},
		{"the timer has run out while masked", nic.Coalesce{Usecs: 20 * us}, []sim.Time{10 * us}, 31 * us, 31 * us},
		{"the timer runs out at unmasking", nic.Coalesce{Usecs: 20 * us}, []sim.Time{10 * us}, 30 * us, 30 * us},
		{"count", nic.Coalesce{Frames: 3}, []sim.Time{10 * us, 15 * us, 29 * us}, 0, 29 * us},
		{"count not reached", nic.Coalesce{Frames: 3}, []sim.Time{10 * us, 15 * us}, 0, 0},
		{"count first", nic.Coalesce{Usecs: 20 * us, Frames: 3}, []sim.Time{10 * us, 15 * us, 29 * us}, 0, 29 * us},
		{"timer first", nic.Coalesce{Usecs: 20 * us, Frames: 3}, []sim.Time{10 * us, 15 * us, 31 * us}, 0, 30 * us},
		{"restarted timer", nic.Coalesce{Usecs: 20 * us, Mode: nic.FromLast}, []sim.Time{10 * us, 29 * us, 48 * us}, 0, 68 * us},
		{"restarted timer, too late", nic.Coalesce{Usecs: 20 * us, Mode: nic.FromLast}, []sim.Time{10 * us, 30 * us}, 0, 30 * us},
		{"restarted timer and count", nic.Coalesce{Usecs: 20 * us, Frames: 3, Mode: nic.FromLast}, []sim.Time{10 * us, 29 * us, 48 * us}, 0, 48 * us},
		{"throttle after a pause", nic.Coalesce{Usecs: 20 * us, Mode: nic.SinceInterrupt}, []sim.Time{10 * us}, 0, 10 * us},
	} {
		for _, rearm := range []nic.Rearm{nic.NewerThanConsumer, nic.LatchEvents} {
			cfg := plain(rearm)
			cfg.RX = c.coalesce
			b := newBed(cfg)
			b.at(c.unmask, b.dev.RXVector(0).Unmask)
			b.arrive(c.arrivals...)
			b.eng.Run()
			if c.want == 0 {
				b.want(t, c.name)
			} else {
				b.want(t, c.name, c.want)
			}
		}
	}
}

// The driver polls 1 us after each interrupt. 20 us must lie between interrupts.
func TestThrottle(t *testing.T) {
	cfg := plain(nic.NewerThanConsumer)
	cfg.RX = nic.Coalesce{Usecs: 20 * us, Mode: nic.SinceInterrupt}
	b := newBed(cfg)
	v := b.dev.RXVector(0)
	v.Connect(raise(func() {
		b.interrupts = append(b.interrupts, b.eng.Now())
		b.at(b.eng.Now()+us, func(now sim.Time) {
			b.takeAll(now)
			v.Unmask(now)
		})
	}))
	b.at(0, v.Unmask)
	// The first after a long pause; the next two wait; the last comes later than 20 us.
	b.arrive(10*us, 12*us, 40*us, 70*us)
	b.eng.Run()
	b.want(t, "throttle", 10*us, 30*us, 50*us, 70*us)
}

// What a driver sets takes effect when the vector is armed the next time.
func TestSetModeration(t *testing.T) {
	cfg := plain(nic.NewerThanConsumer)
	cfg.RX = nic.Coalesce{Usecs: 20 * us}
	cfg.TX = nic.Coalesce{Usecs: 50 * us}
	b := newBed(cfg)
	v := b.dev.RXVector(0)
	b.at(0, v.Unmask)
	b.arrive(10*us, 40*us)
	b.at(11*us, func(sim.Time) {
		b.dev.RX(0).SetModeration(nic.Coalesce{Usecs: 5 * us}.Moderation())
		b.dev.TX(0).SetModeration(nic.Coalesce{}.Moderation())
	})
	b.at(32*us, func(now sim.Time) {
		b.takeAll(now)
		v.Unmask(now)
	})
	b.at(50*us, func(now sim.Time) {
		b.takeAll(now)
		v.Unmask(now)
		b.dev.TX(0).Xmit(now, &model.Segment{Frame: model.Frame{Len: 60}})
	})
	b.eng.Run()
	b.want(t, "changed moderation", 30*us, 45*us, 50_672*ns)
}

// Separate vectors report their own ring alone; each has its own mask and moderation.
func TestSeparateVectors(t *testing.T) {
	cfg := plain(nic.NewerThanConsumer)
	cfg.SharedVector, cfg.TXLatency = false, us
	cfg.TX = nic.Coalesce{Usecs: 50 * us, Frames: 2}
	b := newBed(cfg)
	b.at(0, b.dev.RXVector(0).Unmask)
	b.at(0, b.dev.TXVector(0).Unmask)
	b.arrive(10 * us)
	b.at(20*us, func(now sim.Time) {
		for range 3 { // completed 672 ns and the latency of 1 us later, and 672 ns apart
			b.dev.TX(0).Xmit(now, &model.Segment{Frame: model.Frame{Len: 60}})
		}
	})
	b.eng.Run()
	b.want(t, "RX", 10*us)
	if diff := cmp.Diff([]sim.Time{20*us + 2*672*ns + us}, b.txIRQs); diff != "" {
		t.Errorf("TX: (-want +got)\n%s", diff)
	}
}

// Two vectors that are due at one instant raise their interrupts in the order of the
// vectors, together, whichever was predicted first.
func TestVectorsOfOneInstant(t *testing.T) {
	for _, txFirst := range []bool{false, true} {
		cfg := plain(nic.NewerThanConsumer)
		cfg.SharedVector = false
		b := newBed(cfg)
		var order []string
		b.dev.RXVector(0).Connect(raise(func() {
			order = append(order, "rx")
			// A core that is woken here acts after the second interrupt is pending.
			b.at(b.eng.Now(), func(sim.Time) { order = append(order, "core") })
		}))
		b.dev.TXVector(0).Connect(raise(func() { order = append(order, "tx") }))
		b.at(0, func(now sim.Time) { // both are done after 672 ns
			b.in.Offer(model.Frame{Len: 60}, now)
			b.dev.TX(0).Xmit(now, &model.Segment{Frame: model.Frame{Len: 60}})
			vectors := []*nic.Vector{b.dev.RXVector(0), b.dev.TXVector(0)}
			if txFirst {
				slices.Reverse(vectors)
			}
			for _, v := range vectors {
				v.Unmask(now)
			}
		})
		b.eng.Run()
		if diff := cmp.Diff([]string{"rx", "tx", "core"}, order); diff != "" {
			t.Errorf("TX first is %v: (-want +got)\n%s", txFirst, diff)
		}
	}
}

// A ring without free descriptors completes nothing until it is refilled, and frames
// are missed meanwhile.
func TestNoInterruptWithoutDescriptors(t *testing.T) {
	cfg := plain(nic.NewerThanConsumer)
	cfg.RXRing = 1
	b := newBed(cfg)
	v, rx := b.dev.RXVector(0), b.dev.RX(0)
	b.arrive(1*us, 10*us, 20*us, 30*us)
	b.at(5*us, func(now sim.Time) {
		b.takeAll(now)
		v.Unmask(now)
	})
	b.at(25*us, func(now sim.Time) { rx.Refill(now, 1) })
	b.eng.Run()
	b.want(t, "RX", 30*us)
	if rx.Missed() != 2 || rx.Written() != 2 || rx.Taken() != 1 {
		t.Errorf("%d missed, %d written, %d taken; want 2, 2, 1", rx.Missed(), rx.Written(), rx.Taken())
	}
}

// An interrupt costs one event, also where frames have to be counted: the prediction
// jumps over what cannot matter. A masked device costs none.
func TestEventsOfAnInterrupt(t *testing.T) {
	for _, c := range []struct {
		name     string
		coalesce nic.Coalesce
		most     uint64
	}{
		{"none", nic.Coalesce{}, 1},
		{"timer", nic.Coalesce{Usecs: 100 * us}, 1},
		{"throttle", nic.Coalesce{Usecs: 100 * us, Mode: nic.SinceInterrupt}, 1},
		{"count at line rate", nic.Coalesce{Frames: 64}, 1},
		{"count and timer", nic.Coalesce{Usecs: 100 * us, Frames: 64}, 1},
	} {
		cfg := plain(nic.NewerThanConsumer)
		cfg.RXRing, cfg.RX = 256, c.coalesce
		b := newBed(cfg)
		var frames source
		for range 100 {
			frames = append(frames, model.Frame{Len: 60})
		}
		b.in.Attach(&frames)
		b.dev.RXVector(0).Unmask(0)
		b.eng.Run()
		if len(b.interrupts) != 1 || b.eng.Fired() > c.most {
			t.Errorf("%s: %d interrupts in %d events, want 1 in %d", c.name, len(b.interrupts), b.eng.Fired(), c.most)
		}
	}

	b := newBed(nic.DefaultConfig())
	b.arrive(us, 2*us)
	v := b.dev.RXVector(0)
	v.Unmask(0)
	v.Mask()
	offers := uint64(2)
	b.eng.Run()
	b.dev.RX(0).Pull(b.eng.Now())
	if b.eng.Fired() != offers {
		t.Errorf("a masked device cost %d events", b.eng.Fired()-offers)
	}
}

// A device may be opened before the senders are there.
func TestAttachAfterUnmask(t *testing.T) {
	b := newBed(plain(nic.NewerThanConsumer))
	b.dev.RXVector(0).Unmask(0)
	b.in.Attach(&source{{Arrival: us, Len: 60}})
	b.eng.Run()
	b.want(t, "attached late", 1672*ns)
}

// The distribution counts the frames written since the interrupt before.
func TestFramesPerInterrupt(t *testing.T) {
	cfg := plain(nic.NewerThanConsumer)
	cfg.RX = nic.Coalesce{Frames: 3}
	b := newBed(cfg)
	v := b.dev.RXVector(0)
	b.at(0, v.Unmask)
	b.arrive(1*us, 2*us, 3*us, 4*us, 5*us, 6*us, 7*us, 8*us)
	b.at(5*us, v.Unmask) // five are unconsumed: at once
	b.at(5500*ns, func(now sim.Time) {
		b.takeAll(now)
		v.Unmask(now)
	})
	b.eng.Run()
	b.want(t, "count", 3*us, 5*us, 8*us)
	h := v.RXFrames()
	if h.Count() != 3 || h.Min() != 2 || h.Max() != 3 || v.Interrupts() != 3 {
		t.Errorf("%d interrupts with %d to %d frames, want 3 with 2 to 3", h.Count(), h.Min(), h.Max())
	}
}
