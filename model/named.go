package model

import (
	"fmt"
	"slices"
)

// NamesOf returns the names of a table of behaviours, in its order.
func NamesOf[T any](table []T, name func(T) string) []string {
	var all []string
	for _, b := range table {
		all = append(all, name(b))
	}
	return all
}

// FindNamed returns the entry of that name. The error says what kind of behaviour is
// unknown.
func FindNamed[T any](table []T, name func(T) string, want, what string) (T, error) {
	if i := slices.IndexFunc(table, func(b T) bool { return name(b) == want }); i >= 0 {
		return table[i], nil
	}
	var none T
	return none, fmt.Errorf("%s: unknown behaviour %q", what, want)
}
