// Package unit holds the quantities that a scenario states with their units:
// durations, bit rates, packet rates, byte counts and ratios.
//
// Each is an integer type whose quantum is small enough that everything a person
// would write is exact: a Duration counts picoseconds, a PacketRate thousandths of
// a packet per second. There is no float between the text and the value, so a
// scenario means the same on every architecture.
//
// The texts are read strictly, because each shortcut has bitten someone: tc reads
// "bps" as bytes per second, fio reads "4k" as 4096 in any case, k6 reads a bare
// number as milliseconds. Here a unit is required, its case counts, a prefix is
// either SI (k, M, G: powers of 1000) or IEC (Ki, Mi, Gi: powers of 1024), rates
// are bits, and a value that the quantum cannot hold is an error, never rounded.
// What is refused comes with the text that was probably meant.
//
// Writing is canonical: one value has one text, and that text reads back as the
// same value.
package unit
