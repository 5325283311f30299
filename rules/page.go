package rules

import (
	"fmt"
	"strings"
)

// Page gives a rule's documentation in Markdown: what it hits and why, what is honest and looks
// alike, what the judge is asked, and its tests as examples.
func Page(r *Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", r.FullID(), r.Title)
	fmt.Fprintf(&b, "| class | severity | level | status | owner | pack |\n|---|---|---|---|---|---|\n")
	fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %s %s |\n\n", r.Category, r.Severity, r.Level, r.Status, dash(r.Owner), r.pack.ID, r.pack.Version)
	section(&b, "Why", r.Why)
	b.WriteString("## Hits\n\n")
	if len(r.Match.Any) > 0 {
		b.WriteString("One of:\n\n")
		blockList(&b, r.Match.Any)
	}
	if len(r.Match.All) > 0 {
		b.WriteString("All of:\n\n")
		blockList(&b, r.Match.All)
	}
	if r.After != "" {
		fmt.Fprintf(&b, "Only after a call that set the tag `%s`.\n\n", r.After)
	}
	if r.Suspicion > 0 {
		fmt.Fprintf(&b, "Only calls that read like labelled calls of which at least %d %% are hacks, where a classifier is asked.\n\n", r.Suspicion)
	}
	if r.Set != nil {
		fmt.Fprintf(&b, "Sets the tag `%s` for %d calls.\n\n", r.Set.Tag, r.Set.For)
	}
	if len(r.Unless) > 0 {
		b.WriteString("## Except\n\n")
		for _, x := range r.Unless {
			fmt.Fprintf(&b, "- **%s** (%s): %s\n", x.Name, x.Reason, blockText(&x.Block))
		}
		b.WriteString("\n")
	}
	bullets(&b, "Known false positives", r.FalsePos)
	section(&b, "Asked of the judge", r.Judge.Question)
	if r.Judge.Skip == "resolved" {
		b.WriteString("A hit that rests on resolved facts is blocked without the judge.\n\n")
	}
	examples(&b, "Flagged", r.Tests.Flag)
	examples(&b, "Passed", r.Tests.Pass)
	bullets(&b, "References", r.Refs)
	bullets(&b, "Changed by overlays", r.overlaid)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// Index gives a table of rules in Markdown, with links to their pages.
func Index(rs []*Rule) string {
	var b strings.Builder
	b.WriteString("# Rules\n\n| rule | class | severity | title |\n|---|---|---|---|\n")
	for _, r := range rs {
		fmt.Fprintf(&b, "| [%s](%s) | %s | %s | %s |\n", r.FullID(), PageName(r), r.Category, r.Severity, r.Title)
	}
	return b.String()
}

// PageName is the file name of a rule's page: "<pack>.<rule>.md".
func PageName(r *Rule) string { return r.pack.ID + "." + r.ID + ".md" }

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func section(b *strings.Builder, title, text string) {
	if text != "" {
		fmt.Fprintf(b, "## %s\n\n%s\n\n", title, strings.TrimSpace(text))
	}
}

func bullets(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(b, "## %s\n\n", title)
	for _, it := range items {
		fmt.Fprintf(b, "- %s\n", it)
	}
	b.WriteString("\n")
}

func blockList(b *strings.Builder, blocks []Block) {
	for i := range blocks {
		fmt.Fprintf(b, "- %s\n", blockText(&blocks[i]))
	}
	b.WriteString("\n")
}

// blockText gives a block in one line.
func blockText(bl *Block) string {
	var parts []string
	for _, c := range bl.Conds {
		parts = append(parts, fmt.Sprintf("`%s`: %s", c.Key, code1(strings.Join(c.Values, ", "))))
	}
	return "a " + bl.Entity + " with " + strings.Join(parts, " and ")
}

// code1 sets text as inline code, whatever back-quotes it holds.
func code1(s string) string {
	s = strings.ReplaceAll(clip(s, 300), "\n", `\n`)
	if strings.Contains(s, "`") {
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}

func examples(b *strings.Builder, title string, tests []Test) {
	if len(tests) == 0 {
		return
	}
	fmt.Fprintf(b, "## %s\n\n", title)
	for i := range tests {
		fmt.Fprintf(b, "- %s\n", code1(tests[i].String()))
	}
	b.WriteString("\n")
}
