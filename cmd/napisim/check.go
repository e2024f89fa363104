package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"napisim/cmd/napisim/exit"
	"napisim/scenarios/faults"
)

func (a *app) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Find all faults of scenarios without running them",
		Long: "Find all faults of scenarios without running them.\n\n" +
			"Every fault of every file is told, one to a line, as file:line:column: field: what is\n" +
			"wrong. A FILE may also be a name of the library, or - for standard input.",
		Example:           "  napisim check mine.yaml\n  napisim check mine.yaml quickstart -o json",
		Args:              arguments(1, -1, "at least one FILE, or - for standard input"),
		ValidArgsFunction: a.completeScenario,
	}
	format := outputFlag(cmd, "text", "json")
	cmd.RunE = func(_ *cobra.Command, args []string) error { return a.check(args, format) }
	return cmd
}

// check resolves every file. A fault outweighs a file that cannot be read: the one is a
// finding, the other the lack of one.
func (a *app) check(args []string, format *choice) error {
	found := faults.List{}
	var unread []error
	for _, name := range args {
		_, err := a.load(&request{name: name})
		list, ok := errors.AsType[faults.List](err)
		switch {
		case ok:
			found = append(found, list...)
		case err != nil:
			unread = append(unread, err)
		case format.value == "text":
			fmt.Fprintf(&a.out, "%s: ok\n", name)
		}
	}
	unreadable := errors.Join(unread...)
	if format.value == "json" {
		return errors.Join(a.checkJSON(found), unreadable)
	}
	if len(found) == 0 {
		return unreadable
	}
	a.report(unreadable)
	return found // in the order of the files, those of each by position
}

// checkJSON writes the faults for programs, which need not be told again how many.
func (a *app) checkJSON(found faults.List) error {
	encoder := json.NewEncoder(&a.out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(struct {
		Faults faults.List `json:"faults"`
	}{found}); err != nil {
		return err
	}
	if len(found) == 0 {
		return nil
	}
	return exit.With(exit.Invalid, errors.New(count(len(found), "fault")))
}
