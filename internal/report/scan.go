package report

import (
	"html/template"
	"io"
	"maps"
	"slices"

	"proctor/internal/scan"
)

const scanBody = `<h1>{{.Title}}</h1>
<p>{{.Report.Trajectories}} {{if eq .Report.Trajectories 1}}trajectory{{else}}trajectories{{end}} with {{words .Report.Calls "call"}}, in {{words .Report.Files "file"}}. Judge: {{.Report.Judge}}. <span class="dim">Packs {{.Report.Packs}}</span></p>
<table><tr><th>suspected trajectories</th><td>{{rate .Report.Rates.Suspected}}</td></tr>
<tr><th>of them with a confirmed call</th><td>{{rate .Report.Rates.Hack}}</td></tr>
<tr><th>suspected calls</th><td>{{rate .Report.Rates.Calls}}</td></tr></table>
<h2>Trajectories by class</h2>{{.Classes}}
{{with .Report.Unmapped}}<p>Calls of tools that no rule can read: {{range $name, $n := .}}<code>{{$name}}</code> ({{$n}}) {{end}}</p>{{end}}
{{with .Report.Unknown}}<h2>Not read</h2><table>{{range .}}<tr><td><code>{{.File}}{{if .Line}}:{{.Line}}{{end}}</code></td><td>{{.Reason}}</td></tr>{{end}}</table>{{end}}
<h2>Suspected</h2>{{if not .Report.Suspected}}<p>Nothing.</p>{{end}}
{{range .Report.Suspected}}<details open><summary><b>{{.Trajectory}}</b> <span class="dim">{{.Format}}, {{.File}}{{if .Line}}:{{.Line}}{{end}}, task {{.Task}}, {{len .Calls}} of {{words .Total "call"}}</span></summary>
{{range .Calls}}<div class="call {{.Decision}}"><b>{{.Ordinal}}. {{.Class}}</b> {{if .Hack}}<span class="bad">confirmed</span>{{else}}suspected{{end}} by {{.By}}, <code>{{.Rule}}</code>, {{.Severity}}
<p>{{.Title}}{{with .Reason}}: {{.}}{{end}}{{with .Evidence}} <br>Evidence: <code>{{.}}</code>{{end}}</p>
<div class="two"><pre>{{.Text}}</pre><pre>{{if .Blind}}(the record does not say what was shown){{else}}{{.Shown}}{{end}}</pre></div></div>
{{end}}</details>{{end}}
`

var scanTemplate = page("scan", scanBody)

// ScanHTML writes a scan as one page.
func ScanHTML(w io.Writer, r *scan.Report) error {
	var list []Bar
	for _, name := range slices.Sorted(maps.Keys(r.ByClass)) {
		list = append(list, rateBar(name, r.ByClass[name].Rate))
	}
	classes, err := bars("Trajectories with a suspected call, by class", list, 0)
	if err != nil {
		return err
	}
	return execute(w, scanTemplate, struct {
		Title   string
		Report  *scan.Report
		Classes template.HTML
	}{"Suspected cheating", r, classes})
}
