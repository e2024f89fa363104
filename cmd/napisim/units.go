package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// amount writes a number of things to the two digits of an estimate.
func amount(n float64) string {
	const longest = 1e7 // longer numbers are no easier to read than powers
	switch {
	case n < 10:
		return fmt.Sprintf("%.0f", n)
	case n >= longest:
		return fmt.Sprintf("%.1e", n)
	}
	unit := math.Pow(10, math.Floor(math.Log10(n))-1)
	return fmt.Sprintf("%.0f", math.Round(n/unit)*unit)
}

// wait writes how long work takes, to the precision of an estimate.
func wait(seconds float64) string {
	const longest = 1e9 // beyond this nobody counts, and a time.Duration ends soon
	switch {
	case seconds < 1:
		return "less than a second"
	case seconds < 90:
		return fmt.Sprintf("about %.0f s", seconds)
	case seconds < longest:
		return "about " + strings.TrimSuffix((time.Duration(seconds)*time.Second).Round(time.Minute).String(), "0s")
	}
	return "decades"
}
