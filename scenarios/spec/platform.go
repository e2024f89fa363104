package spec

import (
	"fmt"
	"maps"
	"slices"

	"napisim/model/unit"
	"napisim/scenarios/faults"
)

// Platform is a machine: how its kernel is built and what work costs on it.
type Platform struct {
	// The platform that this one starts from: a name or a file.
	Base string `yaml:"base"`
	// The name of the platform.
	Name string `yaml:"name" required:"true"`
	// One line that says what machine this is.
	Summary string `yaml:"summary"`
	// The timer frequency of the kernel on this machine.
	HZ HZ `yaml:"hz" required:"true" unit:"ticks per second" kernel:"CONFIG_HZ"`
	// The preemption model of the kernel on this machine.
	Preempt Preempt `yaml:"preempt" required:"true" kernel:"CONFIG_PREEMPT"`
	// Whether interrupt and softirq time is left out of the runtime of the interrupted
	// task, so that the scheduler does not charge it to whoever was running.
	IRQTimeAccounting bool `yaml:"irq_time_accounting" default:"off" kernel:"CONFIG_IRQ_TIME_ACCOUNTING"`
	// How far the costs vary from one time to the next: the standard deviation over the
	// mean.
	Noise unit.Ratio `yaml:"noise" default:"0%" max:"100%"`
	// What each stage of the receive path costs.
	Costs map[string]Cost `yaml:"costs" required:"true"`
}

// Cost is what one stage of work costs, and how that is known.
type Cost struct {
	// The CPU time of the stage.
	Cost unit.Duration `yaml:"cost" required:"true" max:"1s"`
	// What the time is charged for.
	Per Per `yaml:"per" default:"occurrence"`
	// How the figure is known.
	Kind CostKind `yaml:"kind" required:"true"`
	// Where the figure comes from; of an assumed one, why it is plausible.
	Source string `yaml:"source" required:"true"`
	// The published rows that the figure was fitted to.
	Rows string `yaml:"rows" required:"true" for:"fitted"`
}

// Per says what a cost is charged for.
type Per string

// What a cost can be charged for.
const (
	PerOccurrence Per = "occurrence"
	PerByte       Per = "byte"
)

// Values returns what can be written.
func (Per) Values() []string { return []string{string(PerOccurrence), string(PerByte)} }

// CostKind says how a cost is known.
type CostKind string

// The kinds of costs, the best known first.
const (
	CostMeasured  CostKind = "measured"
	CostPublished CostKind = "published"
	CostFitted    CostKind = "fitted"
	CostAssumed   CostKind = "assumed"
)

// Values returns the kinds that can be written.
func (CostKind) Values() []string {
	return []string{string(CostMeasured), string(CostPublished), string(CostFitted), string(CostAssumed)}
}

// checkStages returns a fault for each cost of an unknown stage and for each stage
// without a cost: nothing is free by omission. Without stages nothing is checked.
func (p *Platform) checkStages(stages []string) faults.List {
	if len(stages) == 0 {
		return nil
	}
	var found faults.List
	for _, name := range slices.Sorted(maps.Keys(p.Costs)) {
		if !slices.Contains(stages, name) {
			found = append(found, faults.Fault{
				Path:       "costs." + name,
				Text:       "is no stage of the receive path",
				Suggestion: faults.Nearest(name, stages),
			})
		}
	}
	for _, name := range stages {
		if _, ok := p.Costs[name]; !ok {
			found = append(found, faults.Fault{
				Path: "costs",
				Text: fmt.Sprintf("has no cost for the stage %s; write 0ns if it is free", name),
			})
		}
	}
	return found
}
