package rps

import "math/bits"

// Map is struct rps_map: the CPUs of one receive queue's rps_cpus, in ascending order.
type Map struct{ cpus []int }

// NewMap returns the map of a mask of CPUs; the empty mask turns RPS off.
func NewMap(mask uint64) Map {
	var m Map
	for ; mask != 0; mask &= mask - 1 {
		m.cpus = append(m.cpus, bits.TrailingZeros64(mask))
	}
	return m
}

// Empty reports whether RPS is off.
func (m *Map) Empty() bool { return len(m.cpus) == 0 }

// CPU is reciprocal_scale (all versions): the high half of the product of hash and length
// chooses. The map must not be empty.
func (m *Map) CPU(hash uint32) int {
	return m.cpus[uint64(hash)*uint64(len(m.cpus))>>32]
}
