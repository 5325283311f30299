package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"proctor/monitor"
	"proctor/rules"
)

// newRulesExplain says why a call hits or does not.
func newRulesExplain() *cobra.Command {
	var asJSON, withCore bool
	var taskFile, call string
	var setup, packs []string
	cmd := &cobra.Command{
		Use:   "explain --call JSON",
		Short: "Show the event of a call, what it hits and what it nearly hits",
		Long: `Explain normalises one call, after the setup calls, and matches it. A call is
{"tool": "bash", "arguments": {"command": "..."}}, or a bash command as plain text.

The task file is YAML or JSON: a task.yaml, a corpus row's task, or a whole corpus row, whose facts
and setup are used then. Without it, the task of inline tests is.`,
		Example: `  proctor rules explain --call 'git log --all'
  proctor rules explain --task task.yaml --call '{"tool": "bash", "arguments": {"command": "cat /hidden/x"}}' --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := usablePacks(cmd.ErrOrStderr(), packs, withCore)
			if err != nil {
				return err
			}
			c, err := explainCase(taskFile, call, setup)
			if err != nil {
				return usage(err)
			}
			set, err := rules.Compile(p, c.Vars)
			if err != nil {
				return usage(err)
			}
			events, err := normaliseCase(cmd.Context(), c)
			if err != nil {
				return usage(err)
			}
			s := set.Session()
			for i := range len(events) - 1 {
				s.Match(&events[i])
			}
			x := s.Explain(&events[len(events)-1])
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), x)
			}
			return printExplanation(cmd.OutOrStdout(), x)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	withCoreFlag(cmd, &withCore)
	f.StringVar(&taskFile, "task", "", "task `FILE`")
	f.StringVar(&call, "call", "", "the call, as `JSON` or a bash command")
	f.StringArrayVar(&setup, "setup", nil, "an earlier call, as `JSON` or a bash command; may be repeated")
	f.StringArrayVar(&packs, "packs", nil, "pack `PATH`; may be repeated (default: the core packs)")
	if err := cmd.MarkFlagRequired("call"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// explainCase reads the flags of explain.
func explainCase(taskFile, call string, setup []string) (rules.Case, error) {
	c := rules.Case{Vars: rules.TestTask()}
	if taskFile != "" {
		var err error
		if c, err = readTaskCase(taskFile); err != nil {
			return c, err
		}
	}
	for _, s := range setup {
		tc, err := parseToolCall(s)
		if err != nil {
			return c, fmt.Errorf("--setup: %w", err)
		}
		c.Setup = append(c.Setup, tc)
	}
	tc, err := parseToolCall(call)
	if err != nil {
		return c, fmt.Errorf("--call: %w", err)
	}
	c.Call = tc
	return c, nil
}

// parseToolCall reads a call as JSON; text that does not begin like an object of calls is bash's.
func parseToolCall(s string) (rules.ToolCall, error) {
	var tc rules.ToolCall
	t := strings.TrimSpace(s)
	if t == "" {
		return tc, fmt.Errorf("the call is empty")
	}
	if !strings.HasPrefix(t, "{") || !strings.HasPrefix(strings.TrimSpace(t[1:]), `"`) {
		return rules.ToolCall{Tool: "bash", Arguments: map[string]any{"command": s}}, nil
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(t)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&tc); err != nil {
		return tc, fmt.Errorf("the call is not {\"tool\": ..., \"arguments\": {...}}: %w", err)
	}
	if tc.Tool == "" || tc.Arguments == nil {
		return tc, fmt.Errorf("the call needs tool and arguments")
	}
	raw, err := json.Marshal(tc.Arguments)
	if err != nil {
		return tc, fmt.Errorf("arguments: %w", err)
	}
	if _, err := monitor.ParseCall("", "", tc.Tool, raw, ""); err != nil {
		return tc, fmt.Errorf("the call does not fit its tool: %w", err) // a server would refuse it as well
	}
	return tc, nil
}

// printExplanation prints an explanation for a reader.
func printExplanation(w io.Writer, x rules.Explanation) error {
	ev, err := json.MarshalIndent(x.Event, "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "event:\n%s\n", ev)
	fmt.Fprintf(w, "decision: %s\n", x.Decision)
	for _, h := range x.Hits {
		fmt.Fprintf(w, "hit       %s (%s, %s) %s[%d] %s: %q", h.Rule, h.Class, h.Severity, h.Entity, h.Index, h.Field, h.Span)
		if h.Resolved {
			fmt.Fprint(w, " resolved")
		}
		fmt.Fprintln(w)
	}
	for _, e := range x.Excepted {
		fmt.Fprintf(w, "excepted  %s %s[%d] by %s: %s\n", e.Rule, e.Entity, e.Index, e.Exception, e.Reason)
	}
	for _, n := range x.Waiting {
		fmt.Fprintf(w, "waiting   %s until some call sets %s\n", n.Rule, n.Tag)
	}
	for _, id := range x.Unsuspected {
		fmt.Fprintf(w, "reads     too little like hacks for %s: suspicion %.3f\n", id, x.Event.Call.Suspicion)
	}
	for _, n := range x.Near {
		fmt.Fprintf(w, "near      %s alternative %d, %s[%d]: met %s\n", n.Rule, n.Alternative, n.Entity, n.Index, strings.Join(n.Met, ", "))
		for _, m := range n.Missed {
			fmt.Fprintf(w, "          missed %s: want %q, got %q\n", m.Key, m.Want, m.Got)
		}
	}
	for _, u := range x.Inapplicable {
		fmt.Fprintf(w, "cannot    %s %s: the task has no %s\n", u.Rule, u.What, strings.Join(u.Variables, ", "))
	}
	return nil
}
