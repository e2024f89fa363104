package result

// Schema names the format of the JSON document and its version. The number
// changes when a field changes its meaning or goes away, not when one is added.
const Schema = "napisim.result/1"

// A Document is the outcome of running one scenario: every run of every variant.
type Document struct {
	Schema   string   `json:"schema"`
	Tool     Tool     `json:"tool"`
	Scenario Scenario `json:"scenario"`
	Runs     []Run    `json:"runs"`
}

// A Tool names the program that wrote a document.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// A Scenario says what was simulated. Resolved is the scenario as YAML after
// includes, defaults and settings from the command line, so that the document
// alone is enough to run it again; Digest is a hash of that text.
type Scenario struct {
	Name     string `json:"name"`
	Digest   string `json:"digest"`
	Resolved string `json:"resolved"`
}

// A Run is one simulation of one variant with one seed.
type Run struct {
	Seed uint64 `json:"seed"`
	// Variant tells the runs of a sweep or a comparison apart; empty when a
	// scenario has only one form.
	Variant string `json:"variant"`
	// Kernel is the kernel preset that the run mirrors, if it names one.
	Kernel string `json:"kernel,omitempty"`
	// Fingerprint is a hash over the trajectory, in hexadecimal. Two runs with
	// the same fingerprint took the same steps at the same instants.
	Fingerprint string `json:"fingerprint"`
	// SimulatedSeconds is how far the clock ran; MeasuredSeconds is the part
	// after the warm-up, over which rates and shares are taken.
	SimulatedSeconds float64              `json:"simulated_seconds"`
	MeasuredSeconds  float64              `json:"measured_seconds"`
	Metrics          map[string]Metric    `json:"metrics"`
	Histograms       map[string]Histogram `json:"histograms"`
	Cores            []Core               `json:"cores"`
	Losses           []Loss               `json:"losses"`
	Provenance       []Provenance         `json:"provenance"`
	Published        []Published          `json:"published"`
	Warnings         []string             `json:"warnings"`
}

// A Metric is one number of a run in its base unit: bit/s, 1/s, s, frames, or
// 1 for a ratio.
type Metric struct {
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Better Better  `json:"better"`
}

// Better says which direction of a metric is the good one.
type Better string

// The values of Better. Neither marks numbers that describe a run without
// judging it, such as the number of polls.
const (
	Higher  Better = "higher"
	Lower   Better = "lower"
	Neither Better = ""
)

// A Core says where one simulated CPU spent the measured time, as a fraction
// per context (user, system, hardirq, softirq, ksoftirqd, idle, ...).
type Core struct {
	CPU    int                `json:"cpu"`
	Shares map[string]float64 `json:"shares"`
}

// A Loss counts the frames that one place dropped for one reason. Counter is
// where a Linux user would see them, for example rx_missed_errors.
type Loss struct {
	Place   string `json:"place"`
	Reason  string `json:"reason"`
	Counter string `json:"counter"`
	Count   int64  `json:"count"`
}

// Kind says how much is known about a cost.
type Kind string

// The kinds of costs, from the firmest to the weakest.
const (
	KindMeasured  Kind = "measured"
	KindPublished Kind = "published"
	KindFitted    Kind = "fitted"
	KindAssumed   Kind = "assumed"
)

// Kinds returns every Kind, firmest first.
func Kinds() []Kind {
	return []Kind{KindMeasured, KindPublished, KindFitted, KindAssumed}
}

// A Provenance is the share of the busy CPU time that was charged at costs of
// one kind. A prediction that rests on assumed costs has to say so.
type Provenance struct {
	Kind    Kind        `json:"kind"`
	Share   float64     `json:"share"`
	Seconds float64     `json:"seconds"`
	Stages  []StageCost `json:"stages"`
}

// A StageCost is the CPU time of one cost stage. Source says where its cost
// comes from; Rows names the published rows that a fitted cost was fitted on.
type StageCost struct {
	Stage   string   `json:"stage"`
	Seconds float64  `json:"seconds"`
	Source  string   `json:"source"`
	Rows    []string `json:"rows"`
}

// Role says what a published row was used for.
type Role string

// The roles of published rows. A fitted row was looked at when costs were
// chosen and proves nothing; a predicted row was not.
const (
	RoleFitted    Role = "fitted"
	RolePredicted Role = "predicted"
)

// A Published is a number that somebody measured on hardware and published, to
// be held against the run's metric of the same name.
type Published struct {
	Source string  `json:"source"`
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Role   Role    `json:"role"`
	Note   string  `json:"note"`
}
