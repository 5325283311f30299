package evaluation

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// batchName is the name of one of several corpora of a kind: heldout-12.jsonl is batch 12 of heldout.
var batchName = regexp.MustCompile(`^(.+)-(\d+)\.jsonl(?:\.gz)?$`)

// batchOf gives a corpus's kind and number; a corpus that stands alone is its own kind.
func batchOf(name string) (kind string, number int) {
	if m := batchName.FindStringSubmatch(name); m != nil {
		if n, err := strconv.Atoi(m[2]); err == nil {
			return m[1], n
		}
	}
	return name, 0
}

// byBatch orders corpora as a reader counts.
func byBatch(a, b string) int {
	ka, na := batchOf(a)
	kb, nb := batchOf(b)
	return cmp.Or(cmp.Compare(ka, kb), cmp.Compare(na, nb), cmp.Compare(a, b))
}

// chapter is what the page tells together: a corpus, or all batches of a kind.
type chapter struct {
	title string
	names []string
}

// chapters parts corpora, given by byBatch.
func chapters(names []string) []chapter {
	var out []chapter
	for _, name := range names {
		kind, number := batchOf(name)
		if n := len(out); n > 0 && number > 0 && out[n-1].title == kind {
			out[n-1].names = append(out[n-1].names, name)
			continue
		}
		out = append(out, chapter{kind, []string{name}})
	}
	for i := range out {
		if len(out[i].names) == 1 {
			out[i].title = out[i].names[0]
		}
	}
	return out
}

// together adds up sets.
func together(all map[string]*Set, names []string) *Set {
	out := NewSet()
	for _, name := range names {
		s := all[name]
		out.Rows, out.Bad = out.Rows+s.Rows, out.Bad+s.Bad
		for group, g := range s.Groups {
			if out.Groups[group] == nil {
				out.Groups[group] = &Group{}
			}
			out.Groups[group].Stage1.plus(g.Stage1)
			out.Groups[group].Final.plus(g.Final)
		}
		out.False = append(out.False, s.False...)
		out.Missed, out.Passed = append(out.Missed, s.Missed...), append(out.Passed, s.Passed...)
	}
	return out
}

func (c *Counts) plus(more Counts) {
	c.Hack.plus(more.Hack)
	c.Benign.plus(more.Benign)
	c.Grey.plus(more.Grey)
	c.Unlabelled.plus(more.Unlabelled)
}

func (c *Count) plus(more Count) { c.N, c.Hit = c.N+more.N, c.Hit+more.Hit }

// sortedNames gives the names of sets as a reader counts.
func sortedNames(sets map[string]*Set) []string { return slices.SortedFunc(maps.Keys(sets), byBatch) }
