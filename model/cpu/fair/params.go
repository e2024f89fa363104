package fair

import (
	"fmt"
	"math/bits"

	"napisim/sim"
)

// Policy is the algorithm of the fair class.
type Policy uint8

// The policies.
const (
	CFS   Policy = iota // up to v6.5
	EEVDF               // from v6.6

	numPolicies
)

// Params are what the fair classes of kernels differ in. Times are those of one core;
// they are scaled by 1 + floor(log2(min(cores, 8))) (SCHED_TUNABLESCALING_LOG). A time
// of 0 stands for the kernel's default. The zero value is CFS with its defaults.
type Params struct {
	// Policy is CFS or EEVDF.
	Policy Policy
	// Latency is sched_latency_ns of CFS, 6 ms: in which each of up to 8 tasks runs
	// once, and of which sleepers get half as credit.
	Latency sim.Time
	// MinGranularity is sched_min_granularity_ns of CFS, 0.75 ms.
	MinGranularity sim.Time
	// WakeupGranularity is sched_wakeup_granularity_ns of CFS, 1 ms.
	WakeupGranularity sim.Time
	// BaseSlice is base_slice_ns of EEVDF, 0.75 ms; 0.70 ms from v6.17 on or little before.
	BaseSlice sim.Time
	// DelayDequeue is the feature DELAY_DEQUEUE of EEVDF from v6.12 on: who goes to
	// sleep ahead of the average stays on the queue until it is no longer ahead.
	DelayDequeue bool
}

// A named is a set of parameters that kernels have.
type named struct {
	name   string
	params Params
}

// schedulers lists the sets in the order of the kernel's history.
var schedulers = [...]named{
	{"cfs", Params{Policy: CFS}},
	{"eevdf_6_6", Params{Policy: EEVDF}},
	{"eevdf_6_12", Params{Policy: EEVDF, DelayDequeue: true}},
	{"eevdf_6_17", Params{Policy: EEVDF, DelayDequeue: true, BaseSlice: 700 * sim.Microsecond}},
}

// Names lists the sets that Parse knows.
func Names() []string {
	var all []string
	for _, s := range schedulers {
		all = append(all, s.name)
	}
	return all
}

// Parse returns the parameters of that name.
func Parse(name string) (Params, error) {
	for _, s := range schedulers {
		if s.name == name {
			return s.params, nil
		}
	}
	return Params{}, fmt.Errorf("unknown scheduler %q", name)
}

// Validate returns every fault of the parameters.
func (p Params) Validate() []error {
	var faults []error
	if p.Policy >= numPolicies {
		faults = append(faults, fmt.Errorf("scheduler: there is no policy %d", p.Policy))
	}
	for _, d := range []struct {
		name string
		d    sim.Time
	}{
		{"latency", p.Latency},
		{"min_granularity", p.MinGranularity},
		{"wakeup_granularity", p.WakeupGranularity},
		{"base_slice", p.BaseSlice},
	} {
		if d.d < 0 || d.d > sim.Second {
			faults = append(faults, fmt.Errorf("scheduler.%s: %v is not between 0 and 1s", d.name, d.d))
		}
	}
	return faults
}

// scaled are parameters with defaults filled in, for a number of cores.
type scaled struct {
	Params
	tick sim.Time
}

func (p Params) scale(cores int, tick sim.Time) scaled {
	f := sim.Time(bits.Len(uint(min(cores, 8))))
	scale := func(d *sim.Time, unset sim.Time) {
		if *d == 0 {
			*d = unset
		}
		*d *= f
	}
	scale(&p.Latency, 6*sim.Millisecond)
	scale(&p.MinGranularity, 750*sim.Microsecond)
	scale(&p.WakeupGranularity, sim.Millisecond)
	scale(&p.BaseSlice, 750*sim.Microsecond)
	p.DelayDequeue = p.DelayDequeue && p.Policy == EEVDF
	return scaled{p, tick}
}

// policy is what CFS and EEVDF do differently.
type policy struct {
	// key is what waiting entities are ordered by.
	key func(*Entity) sim.Time
	// charged is called when the running entity has run; it reports whether a switch is due.
	charged func(*Queue, *Entity) bool
	// place gives an entity that comes onto the queue its place (place_entity).
	place func(q *Queue, e *Entity, fresh bool)
	// pick chooses among the entities on the queue, the running one included.
	pick func(*Queue) *Entity
	// preempts decides for a woken entity, tick for the running one.
	preempts func(*Queue, *Entity) bool
	tick     func(*Queue) bool
}

var policies = [numPolicies]policy{
	CFS:   {byVRuntime, chargedCFS, placeCFS, pickCFS, preemptsCFS, tickCFS},
	EEVDF: {byDeadline, chargedEEVDF, placeEEVDF, (*Queue).pickEEVDF, preemptsEEVDF, tickEEVDF},
}
