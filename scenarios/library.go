package scenarios

import (
	"bytes"
	"embed"

	"napisim/model"
	"napisim/reports/result"
	"napisim/scenarios/spec"
	"napisim/sim/trace"
)

//go:generate go test -run ^TestSchema$ . -update

// files is what Loader finds by name.
//
//go:embed library kernels platforms
var files embed.FS

//go:embed schema.json
var schema []byte

// Loader returns a loader that knows the scenarios, kernel presets and platforms that
// come with the program. Stages are the names of the cost stages of the model; without
// them the costs of a platform are not checked for completeness.
func Loader(stages []string) spec.Loader {
	return spec.Loader{Library: files, Stages: stages}
}

// Schema returns the JSON schema of scenario files, in the vocabulary of draft-07.
func Schema() []byte { return bytes.Clone(schema) }

// Stages returns the names of the cost stages of the model, in the order of the
// receive path. Every platform gives each of them a cost.
func Stages() []string {
	var names []string
	for s := range model.NumStages {
		names = append(names, s.String())
	}
	return names
}

// Default returns the loader that the command uses: the library, and platforms
// checked against the stages of the model.
func Default() spec.Loader { return Loader(Stages()) }

// NewDocument returns the result document of runs of s, written by the given
// version of the program.
func NewDocument(s *spec.Scenario, runs []result.Run, version string) *result.Document {
	return &result.Document{
		Schema: result.Schema,
		Tool:   result.Tool{Name: "napisim", Version: version},
		Scenario: result.Scenario{
			Name: s.Name, Digest: s.Digest(), Resolved: string(s.Resolved()),
		},
		Runs: runs,
	}
}

// TracePoints returns the trace points that the model passes, in the order of the
// path of a packet. Package trace knows further ones, of which nothing is modelled.
func TracePoints() []trace.Point {
	return []trace.Point{
		trace.RxMissed, trace.IRQHandlerEntry, trace.IRQHandlerExit,
		trace.SoftirqRaise, trace.SoftirqEntry, trace.SoftirqExit,
		trace.NAPIPoll, trace.NAPIGROReceiveEntry, trace.NAPIGROReceiveExit, trace.NetifReceiveSKB,
		trace.NetDevXmit, trace.KfreeSKB, trace.SchedWakeup, trace.SchedSwitch,
	}
}
