package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"proctor/rules"
)

// ruleRow is a rule in a list.
type ruleRow struct {
	ID       string   `json:"id"`
	Pack     string   `json:"pack"`
	Version  string   `json:"version"`
	Title    string   `json:"title"`
	Status   string   `json:"status"`
	Severity string   `json:"severity"`
	Level    int      `json:"level"`
	Category string   `json:"category"`
	Tags     []string `json:"tags"`
	Owner    string   `json:"owner"`
	Active   bool     `json:"active"`
	Overlays []string `json:"overlays"`
	File     string   `json:"file"`
	Line     int      `json:"line"`
}

// newRulesLs lists rules.
func newRulesLs() *cobra.Command {
	var asJSON, withCore bool
	var category string
	cmd := &cobra.Command{
		Use:     "ls [PATH...]",
		Short:   "List the rules of packs",
		Example: "  proctor rules ls\n  proctor rules ls --category git_history my-pack.yaml --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := usablePacks(cmd.ErrOrStderr(), args, withCore)
			if err != nil {
				return err
			}
			rows := []ruleRow{}
			for _, r := range p.Rules() {
				if category == "" || category == r.Category {
					rows = append(rows, rowOf(r))
				}
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), rows)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
			fmt.Fprintln(w, "RULE\tCATEGORY\tSEVERITY\tLEVEL\tSTATUS\tTITLE")
			for _, r := range rows {
				status := r.Status
				if !r.Active {
					status += " (off)"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", r.ID, r.Category, r.Severity, r.Level, status, r.Title)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	withCoreFlag(cmd, &withCore)
	cmd.Flags().StringVar(&category, "category", "", "only rules of this class")
	return cmd
}

func rowOf(r *rules.Rule) ruleRow {
	return ruleRow{ID: r.FullID(), Pack: r.Pack().ID, Version: r.Pack().Version, Title: r.Title, Status: r.Status,
		Severity: r.Severity, Level: r.Level, Category: r.Category, Tags: orEmpty(r.Tags), Owner: r.Owner,
		Active: r.Active(), Overlays: orEmpty(r.Overlays()), File: r.Pos.File, Line: r.Pos.Line}
}

// orEmpty keeps null out of JSON.
func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
