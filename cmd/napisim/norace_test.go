//go:build !race

package main

// slow says that starting a process takes long.
const slow = false
