package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"proctor/internal/tally"
	"proctor/monitor/normalize/corpus"
	"proctor/rules"
)

// ruleStats is what one rule does on corpora.
type ruleStats struct {
	Rule       string     `json:"rule"`
	Class      string     `json:"class"`
	Hits       int        `json:"hits"` // calls
	Hack       int        `json:"hack"`
	Benign     int        `json:"benign"`
	Grey       int        `json:"grey"`
	Unlabelled int        `json:"unlabelled"`
	Alone      int        `json:"alone"`     // hacks that no other rule hit
	Precision  tally.Rate `json:"precision"` // hacks among the hacks and honest calls that it hit
}

// newRulesStats tells what each rule does on corpora.
func newRulesStats() *cobra.Command {
	var asJSON bool
	var taskVars string
	var packs []string
	cmd := &cobra.Command{
		Use:   "stats FILE...",
		Short: "Count what each rule hits on corpora, and how much of it is hacks",
		Long: `Stats matches every call of corpora and counts, for each rule, the calls that it hit by label, the hacks
that no other rule hit, and its precision: the share of hacks among the hacks and honest calls that it
hit, with the 95 % Wilson interval. Rules without a hit are listed too.

Exit status: 0 done, 2 usage, an unreadable file or some bad line.`,
		Example: "  proctor rules stats corpus.jsonl\n  proctor rules stats commands.jsonl.gz --task-vars tasks.json --packs my-pack.yaml --json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := usablePacks(cmd.ErrOrStderr(), packs, false)
			if err != nil {
				return err
			}
			ev, err := evaluated(cmd.Context(), cmd.ErrOrStderr(), p, taskVars, args)
			if err != nil {
				return err
			}
			all := statsOf(p, ev.out.Detail)
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), all)
			}
			return printStats(cmd.OutOrStdout(), all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.Flags().StringVar(&taskVars, "task-vars", "", "JSON `FILE` of tasks by id, for rows that carry only the id")
	cmd.Flags().StringArrayVar(&packs, "packs", nil, "pack `PATH`; may be repeated (default: the core packs)")
	return cmd
}

// evaluated matches every call of files, and keeps each. Bad lines are told, and fail.
func evaluated(ctx context.Context, errs io.Writer, p *rules.Packs, taskVars string, files []string) (*evaluator, error) {
	ev := newEvaluator(p, true)
	var err error
	if ev.tasks, err = corpus.LoadTasks(taskVars); err != nil {
		return nil, usage(err)
	}
	for _, f := range files {
		if err := ev.file(ctx, f); err != nil {
			return nil, usage(err)
		}
	}
	for _, e := range ev.out.Errors {
		fmt.Fprintf(errs, "%s:%d: %s\n", e.File, e.Line, e.Error)
	}
	if n := len(ev.out.Errors); n > 0 {
		return nil, usage(fmt.Errorf("%s could not be used", plural(n, "line")))
	}
	return ev, nil
}

// statsOf counts by rule, in the order of the packs.
func statsOf(p *rules.Packs, cases []tally.Case) []ruleStats {
	out := []ruleStats{}
	at := map[string]int{}
	for _, r := range p.Rules() {
		at[r.FullID()] = len(out)
		out = append(out, ruleStats{Rule: r.FullID(), Class: r.Category})
	}
	for _, c := range cases {
		for _, id := range c.Rules {
			s := &out[at[id]]
			s.Hits++
			switch c.Label {
			case corpus.Hack:
				s.Hack++
				if len(c.Rules) == 1 {
					s.Alone++
				}
			case corpus.Benign:
				s.Benign++
			case corpus.Grey:
				s.Grey++
			default:
				s.Unlabelled++
			}
			s.Precision = tally.Rate{N: s.Hack + s.Benign, Hit: s.Hack}
		}
	}
	return out
}

func printStats(out io.Writer, all []ruleStats) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tHITS\tHACK\tBENIGN\tGREY\tUNLABELLED\tALONE\tPRECISION")
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", s.Rule, s.Hits, s.Hack, s.Benign, s.Grey, s.Unlabelled, s.Alone, rateText(s.Precision))
	}
	return w.Flush()
}

// ruleDiff is what changed between two sets of packs.
type ruleDiff struct {
	Added   []string   `json:"added"`
	Removed []string   `json:"removed"`
	Changed []string   `json:"changed"`
	Calls   []callDiff `json:"calls"` // those that the rules hit differently
}

// callDiff is a call that two sets of packs hit differently.
type callDiff struct {
	ID    string   `json:"id"`
	Label string   `json:"label"`
	Was   []string `json:"was"` // rules that hit
	Is    []string `json:"is"`
}

// newRulesDiff compares two sets of packs.
func newRulesDiff() *cobra.Command {
	var asJSON bool
	var taskVars string
	var files []string
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Tell what changed between two sets of rule packs",
		Long: `Diff lists the rules that B adds, removes and changes against A, each a pack file or a folder of them;
"core" stands for the core packs. With --corpus it also lists the calls that they hit differently. A
rule's tests and its pack's version do not count.

Exit status: 0 nothing changed, 1 something did, 2 usage, an unreadable file or some bad line.`,
		Example: "  proctor rules diff old-packs new-packs --corpus corpus.jsonl\n  proctor rules diff core my-packs --json",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var sides [2]*rules.Packs
			var cases [2][]tally.Case
			for i, path := range args {
				paths := []string{path}
				if path == "core" {
					paths = nil
				}
				p, err := usablePacks(cmd.ErrOrStderr(), paths, false)
				if err != nil {
					return err
				}
				ev, err := evaluated(cmd.Context(), cmd.ErrOrStderr(), p, taskVars, files)
				if err != nil {
					return err
				}
				sides[i], cases[i] = p, ev.out.Detail
			}
			d := diffOf(sides, cases)
			if err := d.print(cmd.OutOrStdout(), asJSON); err != nil {
				return err
			}
			if len(d.Added)+len(d.Removed)+len(d.Changed)+len(d.Calls) > 0 {
				return failed(errSilent)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.Flags().StringVar(&taskVars, "task-vars", "", "JSON `FILE` of tasks by id, for rows that carry only the id")
	cmd.Flags().StringArrayVar(&files, "corpus", nil, "corpus `FILE` to compare on; may be repeated")
	return cmd
}

// diffOf compares rules, and cases that stand in the same order on both sides.
func diffOf(sides [2]*rules.Packs, cases [2][]tally.Case) ruleDiff {
	d := ruleDiff{Added: []string{}, Removed: []string{}, Changed: []string{}, Calls: []callDiff{}}
	for _, r := range sides[1].Rules() {
		switch old, ok := sides[0].Rule(r.FullID()); {
		case !ok:
			d.Added = append(d.Added, r.FullID())
		case shown(old) != shown(r):
			d.Changed = append(d.Changed, r.FullID())
		}
	}
	for _, r := range sides[0].Rules() {
		if _, ok := sides[1].Rule(r.FullID()); !ok {
			d.Removed = append(d.Removed, r.FullID())
		}
	}
	for i, was := range cases[0] {
		is := cases[1][i]
		if fmt.Sprint(was.Rules) != fmt.Sprint(is.Rules) {
			d.Calls = append(d.Calls, callDiff{was.ID, was.Label, was.Rules, is.Rules})
		}
	}
	return d
}

// shown gives a rule in text, without its tests and the version of its pack, which changes with any rule.
func shown(r *rules.Rule) string {
	bare := *r
	bare.Tests = rules.Tests{}
	page := strings.Replace(rules.Page(&bare), r.Pack().ID+" "+r.Pack().Version, r.Pack().ID, 1)
	return fmt.Sprintf("%s\nactive %t, judge %+v, decoy %s", page, r.Active(), r.Judge, r.Decoy)
}

func (d ruleDiff) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(out, d)
	}
	for _, part := range []struct {
		mark string
		ids  []string
	}{{"+", d.Added}, {"-", d.Removed}, {"~", d.Changed}} {
		for _, id := range part.ids {
			fmt.Fprintln(out, part.mark, id)
		}
	}
	for _, c := range d.Calls {
		fmt.Fprintf(out, "call %s (%s): %v, was %v\n", c.ID, c.Label, c.Is, c.Was)
	}
	return nil
}
