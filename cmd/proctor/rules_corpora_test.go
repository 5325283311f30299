package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"proctor/monitor/normalize/corpus"
	"proctor/rules"
)

// corpora lists the corpora beside the repository, which are too large to be part of it.
func corpora(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../../shared/data/*.jsonl*")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("the corpora in ../shared/data are missing")
		}
		t.Skip("SKIPPED: the corpora in ../shared/data are missing, so matching is NOT held against them")
	}
	return files
}

// manyRules loads the core packs and fills up with made rules of the usual forms to n.
func manyRules(t *testing.T, n int) *rules.Packs {
	t.Helper()
	all, err := coreAndMade(n)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// threadTime is the processor time of this thread: what others do on the machine does not count.
func threadTime(t *testing.T) time.Duration {
	now, err := threadClock()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// TestFastMatchingAgreesOnCorpora holds matching with prefilter and dispatch against plain
// matching, line by line, and tells how long both steps take.
func TestFastMatchingAgreesOnCorpora(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED under -short: matching is NOT held against the corpora")
	}
	packs := manyRules(t, 500)
	tasks, err := corpus.LoadTasks("../../../shared/data/swe_tasks.json")
	files := corpora(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			t.Parallel()
			agree(t, packs, tasks, f)
		})
	}
}

// corpusStep says which lines of a corpus are matched: every one, and of the two long ones of ten thousand
// lines each every fifth, since the plain way takes minutes there; PROCTOR_CORPORA=all (make matching) takes all.
func corpusStep(f string) int {
	if os.Getenv("PROCTOR_CORPORA") == "all" || !strings.HasSuffix(f, ".gz") {
		return 1
	}
	return 5
}

// agree is TestFastMatchingAgreesOnCorpora for one corpus.
func agree(t *testing.T, packs *rules.Packs, tasks corpus.Tasks, f string) {
	ev := &evaluator{packs: packs, sets: map[string]*rules.Set{}}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var took, matched []time.Duration
	step := corpusStep(f)
	for row, err := range corpus.Open(f) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Line%step != 0 {
			continue
		}
		tasks.Fill(row)
		c, line := row.Case(), row.Line
		set, err := ev.set(c.Vars)
		if err != nil {
			t.Fatalf("%s:%d: %v", f, line, err)
		}
		start := threadTime(t)
		events, err := normaliseCase(t.Context(), c)
		if err != nil {
			t.Fatalf("%s:%d: %v", f, line, err)
		}
		between := threadTime(t)
		fast, plain := set.Session(), set.PlainSession()
		var got []rules.Hit
		for i := range events {
			got = fast.Match(&events[i])
		}
		end, n := threadTime(t), time.Duration(len(events))
		took, matched = append(took, (end-start)/n), append(matched, (end-between)/n)
		var want []rules.Hit
		for i := range events {
			want = plain.Match(&events[i])
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s:%d: the prefilter changes what hits (-plain +fast):\n%s", f, line, d)
		}
	}
	t.Logf("%d calls with %d rules: normalise and match %s; match %s", len(took), len(packs.Rules()), quantiles(took), quantiles(matched))
}

// quantiles sorts times and describes them.
func quantiles(took []time.Duration) string {
	slices.Sort(took)
	n := len(took)
	return fmt.Sprintf("p50 %v, p99 %v, max %v", took[n/2], took[n*99/100], took[n-1])
}
