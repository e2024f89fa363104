package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"napisim/cmd/napisim/exit"
	"napisim/scenarios"
	"napisim/scenarios/faults"
)

// A usageError is a command line that makes no sense.
type usageError struct {
	text string
	help string // where to read how it is done
}

// Error returns the reason.
func (e *usageError) Error() string { return e.text }

// usage returns an error about the way in which a command was called.
func usage(cmd *cobra.Command, format string, args ...any) error {
	return exit.With(exit.Usage, &usageError{
		text: fmt.Sprintf(format, args...),
		help: fmt.Sprintf("%q tells more", cmd.CommandPath()+" --help"),
	})
}

var (
	unknownFlag = regexp.MustCompile(`^unknown flag: --(.*)$`)
	longFlag    = regexp.MustCompile(`(?m)^ *(?:-., )?--([a-z-]+)`)
)

// flagError turns an error of the flag parser into one about usage, with the flag that
// was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	m := unknownFlag.FindStringSubmatch(err.Error())
	if m == nil {
		return usage(cmd, "%v", err)
	}
	// The usage text is where cobra lets one see the flags without its flag package.
	var names []string
	for _, flag := range longFlag.FindAllStringSubmatch(cmd.Flags().FlagUsages(), -1) {
		names = append(names, flag[1])
	}
	return usage(cmd, "%v%s", err, suggestion(faults.Nearest(m[1], names), "--"))
}

// suggestion returns a hint to append, or nothing.
func suggestion(near, prefix string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", prefix+near)
}

// arguments checks the number of arguments and says what is missing.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage(cmd, "%s needs %s", cmd.Name(), what)
		case most >= 0 && len(args) > most:
			return usage(cmd, "%s takes %s, not also %q", cmd.Name(), what, args[most])
		}
		return nil
	}
}

// report writes an error for the user and returns the exit code: faults of scenarios
// one to a line, with their number at the end, anything else in one line.
func (a *app) report(err error) exit.Code {
	if err == nil {
		return exit.OK
	}
	code := codeOf(err)
	if list, ok := errors.AsType[faults.List](err); ok {
		fmt.Fprintf(a.stderr, "%v\n%s\n", list, count(len(list), "fault"))
		return code
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(a.stderr, "napisim: %s\n", line)
	}
	if u, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintf(a.stderr, "%s\n", u.help)
	}
	return code
}

// codeOf returns the exit code of an error.
func codeOf(err error) exit.Code {
	if code := exit.Of(err); code != exit.Failed {
		return code
	}
	if _, ok := errors.AsType[*scenarios.ModelError](err); ok {
		return exit.Broken
	}
	if _, ok := errors.AsType[faults.List](err); ok {
		return exit.Invalid
	}
	if errors.Is(err, scenarios.ErrInterrupted) {
		return exit.Interrupted
	}
	return exit.Failed
}

// count writes a number of things.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
