package evaluation

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPageIsUpToDate holds the committed page to the committed baseline, without measuring anything.
func TestPageIsUpToDate(t *testing.T) {
	base, err := Load("../../testdata/eval/baseline.json")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/detection.md")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Page(base), string(page)); d != "" {
		t.Errorf("docs/detection.md is not what the baseline gives; run make eval UPDATE=1 (-baseline +page):\n%s", d)
	}
}

func sample() *Report {
	s := NewSet()
	for _, c := range []Case{
		{ID: "h1", Label: "hack", Class: "git_history", Obfuscation: "none", Tool: "bash", Kind: "documented", Rules: []string{"core/a"}, Hack: true},
		{ID: "h2", Label: "hack", Class: "git_history", Tool: "bash", Kind: "obfuscated", Rules: []string{"core/a"}},
		{ID: "h3", Label: "hack", Class: "fabrication", Tool: "create", Kind: "documented"},
		{ID: "b1", Label: "benign", Class: "git_history", Tool: "bash"},
		{ID: "b2", Label: "benign", Class: "git_history", Tool: "bash", Rules: []string{"core/a"}},
		{ID: "b3", Label: "benign", Tool: "bash", Rules: []string{"core/a", "core/b"}, Hack: true, Why: "a | b"},
		{ID: "g1", Label: "grey", Tool: "bash", Rules: []string{"core/b"}, Hack: true},
		{ID: "u1", Tool: "bash"},
	} {
		s.Add(c)
	}
	return &Report{Judge: "heuristic", Sets: map[string]*Set{"c.jsonl": s}, Rules: map[string]RuleText{"core/a": {Title: "T", Known: []string{"k"}}, "core/b": {}}}
}

func TestAdd(t *testing.T) {
	s := sample().Sets["c.jsonl"]
	want := Group{Counts{Count{3, 2}, Count{3, 2}, Count{1, 1}, Count{1, 0}}, Counts{Count{3, 1}, Count{3, 1}, Count{1, 1}, Count{1, 0}}}
	if d := cmp.Diff(want, *s.Groups["all"]); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Counts{Hack: Count{2, 2}, Benign: Count{2, 1}}, s.Groups["class git_history"].Stage1); d != "" {
		t.Error(d)
	}
	if s.Rows != 8 || strings.Join(s.Missed, " ") != "h3" || strings.Join(s.Passed, " ") != "h2" || len(s.False) != 2 {
		t.Errorf("%+v", s)
	}
}

func TestCompare(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Set)
		want   []string // group, what and direction of each change
	}{
		{"nothing", func(*Set) {}, nil},
		{"a hack less", func(s *Set) { s.Groups["all"].Stage1.Hack.Hit-- }, []string{"WORSE all recall"}},
		{"a hack more", func(s *Set) { s.Groups["all"].Final.Hack.Hit++ }, []string{"better all recall"}},
		{"an honest call more", func(s *Set) { s.Groups["tool bash"].Final.Benign.Hit++ }, []string{"WORSE tool bash flag rate"}},
		{"an honest call less", func(s *Set) { s.Groups["tool bash"].Stage1.Benign.Hit-- }, []string{"better tool bash flag rate"}},
		{"grey", func(s *Set) { s.Groups["all"].Final.Grey.Hit-- }, nil},
		{"twice the calls, same rates", func(s *Set) {
			s.Groups["all"].Stage1.Hack = Count{6, 4}
		}, nil},
		{"a group is gone", func(s *Set) { delete(s.Groups, "kind obfuscated") }, []string{"WORSE kind obfuscated recall"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			now := sample()
			tc.change(now.Sets["c.jsonl"])
			var got []string
			all := Compare(sample(), now)
			for _, c := range all {
				word := "better"
				if c.Fell {
					word = "WORSE"
				}
				got = append(got, word+" "+c.Group+" "+c.What)
				if s := c.String(); !strings.HasPrefix(s, word) || !strings.Contains(s, "c.jsonl") {
					t.Error(s)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
			if Fell(all) != strings.Contains(strings.Join(got, " "), "WORSE") {
				t.Error("Fell disagrees")
			}
		})
	}
}

func TestLackingAndKeep(t *testing.T) {
	old, now := sample(), sample()
	now.Sets = map[string]*Set{"d.jsonl": now.Sets["c.jsonl"]}
	now.Rules = map[string]RuleText{}
	unmeasured, unknown := Lacking(old, now)
	if strings.Join(unmeasured, "") != "c.jsonl" || strings.Join(unknown, "") != "d.jsonl" {
		t.Error(unmeasured, unknown)
	}
	if Compare(old, now) != nil {
		t.Error("sets that only one holds were compared")
	}
	old.Untuned = []Untuned{{Set: "c.jsonl", Commit: "abc", Final: Counts{Hack: Count{3, 1}}}}
	now.Keep(old)
	if len(now.Untuned) != 1 || !strings.Contains(Page(now), "| c.jsonl | abc | - | 1/3 0.3333") {
		t.Error("the figures before tuning are gone", Page(now))
	}
	if now.Sets["c.jsonl"] != old.Sets["c.jsonl"] || now.Rules["core/a"].Title != "T" {
		t.Errorf("%+v", now)
	}
}

func TestSaveAndLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sub", "b.json")
	if err := sample().Save(file); err != nil {
		t.Fatal(err)
	}
	got, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sample(), got); d != "" {
		t.Error(d)
	}
	if Page(got) != Page(sample()) || !strings.Contains(Page(got), `| b3 | core/a, core/b | a \| b |`) || !strings.Contains(Table(got), "2/3 0.6667") {
		t.Error(Page(got), Table(got))
	}
	for text, want := range map[string]string{
		`{`:                     "unexpected EOF",
		`{"sat": {}}`:           `unknown field "sat"`,
		`{"sets": {"a": null}}`: "sets.a",
		`{"sets": {"a": {"groups": {"all": null}}}}`:                                     "sets.a.groups.all",
		`{"sets": {"a": {"groups": {"all": {"stage1": {"hack": {"n": 1, "hit": 2}}}}}}}`: "more hits than calls",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	if _, err := Load(file + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"sets":{"a":{"groups":{"all":{"stage1":{},"final":{}}},"false_positives":[{"id":"x","rules":["r"]}]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "b.json")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := Load(file); err == nil && Page(r) == "" {
			t.Error("no page")
		}
	})
}

func TestChapters(t *testing.T) {
	names := []string{"b-10.jsonl", "b-2.jsonl", "a.jsonl", "c-1.jsonl", "b-2x.jsonl", "nl.jsonl.gz"}
	slices.SortFunc(names, byBatch)
	var got []string
	for _, c := range chapters(names) {
		got = append(got, c.title+": "+strings.Join(c.names, " "))
	}
	want := []string{"a.jsonl: a.jsonl", "b: b-2.jsonl b-10.jsonl", "b-2x.jsonl: b-2x.jsonl", "c-1.jsonl: c-1.jsonl", "nl.jsonl.gz: nl.jsonl.gz"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Batches are told as their sum, and nothing is lost in it.
func TestBatchesAreToldTogether(t *testing.T) {
	r := sample()
	var one *Set
	for _, s := range r.Sets {
		one = s
	}
	r.Sets = map[string]*Set{"x-1.jsonl": one, "x-2.jsonl": one, "x-10.jsonl": one}
	page := Page(r)
	sum := together(r.Sets, []string{"x-1.jsonl", "x-2.jsonl", "x-10.jsonl"})
	if sum.Rows != 3*one.Rows || sum.all().Final.Hack.N != 3*one.all().Final.Hack.N || sum.all().Stage1.Benign.Hit != 3*one.all().Stage1.Benign.Hit ||
		len(sum.False) != 3*len(one.False) || one.Groups["all"].Final.Hack.N == sum.Groups["all"].Final.Hack.N {
		t.Errorf("%+v", sum)
	}
	if !strings.Contains(page, "## x\n\n") || strings.Contains(page, "## x-1") || !strings.Contains(page, "in 3 batches, x-1.jsonl to x-10.jsonl") ||
		!strings.Contains(page, "| "+rate(sum.all().Final.Hack)+" |") {
		t.Error(page)
	}
}
