package testlog

import "strings"

// djangoTorn are passes whose line another message tore in two.
var djangoTorn = []string{
	`(?m)^(.*?)\s\.\.\.\sTesting against Django installed in ((?s:.*?)) silenced\)\.\nok$`,
	`(?m)^(.*?)\s\.\.\.\sInternal Server Error: \/(.*)\/\nok$`,
	`(?m)^(.*?)\s\.\.\.\sSystem check identified no issues \(0 silenced\)\nok$`,
}

// django reads what Django's own runner prints with -v 2.
func django(log string) Results {
	out := Results{}
	const version = "--version is equivalent to version"
	before, known := "", false // the test of the last line that names one
	for line := range strings.SplitSeq(log, "\n") {
		line = strip(line)
		if strings.Contains(line, version) {
			out[version] = Passed
		}
		if test, _, ok := strings.Cut(line, " ... "); ok {
			before, known = test, true
		}
		line = djangoPass(line, out)
		djangoRest(line, out)
		if known && strings.HasPrefix(line, "ok") {
			out[before] = Passed
		}
	}
	for _, pattern := range djangoTorn {
		for _, m := range py(pattern).FindAllStringSubmatch(log, -1) {
			out[m[1]] = Passed
		}
	}
	return out
}

// djangoPass reads "test ... ok" and gives the line as what follows reads it.
func djangoPass(line string, out Results) string {
	for _, suffix := range []string{" ... ok", " ... OK", " ...  OK"} {
		if !strings.HasSuffix(line, suffix) {
			continue
		}
		// A migration prints before this one test of django__django-7188.
		if strings.HasPrefix(line, "Applying sites.0002_alter_domain_unique...test_no_migrations") {
			_, line, _ = strings.Cut(line, "...")
			line = strip(line)
		}
		test := line
		if i := strings.LastIndex(line, suffix); i >= 0 {
			test = line[:i]
		}
		out[test] = Passed
		break
	}
	return line
}

// djangoRest reads tests that did not pass, in the list and in the headings of their details.
func djangoRest(line string, out Results) {
	if test, _, ok := strings.Cut(line, " ... skipped"); ok {
		out[test] = Skipped
	}
	for _, form := range []struct{ end, head, status string }{{" ... FAIL", "FAIL:", Failed}, {" ... ERROR", "ERROR:", Error}} {
		if strings.HasSuffix(line, form.end) {
			test, _, _ := strings.Cut(line, form.end)
			out[test] = form.status
		}
		if strings.HasPrefix(line, form.head) {
			if words := fields(line); len(words) > 1 {
				out[words[1]] = form.status
			}
		}
	}
}
