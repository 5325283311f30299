package testlog

import (
	"regexp"
	"strings"
)

var (
	karmaLine = py(`^(\s*)?([✔✖])?\s(.*)$`)
	karmaMark = map[string]string{"✔": Passed, "✖": Failed}
)

// karma reads the tree of karma's mocha reporter. A line that steps back closes one suite and is not
// itself taken for one: that is how the published parser reads it, and names are as it gives them.
func karma(log string) Results {
	out := Results{}
	var suites []string
	depth, started := -1, false
	for line := range strings.SplitSeq(log, "\n") {
		if strings.HasPrefix(line, "SUMMARY:") {
			return out
		}
		if strings.Contains(line, "Starting browser") {
			started = true
			continue
		}
		if !started {
			continue
		}
		m := karmaLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if n := len([]rune(m[1])); m[1] != "" && m[2] == "" {
			switch {
			case n > depth:
				depth = n
				suites = append(suites, m[3])
			case n < depth:
				depth = n
				if len(suites) > 0 {
					suites = suites[:len(suites)-1]
				}
				continue
			}
		}
		if m[2] != "" {
			out[strings.Join(append(suites[:len(suites):len(suites)], m[3]), " > ")] = karmaMark[m[2]]
		}
	}
	return out
}

var (
	calypsoTime = py(`\(\d+ms\)`)
	calypsoMark = []struct {
		mark, status string
		timed, plain *regexp.Regexp
	}{
		{"✓", Passed, py(`^\s+✓\s(.*)\(\d+ms\)$`), py(`^\s+✓\s(.*)`)},
		{"✕", Failed, py(`^\s+✕\s(.*)\(\d+ms\)$`), py(`^\s+✕\s(.*)`)},
	}
)

// calypso reads jest's verbose trees, one after each jest command.
func calypso(log string) Results {
	out := Results{}
	var suites []step
	for i, part := range strings.Split(log, " ./node_modules/.bin/jest ") {
		if i == 0 {
			continue
		}
		for line := range strings.SplitSeq(part, "\n") {
			if strings.HasPrefix(line, "Test Suites") || strings.HasPrefix(line, "  ● ") {
				break
			}
			if calypsoTest(line, suites, out) {
				continue
			}
			if indent(line) > 0 {
				suites = nest(suites, line)
			}
		}
	}
	return out
}

func calypsoTest(line string, suites []step, out Results) bool {
	bare := strip(line)
	for _, m := range calypsoMark {
		if !strings.HasPrefix(bare, m.mark) {
			continue
		}
		re := m.plain
		if calypsoTime.MatchString(line) {
			re = m.timed
		}
		if found := re.FindStringSubmatch(line); found != nil {
			out[strip(path(suites)+" - "+found[1])] = m.status
		}
		return true
	}
	return false
}

var (
	escapes       = regexp.MustCompile(`\x1B(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])`)
	nextAssertion = py(`(?s)AssertionError:\s+#(.*?)\n\n`)
	nextFail      = py(`^.*?✗\s*(.*)`)
	nextPass      = py(`^.*?✓\s*(.*)`)
)

// nextKarma reads karma's tree after each run under xvfb.
func nextKarma(log string) Results {
	log = nextAssertion.ReplaceAllString(escapes.ReplaceAllString(log, ""), "")
	out := Results{}
	var suites []step
	for i, part := range strings.Split(log, " xvfb-run ") {
		if i == 0 {
			continue
		}
		if at := strings.LastIndex(part, "Starting browser Chrome"); at >= 0 {
			part = part[at+len("Starting browser Chrome"):]
		}
		for line := range strings.SplitSeq(part, "\n") {
			if strings.HasPrefix(line, "TOTAL") {
				break
			}
			suites = nextLine(line, suites, out)
		}
	}
	return out
}

func nextLine(line string, suites []step, out Results) []step {
	bare := strip(line)
	for _, noise := range []string{"ERROR", "LOG", "WARN", "Check", "in"} {
		if strings.HasPrefix(bare, noise) {
			return suites
		}
	}
	if m := nextFail.FindStringSubmatch(line); m != nil {
		out[path(suites, m[1])] = Failed
	} else if m := nextPass.FindStringSubmatch(line); m != nil {
		out[path(suites, m[1])] = Passed
	} else if indent(line) > 0 {
		return nest(suites, line)
	}
	return suites
}

var (
	cypressSuite = py(`Running\:(.*)\)\n{3}\s{2}(.*)\n`)
	cypressFail  = py(`(?m)^\s{4}\d+\)\s(.*)`)
	cypressPass  = py(`(?m)^\s{4}✓\s(.*)\(`)
)

// nextCypress reads cypress's lists, one for each "Running:".
func nextCypress(log string) Results {
	out := Results{}
	heads := cypressSuite.FindAllStringSubmatchIndex(log, -1)
	for i, head := range heads {
		end := len(log)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		suite, part := log[head[4]:head[5]], log[head[1]:end]
		for _, m := range cypressFail.FindAllStringSubmatch(part, -1) {
			out[suite+": "+strip(m[1])] = Failed
		}
		for _, m := range cypressPass.FindAllStringSubmatch(part, -1) {
			out[suite+": "+strip(m[1])] = Passed
		}
	}
	return out
}

var (
	lighthouseRun   = py(`running\s\d+\stest\sfiles`)
	lighthouseEnd   = py(`\d+\spassing`)
	lighthouseTests = []struct {
		re     *regexp.Regexp
		status string
	}{
		{py(`^✔\s(.*)\s\(\d+m+s\)`), Passed}, {py(`^✔\s(.*)`), Passed},
		{py(`^\d+\)\s(.*)\s\(\d+m+s\)`), Failed}, {py(`^\d+\)\s(.*)`), Failed},
	}
	fullTitle = regexp.MustCompile(`"fullTitle": "(.*)",\n`)
)

// lighthouseMocha reads mocha's tree of each run.
func lighthouseMocha(log string) Results {
	out := Results{}
	for i, run := range lighthouseRun.Split(log, -1) {
		if i == 0 {
			continue
		}
		if at := lighthouseEnd.FindStringIndex(run); at != nil {
			run = run[:at[0]]
		}
		var suites []step
	lines:
		for line := range strings.SplitSeq(strip(run), "\n") {
			for _, t := range lighthouseTests {
				if m := t.re.FindStringSubmatch(strip(line)); m != nil {
					out[path(suites, m[1])] = t.status
					continue lines
				}
			}
			if indent(line) > 0 {
				suites = nest(suites, line)
			}
		}
	}
	return out
}

// lighthouseJSON reads titles out of what mocha's JSON reporter printed, which other output may cut up.
func lighthouseJSON(log string) Results {
	out := Results{}
	for i, part := range strings.Split(log, "./node_modules/.bin/mocha --reporter json") {
		if i == 0 {
			continue
		}
		for _, list := range []struct{ open, end, status string }{{`"passes": [`, "]", Passed}, {`"failures": [`, "],", Failed}} {
			text := part
			if at := strings.LastIndex(text, list.open); at >= 0 {
				text = text[at+len(list.open):]
			}
			if at := strings.LastIndex(text, list.end); at >= 0 {
				text = text[:at]
			}
			for _, m := range fullTitle.FindAllStringSubmatch(text, -1) {
				out[m[1]] = list.status
			}
		}
	}
	return out
}
