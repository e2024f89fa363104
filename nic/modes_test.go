package nic_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"napisim/model"
	"napisim/model/link"
	"napisim/model/traffic"
	"napisim/model/unit"
	"napisim/nic"
	"napisim/sim"
)

// core is a processor with one task, which handles interrupts when it has nothing
// else to do. Its time is a debt that is paid when it looks.
type core struct {
	eng     *sim.Engine
	proc    *sim.Proc
	debt    sim.Time
	pending bool
	idle    bool
}

func (c *core) Raise() {
	c.pending = true
	if c.idle {
		c.idle = false
		c.eng.Ready(c.proc)
	}
}

func (c *core) Fire(uint64) { c.eng.Ready(c.proc) }

func (c *core) spend(d sim.Time) {
	c.debt += d
	if c.eng.Mode() == sim.Eager {
		c.look()
	}
}

// look pays the debt and returns the time.
func (c *core) look() sim.Time {
	if d := c.debt; d > 0 {
		c.debt = 0
		if !c.eng.AdvanceWithin(d) {
			c.eng.Schedule(c.eng.Now()+d, phaseCommands+1, c, 0)
			c.proc.Park()
		}
	}
	return c.eng.Now()
}

func (c *core) wait() {
	c.look()
	for !c.pending {
		c.idle = true
		c.proc.Park()
	}
	c.pending = false
}

// system is a driver with polls of up to 64 frames on a core, open-loop traffic, and
// a peer that answers each ACK with two frames.
type system struct {
	cfg      nic.Config
	tr       traffic.Config
	perFrame sim.Time
	perPoll  sim.Time
	ackEvery int
	window   int
}

// Deliver is the peer's part.
type answering struct {
	eng *sim.Engine
	in  *link.Pipe
}

func (a answering) Deliver(*model.Segment) {
	for range 2 {
		a.in.Offer(model.Frame{Len: 1514, Seq: 1}, a.eng.Now())
	}
}

func (s system) run(eng *sim.Engine) []string {
	const stop = 3 * sim.Millisecond
	var log []string
	defer eng.Close()
	cfg := link.Config{Rate: unit.Gbps, Delay: 2 * us}
	in := link.NewPipe(cfg)
	in.Attach(traffic.New(s.tr, 1, "sender"))
	dev := nic.New(eng, phaseDevice, s.cfg, in, link.NewEgress(eng, 1, cfg, answering{eng, in}))
	for range s.window {
		in.Offer(model.Frame{Len: 1514, Seq: 1}, 0)
	}
	c := &core{eng: eng}
	c.proc = eng.NewProc("core", func(*sim.Proc) { s.driver(c, dev, &log) })
	for _, v := range dev.Vectors() {
		v.Connect(c)
	}
	eng.Ready(c.proc)
	eng.Schedule(stop, 255, do(eng.Stop), 0)
	eng.Run()
	if err := dev.Check(eng.Now()); err != nil {
		log = append(log, err.Error())
	}
	return append(log, fmt.Sprintf("%+v", dev.Stats(eng.Now())))
}

func (s system) driver(c *core, dev *nic.Device, log *[]string) {
	rx, tx := dev.RX(0), dev.TX(0)
	unmask := func(now sim.Time) {
		for _, v := range dev.Vectors() {
			v.Unmask(now)
		}
	}
	rx.Refill(0, rx.Size())
	unmask(0)
	acks := 0
	for {
		c.wait()
		c.spend(us)
		now := c.look()
		for _, v := range dev.Vectors() {
			v.Mask()
			v.Ack(now)
		}
		for done := false; !done; {
			c.spend(s.perPoll)
			tx.Reap(c.look())
			n := 0
			for ; n < 64; n++ {
				if rx.Filled() == 0 {
					rx.Pull(c.look())
					if rx.Filled() == 0 {
						break
					}
				}
				f := rx.Take()
				c.spend(s.perFrame)
				if acks += int(f.Seq); acks >= s.ackEvery {
					acks -= s.ackEvery
					tx.Xmit(c.look(), &model.Segment{Frame: model.Frame{Len: 66}})
				}
			}
			rx.Refill(c.look(), n)
			*log = append(*log, fmt.Sprintf("%v: %d frames, %d missed", c.look(), n, rx.Missed()))
			done = n < 64
		}
		c.spend(500 * ns)
		unmask(c.look())
	}
}

// A run is the same whether a core pays its debts when it looks, at once, or by
// events, and in whatever order events of one instant and phase are fired.
func TestModesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := system{
			cfg: nic.Config{
				RXRing: rapid.SampledFrom([]int{4, 64, 512}).Draw(t, "rx"), TXRing: 64,
				RX: drawCoalesce(t), TX: drawCoalesce(t),
				SharedVector: rapid.Bool().Draw(t, "shared"),
				Rearm:        nic.Rearm(rapid.IntRange(0, 1).Draw(t, "rearm")),
				TXLatency:    us,
			},
			tr:       traffic.DefaultConfig(sim.Second),
			perFrame: sim.Time(rapid.IntRange(0, 3000).Draw(t, "per frame")) * ns,
			perPoll:  us,
			ackEvery: rapid.IntRange(2, 5).Draw(t, "ack every"),
			window:   rapid.IntRange(0, 40).Draw(t, "window"),
		}
		s.cfg.RX.Usecs *= ns // up to 1 us, the frames' own scale
		s.cfg.TX.Usecs *= 20 * ns
		s.tr.Rate = unit.PacketRate(rapid.Int64Range(1, 1600).Draw(t, "kpps")) * unit.Kpps
		s.tr.Gaps = traffic.Gaps(rapid.IntRange(0, 1).Draw(t, "gaps"))
		lazy := s.run(sim.NewEngine(sim.Lazy))
		for name, eng := range map[string]*sim.Engine{
			"eager":    sim.NewEngine(sim.Eager),
			"slow":     sim.NewEngine(sim.Slow),
			"shuffled": sim.NewEngineShuffled(sim.Lazy, rapid.Uint64().Draw(t, "seed")),
		} {
			if diff := cmp.Diff(lazy, s.run(eng)); diff != "" {
				t.Fatalf("%s: (-lazy +%[1]s)\n%s", name, diff)
			}
		}
	})
}
