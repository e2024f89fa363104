package metric

import "fmt"

// Better says which direction of a metric a user prefers, so that a comparison
// can tell an improvement from a regression.
type Better uint8

const (
	// Neither direction is good or bad in itself, as of a number of polls.
	Neither Better = iota
	// Higher values are better, as of goodput.
	Higher
	// Lower values are better, as of latency or drops.
	Lower
)

// String returns the spelling of the Go benchmark format: higher, lower or neither.
func (b Better) String() string {
	switch b {
	case Neither:
		return "neither"
	case Higher:
		return "higher"
	case Lower:
		return "lower"
	}
	return fmt.Sprintf("Better(%d)", uint8(b))
}

// Desc describes a metric for those who read results.
type Desc struct {
	// Name follows the kernel's spelling where it counts the same thing, such as
	// rx_missed_errors.
	Name string
	// Unit is what one of the recorded integers stands for: frames, B, ps.
	Unit string
	// Better is the direction that a user prefers.
	Better Better
}

// Counter counts occurrences or sums amounts over a whole run.
type Counter int64

// Inc adds one.
func (c *Counter) Inc() { *c++ }

// Add adds n. It is negative only to take back what was counted too early.
func (c *Counter) Add(n int64) { *c += Counter(n) }

// Value returns the count since the start of the run.
func (c *Counter) Value() int64 { return int64(*c) }
