// Package spec holds the data that a scenario file, a kernel preset and a platform
// file consist of, and turns such files into it.
//
// The types are plain data. Their tags say how a field is written and their comments
// what it means; the comments are what `napisim explain` and the JSON schema show, so
// they speak of YAML keys, not of Go names. A Loader reads a scenario in layers, each
// laid over the one before:
//
//	the defaults of the fields
//	the kernel preset that the scenario names: behaviours and sysctls
//	the bases of the scenario, the farthest first
//	the scenario's own file
//	the assignments of the command line
//
// A platform is a document with layers of its own and ends up as a part of the
// scenario. So a resolved scenario stands alone: its canonical text holds everything
// that a run depends on, whatever later becomes of the library.
package spec
