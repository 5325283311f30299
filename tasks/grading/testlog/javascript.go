package testlog

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// immutableJS changed its runner between the pull requests of the set.
func immutableJS(log string, about About) (Results, error) {
	number := about.InstanceID[strings.LastIndexByte(about.InstanceID, '-')+1:]
	switch number {
	case "2006":
		return parsers()["jest"](log, about)
	case "2005":
		return parsers()["jest_json"](log, about)
	}
	return nil, fmt.Errorf("%w: immutable_js: nothing is known of the runner of %q", ErrLog, about.InstanceID)
}

// next changed its runner with version 1.27.
func next(log string, about About) (Results, error) {
	if about.Version == "1.27" {
		return nextCypress(log), nil
	}
	return nextKarma(log), nil
}

// lighthouse had three runners.
func lighthouse(log string, about About) (Results, error) {
	if slices.Contains([]string{"9.5", "10.0", "10.2"}, about.Version) {
		return lighthouseMocha(log), nil
	}
	version, err := strconv.ParseFloat(about.Version, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: lighthouse: its runner hangs on the version, and %q is none", ErrLog, about.Version)
	}
	if version >= 3 {
		return carbon(log), nil
	}
	return lighthouseJSON(log), nil
}

var (
	mochaEpilogue = py(`\n[ \t]*\d+ passing`)
	mochaTime     = py(`\(\d+ms\)`)
	mochaFailed   = py(`^\d+\)`)
)

// highlightJS reads mocha's tree up to its epilogue, one level deep.
func highlightJS(log string) Results {
	if at := mochaEpilogue.FindStringIndex(log); at != nil {
		log = log[:at[0]]
	}
	out := Results{}
	suite := "" // with the dot after it; nothing before the first
	for line := range strings.SplitSeq(log, "\n") {
		bare := strip(line)
		test, status := "", Passed
		switch {
		case strings.HasPrefix(bare, "✓"):
			_, test, _ = strings.Cut(line, "✓")
		case strings.HasPrefix(bare, "✔"):
			_, test, _ = strings.Cut(line, "✔")
		case mochaFailed.MatchString(bare):
			_, test, _ = strings.Cut(line, ")")
			status = Failed
		case strings.HasPrefix(line, "  "):
			suite = bare + "."
			continue
		default:
			continue
		}
		out[suite+strip(mochaTime.ReplaceAllString(test, ""))] = status
	}
	return out
}

// prism reads the JSON that mocha prints after each of its commands.
func prism(log string, _ About) (Results, error) {
	const command = "./node_modules/.bin/mocha tests/run.js --reporter json"
	out := Results{}
	for i, part := range strings.Split(log, command) {
		if i == 0 {
			continue
		}
		if _, rest, ok := strings.Cut(part, "{"); ok {
			part = rest
		}
		if end := strings.LastIndexByte(part, '}'); end >= 0 {
			part = part[:end]
		}
		var results struct {
			Failures, Passes *[]struct {
				FullTitle *string `json:"fullTitle"`
			}
		}
		if err := json.Unmarshal([]byte("{"+part+"}"), &results); err != nil {
			return nil, fmt.Errorf("%w: prismjs: %w", ErrLog, err)
		}
		if results.Failures == nil || results.Passes == nil {
			return nil, fmt.Errorf("%w: prismjs: a report without failures or passes", ErrLog)
		}
		for _, t := range *results.Failures {
			if t.FullTitle != nil {
				out[*t.FullTitle] = Failed
			}
		}
		for _, t := range *results.Passes {
			if t.FullTitle != nil {
				out[*t.FullTitle] = Passed
			}
		}
	}
	return out, nil
}

var carbonLines = []*regexp.Regexp{
	py(`^(PASS|FAIL)\s(.*)\s\([\d\.]+ms\)`), py(`^(PASS|FAIL)\s(.*)\s\([\d\.]+\ss\)`),
	py(`^(PASS|FAIL)\s(.*)\s\([\d\.]+s\)`), py(`^(PASS|FAIL)\s(.*)`),
}

// carbon reads jest's lines by file, without their times.
func carbon(log string) Results {
	out := Results{}
	for line := range strings.SplitSeq(log, "\n") {
		if !strings.HasPrefix(line, "PASS") && !strings.HasPrefix(line, "FAIL") {
			continue
		}
		for _, re := range carbonLines {
			if m := re.FindStringSubmatch(line); m != nil {
				out[m[2]] = words[m[1]]
				break
			}
		}
	}
	return out
}

var (
	grommetFail = py(`(?m)^FAIL\s(.*)`)
	grommetPass = py(`(?m)^PASS\s(.*)`)
	grommetTime = py(`\s\([\d\.]+\s?(?:ms|s)\)$`)
)

func grommet(log string) Results {
	out := Results{}
	for _, form := range []struct {
		re     *regexp.Regexp
		status string
	}{{grommetFail, Failed}, {grommetPass, Passed}} {
		for _, m := range form.re.FindAllStringSubmatch(log, -1) {
			out[grommetTime.ReplaceAllString(strip(m[1]), "")] = form.status
		}
	}
	return out
}

var (
	quartoTest  = py(`\[(smoke|unit)\]`)
	quartoTemp  = []*regexp.Regexp{py(`/tmp/(\w+)\.qmd`), py(`/tmp/(\w+)/`)}
	quartoSteps = []string{"passed", "failed", "steps"}
)

// quarto numbers temporary files in the order met, so that names agree between runs. A test without a
// status has failed.
func quarto(log string) Results {
	out := Results{}
	numbers := map[string]string{}
	for line := range strings.SplitSeq(log, "\n") {
		if strings.Contains(line, "ERRORS") || strings.Contains(line, "failures:") {
			break
		}
		if !quartoTest.MatchString(line) {
			continue
		}
		for _, re := range quartoTemp {
			found := re.FindString(line)
			if found == "" {
				continue
			}
			if numbers[found] == "" {
				numbers[found] = strconv.Itoa(len(numbers))
			}
			line = re.ReplaceAllLiteralString(line, "/tmp/"+numbers[found])
		}
		test, _, _ := strings.Cut(line, "...")
		test = strip(test)
		rejected := strings.HasPrefix(line, "test result:") || strings.Contains(line, "34mINFO") ||
			!slices.ContainsFunc(quartoSteps, func(word string) bool { return !strings.Contains(line, word) })
		switch {
		case rejected:
		case strings.Contains(line, "32mok"):
			out[test] = Passed
		case strings.Contains(line, "31mFAILED") || out[test] == "":
			out[test] = Failed
		}
	}
	return out
}
