// Package fair is the fair class of the kernel's scheduler as one core sees it
// (kernel/sched/fair.c without groups, balancing and bandwidth): which of the runnable
// tasks goes next, and whether one that wakes up preempts the one that runs.
//
// There are two policies. CFS, up to v6.5, runs the task with the smallest virtual
// runtime and gives sleepers credit. EEVDF, from v6.6, runs the eligible task with
// the earliest virtual deadline, where eligible means not ahead of the weighted
// average, and a sleeper comes back with the lag that it left with. Params holds what
// differs between kernels; Parse knows the sets that kernels have.
//
// A Queue knows no clock: its owner tells it with Charge how long the running entity
// has run, before anything else that happens at that instant, as update_curr does.
package fair
