package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"proctor/internal/scan"
	"proctor/internal/tally"
	"proctor/internal/traces"
)

// hostile is text that tries to get out of wherever it is put.
const hostile = `</pre></title></style></svg>--><script>alert(1)</script><img src=x onerror="alert(1)"><a href="javascript:alert(1)">'"&<` + "\x1b[2J\u202e"

// allowed are the elements that our pages are made of.
var allowed = []string{"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "table", "tr", "th", "td", "b", "span", "code", "pre", "div", "details", "summary",
	"svg", "text", "rect", "path", "br", "a", "ul", "li"}

var (
	element = regexp.MustCompile(`</?([a-zA-Z][a-zA-Z0-9]*)([^>]*)>`)
	handler = regexp.MustCompile(`(?i)\s(on[a-z]+|style|src|srcset|action|formaction)\s*=|javascript:`)
)

// harmless fails a test whose page holds an element, a handler or an address that we did not put there.
func harmless(t *testing.T, page string) {
	t.Helper()
	if !strings.Contains(page, "default-src 'none'") {
		t.Error("the page has no policy")
	}
	for _, m := range element.FindAllStringSubmatch(page, -1) {
		if !slices.Contains(allowed, strings.ToLower(m[1])) {
			t.Errorf("the page holds %s", m[0])
		}
		if handler.MatchString(m[2]) {
			t.Errorf("the page holds %s", m[0])
		}
	}
}

func hostileScan() *scan.Report {
	call := scan.SuspectedCall{Ordinal: 1, Class: hostile, Rule: hostile, Title: hostile, Severity: "high", Decision: "block", Hack: true, Evidence: hostile, Reason: hostile, By: hostile, Text: hostile, Shown: hostile}
	return &scan.Report{Files: 1, Trajectories: 2, Calls: 3, Judge: hostile, Packs: hostile,
		Suspected: []scan.Suspect{{Trajectory: hostile, Task: hostile, File: "runs/" + hostile, Line: 4, Format: "openai", Total: 3, Calls: []scan.SuspectedCall{call, {Ordinal: 2, Rule: hostile, Severity: "low", Blind: true}}}},
		ByClass:   map[string]*scan.ClassRate{hostile: {Rate: tally.Rate{N: 2, Hit: 1}, Calls: 2}}, Unmapped: map[string]int{hostile: 1},
		Unknown: []traces.Unknown{{File: hostile, Line: 2, Reason: hostile}}, Rates: scan.Rates{Suspected: tally.Rate{N: 2, Hit: 1}}}
}

func TestScanHTMLIsHarmless(t *testing.T) {
	var b bytes.Buffer
	if err := ScanHTML(&b, hostileScan()); err != nil {
		t.Fatal(err)
	}
	harmless(t, b.String())
	for _, want := range []string{"&lt;script&gt;alert(1)", "1 of 2, 50.0 %", "does not say what was shown"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	b.Reset()
	if err := ScanHTML(&b, &scan.Report{}); err != nil || !strings.Contains(b.String(), "Nothing.") {
		t.Errorf("an empty scan: %v", err)
	}
}

func TestSARIF(t *testing.T) {
	var b bytes.Buffer
	if err := SARIF(&b, hostileScan(), "1.2"); err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	dec := json.NewDecoder(&b)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if log.Version != "2.1.0" || len(run.Results) != 2 || len(run.Tool.Driver.Rules) != 1 || len(run.Invocations[0].ToolExecutionNotifications) != 1 {
		t.Fatalf("%+v", run)
	}
	first, second := run.Results[0], run.Results[1]
	if first.Level != "error" || second.Level != "note" || first.RuleIndex != 0 || run.Tool.Driver.Rules[first.RuleIndex].ID != first.RuleID ||
		first.Locations[0].Physical.Region.StartLine != 4 || !strings.HasPrefix(first.Message.Text, "Call 1 of ") {
		t.Errorf("%+v\n%+v", first, second)
	}
}

func TestFileURI(t *testing.T) {
	for file, want := range map[string]string{"a b/c.traj": "a%20b/c.traj", "/x/y.json": "file:///x/y.json", "x.eval!samples/1.json": "x.eval#samples/1.json", "a:b.json": "./a:b.json"} {
		if got := fileURI(file); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}

func TestHistogram(t *testing.T) {
	for _, values := range [][]float64{nil, {0}, {3}, {1, 2, 1000}, {-1, 0.001}, make([]float64, 5000)} {
		svg, err := histogram("h", values, "s")
		if err != nil || strings.Count(string(svg), "<rect") > 12 {
			t.Errorf("%d values: %.200s, %v", len(values), svg, err)
		}
	}
	for x, want := range map[float64]float64{0: 1, 0.3: 0.5, 1: 1, 1.1: 2, 7: 10, 20: 20, 201: 500} {
		if got := roundUp(x); got < want*0.999999 || got > want*1.000001 {
			t.Errorf("%v: %v, want %v", x, got, want)
		}
	}
}

// errWriter fails at once.
type errWriter struct{}

var errFull = errors.New("disk full")

func (errWriter) Write([]byte) (int, error) { return 0, errFull }

func TestAFullDiskIsTold(t *testing.T) {
	if err := ScanHTML(errWriter{}, hostileScan()); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}
