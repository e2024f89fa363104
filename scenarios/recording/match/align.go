package match

// prefix returns how many elements at the start are equal.
func prefix(a, b []string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// common returns the length of the longest common subsequence. It is Myers' greedy
// search for the shortest edit script, which is fast where the two are much alike:
// an edit script of d steps leaves (len(a) + len(b) - d) / 2 elements in common.
func common(a, b []string) int {
	start := prefix(a, b)
	a, b = a[start:], b[start:]
	end := 0
	for end < len(a) && end < len(b) && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	x, y := number(a[:len(a)-end], b[:len(b)-end])
	return start + end + (len(x)+len(y)-edits(x, y))/2
}

// number replaces texts with numbers: equal texts have equal numbers.
func number(a, b []string) (x, y []int32) {
	ids := map[string]int32{}
	of := func(words []string) []int32 {
		out := make([]int32, len(words))
		for i, w := range words {
			id, ok := ids[w]
			if !ok {
				id = int32(len(ids)) //nolint:gosec // bounded by the length of a trace
				ids[w] = id
			}
			out[i] = id
		}
		return out
	}
	return of(a), of(b)
}

// edits returns the fewest insertions and deletions that make b of a.
func edits(a, b []int32) int {
	most := len(a) + len(b)
	if len(a) == 0 || len(b) == 0 {
		return most
	}
	// far[k] is how far down a the search has come on diagonal k = position in a - in b.
	far := make([]int, 2*most+3)
	zero := most + 1
	for d := 0; d <= most; d++ {
		for k := -d; k <= d; k += 2 {
			if k < -len(b) || k > len(a) {
				continue
			}
			var x int
			if k == -d || (k != d && far[zero+k-1] < far[zero+k+1]) {
				x = far[zero+k+1]
			} else {
				x = far[zero+k-1] + 1
			}
			y := x - k
			for x < len(a) && y >= 0 && y < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			far[zero+k] = x
			if x >= len(a) && y >= len(b) {
				return d
			}
		}
	}
	return most
}
