// Package compare says whether two sets of runs differ, by how much, and how sure
// that is.
//
// # Pairs
//
// Runs of two variants with the same seed meet the same traffic (common random
// numbers), so most of what varies from seed to seed cancels in their difference.
// [Compare] therefore pairs runs by seed and tests the differences with Student's
// paired t test. Only where the seeds do not coincide does it fall back on the
// Mann-Whitney U test of two independent samples, and says so. The unit of
// replication is the run, never the packet.
//
// # Many metrics
//
// A comparison tests every metric that the variants share. Of twenty tests one is
// expected to look significant by chance, so a row counts as significant only if it
// survives Holm's correction over all tests of the comparison; p-values are shown
// uncorrected. Metrics that did not move in any run are no tests and do not count.
//
// # Exact values
//
// A simulator can do what a testbed cannot: repeat a run exactly. Metrics that are
// equal in every pair have p = 1. Metrics that no seed changes, in either variant,
// but that differ between the variants have p = 0: there is nothing random in the
// difference.
//
// # Gates
//
// [ParseRule] and [Evaluate] turn a comparison into a verdict for a script, such as
// "goodput worse 2%": significant, and beyond the threshold in the bad direction.
package compare
