package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"napisim/cmd/napisim/exit"
	"napisim/reports/text"
	"napisim/scenarios"
	"napisim/scenarios/faults"
	"napisim/scenarios/spec"
)

// A world is everything outside the program that a command may touch, files excepted.
type world struct {
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	// terminal returns the width of the terminal that a stream is connected to.
	terminal func(stream any) (width int, ok bool)
	pace     pace
}

// An app is one execution of the command.
type app struct {
	world
	ctx    context.Context // done when the user interrupts
	loader spec.Loader
	// out collects the result. It is written at the very end, so that a command which
	// fails half-way leaves nothing half-written.
	out bytes.Buffer

	quiet   bool
	noColor bool

	piped   []byte // standard input, once it was read
	started bool   // the command line was understood
}

// run executes the command and returns its exit code. No panic leaves it.
func run(ctx context.Context, w world) (code exit.Code) {
	a := &app{world: w, ctx: ctx, loader: scenarios.Default()}
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(w.stderr, "napisim: fault of the program, please report it with the command line: %v\n", r)
			code = exit.Failed
		}
	}()
	root := a.root()
	root.SetArgs(w.args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started && exit.Of(err) == exit.Failed {
		err = usage(cmd, "%v", err) // cobra's own, such as an argument that completion does not take
	}
	if _, werr := w.stdout.Write(a.out.Bytes()); werr != nil {
		err = errors.Join(err, fmt.Errorf("writing the result: %w", werr))
	}
	return a.report(err)
}

// root returns the command with all subcommands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "napisim",
		Short: "Simulate network cards and the Linux receive path",
		Long: "napisim simulates network cards and the Linux receive path.\n\n" +
			"It answers, before anyone boots a kernel, what a ring size, an interrupt moderation\n" +
			"setting or a change to the NAPI code does to throughput, latency and interrupts.",
		Example:       "  napisim run quickstart\n  napisim list scenarios\n  napisim explain napi_schedule",
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			a.started = true
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	root.SetIn(a.stdin)
	root.SetOut(&a.out)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "no progress and no notes on standard error")
	root.PersistentFlags().BoolVar(&a.noColor, "no-color", false, "no colour, as with NO_COLOR=1 or TERM=dumb")
	root.SetHelpCommand(a.helpCommand())
	root.AddCommand(a.runCommand(), a.compareCommand(), a.checkCommand(), a.listCommand(),
		a.explainCommand(), a.conformCommand(), a.diffCommand(), a.bisectCommand(), a.traceCommand(), a.schemaCommand(), a.versionCommand())
	return root
}

// unknownCommand is the error for a word that is no subcommand.
func unknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, sub := range cmd.Root().Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usage(cmd, "unknown command %q%s", word, suggestion(faults.Nearest(word, names), ""))
}

func (a *app) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd, strings.Join(args, " "))
			}
			return target.Help()
		},
	}
}

// say writes a note about the work, not its result, unless the user wants quiet.
func (a *app) say(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}

// plainWidth is how wide a view is that no terminal limits.
const plainWidth = 100

// style returns how to lay out a view on standard output.
func (a *app) style() text.Options {
	width, ok := a.terminal(a.stdout)
	if !ok {
		return text.Options{Width: plainWidth}
	}
	return text.Options{Width: max(width, 1), Colour: a.coloured()}
}

// coloured reports whether the user lets a terminal show colour.
func (a *app) coloured() bool {
	return !a.noColor && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}
