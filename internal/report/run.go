package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"proctor/internal/evalrun"
	"proctor/internal/rollouts"
	"proctor/monitor"
)

const runBody = `<h1>{{.Title}}</h1>
<p>{{words (len .R.Plan.Tasks) "task"}}, {{words .R.Plan.N "attempt"}} each; {{.R.Done}} of {{.R.Attempts}} done, {{.R.Graded}} with a reward. <span class="dim">Run {{.R.Plan.ID}}, {{.R.Plan.CreatedAt.Format "2006-01-02 15:04"}} UTC</span></p>
{{.Score}}
<table>
<tr><th>hack rate</th><td>{{rate .R.HackRate}} of attempts hold a confirmed hack, blocked or not</td></tr>
<tr><th>not blocked</th><td>{{rate .R.HackRateUnblocked}} of attempts hold one that ran</td></tr>
<tr><th>calls</th><td>{{.R.Calls}}, of them {{.R.Blocked}} blocked and {{.R.Flagged}} flagged</td></tr>
<tr><th>tokens</th><td>{{.R.TokensIn}} in, {{.R.TokensOut}} out; cost {{printf "%.4f" .R.Cost}}</td></tr>
<tr><th>without a reward</th><td>{{range $class, $n := .R.Failures}}{{$class}}: {{$n}} {{else}}none{{end}}</td></tr>
</table>
<h2>Hacks by class</h2><p class="dim">Calls that were confirmed as a hack: tried, and of them blocked.</p>{{.Classes}}
<h2>Time of an attempt</h2>{{.Time}}
<h2>Tokens of an attempt</h2>{{.Tokens}}
<h2>Attempts</h2><table><tr><th>task</th><th>attempt</th><th>outcome</th><th>reward</th><th>calls</th><th>blocked</th><th>hacks</th><th>turns</th><th>ended by</th></tr>
{{range .Rows}}<tr><td>{{if .Page}}<a href="{{.Page}}">{{.R.TaskID}}</a>{{else}}{{.R.TaskID}}{{end}}</td><td>{{.R.Attempt}}</td><td>{{if eq .R.Outcome "resolved"}}<span class="good">resolved</span>{{else}}{{.R.Outcome}}{{end}}</td>
<td>{{with .R.Reward}}{{.}}{{else}}<span class="bad">none</span> {{.R.FailureClass}}{{end}}</td><td>{{.R.Calls}}</td><td>{{.R.Blocked}}</td><td>{{if .R.Hacks}}<span class="bad">{{.R.Hacks}}</span>{{else}}0{{end}}</td><td>{{.R.Turns}}</td><td>{{.R.Stop}}{{with .R.Error}}<br><span class="dim">{{.}}</span>{{end}}</td></tr>
{{end}}</table>
`

const rolloutBody = `<p><a href="../report.html">all attempts</a></p><h1>{{.Title}}</h1>
<table><tr><th>outcome</th><td>{{.R.Outcome}}{{with .R.Reward}}, reward {{.}}{{end}}</td></tr><tr><th>ended by</th><td>{{.R.Stop}} {{.R.Error}}</td></tr>
<tr><th>calls</th><td>{{.R.Calls}}, {{.R.Blocked}} blocked, {{.R.Flagged}} flagged, {{.R.Hacks}} confirmed</td></tr>
<tr><th>digests</th><td class="dim">image {{.R.Digests.Image}}<br>packs {{.R.Digests.Packs}}<br>judge {{.R.Digests.Judge}}<br>classifier {{.R.Digests.Classifier}}</td></tr>
{{with .T.Grade}}<tr><th>tests</th><td>{{len .Tests.FailToPass.Passed}} of {{plus (len .Tests.FailToPass.Passed) (len .Tests.FailToPass.Failed)}} that must come to pass, {{len .Tests.PassToPass.Passed}} of {{plus (len .Tests.PassToPass.Passed) (len .Tests.PassToPass.Failed)}} that must go on passing</td></tr>
{{with .Review}}<tr><th>patch, read</th><td>{{.Verdict}} {{.Class}} {{.Reason}}</td></tr>{{end}}{{end}}</table>
<p class="dim">Left what the agent was shown, right what the sandbox gave.</p>
{{range .Calls}}<div class="call {{.C.Verdict.Decision}}"><b>{{.C.Ordinal}}. {{.C.Name}}</b> {{.C.Verdict.Decision}}, {{.C.Verdict.Action}}{{if .C.Verdict.Hack}} <span class="bad">{{.C.Verdict.Class}}</span>{{end}}{{if eq .C.Principal "harness"}} <span class="dim">(harness)</span>{{end}} <span class="dim">{{.C.DurationMS}} ms</span>
<pre>{{.Text}}</pre>
{{range .C.Verdict.Hits}}<p><code>{{.Rule}}</code> {{.Title}}: <code>{{.Span}}</code></p>{{end}}{{with .C.Verdict.Opinion}}<p>{{.By}}: {{.Verdict}} {{.Reason}}</p>{{end}}
{{if .Same}}<pre>{{.Shown}}</pre>{{else}}<div class="two"><pre>{{.Shown}}</pre><pre>{{.Real}}</pre></div>{{end}}{{with .C.Error}}<p class="bad">{{.}}</p>{{end}}</div>
{{end}}{{with .Patch}}<h2>Patch</h2><pre>{{.}}</pre>{{end}}
`

var (
	runTemplate     = page("run", runBody)
	rolloutTemplate = page("rollout", rolloutBody)
)

// runRow is an attempt in the table of a run.
type runRow struct {
	R    *evalrun.Result
	Page string
}

// maxShown bounds what a page holds of one output, in bytes: an observation has at most 64 KiB, and a
// page of a hundred of them must open.
const maxShown = 16 << 10

// RunPages writes report.html and a page for each attempt into a run folder.
func RunPages(dir string, r *evalrun.Report) error {
	if err := os.MkdirAll(filepath.Join(dir, "pages"), 0o755); err != nil {
		return err
	}
	pages := map[*evalrun.Result]string{}
	for _, res := range r.Results {
		body, err := os.ReadFile(evalrun.TrajectoryFile(dir, res))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s.%d.html", evalrun.SafeName(res.TaskID), res.Attempt)
		patch, err := os.ReadFile(strings.TrimSuffix(evalrun.TrajectoryFile(dir, res), ".trajectory.json") + ".patch")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		write := func(w io.Writer) error { return RolloutHTML(w, res, body, string(patch)) }
		if err := toFile(filepath.Join(dir, "pages", name), write); err != nil {
			return err
		}
		pages[res] = "pages/" + name
	}
	return toFile(filepath.Join(dir, "report.html"), func(w io.Writer) error { return RunHTML(w, r, pages) })
}

// toFile writes a file whole or not at all.
func toFile(path string, write func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already where all went well
	if err := errors.Join(write(tmp), tmp.Chmod(0o644), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// RunHTML writes a run's page; pages links attempts to theirs.
func RunHTML(w io.Writer, r *evalrun.Report, pages map[*evalrun.Result]string) error {
	d := struct {
		Title                        string
		R                            *evalrun.Report
		Score, Classes, Time, Tokens template.HTML
		Rows                         []runRow
	}{Title: "Evaluation of " + orText(r.Plan.Model, orText(r.Plan.Agent, "?")), R: r}
	var times, tokens []float64
	for _, res := range r.Results {
		d.Rows = append(d.Rows, runRow{res, pages[res]})
		times, tokens = append(times, res.Seconds), append(tokens, float64(res.TokensIn+res.TokensOut))
	}
	var errs [4]error
	d.Score, errs[0] = bars("Score", scoreBars(r), 1)
	d.Classes, errs[1] = bars("Confirmed hacks by class", classBars(r), 0)
	d.Time, errs[2] = histogram("Time of an attempt", times, "s")
	d.Tokens, errs[3] = histogram("Tokens of an attempt", tokens, "")
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	return execute(w, runTemplate, d)
}

func scoreBars(r *evalrun.Report) []Bar {
	var out []Bar
	bar := func(label string, e evalrun.Estimate) Bar {
		return Bar{Label: label, Value: e.Value, Lo: e.Lo, Hi: e.Hi, Text: percent(e.Value)}
	}
	for _, k := range slices.Sorted(maps.Keys(r.PassAt)) {
		out = append(out, bar(fmt.Sprintf("pass@%d", k), r.PassAt[k]), bar(fmt.Sprintf("pass@%d, hacks count as failed", k), r.PassAtClean[k]))
	}
	return append(out, rateBar("hack rate", r.HackRate), rateBar("hack rate, not blocked", r.HackRateUnblocked))
}

func classBars(r *evalrun.Report) []Bar {
	var out []Bar
	for _, name := range slices.Sorted(maps.Keys(r.ByClass)) {
		c := r.ByClass[name]
		out = append(out, Bar{Label: name, Value: float64(c.Tried)}, Bar{Label: "blocked", Value: float64(c.Blocked)})
	}
	return out
}

// shownCall is a call on an attempt's page.
type shownCall struct {
	C                 *monitor.Record
	Text, Shown, Real string
	Same              bool
}

// RolloutHTML writes an attempt's page from its record.
func RolloutHTML(w io.Writer, res *evalrun.Result, record []byte, patch string) error {
	var t rollouts.Trajectory
	if err := json.Unmarshal(record, &t); err != nil {
		return fmt.Errorf("the record of %s #%d does not decode: %w", res.TaskID, res.Attempt, err)
	}
	d := struct {
		Title string
		R     *evalrun.Result
		T     *rollouts.Trajectory
		Calls []shownCall
		Patch string
	}{fmt.Sprintf("%s, attempt %d", res.TaskID, res.Attempt), res, &t, nil, clip(patch, 8*maxShown)}
	for _, c := range t.Calls {
		s := shownCall{C: c, Text: clip(callText(c), maxShown), Shown: "(nothing: the call did not end)", Real: "(it was not run)"}
		if c.Observation != nil {
			s.Shown = clip(shown(c.Observation), maxShown)
		}
		if c.Original != nil {
			s.Real = clip(shown(c.Original), maxShown)
		}
		s.Same = s.Shown == s.Real
		d.Calls = append(d.Calls, s)
	}
	return execute(w, rolloutTemplate, d)
}

// callText gives a call's arguments in words.
func callText(c *monitor.Record) string {
	var a map[string]any
	if json.Unmarshal(c.Arguments, &a) != nil {
		return string(c.Arguments)
	}
	if command, ok := a["command"].(string); ok && c.Name == "bash" {
		return command
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		lines = append(lines, fmt.Sprintf("%s: %v", name, a[name]))
	}
	return strings.Join(lines, "\n")
}

func shown(o *monitor.Observation) string {
	exit := "no exit status"
	if o.ExitCode != nil {
		exit = fmt.Sprintf("exit status %d", *o.ExitCode)
	}
	if o.TimedOut {
		exit += ", timed out"
	}
	return o.Output + "[" + exit + "]"
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + fmt.Sprintf("\n(%d more bytes)", len(s)-n)
}
