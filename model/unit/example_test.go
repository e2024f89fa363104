package unit_test

import (
	"fmt"

	"napisim/model/unit"
)

func Example() {
	delay, _ := unit.ParseDuration("1.5us")
	ring, _ := unit.ParseBytes("65536B")
	fmt.Println(int64(delay), delay, ring)

	_, err := unit.ParseBitRate("10mbps")
	fmt.Println(err)
	_, err = unit.ParseDuration("20")
	fmt.Println(err)
	// Output:
	// 1500000 1.5us 64KiB
	// "10mbps" has an unknown unit; rates count bits, with SI prefixes (did you mean "10Mbps"?)
	// "20" needs a unit (for example 20us)
}
