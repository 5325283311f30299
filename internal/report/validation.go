package report

import (
	"html/template"
	"io"

	"proctor/internal/tally"
	"proctor/tasks/grading"
)

const validationBody = `<h1>{{.Title}}</h1>
<p>{{rate .Holds}} of the tasks hold: the solution passes and doing nothing fails, in every run.</p>
<h2>Tasks by result</h2>{{.Results}}<h2>Leaks by kind</h2><p class="dim">What raw images held of the solution or of hidden files; hardening took it out.</p>{{.Leaks}}<h2>Time of a task</h2>{{.Time}}
<h2>Tasks</h2><table><tr><th>task</th><th></th><th>solution</th><th>nothing</th><th>leaks closed</th><th>flaky tests</th><th>time</th></tr>
{{range .Tasks}}<tr><td>{{.TaskID}}</td><td>{{if .OK}}<span class="good">ok</span>{{else if .Infra}}<span class="bad">not proven</span>{{else}}<span class="bad">failed</span>{{end}}</td>
<td>{{.Gold.Outcome}} x{{.Gold.Runs}}</td><td>{{.Empty.Outcome}} x{{.Empty.Runs}}</td><td>{{len .Leaks}}</td><td>{{len .Flaky}}</td><td>{{seconds .DurationMS}}</td></tr>
{{end}}</table>
{{range .Tasks}}{{if or .Problems .Leaks .Flaky}}<details{{if .Problems}} open{{end}}><summary><b>{{.TaskID}}</b></summary>
{{range .Problems}}<pre>{{.}}</pre>{{end}}{{with .Flaky}}<p>Flaky:{{range some .}}<br><code>{{.}}</code>{{end}}</p>{{end}}
{{with .Leaks}}<ul>{{range .}}<li><b>{{.Kind}}</b> {{.}}</li>{{end}}</ul>{{end}}</details>{{end}}
{{end}}`

var validationTemplate = page("validation", validationBody)

// ValidationHTML writes validations of tasks as one page.
func ValidationHTML(w io.Writer, list []grading.Validation) error {
	d := struct {
		Title                string
		Tasks                []grading.Validation
		Holds                tally.Rate
		Results, Leaks, Time template.HTML
	}{Title: "Validation of tasks", Tasks: list, Holds: tally.Rate{N: len(list)}}
	results, leaks, times := map[string]int{}, map[string]int{}, []float64{}
	for _, v := range list {
		switch {
		case v.OK:
			d.Holds.Hit++
			results["ok"]++
		case v.Infra:
			results["not proven: the machine failed"]++
		default:
			results["failed"]++
		}
		for _, leak := range v.Leaks {
			leaks[leak.Kind]++
		}
		times = append(times, float64(v.DurationMS)/1000)
	}
	var err error
	if d.Results, err = bars("Tasks by result", counted(results), 0); err != nil {
		return err
	}
	if d.Leaks, err = bars("Leaks by kind", counted(leaks), 0); err != nil {
		return err
	}
	if d.Time, err = histogram("Time of a task", times, "s"); err != nil {
		return err
	}
	return execute(w, validationTemplate, d)
}
