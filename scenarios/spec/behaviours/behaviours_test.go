package behaviours_test

import (
	"slices"
	"strings"
	"testing"

	"napisim/scenarios/spec/behaviours"
)

// TestAll: the descriptions are complete, no name is given twice, and the list is in the
// order of names.
func TestAll(t *testing.T) {
	all := behaviours.All()
	if !slices.IsSortedFunc(all, func(a, b behaviours.Behaviour) int { return strings.Compare(a.Name, b.Name) }) || len(all) == 0 {
		t.Error("behaviours are not in the order of their names")
	}
	for _, b := range all {
		seen := map[string]bool{}
		for _, v := range b.Values {
			if seen[v.Name] {
				t.Errorf("%s: %s is there twice", b.Name, v.Name)
			}
			seen[v.Name] = true
			if v.Doc == "" || v.Versions == "" {
				t.Errorf("%s: %s is not described", b.Name, v.Name)
			}
		}
		if len(b.Values) < 2 {
			t.Errorf("%s leaves no choice", b.Name)
		}
	}
}
