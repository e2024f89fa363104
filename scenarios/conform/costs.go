package conform

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"

	"gopkg.in/yaml.v3"

	"napisim/model"
	"napisim/scenarios/recording"
	"napisim/sim"
)

//go:embed costs.yaml
var costsYAML []byte

// A costsFile is costs.yaml; figures are nanoseconds.
type costsFile struct {
	Kernels map[string]kernelCosts `yaml:"kernels"`
	Devices []deviceCosts          `yaml:"devices"`
}

type kernelCosts struct {
	From      string             `yaml:"from"`
	Processes []string           `yaml:"processes"`
	Event     int64              `yaml:"event"`
	IPError   int64              `yaml:"ip_error"`
	Memory    memoryCosts        `yaml:"memory"`
	Costs     map[string]float64 `yaml:"costs"`
	Probes    map[string]int64   `yaml:"probes"`
	Pktgen    struct {
		Prepare int64 `yaml:"prepare"`
		Look    int64 `yaml:"look"`
	} `yaml:"pktgen"`
}

// memoryCosts are what pages cost: for the heads of small skbs, for their descriptors, and
// those of receive buffers when they are freed.
type memoryCosts struct {
	HeadPage int64 `yaml:"head_page"`
	SlabPage int64 `yaml:"slab_page"`
	FreePage int64 `yaml:"free_page"`
	// Cached and Heads are what the core had in store when the traffic began, Owed is how many
	// of the first skbs freed leave a page that something else keeps.
	Cached int `yaml:"cached"`
	Heads  int `yaml:"heads"`
	Owed   int `yaml:"owed"`
	// DataPage, ClonePage and the rest are those of skbuff.SentConfig.
	DataPage    int64 `yaml:"data_page"`
	ClonePage   int64 `yaml:"clone_page"`
	DataObjects int   `yaml:"data_objects"`
	Data        int   `yaml:"data"`
	Clones      int   `yaml:"clones"`
	Linear      int   `yaml:"linear"`
	// Slab is how many descriptors the slab had in store when processes begin to send.
	Slab int `yaml:"slab"`
}

// override takes over what a device has of its own.
func (m *memoryCosts) override(own *memoryCosts) {
	if own.Cached > 0 {
		m.Cached = own.Cached
	}
	if own.Heads > 0 {
		m.Heads = own.Heads
	}
}

type deviceCosts struct {
	Model  string             `yaml:"model"` // of a NIC, or one of the parts that parts returns
	Kernel string             `yaml:"kernel"`
	RT     bool               `yaml:"rt"`
	From   string             `yaml:"from"`
	Costs  map[string]float64 `yaml:"costs"`
	Memory memoryCosts        `yaml:"memory"`
	// Send is a process's own work for each frame that it sends, Dequeue that of a queueing
	// discipline.
	Send    int64 `yaml:"send"`
	Dequeue int64 `yaml:"dequeue"`
}

// parts returns which parts a recorded machine has that not every machine has.
func parts(r *recording.Recording) []string {
	all := []string{r.NIC.Model, r.Topology, r.Sender.Role}
	steers := slices.ContainsFunc(r.Devices, func(d recording.Device) bool { return steering(&d) != nil })
	if steers {
		all = append(all, "rps")
	}
	if steers || r.Topology == "veth" {
		all = append(all, "backlog")
	}
	if r.Topology == "veth" && !vethNAPI(r) {
		all = append(all, "veth whole")
	}
	return all
}

// prices are what everything costs on one recorded machine.
type prices struct {
	stages        model.Costs
	event         sim.Time
	memory        memoryCosts
	ipError       sim.Time // ip_error, beyond what IP costs anyway
	prepare, look sim.Time
	send, dequeue sim.Time
	from          []string // recordings that the figures come from
}

// pricesOf returns the prices of a recording's machine.
func pricesOf(r *recording.Recording) (p prices, err error) {
	var file costsFile
	if err := yaml.Unmarshal(costsYAML, &file); err != nil {
		return p, fmt.Errorf("costs.yaml: %w", err)
	}
	k, ok := file.Kernels[r.Kernel.Preset]
	if !ok {
		return p, fmt.Errorf("no costs are known for kernel %s, only for %v", r.Kernel.Preset, slices.Sorted(maps.Keys(file.Kernels)))
	}
	p.event, p.ipError, p.memory = ns(k.Event), ns(k.IPError), k.Memory
	p.prepare, p.look = ns(k.Pktgen.Prepare), ns(k.Pktgen.Look)
	p.from = []string{k.From}
	if streams(r) {
		p.from = append(p.from, k.Processes...)
	}
	if err := p.set(k.Costs); err != nil {
		return p, err
	}
	for _, d := range file.Devices {
		if d.Kernel == r.Kernel.Preset && slices.Contains(parts(r), d.Model) && (!d.RT || r.Kernel.RT) {
			p.from = append(p.from, d.From)
			p.memory.override(&d.Memory)
			p.send, p.dequeue = max(p.send, ns(d.Send)), max(p.dequeue, ns(d.Dequeue))
			if err := p.set(d.Costs); err != nil {
				return p, err
			}
		}
	}
	p.traced(r, k.Probes)
	return p, nil
}

func (p *prices) set(costs map[string]float64) error {
	for name, cost := range costs {
		stage, err := model.ParseStage(name)
		if err != nil {
			return fmt.Errorf("costs.yaml: %w", err)
		}
		p.stages[stage] = sim.Time(cost * float64(sim.Nanosecond))
	}
	return nil
}

// probed says where the probe of a function takes its time.
var probed = map[string]model.Stage{
	"napi_complete_done":     model.StageCompleteStart,
	"napi_complete_done_ret": model.StageCompleteEnd,
	"napi_busy_loop":         model.StageBusyPollStart,
	"busy_poll_stop":         model.StageBusyPollStop,
	"napi_schedule_prep_ret": model.StageNAPISchedule,
	"napi_schedule_":         model.StageNAPIQueue,
	"net_rx_action_entry":    model.StageNetRXAction,
	"net_rx_action_exit":     model.StageNetRXTail,
	"drv_xmit":               model.StageTXPost,
}

// traced adds what the recording traced at places where the model has no event. A probe is
// a trap.
func (p *prices) traced(r *recording.Recording, probes map[string]int64) {
	names := traced(r)
	if r.Topology == "veth" && !vethNAPI(r) && names["process_backlog"] {
		p.stages[model.StageNAPIPoll] += ns(probes["process_backlog"])
	}
	for name, stage := range probed {
		if names[name] {
			p.stages[stage] += ns(probes[name])
		}
	}
}

// ns converts a time of a trace.
func ns(n int64) sim.Time { return sim.Time(n) * sim.Nanosecond }
