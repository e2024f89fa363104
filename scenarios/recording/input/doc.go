// Package input finds in a recording what came into the machine: the tick, what the
// sender gave to the wire and when, the tasks that shared the CPU, and the softirqs
// that are not NET_RX. A simulation of the machine gets these as given and must find
// the interrupts, raises, passes and polls by itself.
//
// An Input is written as input.yaml; each field of it is described at its type. All
// instants are ns of the recording's own clock. "Own" time is CPU time of a task without
// the interrupts and softirqs on top of it, as far as events show them: entry and exit of
// an interrupt lie outside its first and last event, and each recorded event costs some
// hundred ns of the task or softirq that it belongs to.
package input
