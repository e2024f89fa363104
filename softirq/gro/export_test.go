package gro

// Bitmask returns gro_bitmask.
func (t *Table) Bitmask() uint64 { return t.bitmask }
