package nic_test

import (
	"fmt"

	"napisim/model/link"
	"napisim/model/traffic"
	"napisim/model/unit"
	"napisim/nic"
	"napisim/sim"
)

// handler is the part of a driver that the engine calls: an interrupt that takes no
// time. A real one runs on a core.
type handler struct {
	eng *sim.Engine
	dev *nic.Device
}

// Raise wakes the driver, which acts by an event of its own.
func (h handler) Raise() { h.eng.Schedule(h.eng.Now(), phaseCommands, h, 0) }

func (h handler) Fire(uint64) {
	now := h.eng.Now()
	vector, ring := h.dev.RXVector(0), h.dev.RX(0)
	vector.Mask()
	ring.Pull(now)
	n := ring.Filled()
	for range n {
		ring.Take()
	}
	ring.Refill(now, n)
	fmt.Printf("%v: %d frames\n", now, n)
	vector.Unmask(now)
}

// A device of 1 Gbit/s receives 1 Mpps with ethtool -C rx-usecs 5 rx-frames 32.
func Example() {
	eng := sim.NewEngine(sim.Lazy)
	in := link.NewPipe(link.Config{Rate: unit.Gbps})
	sender := traffic.DefaultConfig(13 * sim.Microsecond)
	sender.Rate = unit.Mpps
	in.Attach(traffic.New(sender, 1, "sender"))

	cfg := nic.DefaultConfig()
	cfg.RX = nic.Coalesce{Usecs: 5 * sim.Microsecond, Frames: 32}
	if faults := cfg.Validate(); faults != nil {
		fmt.Println(faults)
		return
	}
	out := link.NewEgress(eng, 1, link.Config{Rate: unit.Gbps}, nil)
	dev := nic.New(eng, 0, cfg, in, out)

	dev.RX(0).Refill(0, dev.RX(0).Size())
	dev.RXVector(0).Connect(handler{eng, dev})
	dev.RXVector(0).Unmask(0)
	eng.Run()

	s := dev.Stats(eng.Now())
	fmt.Printf("rx_packets %d, rx_missed_errors %d, %d interrupts\n", s.RXPackets, s.RXMissedErrors, s.Interrupts)
	fmt.Println("accounts:", dev.Check(eng.Now()))
	// Output:
	// 5.672us: 6 frames
	// 11.672us: 6 frames
	// 17.672us: 1 frames
	// rx_packets 13, rx_missed_errors 0, 3 interrupts
	// accounts: <nil>
}
