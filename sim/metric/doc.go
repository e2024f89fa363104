// Package metric holds what a model measures: counters, levels and histograms
// that are cheap enough for the hot path, and a Set that gives them names.
//
// Everything recorded is an integer and is added up exactly, so that a result
// does not depend on the order of additions or on the architecture. Floats appear
// only in what is read from a metric after the run.
//
// The Histogram has the geometry of HdrHistogram at three significant digits,
// bucket for bucket: turning one into the library's form for storage loses
// nothing, and a quantile read here equals the one read back from a result file.
//
// A run has a warm-up. Counters go on for the whole run, because the conservation
// checks need them whole; a Set remembers their values at the end of the warm-up
// and reads the difference. Levels and histograms start again.
package metric
