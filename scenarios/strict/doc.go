// Package strict reads YAML documents into Go structs, refuses what they do not
// declare, and says where.
//
// The decoder of yaml.v3 stops at the first error of a type of its own, gives no
// column and no hint. Here a document is read in two passes. Parse turns the text
// into a tree of Nodes that know their place; Decode walks that tree against a Go
// type and collects every fault. Between the two passes a document may be merged over
// its base (Merge) and changed from the command line (Set); both know the type too,
// because what a key means decides how it merges. Encode is the way back, with all
// defaults filled in. Describe lists the fields of a type for explanations, completion
// and the JSON schema.
//
// The struct tags of a field say what the Go type cannot:
//
//	yaml:"rx-usecs"      the key
//	required:"true"      must be present (for a mapping by name: not empty)
//	default:"20us"       what an absent field means
//	derived:"..."        what the reader of the document gives an absent field, in words
//	min:"1" max:"4096"   the range, ends included; why:"..." is the reason
//	bare:"us"            a number without unit is in this unit, as in the kernel
//	for:"tcp,udp"        has a meaning only where the sibling "kind" is one of these
//	shorthand:"rate"     a single value stands for a mapping with only this field
//	oneof:"true"         of a mapping: exactly one field is given
//	inherit:"no"         not taken over from a base
//	set:"no"             not to be assigned from the command line
//	unit:"descriptors"   what a plain number counts; kernel:"ethtool -G" its other name
//
// A type with a method Values() []string takes one of those texts. A zero value that
// is neither required nor has a default stands for an absent field.
package strict
