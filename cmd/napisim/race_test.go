//go:build race

package main

// slow says that the race detector makes every process take a second to start.
const slow = true
