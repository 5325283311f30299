package tasks

import (
	"regexp"
	"strconv"
	"strings"
)

// yamlLine finds the line that the yaml library puts in its messages, which carry it only as text.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

// syntaxProblem turns a YAML syntax error into a Problem with its line.
func syntaxProblem(err error) Problem {
	text := err.Error()
	p := Problem{Remedy: "mend the YAML; quote values that hold ': ' or start with one of [{*&!%@`"}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		p.Column = 1
		text = text[len(m[0]):]
	}
	p.Message = "not valid YAML: " + strings.TrimPrefix(text, "yaml: ")
	return p
}
