// Package recording reads what was recorded of a real kernel: a directory with the
// text of a trace and the settings of the machine, or a trace alone.
//
// A directory holds meta.yaml and trace.txt or trace.txt.gz, and may hold sysctls.txt,
// ethtool.txt, and softnet_stat, interrupts and softirqs, each with .before and .after.
// Everything about the machine comes from these files and from the trace; nothing is
// known here by the name of a recording. What cannot be read is one error that names
// file and line; what is merely missing is a warning.
//
// The packages below: ftrace reads the trace, observe makes the sequence of interrupts,
// raises, passes and polls of it, input finds what came into the machine, match compares
// two sequences, cost fits what the steps of the kernel cost.
package recording
