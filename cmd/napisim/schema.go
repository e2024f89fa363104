package main

import (
	"github.com/spf13/cobra"

	"napisim/scenarios"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of scenario files",
		Long: "Print the JSON schema of scenario files, for editors. Store it and name it in the first\n" +
			"line of a scenario:\n\n" +
			"  # yaml-language-server: $schema=schema.json",
		Args: arguments(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(scenarios.Schema())
			return err
		},
	}
}
