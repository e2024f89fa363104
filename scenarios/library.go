package scenarios

import (
	"bytes"
	"embed"

	"napisim/scenarios/spec"
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
