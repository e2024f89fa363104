// Package ftrace reads the text of a kernel's function tracer: the files trace and
// trace_pipe of tracefs, plain or gzip.
//
// A line is COMM-PID [CPU] FLAGS TIME: EVENT: PAYLOAD. COMM may hold spaces, dashes
// and brackets; FLAGS has four characters up to Linux 5.14 and five since, or is
// missing where irq-info is off; TIME is seconds with a fraction, or one integer
// where the trace clock counts in nanoseconds. An event that is not known here stays
// what it is: a name and a payload. What is no line of a trace is an error that names
// file and line.
package ftrace
