package report

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"strings"
)

// Bar is one bar of a chart.
type Bar struct {
	Label  string
	Value  float64
	Lo, Hi float64 // interval; drawn where Hi > Lo
	Text   string  // beside the bar; the value where empty
}

// barTemplate draws horizontal bars. The labels are escaped by the template like any text.
var barTemplate = template.Must(template.New("bars").Funcs(template.FuncMap{"px": px}).Parse(
	`<svg class="chart" role="img" aria-label="{{.Title}}" viewBox="0 0 640 {{.Height}}" width="640" height="{{.Height}}"><title>{{.Title}}</title>
{{range .Bars}}<text x="168" y="{{.TextY}}" text-anchor="end">{{.Label}}</text><rect x="176" y="{{.Y}}" width="{{px .Width}}" height="16"><title>{{.Label}}: {{.Text}}</title></rect>
{{if .Interval}}<path d="M{{px .LoX}} {{.MidY}}H{{px .HiX}}M{{px .LoX}} {{.Y}}v16M{{px .HiX}} {{.Y}}v16"/>{{end}}<text x="{{px .EndX}}" y="{{.TextY}}">{{.Text}}</text>
{{end}}</svg>`))

func px(x float64) string { return fmt.Sprintf("%.1f", x) }

type drawnBar struct {
	Label, Text     string
	Y, TextY, MidY  int
	Width, LoX, HiX float64
	EndX            float64
	Interval        bool
}

// bars draws a chart of at most 40 bars; full is the value of the whole width, 0 for the largest.
func bars(title string, list []Bar, full float64) (template.HTML, error) {
	const left, width = 176.0, 330.0
	if len(list) > 40 {
		list = list[:40]
	}
	if full == 0 {
		for _, b := range list {
			full = math.Max(full, math.Max(b.Value, b.Hi))
		}
	}
	if full == 0 {
		full = 1
	}
	scale := func(v float64) float64 { return width * math.Min(1, math.Max(0, v/full)) }
	var drawn []drawnBar
	for i, b := range list {
		y := 6 + 24*i
		d := drawnBar{Label: shorten(b.Label, 26), Text: orText(b.Text, fmt.Sprintf("%.4g", b.Value)), Y: y, TextY: y + 13, MidY: y + 8, Width: scale(b.Value)}
		end := d.Width
		if b.Hi > b.Lo {
			d.Interval, d.LoX, d.HiX = true, left+scale(b.Lo), left+scale(b.Hi)
			end = math.Max(end, scale(b.Hi))
		}
		d.EndX = left + end + 8
		drawn = append(drawn, d)
	}
	var out bytes.Buffer
	err := barTemplate.Execute(&out, struct {
		Title  string
		Height int
		Bars   []drawnBar
	}{title, 12 + 24*len(list), drawn})
	return template.HTML(out.String()), err //nolint:gosec // made by html/template, which escaped every value
}

// histogram counts values in at most ten bins of equal, round width.
func histogram(title string, values []float64, unit string) (template.HTML, error) {
	if len(values) == 0 {
		return bars(title, nil, 0)
	}
	top := 0.0
	for _, v := range values {
		top = math.Max(top, v)
	}
	step := roundUp(top / 10)
	bins := make([]Bar, int(top/step)+1)
	for i := range bins {
		bins[i].Label = strings.TrimSpace(fmt.Sprintf("%.4g to %.4g %s", float64(i)*step, float64(i+1)*step, unit))
	}
	for _, v := range values {
		bins[int(math.Max(0, v)/step)].Value++
	}
	return bars(title, bins, 0)
}

// roundUp gives the least of 1, 2, 5 times a power of ten that is not below x.
func roundUp(x float64) float64 {
	if x <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*power >= x {
			return m * power
		}
	}
	return 10 * power
}

func shorten(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
