// Package napisim is the root of a discrete-event simulator of network cards and
// the Linux receive path. It answers, before anyone boots a kernel on hardware,
// what a ring size, an interrupt moderation setting, a GRO batch or a change to
// the NAPI code does to throughput, latency and interrupts. The kernel part
// mirrors net/core/dev.c and kernel/softirq.c function by function, so that
// trying a patch means editing one small function.
//
// The root holds no code, only the tests that keep the architecture: the arrows
// between the packages (arrows_test.go) and the rules of the house
// (house_test.go). Where to look, from the bottom up:
//
//   - sim: time, events, processes and random streams; knows nothing of networks
//   - model: packets, links, traffic, TCP, CPU cores and what work costs on them
//   - nic: the device; softirq: the kernel; nic/driver: where the two meet
//   - scenarios: from a YAML file to a run, with a library of ready files
//   - reports: results as text, figures, comparisons and timelines
//   - cmd/napisim: the command, one file per subcommand
package napisim
