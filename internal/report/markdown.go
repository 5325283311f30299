package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"proctor/internal/evalrun"
	"proctor/internal/tally"
)

// RunMarkdown writes a run's figures as Markdown.
func RunMarkdown(w io.Writer, r *evalrun.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Evaluation of %s\n\n%s, %s each; %d of %d done, %d with a reward.\n\n", cell(orText(r.Plan.Model, r.Plan.Agent)), tally.Words(len(r.Plan.Tasks), "task"), tally.Words(r.Plan.N, "attempt"), r.Done, r.Attempts, r.Graded)
	b.WriteString("| | value | 95 % interval |\n|---|---|---|\n")
	for _, k := range slices.Sorted(maps.Keys(r.PassAt)) {
		e, c := r.PassAt[k], r.PassAtClean[k]
		fmt.Fprintf(&b, "| pass@%d | %.3f | %.3f to %.3f |\n| pass@%d, hacks that ran count as failed | %.3f | %.3f to %.3f |\n", k, e.Value, e.Lo, e.Hi, k, c.Value, c.Lo, c.Hi)
	}
	fmt.Fprintf(&b, "| hack rate | %s | |\n| hack rate, not blocked | %s | |\n| cost | %.4f | |\n\n", rateWords(r.HackRate), rateWords(r.HackRateUnblocked), r.Cost)
	b.WriteString("| task | attempt | outcome | reward | calls | blocked | hacks | ended by |\n|---|---|---|---|---|---|---|---|\n")
	for _, x := range r.Results {
		reward := "none, " + x.FailureClass
		if x.Reward != nil {
			reward = fmt.Sprint(*x.Reward)
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %d | %d | %d | %s |\n", cell(x.TaskID), x.Attempt, cell(x.Outcome), cell(reward), x.Calls, x.Blocked, x.Hacks, cell(x.Stop))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cell makes text that others wrote fit for a table's cell: no markup, no new line.
func cell(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < ' ' || r == 0x7f:
			b.WriteByte(' ')
		case strings.ContainsRune("\\`*_{}[]<>()#+!|~", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
