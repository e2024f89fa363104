package scenarios_test

import (
	"fmt"
	"testing"

	"napisim/scenarios"
)

// Fact 4 of the recordings: what the two kernels refuse. netdev_budget_usecs must not be
// below two ticks, which at 250 Hz are 8000 us; netdev_budget may be 0; dev_weight and
// gro_normal_batch may not.
func TestFact04SysctlLimits(t *testing.T) {
	l := scenarios.Loader(scenarios.Stages())
	for _, kernel := range []string{"v6.1", "v6.12"} {
		for name, values := range map[string]map[int]bool{
			"netdev_budget_usecs": {
				0: false, 1: false, 100: false, 3999: false, 4000: false, 4001: false, 7999: false,
				8000: true, 8001: true, 20000: true,
			},
			"netdev_budget":    {0: true, 1: true, 64: true},
			"dev_weight":       {0: false, 1: true, 64: true},
			"gro_normal_batch": {0: false, 1: true, 8: true},
		} {
			for value, accepted := range values {
				_, err := l.Resolve("quickstart", []string{
					"kernel=" + kernel, "hz=250", fmt.Sprintf("sysctl.net.core.%s=%d", name, value),
				})
				if (err == nil) != accepted {
					t.Errorf("%s: %s=%d: accepted is to be %v: %v", kernel, name, value, accepted, err)
				}
			}
		}
	}
}
