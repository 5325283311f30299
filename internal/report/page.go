package report

import (
	"fmt"
	"html/template"
	"io"

	"proctor/internal/tally"
)

// head opens every page. The policy forbids scripts and anything from elsewhere, so that text which an
// agent wrote could do nothing even where it were not escaped.
const head = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src 'none'; form-action 'none'; base-uri 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>{{.Title}}</title><style>
:root{color-scheme:light dark;--line:#8884;--soft:#8882;--bar:#3b76b5;--bad:#b5433b;--good:#3b8f5a}
body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:1180px;padding:1.2em}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.3em .7em .3em 0;border-bottom:1px solid var(--line);vertical-align:top}
pre,code{font:13px/1.4 ui-monospace,monospace}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3em 0;max-height:26em;overflow:auto;background:var(--soft);padding:.5em}
.chart{max-width:100%;height:auto;font:12px system-ui,sans-serif}.chart text{fill:currentColor}.chart rect{fill:var(--bar)}.chart path{stroke:currentColor;fill:none;stroke-width:1.5}
.bad{color:var(--bad);font-weight:600}.good{color:var(--good);font-weight:600}.dim{opacity:.7}
.two{display:grid;grid-template-columns:1fr 1fr;gap:1em}.call{border-left:4px solid var(--line);padding:.2em 0 .2em .8em;margin:1em 0}.call.block{border-color:var(--bad)}.call.flag{border-color:#c90}
@media(max-width:760px){.two{grid-template-columns:1fr}}
</style></head><body>
`

var functions = template.FuncMap{"rate": rateWords, "percent": percent, "plus": func(a, b int) int { return a + b },
	"words": tally.Words, "some": some, "seconds": func(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }}

// page makes a template with the common head.
func page(name, body string) *template.Template {
	return template.Must(template.New(name).Funcs(functions).Parse(head + body + "</body></html>\n"))
}

// rateWords gives "3 of 20, 15.0 % (5.2 to 36.0)".
func rateWords(r tally.Rate) string {
	if r.N == 0 {
		return "none"
	}
	lo, hi := r.Wilson()
	return fmt.Sprintf("%d of %d, %.1f %% (%.1f to %.1f)", r.Hit, r.N, 100*r.Value(), 100*lo, 100*hi)
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// rateBar gives a rate as a bar with its interval.
func rateBar(label string, r tally.Rate) Bar {
	lo, hi := r.Wilson()
	return Bar{Label: label, Value: r.Value(), Lo: lo, Hi: hi, Text: fmt.Sprintf("%d of %d", r.Hit, r.N)}
}

func execute(w io.Writer, t *template.Template, data any) error {
	if err := t.Execute(w, data); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
