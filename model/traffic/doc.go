// Package traffic makes open-loop traffic: senders that send what they send,
// whatever becomes of it, as packet generators do.
//
// A Generator is an iterator. It yields frames with the instants at which the
// sending host hands them to its line; the link then decides when they arrive. All
// arithmetic is in integers and nothing is lost to rounding: the mean gap is kept
// as a fraction, so that a rate of 14.88 Mpps stays that rate however long a run is.
//
// Each aspect of the traffic (gaps, sizes, flows) draws from a random stream of its
// own, keyed by the run's seed and the generator's name. What one scenario changes
// in one aspect therefore does not shift the others.
//
// Every frame carries the RSS hash of its flow: the Toeplitz hash over a synthetic
// 4-tuple, computed once per flow.
package traffic
