//go:build race

package scenarios

import "testing"

// alone skips a test of runs that have nothing beside them when the race detector looks on:
// it has nothing to find there, and takes twenty times as long.
func alone(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("one run at a time is no question of races")
	}
}
