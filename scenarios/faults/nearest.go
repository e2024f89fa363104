package faults

import "strings"

// Nearest returns the word that a wrong one was probably meant to be, or "" if none is
// near. Upper and lower case, and '-' and '_', count as the same: they are what people
// confuse first. A sysctl may be named by its last part alone. Of equally near words the
// first wins.
func Nearest(wrong string, words []string) string {
	// A third of the letters may differ; with more, a suggestion would be a guess.
	best, least := "", max(1, min(len(wrong), 12)/3)+1
	for _, word := range words {
		if wrong != "" && strings.HasSuffix(folded(word), "."+folded(wrong)) {
			return word
		}
		if d := distance(folded(wrong), folded(word), least); d < least {
			best, least = word, d
		}
	}
	return best
}

func folded(word string) string {
	return strings.ReplaceAll(strings.ToLower(word), "-", "_")
}

// distance returns how many letters have to be added, taken away, replaced or swapped
// with their neighbour to turn a into b, or at least limit when it is not below limit.
func distance(a, b string, limit int) int {
	if gap := len(a) - len(b); max(gap, -gap) >= limit {
		return limit
	}
	// Three rows of the usual table: a swap looks two rows back.
	older, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range current {
		current[j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, previous, current = previous, current, older
		current[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := previous[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			current[j] = min(replaced, previous[j]+1, current[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], older[j-2]+1)
			}
		}
	}
	return current[len(b)]
}
