package scenarios

import (
	"napisim/model"
	"napisim/reports/result"
	"napisim/scenarios/spec"
)

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
