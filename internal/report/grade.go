package report

import (
	"html/template"
	"io"
	"maps"
	"slices"

	"proctor/internal/tally"
	"proctor/tasks"
	"proctor/tasks/grading/predictions"
)

const gradeBody = `<h1>{{.Title}}</h1>
<p>{{words (len .Results) "prediction"}} of {{words (len .Models) "model"}}, {{words .Known "grade"}} known from before.</p>
<h2>Score</h2>{{.Score}}<h2>Outcomes</h2>{{.Outcomes}}<h2>Time of a grading</h2>{{.Time}}
<h2>Models</h2><table><tr><th>model</th><th>resolved</th><th>unresolved</th><th>without a patch</th><th>errors</th><th>not predicted</th></tr>
{{range .Models}}<tr><td>{{.Name}}</td><td>{{rate .Rate}}</td><td>{{.R.Unresolved}}</td><td>{{.R.EmptyPatch}}</td><td>{{.R.Errors}}</td><td>{{len .R.IncompleteIDs}}</td></tr>
{{end}}</table>
<h2>Predictions</h2>{{range .Results}}<details{{if .Open}} open{{end}}><summary><b>{{.R.InstanceID}}</b> {{.R.Model}} {{if eq .Outcome "resolved"}}<span class="good">resolved</span>{{else}}<span class="bad">{{.Outcome}}</span>{{end}} <span class="dim">{{.R.Place}}</span></summary>
{{with .R.Error}}<pre>{{.}}</pre>{{end}}{{with .R.Grade}}<table>
<tr><th>must come to pass</th><td>{{template "tests" .Tests.FailToPass}}</td></tr><tr><th>must go on passing</th><td>{{template "tests" .Tests.PassToPass}}</td></tr>
{{with .ApplyStep}}<tr><th>applied by</th><td>{{.}}</td></tr>{{end}}{{with .Witnesses}}<tr><th>witnesses</th><td>{{range .}}{{.}}<br>{{end}}</td></tr>{{end}}
{{with .Notes}}<tr><th>notes</th><td>{{range .}}{{.}}<br>{{end}}</td></tr>{{end}}{{with .Review}}<tr><th>patch, read</th><td>{{.Verdict}} {{.Class}} {{.Reason}}</td></tr>{{end}}
<tr><th>patch</th><td class="dim"><code>{{.PatchSHA256}}</code></td></tr></table>{{end}}</details>
{{end}}
{{define "tests"}}{{len .Passed}} of {{plus (len .Passed) (len .Failed)}}{{range some .Failed}}<br><code>{{.}}</code>{{end}}{{end}}`

var gradeTemplate = page("grade", gradeBody)

// someTests bounds the failed tests that a page names of one prediction.
const someTests = 20

func some(list []string) []string { return list[:min(len(list), someTests)] }

// gradedModel is a row of the table of models.
type gradedModel struct {
	Name string
	R    predictions.RunReport
	Rate tally.Rate // of all instances of the set
}

// gradedResult is one prediction; Open where a reader will want to know more.
type gradedResult struct {
	R       predictions.Result
	Outcome string
	Open    bool
}

// GradesHTML writes the grades of predictions as one page.
func GradesHTML(w io.Writer, models map[string]predictions.RunReport, results []predictions.Result) error {
	d := struct {
		Title                 string
		Models                []gradedModel
		Results               []gradedResult
		Known                 int
		Score, Outcomes, Time template.HTML
	}{Title: "Grades"}
	outcomes, times, score := map[string]int{}, []float64{}, []Bar{}
	for _, r := range results {
		one := gradedResult{R: r, Outcome: r.Class}
		if g := r.Grade; g != nil {
			one.Outcome, times = g.Outcome, append(times, float64(g.DurationMS)/1000)
		}
		one.Open = one.Outcome == tasks.Tampered || r.Grade == nil
		if r.Known {
			d.Known++
		}
		outcomes[one.Outcome]++
		d.Results = append(d.Results, one)
	}
	for _, name := range slices.Sorted(maps.Keys(models)) {
		m := models[name]
		rate := tally.Rate{N: m.Total, Hit: m.Resolved}
		d.Models, score = append(d.Models, gradedModel{name, m, rate}), append(score, rateBar(name, rate))
	}
	var err error
	if d.Score, err = bars("Resolved, of all instances of the set", score, 1); err != nil {
		return err
	}
	if d.Outcomes, err = bars("Predictions by outcome", counted(outcomes), 0); err != nil {
		return err
	}
	if d.Time, err = histogram("Time of a grading", times, "s"); err != nil {
		return err
	}
	return execute(w, gradeTemplate, d)
}

// counted gives a bar for each name.
func counted(by map[string]int) []Bar {
	var out []Bar
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, Bar{Label: name, Value: float64(by[name])})
	}
	return out
}
