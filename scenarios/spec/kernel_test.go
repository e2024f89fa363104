package spec

import (
	"strings"
	"testing"

	"napisim/scenarios/spec/behaviours"
)

// TestOpenBehaviours: a preset that chooses nothing leaves every behaviour open.
func TestOpenBehaviours(t *testing.T) {
	found := checkBehaviours(nil, "behaviours", "behaviours")
	all := behaviours.All()
	if len(found) != len(all) {
		t.Fatalf("%d faults for %d behaviours", len(found), len(all))
	}
	for i, b := range all {
		if want := "leaves open the behaviour " + b.Name; !strings.Contains(found[i].Text, want) {
			t.Errorf("%q does not say %q", found[i].Text, want)
		}
	}
}
