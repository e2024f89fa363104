package softirq_test

import (
	"fmt"

	"napisim/model"
	"napisim/model/cpu"
	"napisim/sim"
	"napisim/softirq"
)

// nowhere is a stack above which nothing is: this example's driver drops all.
type nowhere struct{}

func (nowhere) ReceiveSKB(*cpu.Core, *model.SKB)      {}
func (nowhere) ReceiveList(*cpu.Core, *model.SKBList) {}

// doorbell raises an interrupt line in the engine's context, as devices do.
type doorbell struct{ line *cpu.Line }

// Fire raises the interrupt.
func (d doorbell) Fire(uint64) { d.line.Raise() }

// A burst of 300 frames is in the ring when the interrupt comes. The driver's poll
// function handles up to its budget, 64 frames, and is called again in further passes
// of the softirq loop until it handles less.
func Example() {
	eng := sim.NewEngine(sim.Lazy)
	defer eng.Close()
	machine := cpu.NewMachine(eng, cpu.Config{Cores: 1, HZ: 250, Costs: model.Costs{model.StageRXDescriptor: 200 * sim.Nanosecond}})
	core := machine.Cores[0]
	softnet := softirq.NewSoftnet(core, softirq.DefaultConfig(), nowhere{}, &model.SKBPool{})

	ring := 300
	var napi *softirq.NAPI
	napi = softirq.NewNAPI(softirq.NAPIConfig{Name: "eth0", ID: 1, Poll: func(budget int) int {
		work := min(budget, ring)
		ring -= work
		core.SpendN(model.StageRXDescriptor, work)
		done := work < budget && napi.CompleteDone(work)
		fmt.Println(work, done)
		return work
	}})
	line := core.NewLine(24, "eth0", func(*cpu.Core) { softnet.NAPISchedule(napi) })
	eng.Schedule(10*sim.Microsecond, 1, doorbell{line}, 0)
	eng.Run()

	stats := softnet.Stats()
	fmt.Println(stats.Softirqs[softirq.NetRX], "passes of NET_RX,", stats.Invocations, "run of the softirq loop")
	// Output:
	// 64 false
	// 64 false
	// 64 false
	// 64 false
	// 44 true
	// 5 passes of NET_RX, 1 run of the softirq loop
}
