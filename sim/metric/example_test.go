package metric_test

import (
	"fmt"

	"napisim/sim"
	"napisim/sim/metric"
)

// A component keeps its metrics as plain fields and registers them once; the
// reader of results sees only what happened after the warm-up.
func Example() {
	var ring struct {
		missed metric.Counter
		filled metric.Level
		delay  metric.Histogram
	}
	var set metric.Set
	set.Counter(metric.Desc{Name: "rx_missed_errors", Unit: "frames", Better: metric.Lower}, &ring.missed)
	set.Level(metric.Desc{Name: "rx_ring_filled", Unit: "descriptors"}, &ring.filled)
	set.Histogram(metric.Desc{Name: "rx_delay", Unit: "ps", Better: metric.Lower}, &ring.delay)

	ring.missed.Add(1000) // the cold start
	set.Cut(sim.Second)
	ring.missed.Inc()
	ring.filled.Set(sim.Second, 10)
	ring.filled.Set(2*sim.Second, 30)
	for i := range 100 {
		ring.delay.Add(int64(i) * int64(sim.Nanosecond))
	}

	for _, r := range set.Read(3 * sim.Second) {
		switch r.Kind {
		case metric.KindCounter:
			fmt.Println(r.Name, r.Count, r.Unit)
		case metric.KindLevel:
			fmt.Println(r.Name, r.Mean, r.Unit)
		case metric.KindHistogram:
			fmt.Println(r.Name, "p50", r.Histogram.Quantile(0.5), r.Unit)
		}
	}
	// Output:
	// rx_missed_errors 1 frames
	// rx_ring_filled 20 descriptors
	// rx_delay p50 49023 ps
}
