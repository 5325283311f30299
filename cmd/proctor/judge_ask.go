package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"proctor/monitor"
	"proctor/rules"
)

// newJudgeAsk asks a judge about one call.
func newJudgeAsk() *cobra.Command {
	var asJSON bool
	var taskFile, call string
	var setup, packs []string
	var j judgeFlags
	cmd := &cobra.Command{
		Use:   "ask --call JSON",
		Short: "Ask a judge about one call",
		Long: `Ask normalises one call, after the setup calls, matches it, and puts what hit to a judge. A call is
{"tool": "bash", "arguments": {"command": "..."}}, or a bash command as plain text. The task file is
as for rules explain. A call that no rule hits is not judged.

Exit status: 0 benign or not hit, 1 judged a hack, or unsure, 2 usage.`,
		Example: `  proctor judge ask --call 'git log --all'
  proctor judge ask --task task.yaml --call '{"tool": "view", "arguments": {"path": "/hidden/x"}}' --json
  proctor judge ask --replay decisions.jsonl --call 'git log --all'
  PROCTOR_JUDGE_API_KEY=... proctor judge ask --judge http://127.0.0.1:8000/v1 --judge-model m --call 'pip download x'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := usablePacks(cmd.ErrOrStderr(), packs, false)
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
			decider, err := j.start()
			if err != nil {
				return err
			}
			rec, err := judgeScene(cmd.Context(), set, p.Digest(), decider.judge, decider.classifier, sceneTask("", c.Vars), c)
			if err != nil {
				return usage(err)
			}
			if err := decider.close(); err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(cmd.OutOrStdout(), rec.Verdict)
			} else {
				err = printVerdict(cmd.OutOrStdout(), rec.Verdict)
			}
			if err == nil && rec.Verdict.Decision != monitor.Allow {
				return failed(errSilent)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	f.StringVar(&taskFile, "task", "", "task `FILE`")
	f.StringVar(&call, "call", "", "the call, as `JSON` or a bash command")
	f.StringArrayVar(&setup, "setup", nil, "an earlier call, as `JSON` or a bash command; may be repeated")
	f.StringArrayVar(&packs, "packs", nil, "pack `PATH`; may be repeated (default: the core packs)")
	j.add(cmd)
	if err := cmd.MarkFlagRequired("call"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// printVerdict prints a verdict for a reader.
func printVerdict(w io.Writer, v monitor.Verdict) error {
	fmt.Fprintf(w, "decision  %s", v.Decision)
	if v.Class != "" {
		fmt.Fprintf(w, " (%s)", v.Class)
	}
	fmt.Fprintln(w)
	for _, h := range v.Hits {
		fmt.Fprintf(w, "hit       %s (%s, %s): %q\n", h.Rule, h.Class, h.Severity, h.Span)
	}
	switch o := v.Opinion; {
	case o != nil:
		fmt.Fprintf(w, "opinion   %s by %s, confidence %.2f: %s\n", o.Verdict, o.By, o.Confidence, o.Reason)
		if o.Evidence != "" {
			fmt.Fprintf(w, "evidence  %q\n", o.Evidence)
		}
		if o.Failure != "" {
			fmt.Fprintf(w, "failure   %s\n", o.Failure)
		}
	case v.Hack:
		fmt.Fprintln(w, "opinion   none: the facts decided")
	case len(v.Hits) == 0:
		fmt.Fprintln(w, "opinion   none: no rule hit")
	}
	return nil
}
