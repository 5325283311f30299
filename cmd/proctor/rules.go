package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"proctor/internal/tally"
	"proctor/rules"
)

// newRules groups the commands for rule packs.
func newRules() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Write, check and measure rule packs",
		Long: `Rule packs are YAML files that say which calls look like cheating. Without paths, the
commands work on the packs that ship with Proctor.

docs/rule-author-guide.md leads from nothing to a tested pack.`,
	}
	cmd.AddCommand(newRulesLs(), newRulesLint(), newRulesTest(), newRulesExplain(), newRulesEval(),
		newRulesNew(), newRulesFmt(), newRulesDocs(), newRulesSchema(), newRulesStats(), newRulesDiff())
	return cmd
}

// loadPacks loads the packs at paths, or the core packs where there are none. withCore puts the core
// packs beside those at paths, so that overlays and sequences may name core rules.
func loadPacks(paths []string, withCore bool) (*rules.Packs, []rules.Problem, error) {
	if len(paths) > 0 && !withCore {
		p, probs := rules.Load(paths...)
		return p, probs, nil
	}
	core, err := rules.Core()
	if err != nil {
		return nil, nil, failed(err)
	}
	if len(paths) == 0 {
		return core, nil, nil
	}
	p, probs := rules.LoadBeside(core, paths...)
	return p, probs, nil
}

// usablePacks is loadPacks for commands that need packs without errors: it prints what is wrong.
func usablePacks(stderr io.Writer, paths []string, withCore bool) (*rules.Packs, error) {
	p, probs, err := loadPacks(paths, withCore)
	if err != nil {
		return nil, err
	}
	if errs := rules.Errors(probs); len(errs) > 0 {
		for _, e := range errs {
			fmt.Fprintln(stderr, e)
		}
		return nil, usage(fmt.Errorf("%s in the rule packs", plural(len(errs), "error")))
	}
	return p, nil
}

// withCoreFlag adds --with-core.
func withCoreFlag(cmd *cobra.Command, v *bool) {
	cmd.Flags().BoolVar(v, "with-core", false, "put the core packs beside those named, as a server does")
}

// writeJSON prints one document.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// plural gives "1 rule", "2 rules".
func plural(n int, what string) string { return tally.Words(n, what) }
