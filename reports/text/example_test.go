package text_test

import (
	"log"
	"os"

	"napisim/reports/result"
	"napisim/reports/text"
)

func ExampleRender() {
	d := &result.Document{
		Tool:     result.Tool{Name: "napisim", Version: "v0.1.0"},
		Scenario: result.Scenario{Name: "one-flow", Digest: "sha256:5f3a"},
		Runs: []result.Run{{
			Seed: 1, Kernel: "v6.1", Fingerprint: "c0ffee", SimulatedSeconds: 10, MeasuredSeconds: 9,
			Metrics: map[string]result.Metric{
				"goodput":    {Value: 396e6, Unit: "bit/s", Better: result.Higher},
				"interrupts": {Value: 9700, Unit: "1/s", Better: result.Lower},
			},
			Losses: []result.Loss{{Place: "eth0 rx-0", Reason: "no free descriptor", Counter: "rx_missed_errors", Count: 12}},
		}},
	}
	if err := text.Render(os.Stdout, d, text.Options{Width: 72}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// one-flow  kernel v6.1  seed 1
	//   digest sha256:5f3a  by napisim v0.1.0
	//   seed  fingerprint  simulated  measured
	//      1  c0ffee            10 s       9 s
	//
	// throughput
	//   goodput  396  Mbit/s
	//
	// interrupts, softirqs, polls
	//   interrupts  9.7  k/s
	//
	// where frames were lost  12 frames
	//   place      frames  share  reason              Linux counter
	//   eth0 rx-0      12  100 %  no free descriptor  rx_missed_errors
}

func ExampleList() {
	list := text.List([]text.Item{
		{Name: "always_raise", Description: "raise NET_RX on each schedule"},
		{Name: "skip_in_net_rx_action", Description: "loop once more instead"},
	})
	if err := list.Write(os.Stdout, text.FormatText, text.Options{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// name                   description
	// always_raise           raise NET_RX on each schedule
	// skip_in_net_rx_action  loop once more instead
}
