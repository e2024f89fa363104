package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"napisim/model/unit"
	"napisim/scenarios/strict"
)

// Version is the version of the scenario format that this package reads.
const Version = 1

// A Scenario is one experiment: a machine, a kernel, what is sent to it and who reads
// it. After Loader.Resolve every field that has a meaning has a value.
type Scenario struct {
	// The version of the scenario format; this is version 1.
	Version int `yaml:"napisim" required:"true" min:"1" max:"1" set:"no"`
	// The name of the scenario in results.
	Name string `yaml:"name" derived:"the name of the file" inherit:"no"`
	// One line that says what the scenario shows.
	Summary string `yaml:"summary" inherit:"no"`
	// Prose for whoever reads the scenario: what it models, what it leaves out.
	Notes string `yaml:"notes" inherit:"no"`
	// The scenario that this one starts from: a file, relative to this one, or a name of
	// the library. Mappings merge key by key, lists and single values replace those of
	// the base, and null takes an entry of the base away.
	Base string `yaml:"base" inherit:"no" set:"no"`
	// The machine: what work costs on it. A name, a file or the platform itself.
	Platform Platform `yaml:"platform" required:"true" shorthand:"base"`
	// The kernel, as a set of named choices.
	Kernel Kernel `yaml:"kernel" required:"true" shorthand:"preset"`
	// The timer frequency of the kernel.
	HZ HZ `yaml:"hz" derived:"that of the platform" unit:"ticks per second" kernel:"CONFIG_HZ"`
	// The preemption model of the kernel.
	Preempt Preempt `yaml:"preempt" derived:"that of the platform" kernel:"CONFIG_PREEMPT"`
	// The number of CPUs that run the kernel.
	CPUs int `yaml:"cpus" default:"1" min:"1" max:"1024" unit:"CPUs"`
	// The simulated time, warm-up included.
	Duration unit.Duration `yaml:"duration" required:"true" min:"1us" why:"nothing happens in less"`
	// The time at the start whose events are not counted in the results.
	Warmup unit.Duration `yaml:"warmup" default:"0s"`
	// The seed of the first run. The same seed gives the same run, to the last byte.
	Seed uint64 `yaml:"seed" default:"1"`
	// The number of runs, with the seeds seed, seed+1 and so on.
	Runs int `yaml:"runs" default:"1" min:"1" max:"10000"`
	// The network cards, by the name of their interface.
	NICs map[string]NIC `yaml:"nics"`
	// The tap devices, by the name of their interface.
	Taps map[string]Tap `yaml:"taps"`
	// The veth pairs, by the name of their receiving end.
	Veths map[string]Veth `yaml:"veths"`
	// The kernel settings, by their names in sysctl.
	Sysctl Sysctl `yaml:"sysctl"`
	// What runs in user space, by name.
	Apps map[string]App `yaml:"apps"`
	// What is sent to the machine, by name.
	Traffic map[string]Traffic `yaml:"traffic"`
	// Published figures that the results are shown beside.
	Evidence []Evidence `yaml:"evidence" inherit:"no"`
}

// HZ is a timer frequency that Linux can be built with.
type HZ int

// Values returns the frequencies that Kconfig offers.
func (HZ) Values() []string { return []string{"100", "250", "300", "1000"} }

// Tick returns the time between two timer interrupts.
func (hz HZ) Tick() unit.Duration { return unit.Second / unit.Duration(hz) }

// Preempt is a preemption model.
type Preempt string

// The preemption models.
const (
	PreemptNone      Preempt = "none"
	PreemptVoluntary Preempt = "voluntary"
	PreemptFull      Preempt = "full"
	PreemptLazy      Preempt = "lazy"
)

// Values returns the models that can be written.
func (Preempt) Values() []string {
	return []string{string(PreemptNone), string(PreemptVoluntary), string(PreemptFull), string(PreemptLazy)}
}

// Evidence is one published figure.
type Evidence struct {
	// Where the figure was published.
	Source string `yaml:"source" required:"true"`
	// The assignments, as for --set and separated by blanks, that turn the scenario into
	// what was measured; empty for the scenario as it stands.
	Variant string `yaml:"variant"`
	// The metric of the results that the figure belongs to.
	Metric string `yaml:"metric" required:"true"`
	// The figure, in the unit of the metric.
	Value float64 `yaml:"value" required:"true"`
	// Whether costs were fitted to the figure, or it is predicted.
	Role Role `yaml:"role" required:"true"`
	// What a reader should know about the figure.
	Note string `yaml:"note"`
}

// Assignments returns the assignments of the variant, for Loader.Resolve.
func (e Evidence) Assignments() []string { return strings.Fields(e.Variant) }

// Role says what a published figure is used for. A figure that costs were fitted to
// says nothing about the model's power to predict.
type Role string

// The roles of published figures.
const (
	RoleFitted    Role = "fitted"
	RolePredicted Role = "predicted"
)

// Values returns the roles that can be written.
func (Role) Values() []string { return []string{string(RoleFitted), string(RolePredicted)} }

// Resolved returns the scenario as canonical YAML with every default written out. The
// same scenario gives the same bytes, and reading them gives the same scenario.
func (s *Scenario) Resolved() []byte { return strict.Encode(strict.Tree(*s)) }

// Digest returns the SHA-256 of the resolved scenario in hexadecimal.
func (s *Scenario) Digest() string {
	sum := sha256.Sum256(s.Resolved())
	return hex.EncodeToString(sum[:])
}

// versioned reports whether a document says that it is of the version read here.
func versioned(n *strict.Node) bool {
	text, ok := n.Get("napisim").Text()
	return ok && text == strconv.Itoa(Version)
}
