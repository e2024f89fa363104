package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"napisim/model/unit"
)

// The types of this file are flag values with errors that a user understands.

// A choice is one of a few words.
type choice struct {
	value   string
	options []string
}

// String returns the word.
func (c *choice) String() string { return c.value }

// Type returns the words for help texts.
func (c *choice) Type() string { return strings.Join(c.options, "|") }

// Set accepts one of the words.
func (c *choice) Set(text string) error {
	if !slices.Contains(c.options, text) {
		return fmt.Errorf("expects one of %s", strings.Join(c.options, ", "))
	}
	c.value = text
	return nil
}

// outputFlag adds -o to a command; the first format is the default.
func outputFlag(cmd *cobra.Command, formats ...string) *choice {
	c := &choice{value: formats[0], options: formats}
	cmd.Flags().VarP(c, "output", "o", "the format of the result")
	complete(cmd, "output", func(*cobra.Command, []string, string) []string { return formats })
	return c
}

// A number is a whole number within a range.
type number struct {
	value, min, max uint64
}

// String returns the number.
func (n *number) String() string { return strconv.FormatUint(n.value, 10) }

// Type returns what help texts show.
func (n *number) Type() string { return "N" }

// Set accepts a number of the range.
func (n *number) Set(text string) error {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil || v < n.min || v > n.max {
		return fmt.Errorf("expects a whole number from %d to %d", n.min, n.max)
	}
	n.value = v
	return nil
}

// An instant is a point of simulated time.
type instant unit.Duration

// String returns the time with its unit.
func (i *instant) String() string { return unit.Duration(*i).String() }

// Type returns what help texts show.
func (i *instant) Type() string { return "TIME" }

// Set accepts a time with a unit.
func (i *instant) Set(text string) error { return (*unit.Duration)(i).UnmarshalText([]byte(text)) }
