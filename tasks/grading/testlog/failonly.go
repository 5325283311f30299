package testlog

import (
	"fmt"
	"regexp"
	"strings"
)

// The parsers of this file record failures alone: see FailOnly.

var blankRun = py(`\s+`)

// squeeze makes every run of blanks one space.
func squeeze(text string) string { return strip(blankRun.ReplaceAllString(text, " ")) }

var bpmnFailures = []*regexp.Regexp{
	py(`2KPhantomJS\s[\d\.]+\s\(Linux\s[\d\.]+\)\s(.*)FAILED\n`),
	py(`2KPhantomJS\s[\d\.]+\s\(Linux\sx86_64\)\s(.*)FAILED\n`),
	py(`Chrome\sHeadless\s(?:.*)\s\(Linux\sx86_64\)\s(.*)FAILED\n`),
	py(`HeadlessChrome\s[\d\.]+\s\(Linux\s[\d\.]+\)\s(.*)FAILED\n`),
}

func bpmnJS(log string) Results {
	out := Results{}
	for _, re := range bpmnFailures {
		for _, m := range re.FindAllStringSubmatch(log, -1) {
			out[m[1]] = Failed
		}
	}
	return out
}

var eslintFailure = py(`(\s{2}\d+\))((?s:.)*?)\s+(?:(.*)Error)`)

func eslint(log string) Results {
	out := Results{}
	for _, m := range eslintFailure.FindAllStringSubmatch(log, -1) {
		out[squeeze(m[2])] = Failed
	}
	return out
}

var openLayersFailures = []*regexp.Regexp{
	py(`(?m)Chrome\sHeadless\s[\d\.]+\s\(Linux\s[\d\._` + blackClass + `]+\)\s(.*)\sFAILED\n`),
	py(`(?m)Chrome\s[\d\.]+\s\(Linux\s[\d\._` + blackClass + `]+\)\s(.*)FAILED\n`),
	py(`(?m)^\s{2}\d+\)((?s:.)*?)Error:`),
	py(`(?m)^case\s(.*):\smismatch`),
}

// blackClass is \S inside a class.
const blackClass = `\x00-\x08\x0e-\x1b!-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff}`

func openLayers(log string) Results {
	out := Results{}
	for _, re := range openLayersFailures {
		for _, m := range re.FindAllStringSubmatch(log, -1) {
			out[squeeze(m[1])] = Failed
		}
	}
	return out
}

var chartFailure = regexp.MustCompile(`(?m)Chrome[` + blanks + `][\p{Nd}\.]+[\t\v\f\x1c-\x20\x{85}\p{Z}]\(.+?\)[\t\v\f\x1c-\x20\x{85}\p{Z}](.*)FAILED$`)

func chartJS(log string) Results {
	out := Results{}
	for _, m := range chartFailure.FindAllStringSubmatch(escapes.ReplaceAllString(log, ""), -1) {
		out[m[1]] = Failed
	}
	return out
}

var markedFailure = py(`^\d+\)\s(.*)`)

func marked(log string) Results {
	out := Results{}
	for line := range strings.SplitSeq(log, "\n") {
		if m := markedFailure.FindStringSubmatch(line); m != nil {
			out[strip(m[1])] = Failed
		}
	}
	return out
}

var (
	xmlOpen   = py(`<(\w+)>`)
	p5Failure = py(`(?ms)^\s*(\d+)\)(.{0,1000}?):`)
)

// p5 reads mocha's numbered failures: titles of suites and test, each further in than the one before.
func p5(log string) (Results, error) {
	log, err := withoutXML(withoutJSON(escapes.ReplaceAllString(log, "")))
	if err != nil {
		return nil, err
	}
	out := Results{}
	for _, m := range p5Failure.FindAllStringSubmatch(log, -1) {
		var titles []string
		last, deeper := 0, true
		for line := range strings.SplitSeq(m[2], "\n") {
			n := indent(line)
			deeper = deeper && n > last
			last = n
			titles = append(titles, strip(line))
		}
		if deeper {
			out[strings.Join(titles, ":")] = Failed
		}
	}
	return out, nil
}

// withoutJSON takes out what looks like printed JSON: its failures are no tests.
func withoutJSON(log string) string {
	var kept []string
	object, list := false, false
	for line := range strings.SplitSeq(log, "\n") {
		end := strings.TrimRightFunc(line, blank)
		switch {
		case strings.HasSuffix(end, "{"):
			object = true
		case strings.HasSuffix(end, "["):
			list = true
		case end == "}" && object:
			object = false
		case end == "]" && list:
			list = false
		case object, list:
		case strings.HasPrefix(end, "{") && strings.HasSuffix(end, "}"):
		case strings.HasPrefix(end, "[") && strings.HasSuffix(end, "]"):
		default:
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// maxXMLBlocks bounds the work of withoutXML, which copies the log once a block.
const maxXMLBlocks = 2000

// withoutXML takes out <tag>...</tag>, from the leftmost on; of nested openings of one tag all but one stay.
func withoutXML(log string) (string, error) {
	at := 0
	unclosed := map[string]bool{} // tags that nothing behind at closes
	for blocks := 0; ; {
		m := xmlOpen.FindStringSubmatchIndex(log[at:])
		if m == nil {
			return log, nil
		}
		tag := log[at+m[2] : at+m[3]]
		start, body := at+m[0], at+m[1]
		end := -1
		if !unclosed[tag] {
			end = strings.Index(log[body:], "</"+tag+">")
		}
		if end < 0 {
			unclosed[tag] = true
			at = body
			continue
		}
		if blocks++; blocks > maxXMLBlocks {
			return "", fmt.Errorf("%w: p5js: over %d blocks of XML", ErrLog, maxXMLBlocks)
		}
		end += body
		again := strings.Repeat("<"+tag+">", strings.Count(log[body:end], "<"+tag+">"))
		log = log[:start] + again + log[end+len("</"+tag+">"):]
		at = start
	}
}
