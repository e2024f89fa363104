//go:build !race

package scenarios

import "testing"

// alone skips a test of runs that have nothing beside them when the race detector looks on.
func alone(*testing.T) {}
