// Package result is what a simulation leaves behind: plain data, with a JSON
// form that scripts can rely on.
//
// A [Document] holds one scenario and its runs, one per seed and variant. A
// [Run] holds the numbers of that run ([Metric]), their distributions
// ([Histogram]), where each core spent its time, which frames were lost and
// where, which costs the prediction rests on, and the published rows it is to
// be held against.
//
// The package knows nothing of the simulator. Whatever produces a document
// fills in these structs; whatever shows one reads only these structs.
//
// # The JSON form
//
// [Marshal] is byte-stable: equal documents give equal bytes. Maps are written
// in the order of their keys, structs in the order of their fields with the
// schema first, floats in the shortest form that reads back to the same value.
// JSON has no NaN, and a mean over nothing is one: such values are left out,
// and the run says so in its warnings.
//
// [Read] accepts what Marshal writes and explains, with the name of the file
// and the path of the value, what is wrong with anything else. Fields it does
// not know are ignored, so that a later napisim may add some under the same
// schema version; a field that changes its meaning needs a new version.
//
// # Statistics
//
// The unit of replication is the seed, never the packet: packets of one run are
// correlated. [Summarize] gives the mean of a metric over seeds with its 95 %
// interval; [Merge] pools the histograms of several runs, because percentiles
// must not be averaged.
package result
