package figure_test

import (
	"bytes"
	"fmt"

	"napisim/reports/figure"
	"napisim/reports/result"
)

func ExamplePublished() {
	simulated := 410e6
	f, err := figure.Published([]figure.Row{{
		Metric: "goodput", Unit: "bit/s", Source: "a thread", Variant: "after", Role: result.RolePredicted,
		Published: 396e6, Simulated: &simulated,
	}}, "mine, seed 1")
	if err != nil {
		fmt.Println(err)
		return
	}
	var b bytes.Buffer
	fmt.Println(f.WriteSVG(&b), b.Len() > 0)
	// Output: <nil> true
}
