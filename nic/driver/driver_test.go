package driver

import (
	"testing"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
	"napisim/sim/trace"
)

// The poll of the lan966x: transmitted frames first, then received ones, then a page
// and a reload for each descriptor, completion, and the interrupt is enabled.
func TestLAN966xPollOrder(t *testing.T) {
	s := onLAN966x()
	s.device.TXLatency = 5 * us
	inAllModes(t, s, func(t *testing.T, s setup) {
		r := newRig(s, burst(10*us, 3)...)
		// The segment is on the wire at 5 us and completed at 10 us, when the frames come:
		// the task is woken by an interrupt of 400 ns and needs 120 to send.
		r.task(0, 5*us-400*ns-120*ns, func(c *cpu.Core) { r.xmit(c, 0, 1) })
		lines := r.watch(10*us, 17*us)
		r.run(t, 30*us)
		same(t, "device", *lines, []string{
			"    0: tx 1, taken 0, awaiting 0, masked false",
			"  700: tx 1, taken 0, awaiting 0, masked true", // 200 entry + 500 handler
			" 2000: tx 0, taken 0, awaiting 0, masked true", // toPoll
			" 2050: tx 0, taken 1, awaiting 1, masked true", // 50 for the completion
			" 2430: tx 0, taken 2, awaiting 2, masked true", // 380 a frame
			" 2810: tx 0, taken 3, awaiting 3, masked true",
			" 3460: tx 0, taken 3, awaiting 2, masked true", // 380, 70 to see that it is the last, 200
			" 3660: tx 0, taken 3, awaiting 1, masked true",
			" 3860: tx 0, taken 3, awaiting 0, masked true",
			" 4860: tx 0, taken 3, awaiting 0, masked false", // 500 complete + 500 unmask
		})
		same(t, "interrupts", r.Lines()[0].Count, 1)
		same(t, "reloads", r.spent(model.StageDoorbell), 3)
	})
}

// A frame that completes after the acknowledgement leaves its bit set, although the
// poll consumes it: the lan966x interrupts again as soon as it is enabled, and that
// poll finds nothing. A device that is armed with its consumer index does not.
func TestInterruptOfConsumedFrames(t *testing.T) {
	const acked = 700 * ns // 200 entry + 500 handler
	for _, c := range []struct {
		name    string
		s       setup
		second  []model.Frame
		work    []int64
		lastIRQ bool
	}{
		{"latched, after the acknowledgement", onLAN966x(), burst(10*us+acked+1*ns, 1), []int64{3, 0}, true},
		{"latched, before it", onLAN966x(), burst(10*us+acked-1*ns, 1), []int64{3}, false},
		{"by consumer, after it", onGeneric(), burst(10*us+acked+1*ns, 1), []int64{3}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inAllModes(t, c.s, func(t *testing.T, s setup) {
				r := newRig(s, append(burst(10*us, 2), c.second...)...)
				r.m.Trace = trace.NewLog(0, ms, 1000)
				r.run(t, 50*us)
				same(t, "work of each poll", polls(r.m.Trace)[int64(napiID(s.driver))], c.work)
				same(t, "interrupts", r.Lines()[0].Count, int64(len(c.work)))
				same(t, "left", r.rx.Filled(), 0)
			})
		})
	}
}

// The second interrupt is immediate: it comes at the instant of enabling. The poll of
// two frames ends at toPoll + 2*380 + 70 + 2*200 + 1000 behind the first.
func TestLatchedInterruptIsImmediate(t *testing.T) {
	r := newRig(onLAN966x(), append(burst(10*us, 1), burst(11*us, 1)...)...)
	r.m.Trace = trace.NewLog(0, ms, 1000)
	r.run(t, 50*us)
	var at []int64
	for _, e := range r.m.Trace.Events() {
		if e.Point == trace.IRQHandlerEntry {
			at = append(at, int64((e.At-10*us)/ns))
		}
	}
	unmasked := int64((toPoll + 2*380*ns + 70*ns + 2*200*ns + 1000*ns) / ns)
	same(t, "entries of the handler", at, []int64{200, unmasked + 200})
}

// The generic driver refills 16 descriptors at a time, before it looks at the next
// one; what is left at the end of a poll counts for the next. The lan966x rings for
// each. XDP changes nothing of that.
func TestRefillBatches(t *testing.T) {
	for _, c := range []struct {
		name      string
		s         setup
		bursts    []int
		awaiting  int
		doorbells int64
	}{
		{"generic, 15", onGeneric(), []int{15}, 15, 0},
		{"generic, 16", onGeneric(), []int{16}, 0, 1},
		{"generic, 40", onGeneric(), []int{40}, 8, 2},
		{"generic, 40 and 7", onGeneric(), []int{40, 7}, 15, 2},
		{"generic, 40 and 8", onGeneric(), []int{40, 8}, 0, 3},
		// A poll ends after 64 frames with the last batch still to be refilled; the next
		// begins with that.
		{"generic, 64", onGeneric(), []int{64}, 0, 4},
		{"lan966x, 40", onLAN966x(), []int{40}, 0, 40},
		{"lan966x, 64", onLAN966x(), []int{64}, 0, 64},
	} {
		for _, xdp := range []bool{false, true} {
			name := c.name
			if xdp {
				name += ", xdp"
			}
			t.Run(name, func(t *testing.T) {
				c.s.driver.XDPDrop = xdp
				inAllModes(t, c.s, func(t *testing.T, s setup) {
					var arrivals []model.Frame
					n := 0
					for i, k := range c.bursts {
						arrivals = append(arrivals, burst(10*us+200*us*sim.Time(i), k)...)
						n += k
					}
					r := newRig(s, arrivals...)
					r.run(t, ms)
					same(t, "taken", r.rx.Taken(), int64(n))
					same(t, "awaiting refill", r.rx.Awaiting(), c.awaiting)
					same(t, "doorbells", r.spent(model.StageDoorbell), c.doorbells)
					same(t, "refilled", r.spent(model.StageRefill), int64(n-c.awaiting))
				})
			})
		}
	}
}

// A ring of fewer descriptors than a batch still goes on for ever.
func TestRingsSmallerThanABatch(t *testing.T) {
	for _, size := range []int{1, 8, 15, 16, 17} {
		s := onGeneric()
		s.device.RXRing = size
		r := newRig(s, every(10*us, 20*us, 100)...)
		r.run(t, 10*ms)
		same(t, "missed", r.rx.Missed(), 0)
		same(t, "taken", r.rx.Taken(), 100)
	}
}

// Descriptors come back late (pitfall 22). A burst fills the ring; its poll takes 380 ns
// a frame from toPoll on. A second burst meets what has been refilled by then.
func TestPitfall22RingTooSmall(t *testing.T) {
	for _, c := range []struct {
		name   string
		s      setup
		ring   int
		second int
		after  int64 // the first interrupt, in ns
		missed int64
	}{
		// The lan966x refills when all 64 are taken: at toPoll + 64*380 + 200 the first is there.
		{"lan966x, just before the first refill", onLAN966x(), 64, 3, 2000 + 64*380 + 199, 3},
		{"lan966x, just after the first refill", onLAN966x(), 64, 3, 2000 + 64*380 + 201, 2},
		{"lan966x, after the second", onLAN966x(), 64, 3, 2000 + 64*380 + 401, 1},
		{"lan966x, larger ring", onLAN966x(), 67, 3, 2000 + 64*380 + 199, 0},
		// The generic driver refills when 16 are taken: 16*50 + 150 later they are there. The
		// 20 frames themselves take 2 ns.
		{"generic, just before the first refill", onGeneric(), 64, 20, 2000 + 16*380 + 16*50 + 148, 20},
		{"generic, just after it", onGeneric(), 64, 20, 2000 + 16*380 + 16*50 + 151, 4},
		{"generic, after the second", onGeneric(), 64, 20, 2000 + 2*(16*380+16*50+150) + 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inAllModes(t, c.s, func(t *testing.T, s setup) {
				s.device.RXRing = c.ring
				// The first frame of the burst interrupts 84 ps after it is offered.
				arrivals := append(burst(10*us-84, 64), burst(10*us+ns*sim.Time(c.after), c.second)...)
				r := newRig(s, arrivals...)
				r.run(t, ms)
				same(t, "missed", r.rx.Missed(), c.missed)
				same(t, "received", r.rx.Taken(), int64(64+c.second)-c.missed)
			})
		})
	}
}

// Frames missed are traced when the driver learns of them, all of them.
func TestMissedFramesAreTraced(t *testing.T) {
	for name, s := range map[string]setup{"lan966x": onLAN966x(), "generic": onGeneric()} {
		t.Run(name, func(t *testing.T) {
			s.device.RXRing = 32
			// 8 of the first burst, and whatever comes while the ring is full.
			r := newRig(s, append(burst(10*us, 40), every(13*us, 100*ns, 100)...)...)
			r.m.Trace = trace.NewLog(0, ms, 10000)
			r.run(t, ms)
			var traced int64
			for _, e := range r.m.Trace.Events() {
				if e.Point == trace.RxMissed {
					same(t, "device", e.S, "eth0")
					traced += e.B
				}
			}
			same(t, "traced", traced, r.rx.Missed())
			if traced < 8 {
				t.Errorf("%d missed", traced)
			}
		})
	}
}

// A poll that takes a whole ring learns what that has missed when it refills it.
func TestMissedFramesAreTracedAtRefill(t *testing.T) {
	inAllModes(t, onLAN966x(), func(t *testing.T, s setup) {
		r := newRig(s, append(burst(10*us-84, 64), burst(20*us, 6)...)...)
		r.m.Trace = trace.NewLog(0, ms, 10000)
		r.run(t, ms)
		for _, e := range r.m.Trace.Events() {
			if e.Point == trace.RxMissed {
				same(t, "frames", e.B, 6)
				same(t, "instant", e.At, 10*us+toPoll+64*380*ns+200*ns)
				return
			}
		}
		t.Error("nothing is traced")
	})
}

// What the stack gets is a packet of one segment on one page of the pool, charged with
// buffer and descriptor.
func TestSKBsOfTheDriver(t *testing.T) {
	for _, c := range []struct {
		buffer, truesize int
		csum             bool
	}{{2048, 2304, true}, {4096, 4352, false}} {
		s := onGeneric()
		s.holds = true
		s.driver.Buffer, s.driver.RXCsum = c.buffer, c.csum
		r := newRig(s, burst(10*us, 2)...)
		r.run(t, 50*us)
		if len(r.stack.got) != 2 {
			t.Fatalf("the stack got %d packets", len(r.stack.got))
		}
		got := r.stack.got[1]
		same(t, "truesize", got.Truesize, c.truesize)
		same(t, "segments and pages", [2]int{got.Segs, got.Pages}, [2]int{1, 1})
		same(t, "payload", [2]int{got.Payload, got.LastSeg}, [2]int{18, 18})
		same(t, "unverified", got.CsumNone, !c.csum)
		same(t, "arrivals", got.Arrivals, []sim.Time{10*us + 2*84})
		same(t, "bytes synced", r.spent(model.StageDMASyncByte), 2*60)
		if got.Pool != model.PageReturner(r.pool) {
			t.Error("its page is not the pool's")
		}
	}
}

// XDP drops count as work of the poll, end in no skb, and their pages go straight back
// to the cache, from which they are allocated again.
func TestXDPDrop(t *testing.T) {
	for name, s := range map[string]setup{"lan966x": onLAN966x(), "generic": onGeneric()} {
		s.driver.XDPDrop = true
		s.machine.Costs[model.StageDMASyncByte] = 1 // ps
		t.Run(name, func(t *testing.T) {
			inAllModes(t, s, func(t *testing.T, s setup) {
				r := newRig(s, append(burst(10*us, 64), burst(200*us, 10)...)...)
				r.m.Trace = trace.NewLog(0, ms, 1000)
				r.run(t, ms)
				same(t, "work of each poll", polls(r.m.Trace)[int64(napiID(s.driver))], []int64{64, 0, 10})
				same(t, "dropped", r.Stats().XDPDropped, 74)
				same(t, "losses", r.losses[model.DropXDP], 74)
				same(t, "programs run", r.spent(model.StageXDP), 74)
				same(t, "descriptors", r.spent(model.StageRXDescriptor), 74)
				same(t, "skbs built", r.spent(model.StageSKBBuild), 0)
				st := r.pool.Stats()
				same(t, "into the cache", st.RecycleCached.Value(), 74)
				refilled := int64(74 - r.rx.Awaiting())
				same(t, "out of it", st.AllocFast.Value(), refilled)
				same(t, "bytes synced", r.spent(model.StageDMASyncByte), 74*60+74*2048)
			})
		})
	}
}

// Each direction of the generic driver has its own vector, core and NAPI; the lan966x
// does both in one.
func TestVectorsAndNAPIs(t *testing.T) {
	for name, c := range map[string]struct {
		s      setup
		lines  []string
		counts [][2]int64 // core and interrupts of each line
		polls  map[int64][]int64
	}{
		"lan966x": {onLAN966x(), []string{"fdma"}, [][2]int64{{1, 2}}, map[int64][]int64{97: {3, 0}}},
		"generic": {onGeneric(), []string{"eth0-rx-0", "eth0-tx-0"}, [][2]int64{{1, 1}, {0, 1}}, map[int64][]int64{97: {3}, 98: {0}}},
	} {
		t.Run(name, func(t *testing.T) {
			c.s.machine.Cores = 2
			c.s.driver.RXCPU, c.s.driver.TXCPU = 1, 0
			r := newRig(c.s, burst(10*us, 3)...)
			r.m.Trace = trace.NewLog(0, ms, 1000)
			r.task(0, 100*us, func(core *cpu.Core) { r.xmit(core, 7, 1) })
			r.run(t, ms)
			var lines []string
			var counts [][2]int64
			for i, l := range r.Lines() {
				same(t, "irq", l.IRQ, 32+i)
				lines = append(lines, l.Name)
				counts = append(counts, [2]int64{int64(l.Core().ID), l.Count})
			}
			same(t, "lines", lines, c.lines)
			same(t, "interrupts", counts, c.counts)
			same(t, "polls", polls(r.m.Trace), c.polls)
			same(t, "reclaimed", r.tx.InFlight(), 0)
			same(t, "sent", r.sent, []uint64{7})
		})
	}
}

// An interface goes up with its ring posted, a page for each descriptor, and its
// interrupts enabled.
func TestOpen(t *testing.T) {
	r := newRig(onGeneric())
	same(t, "free", r.rx.Free(), 64)
	same(t, "pages", r.pool.Stats().Taken.Value(), 64)
	for _, v := range r.dev.Vectors() {
		same(t, "masked", v.Masked(), false)
	}
	r.run(t, us)
}

func TestConfigValidate(t *testing.T) {
	good := onGeneric().driver
	for name, c := range map[string]struct {
		change func(c *Config)
		faults int
	}{
		"good":            {func(*Config) {}, 0},
		"least":           {func(c *Config) { c.Buffer, c.Pool.Size = 60, 1 }, 0},
		"most":            {func(c *Config) { c.Buffer, c.Pool.Size = 65536, 32768 }, 0},
		"no GRO":          {func(c *Config) { c.GRO = nil }, 0},
		"small buffer":    {func(c *Config) { c.Buffer = 59 }, 1},
		"large buffer":    {func(c *Config) { c.Buffer = 65537 }, 1},
		"no ring":         {func(c *Config) { c.Pool.Size = 0 }, 1},
		"ring of -E2BIG":  {func(c *Config) { c.Pool.Size = 32769 }, 1},
		"GRO":             {func(c *Config) { c.GRO.Buckets = 3 }, 1},
		"several at once": {func(c *Config) { c.Buffer, c.Pool.Size = 0, 0 }, 2},
	} {
		cfg := good
		full := *good.GRO
		cfg.GRO = &full
		c.change(&cfg)
		if got := cfg.Validate(); len(got) != c.faults {
			t.Errorf("%s: %v", name, got)
		}
	}
}
