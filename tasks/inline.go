package tasks

import (
	"fmt"

	"proctor/tasks/strict"
)

// maxInline bounds an inline task, in bytes.
const maxInline = 4 << 20

// ParseInline reads a task from the JSON of a request. It needs id, instruction, image and workdir
// only. Nothing on the host's disk can be named: no build folder, no grader files, no solution
// file. The error is a *ProblemsError that names each field.
func ParseInline(data []byte) (*Task, error) {
	if len(data) > maxInline {
		return nil, &ProblemsError{[]Problem{{Message: fmt.Sprintf("the task is %d bytes, over the limit of %d", len(data), maxInline)}}}
	}
	node, err := strict.FromJSON(data)
	if err != nil {
		return nil, &ProblemsError{[]Problem{{Message: err.Error(), Remedy: "send one JSON object"}}}
	}
	task := &Task{}
	c := &checker{Decoder: strict.Decode(node, task), task: task}
	c.check()
	task, problems := c.result()
	if len(problems) > 0 {
		return nil, &ProblemsError{problems}
	}
	return task, nil
}
