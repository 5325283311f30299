package evaluation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// head opens the page.
const head = `# What detection reaches

<!-- Made by ` + "`make eval UPDATE=1`" + ` from testdata/eval/baseline.json; do not edit. -->

` + "`make eval`" + ` puts every call of the corpora through the built-in packs and the heuristic judge, in shadow
mode, as a server does, and fails where a figure is worse than here by a single call.
` + "`make eval UPDATE=1`" + ` measures anew and rewrites this page.

Rates are hits of calls, with the 95 % Wilson score interval. **Recall** is the share of hacks, **flag
rate** the share of honest calls. *Stage 1*: some rule hit, so that the judge is asked. *Final*: judged a
hack in the end, or held for one by resolved facts alone. *Kinds* part the hacks: documented ones as they
were met, obfuscated ones, and edit tools and chains over several calls. Grey calls, on which reviewers
may differ, are told apart and held to nothing.

The packs were tuned on these corpora, and the classifier of wordings was trained on them, so that it knows
their calls by heart. Figures on calls that nobody tuned on are lower: see *Before tuning* below, which is what
to expect. The intervals tell only what chance does, not what tuning did.
`

// Page gives the page of a baseline, as Markdown. It depends on nothing else.
func Page(r *Report) string {
	var b strings.Builder
	b.WriteString(head)
	fmt.Fprintf(&b, "\nJudge: %s.\n\n## Over all\n\n", r.Judge)
	b.WriteString("| corpus | calls | recall, stage 1 | recall, final | flag rate, stage 1 | honest calls judged hacks | grey judged hacks |\n|---|---|---|---|---|---|---|\n")
	names := sortedNames(r.Sets)
	for _, name := range names {
		s := r.Sets[name]
		g := s.all()
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s |\n", name, s.Rows, rate(g.Stage1.Hack), rate(g.Final.Hack),
			rate(g.Stage1.Benign), rate(g.Final.Benign), rate(g.Final.Grey))
	}
	writeUntuned(&b, r.Untuned)
	for _, c := range chapters(names) {
		writeChapter(&b, c, r)
	}
	return b.String()
}

// writeUntuned tells the figures that sets gave before anybody tuned on them.
func writeUntuned(b *strings.Builder, all []Untuned) {
	if len(all) == 0 {
		return
	}
	b.WriteString("\n## Before tuning\n\nMinimal pairs of a hack and its honest twin, written in batches without a look at what the rules make of\n" +
		"them; the first seven by somebody who knew the rules, the later ones by authors who did not. These are the figures of each\n" +
		"batch on the day it was written. Afterwards the rules and the judge were mended by kind (batches 1 to 21) and the\n" +
		"classifier was trained on it, so that the tables below no longer tell what to expect on other calls, and these do.\n\n" +
		"| batch | at commit | recall, stage 1 | recall, final | flag rate, stage 1 | honest calls judged hacks |\n|---|---|---|---|---|---|\n")
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y Untuned) int { return byBatch(x.Set, y.Set) })
	for _, u := range all {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", u.Set, u.Commit, rate(u.Stage1.Hack), rate(u.Final.Hack), rate(u.Stage1.Benign), rate(u.Final.Benign))
	}
}

func (s *Set) all() *Group {
	if g := s.Groups["all"]; g != nil {
		return g
	}
	return &Group{}
}

// writeChapter tells one corpus whole. Of batches it tells the sum, for theirs are sums of a few calls each; the ids of
// calls stand in the baseline.
func writeChapter(b *strings.Builder, c chapter, r *Report) {
	if len(c.names) == 1 {
		s := r.Sets[c.names[0]]
		writeGroups(b, c.title, s, fmt.Sprintf("; SHA-256 `%.16s`", s.Digest))
		writeIDs(b, "Hacks that no rule hits", s.Missed)
		writeIDs(b, "Hacks that are flagged, and not judged hacks", s.Passed)
		writeFalse(b, s.False, r.Rules, true)
		return
	}
	s := together(r.Sets, c.names)
	writeGroups(b, c.title, s, fmt.Sprintf(" in %d batches, %s to %s", len(c.names), c.names[0], c.names[len(c.names)-1]))
	fmt.Fprintf(b, "\n%d hacks are hit by no rule, and %d are flagged and not judged hacks.\n", len(s.Missed), len(s.Passed))
	writeFalse(b, s.False, r.Rules, false)
}

// writeGroups writes the figures of a set by group.
func writeGroups(b *strings.Builder, title string, s *Set, more string) {
	fmt.Fprintf(b, "\n## %s\n\n%d calls%s", title, s.Rows, more)
	if s.Beside {
		b.WriteString("; the corpus is not part of the repository")
	}
	if s.Bad > 0 {
		fmt.Fprintf(b, "; %d lines could not be used", s.Bad)
	}
	b.WriteString(".\n")
	if len(s.Groups) > 2 {
		b.WriteString("\n| group | recall, stage 1 | recall, final | flag rate, stage 1 | honest calls judged hacks |\n|---|---|---|---|---|\n")
		for _, group := range slices.Sorted(maps.Keys(s.Groups)) {
			g := s.Groups[group]
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", group, rate(g.Stage1.Hack), rate(g.Final.Hack), rate(g.Stage1.Benign), rate(g.Final.Benign))
		}
	}
}

func writeIDs(b *strings.Builder, title string, ids []string) {
	if len(ids) > 0 {
		fmt.Fprintf(b, "\n%s (%d): %s.\n", title, len(ids), strings.Join(ids, ", "))
	}
}

// writeFalse lists the false positives: those judged hacks one by one, the others by rule, with their ids where asked.
func writeFalse(b *strings.Builder, all []FalsePositive, texts map[string]RuleText, ids bool) {
	if len(all) == 0 {
		return
	}
	b.WriteString("\n### False positives\n\n")
	byRule := map[string][]string{}
	hacks := 0
	for _, f := range all {
		for _, id := range f.Rules {
			byRule[id] = append(byRule[id], f.ID)
		}
		if f.Hack {
			hacks++
		}
	}
	fmt.Fprintf(b, "%d honest calls are flagged: the judge is asked, at the cost of its answer. It finds %d of them hacks", len(all), hacks)
	if hacks == 0 {
		b.WriteString(".\n")
	} else {
		b.WriteString(", which a blocking preset would answer with a decoy, to the harm of an honest agent:\n\n| call | rules | the judge's reason |\n|---|---|---|\n")
		for _, f := range all {
			if f.Hack {
				fmt.Fprintf(b, "| %s | %s | %s |\n", f.ID, strings.Join(f.Rules, ", "), cell(f.Why))
			}
		}
	}
	heads := []string{"rule", "flagged", "what it takes them for", "honest calls that it is known to hit", "calls"}
	if !ids {
		heads = heads[:4]
	}
	fmt.Fprintf(b, "\n| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	for _, id := range slices.Sorted(maps.Keys(byRule)) {
		t := texts[id]
		fmt.Fprintf(b, "| %s | %d | %s | %s |", id, len(byRule[id]), cell(t.Title), cell(strings.Join(t.Known, "; ")))
		if ids {
			fmt.Fprintf(b, " %s |", strings.Join(byRule[id], ", "))
		}
		b.WriteByte('\n')
	}
}

// cell makes a text fit into a cell of a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(s)
}

// rate gives "19/20 0.9500 (0.7639-0.9911)", and "-" of nothing.
func rate(c Count) string {
	if c.N == 0 {
		return "-"
	}
	r := c.Rate()
	lo, hi := r.Wilson()
	return fmt.Sprintf("%d/%d %.4f (%.4f-%.4f)", c.Hit, c.N, r.Value(), lo, hi)
}

// Table gives the figures of r as lines of text, for a terminal, set by set.
func Table(r *Report) string {
	var b strings.Builder
	for _, name := range sortedNames(r.Sets) {
		s := r.Sets[name]
		fmt.Fprintf(&b, "%s (%d calls)\n", name, s.Rows)
		fmt.Fprintf(&b, "  %-34s %-32s %-32s %-32s %s\n", "", "RECALL, STAGE 1", "RECALL, FINAL", "FLAG RATE, STAGE 1", "HONEST JUDGED HACKS")
		for _, group := range slices.Sorted(maps.Keys(s.Groups)) {
			g := s.Groups[group]
			fmt.Fprintf(&b, "  %-34s %-32s %-32s %-32s %s\n", group, rate(g.Stage1.Hack), rate(g.Final.Hack), rate(g.Stage1.Benign), rate(g.Final.Benign))
		}
	}
	return b.String()
}
