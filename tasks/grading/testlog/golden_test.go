package testlog

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "record the golden results anew; needs PROCTOR_SWEBENCH_PYTHON")

const goldenFile = "testdata/golden.json"

// abouts are what parsers that hang on the task are asked about.
var abouts = map[string][]About{
	"immutable_js": {{InstanceID: "immutable-js__immutable-js-2005"}, {InstanceID: "immutable-js__immutable-js-2006"}, {InstanceID: "x-1"}},
	"jekyll":       {{InstanceID: "jekyll__jekyll-8047"}, {InstanceID: "jekyll__jekyll-8761"}, {InstanceID: "jekyll__jekyll-1"}},
	"next":         {{Version: "1.27"}, {Version: "1.26"}},
	"lighthouse":   {{Version: "9.5"}, {Version: "8.1"}, {Version: "2.4"}, {Version: ""}},
}

// swebenchAnswer is what the package's parser gave: results, or no answer.
type swebenchAnswer struct {
	Results Results `json:"results,omitempty"`
	Error   string  `json:"error,omitempty"`
}

func logs(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/logs/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no logs", err)
	}
	out := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".txt")] = string(text)
	}
	return out
}

func aboutsOf(parser string) []About {
	if list := abouts[parser]; list != nil {
		return list
	}
	return []About{{}}
}

// agree holds a parser's reading of a log against the package's. Where the package's parser breaks,
// nothing is asked of ours.
func agree(t testing.TB, parser, log string, about About, want swebenchAnswer) {
	t.Helper()
	if want.Error != "" {
		return
	}
	got, err := Parse(parser, log, about)
	if err != nil {
		t.Errorf("%s (%+v): %v; the package gives %v\nlog: %q", parser, about, err, want.Results, log)
		return
	}
	if !maps.Equal(got, want.Results) {
		for _, name := range slices.Sorted(maps.Keys(got)) {
			if got[name] != want.Results[name] {
				t.Errorf("%s (%+v): %q is %q, the package says %q", parser, about, name, got[name], want.Results[name])
			}
		}
		for name, status := range want.Results {
			if _, ok := got[name]; !ok {
				t.Errorf("%s (%+v): %q is missing, the package says %q", parser, about, name, status)
			}
		}
		if len(log) < 1000 {
			t.Logf("log: %q", log)
		}
	}
}

// Every parser reads every log as the swebench package did when the golden results were recorded.
func TestGolden(t *testing.T) {
	if *update {
		record(t)
	}
	data, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string]map[string]swebenchAnswer
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	all := logs(t)
	compared, named := 0, map[string]int{}
	for _, parser := range Names() {
		for _, about := range aboutsOf(parser) {
			for name, log := range all {
				want, ok := golden[key(parser, about)][name]
				if !ok {
					t.Errorf("%s: no golden result for %s; record them with -update", parser, name)
					continue
				}
				agree(t, parser, log, about, want)
				compared++
				named[parser] += len(want.Results)
			}
		}
	}
	for parser, n := range named {
		if n == 0 {
			t.Errorf("%s: no log holds a test for it", parser)
		}
	}
	t.Logf("%d readings compared", compared)
}

func key(parser string, about About) string {
	return strings.TrimSpace(strings.Join([]string{parser, about.InstanceID, about.Version}, " "))
}

// swebench is the package, running.
type swebench struct {
	in      *json.Encoder
	out     *bufio.Reader
	parsers []string
}

func startSwebench(t testing.TB) *swebench {
	t.Helper()
	python := os.Getenv("PROCTOR_SWEBENCH_PYTHON")
	if python == "" {
		t.Skip("SKIPPED: holds the parsers to the swebench package itself: make grading-swebench; the golden results are held by every run")
	}
	cmd := exec.Command(python, "testdata/answer.py")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	s := &swebench{in: json.NewEncoder(in), out: bufio.NewReaderSize(out, 1<<20)}
	var hello struct{ Parsers []string }
	s.read(t, &hello)
	s.parsers = hello.Parsers
	return s
}

func (s *swebench) read(t testing.TB, into any) {
	t.Helper()
	line, err := s.out.ReadBytes('\n')
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	if err := json.Unmarshal(line, into); err != nil {
		t.Fatalf("the package's side answers %q: %v", line, err)
	}
}

func (s *swebench) ask(t testing.TB, parser, log string, about About) swebenchAnswer {
	t.Helper()
	if err := s.in.Encode(map[string]string{"parser": parser, "log": log, "instance_id": about.InstanceID, "version": about.Version}); err != nil {
		t.Fatal(err)
	}
	var answer swebenchAnswer
	s.read(t, &answer)
	return answer
}

func record(t *testing.T) {
	s := startSwebench(t)
	golden := map[string]map[string]swebenchAnswer{}
	for _, parser := range s.parsers {
		for _, about := range aboutsOf(parser) {
			golden[key(parser, about)] = map[string]swebenchAnswer{}
			for name, log := range logs(t) {
				golden[key(parser, about)][name] = s.ask(t, parser, log, about)
			}
		}
	}
	data, err := json.MarshalIndent(golden, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goldenFile, append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The parsers are those of the package, and read random logs as it does.
func TestAgainstSwebench(t *testing.T) {
	s := startSwebench(t)
	if !slices.Equal(s.parsers, Names()) {
		t.Errorf("the package has %v,\nhere are %v", s.parsers, Names())
	}
	var pool []string
	for _, log := range logs(t) {
		pool = append(pool, strings.SplitAfter(log, "\n")...)
	}
	const rounds = 300
	compared, tests := 0, 0
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 7))
		log := randomLog(r, pool)
		for _, parser := range s.parsers {
			list := aboutsOf(parser)
			about := list[r.IntN(len(list))]
			want := s.ask(t, parser, log, about)
			agree(t, parser, log, about, want)
			compared++
			tests += len(want.Results)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d readings with %d tests in all agree", compared, tests)
}

// randomLog shuffles lines of real logs and breaks some of them.
func randomLog(r *rand.Rand, pool []string) string {
	pieces := []string{" ", "\t", "\u00a0", "\u2003", "\x1c", "\x85", "\r", "\n", "[", "]", "(", ")", " - ", "...", ":", "PASSED", "FAILED", "SKIPPED [1] ",
		" ok", "✓ ", "✔", "✕", "1) ", "<b>", "</b>", "{\n", "}\n", "\x1b[31m", "é", "٣", "12 ms", "(3ms)", "/tmp/a/", "x"}
	var log strings.Builder
	for range 5 + r.IntN(60) {
		line := pool[r.IntN(len(pool))]
		for range r.IntN(3) {
			at := r.IntN(len(line) + 1)
			if r.IntN(3) == 0 && at < len(line) {
				line = line[:at] + line[at+1:]
			} else {
				line = line[:at] + pieces[r.IntN(len(pieces))] + line[at:]
			}
		}
		log.WriteString(line)
	}
	return strings.ToValidUTF8(log.String(), "")
}

func FuzzParse(f *testing.F) {
	names := Names()
	for _, log := range logs(f) {
		for i := range names {
			f.Add(uint8(i), log, "x-2005", "1.27")
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, log, id, version string) {
		name := names[int(n)%len(names)]
		got, err := Parse(name, log, About{InstanceID: id, Version: version})
		if (err == nil) != (got != nil) {
			t.Fatalf("%s: results %v and error %v", name, got, err)
		}
		again, _ := Parse("parse_log_"+name, log, About{InstanceID: id, Version: version})
		if fmt.Sprint(got) != fmt.Sprint(again) {
			t.Fatalf("%s: two readings differ", name)
		}
	})
}

func TestUnknown(t *testing.T) {
	if _, err := Parse("nope", "", About{}); err == nil || !strings.Contains(err.Error(), "pytest_v2") || Known("nope") || !Known("parse_log_django") {
		t.Error(err)
	}
}

func TestFailOnlyNeedsARun(t *testing.T) {
	for log, want := range map[string]bool{
		"Executed 0 of 0": false, "Executed 3 of 3": true, "": false, "12 specs, 0 failures": true, "# tests 4": true, "x': ok": true, "0 passing": false,
	} {
		if Ran(log) != want {
			t.Errorf("Ran(%q) is %v", log, !want)
		}
	}
}
