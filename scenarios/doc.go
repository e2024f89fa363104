// Package scenarios turns a scenario file into a run. It is the one place that knows
// every floor of the model, and it holds the library: scenarios, kernel presets and
// platforms that can be used by name.
//
// Reading is done below, each floor knowing only those under it:
//
//   - spec: the data that a scenario consists of, and the layers it is read from
//   - strict: YAML against Go types, every fault with its position
//   - faults: what is wrong, where, and what was probably meant
package scenarios
