package testlog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Statuses as parsers spell them. A pytest parser gives a line's first word, which may be another yet
// ("ERRORS", "FAILED:"): no pass, and no failure that the line's runner meant.
const (
	Passed  = "PASSED"
	Failed  = "FAILED"
	Skipped = "SKIPPED"
	Error   = "ERROR"
	XFail   = "XFAIL"
)

// Results are the tests of a log by name, with their statuses.
type Results map[string]string

// About is what some parsers must know of the task, since a set's runner changed between its versions.
type About struct {
	InstanceID string
	Version    string // as the set gives it: "1.27"
}

var (
	// ErrUnknown: no parser goes by that name.
	ErrUnknown = errors.New("no such log parser")
	// ErrLog: the log is not one that the parser can read.
	ErrLog = errors.New("the log cannot be read")
)

type parser func(log string, about About) (Results, error)

// Parse reads a log by the parser of a name, with or without "parse_log_" before it. Errors: ErrUnknown,
// ErrLog.
func Parse(name, log string, about About) (Results, error) {
	p, ok := parsers()[strings.TrimPrefix(name, "parse_log_")]
	if !ok {
		return nil, fmt.Errorf("%w: %q; there are %s", ErrUnknown, name, strings.Join(Names(), ", "))
	}
	return p(universal(log), about)
}

// Known reports whether Parse knows a name.
func Known(name string) bool {
	_, ok := parsers()[strings.TrimPrefix(name, "parse_log_")]
	return ok
}

// Names are the names of all parsers, in order.
func Names() []string {
	names := []string{}
	for name := range parsers() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// FailOnly reports whether a parser records failures alone, so that a test that its log does not name
// has passed, provided that the runner ran (Ran).
func FailOnly(name string) bool {
	switch strings.TrimPrefix(name, "parse_log_") {
	case "chart_js", "p5js", "marked", "bpmn_js", "openlayers", "eslint":
		return true
	}
	return false
}

// ran is what runners print once they have run at least one test.
var ran = py(`(?m)Executed [1-9]\d* of \d+|TOTAL: [1-9]\d* (?:SUCCESS|FAILED)|[1-9]\d* passing|Tests:\s+[1-9]\d*` +
	`|Test Suites:\s+(?:\d+ \w+, )*[1-9]\d* total|^# tests [1-9]\d*|[1-9]\d* specs?, \d+ failures?|': ok$`)

// Ran reports whether a log shows that its runner ran a test, for logs that name only failures.
func Ran(log string) bool { return ran.MatchString(universal(log)) }

// parsers are all parsers by name. Sets give some of them several names.
func parsers() map[string]parser {
	return map[string]parser{
		"pytest": plain(pytest), "astroid": plain(pytest), "flask": plain(pytest), "marshmallow": plain(pytest),
		"pvlib": plain(pytest), "pyvista": plain(pytest), "sqlfluff": plain(pytest), "xarray": plain(pytest),
		"pytest_options": plain(pytestOptions), "pydicom": plain(pytestOptions), "requests": plain(pytestOptions), "pylint": plain(pytestOptions),
		"pytest_v2": plain(pytestV2), "astropy": plain(pytestV2), "scikit": plain(pytestV2), "sphinx": plain(pytestV2),
		"django": plain(django), "seaborn": plain(seaborn), "sympy": plain(sympy), "matplotlib": plain(matplotlib),

		"gotest": lines(`^--- (PASS|FAIL|SKIP): (.+) \((.+)\)$`, 2, 1),
		"cargo":  lines(`^test\s+(\S+)\s+\.\.\.\s+(\w+)$`, 1, 2),
		"ant":    lines(`^\s*\[junit\]\s+\[(PASS|FAIL|ERR)\]\s+(.*)$`, 2, 1),
		"maven":  plain(maven), "gradle_custom": plain(gradle),

		"tap":       lines(`^(ok|not ok) (\d+) (.+)$`, 3, 1),
		"jest_json": lines(`^\[(PASSED|FAILED)\]\s(.+)$`, 2, 1),
		"jest":      lines(`^\s*(✓|✕|○)\s(.+?)(?:\s\((\d+\s*m?s)\))?$`, 2, 1),
		"vitest":    lines(`^\s*(✓|×|↓)\s(.+?)(?:\s(\d+\s*m?s?|\[skipped\]))?$`, 2, 1),
		"karma":     plain(karma), "highlightjs": plain(highlightJS), "calypso": plain(calypso), "grommet": plain(grommet),
		"carbon": plain(carbon), "react_pdf": plain(carbon), "next": next, "lighthouse": lighthouse, "immutable_js": immutableJS,
		"prismjs": prism, "quarto_cli": plain(quarto), "chart_js": plain(chartJS), "marked": plain(marked),
		"bpmn_js": plain(bpmnJS), "eslint": plain(eslint), "openlayers": plain(openLayers),
		"p5js": func(log string, _ About) (Results, error) { return p5(log) },

		"redis": plain(redis), "jq": lines(`^\s*(PASS|FAIL):\s(.+)$`, 2, 1), "doctest": func(log string, _ About) (Results, error) { return doctest(log) },
		"micropython_test": lines(`^(pass|FAIL|skip)\s+(.+)$`, 2, 1),
		"googletest":       lines(`^.*\[\s*(OK|FAILED)\s*\]\s(.*)\s\(.*\)$`, 2, 1),
		"phpunit":          plain(phpunit),

		"minitest": lines(minitestLine, 1, 2), "cucumber": lines(cucumberLine, 1, 2), "jekyll": jekyll,
		"ruby_unit":              lines(`^\s*(?:test: )?(.+):\s+(\.|E\b|F\b|O\b)`, 1, 2),
		"rspec_transformed_json": lines(`(.+) - (passed|failed)`, 1, 2),
	}
}

// plain makes a parser of a function that needs to know nothing and takes any text.
func plain(read func(log string) Results) parser {
	return func(log string, _ About) (Results, error) { return read(log), nil }
}
